from collections.abc import Callable
from pathlib import Path

import pytest

import count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("int a = b->c;  // why\n", ["int", "a", "=", "b", "->", "c", ";"]),
        ("a /* b\n c */ <<= 1'000.5e-3f;", ["a", "<<=", "1'000.5e-3f", ";"]),
        ('s = "// no \\" comment" u8"x";', ["s", "=", '"// no \\" comment"', 'u8"x"', ";"]),
        ('R"sql(a "b" // c)sql", \'\\\'\'', ['R"sql(a "b" // c)sql"', ",", "'\\''"]),
        ('#include "a/b.h"\n', ["#", "include", '"a/b.h"']),
    ],
)
def test_tokens_of_cpp(text: str, tokens: list[str]) -> None:
    assert [token for token, _ in count_tokens.cpp_tokens(text)] == tokens


def test_tokens_of_python() -> None:
    text = '"""What it is."""\n\nclass A:\n    """Why."""\n\n    x = f(1,\n          "text")  # so\n'
    assert [*count_tokens.python_tokens(text)] == [
        *(("class", 3), ("A", 3), (":", 3), ("x", 6), ("=", 6), ("f", 6), ("(", 6), ("1", 6), (",", 6)),
        *(('"text"', 7), (")", 7)),
    ]


def test_how_it_is_laid_out_changes_nothing() -> None:
    flat, tall = ("int f(int a, int b) { return a + b; }", "int\nf(int a,\n  int b)\n{\n  return a + b;  // sum\n}\n")
    assert [t for t, _ in count_tokens.cpp_tokens(flat)] == [t for t, _ in count_tokens.cpp_tokens(tall)]


def test_what_counts(tree: Callable[[dict[str, str]], Path]) -> None:
    root = tree(
        {
            "src/ir/a.cc": "int a;\n\n// why\nint b;\n",
            "src/ir/a_test.cc": "int c;\n",
            "src/kinds.def": "X(a)\n",
            "python/p/a.py": "x = 1\n",
            "python/p/a.pyi": "x: int\n",
            "tests/a.py": "x = 1\n",
        }
    )
    files = count_tokens.count(root)
    assert files == {"src/ir/a.cc": (6, 2), "src/kinds.def": (4, 1), "python/p/a.py": (3, 1)}
    assert {name: dict(row) for name, row in count_tokens.by_folder(files).items()} == {
        "src/ir": {"files": 1, "tokens": 6, "lines": 2},
        "src": {"files": 1, "tokens": 4, "lines": 1},
        "python/p": {"files": 1, "tokens": 3, "lines": 1},
    }
