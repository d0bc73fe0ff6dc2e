import pytest

import check_paths

FILES = {"src/ir/node.h": "", "docs/scripts.md": "", "tests/ir/test_nodes.py": "", "Makefile": ""}


def findings(tree, name, text):
    return list(check_paths.check(tree(FILES | {name: text})))


@pytest.mark.parametrize(
    "text",
    [
        "see `docs/scripts.md` and src/ir/node.h",
        "`src/ir/` and `src/ir`, `ir/node.h`, `node.h:12`, `Makefile`",
        "`tests/ir/test_NAME.py`, `tests/*/test_nodes.py`",
        "`out/kernel.h`, `build/dev/x.cc`, `report.html`, and/or, `a/b`, https://example.org/docs/other.md",
    ],
)
def test_what_is_there_or_no_path(tree, text):
    assert findings(tree, "docs/page.md", text) == []


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("CONTRIBUTING.md", "in `src/ir/interpreter.cc`", "src/ir/interpreter.cc"),
        ("src/ir/expr.h", "// as docs/meaning.md has it", "docs/meaning.md"),
        ("python/module.py", '"""See `ir/edge.h`."""', "ir/edge.h"),
        ("docs/page.md", "`src/arith/`", "src/arith/"),
        ("docs/page.md", "`node.cc`", "node.cc"),
        ("docs/page.md", "`tests/schedule/test_NAME.py`", "tests/schedule/test_NAME.py"),
        ("docs/page.md", "`LICENSE.md`", "LICENSE.md"),
    ],
)
def test_what_is_not_there(tree, name, text, path):
    assert findings(tree, name, f"\n{text}\n") == [f"{name}:2: {path} is not there"]


def test_the_repository():
    assert list(check_paths.check(check_paths.report.ROOT)) == []
