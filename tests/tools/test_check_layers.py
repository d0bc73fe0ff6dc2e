import pytest

import check_layers

TABLE = """
support -> nothing
ir      -> support
arith   -> ir
python  -> everything
"""


def findings(tree, files, table=TABLE):
    return list(check_layers.check(tree({"src/README.md": table} | files)))


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/ir/node.cc", "support/hash.h"),
        ("src/ir/node.cc", "ir/node.h"),
        ("src/arith/bound.cc", "ir/node.h"),
        ("src/arith/bound.cc", "support/hash.h"),
        ("src/python/module.cc", "arith/bound.h"),
        ("src/support/hash_test.cc", "arith/bound.h"),
    ],
)
def test_allowed(tree, path, include):
    assert findings(tree, {path: f'#include "{include}"\n'}) == []


@pytest.mark.parametrize(
    ("path", "include", "message"),
    [
        ("src/support/hash.cc", "ir/node.h", "layer support may not include ir"),
        ("src/ir/kinds.def", "arith/bound.h", "layer ir may not include arith"),
        ("src/ir/node.h", "python/module.h", "layer ir may not include python"),
        ("src/ir/node.h", "vendor/json.h", "lies in no layer"),
        ("src/ir/node.h", "expr.h", 'write includes of ours from src/, such as "ir/expr.h"'),
    ],
)
def test_refused(tree, path, include, message):
    (finding,) = findings(tree, {path: f'#include <vector>\n  #  include "{include}"\n'})
    assert finding.startswith(f"{path}:2: ")
    assert message in finding


def test_folder_without_a_line(tree):
    (finding,) = findings(tree, {"src/vendor/json.h": ""})
    assert finding == "src/vendor: no line in the layer table of src/README.md"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE + "ir -> support\n", "layer ir stands twice"),
        (TABLE + "lower -> analysis\n", "layer lower names analysis"),
        ("support -> nothing\nir -> arith\narith -> ir\n", "layer ir depends on itself"),
    ],
)
def test_faults_of_the_table(tree, table, message):
    assert any(message in finding for finding in findings(tree, {}, table))


PYTHON = """
_core   -> nothing
errors  -> _core
kernel  -> errors
search  -> kernel
cli     -> everything
testing -> kernel
"""


def python_findings(tree, files, table=PYTHON):
    root = tree(
        {"src/README.md": TABLE, "python/README.md": table} | {f"python/tilewright/{k}": v for k, v in files.items()}
    )
    return list(check_layers.check(root))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("kernel.py", "from tilewright import _core, errors"),
        ("kernel.py", "import os\nfrom tilewright._core import Node"),
        ("search/session.py", "from tilewright.errors import Error\nfrom tilewright.search.spaces import Space"),
        ("cli.py", "import tilewright\nfrom tilewright import testing"),
        ("kernel.py", "if TYPE_CHECKING:\n    from tilewright.search import Space"),
        ("__init__.py", "from tilewright.search import tune"),
    ],
)
def test_allowed_imports(tree, path, text):
    assert python_findings(tree, {path: text}) == []


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("errors.py", "from tilewright import kernel", ":1: errors may not import kernel"),
        ("kernel.py", "def f():\n    from tilewright.search.session import tune", ":2: kernel may not import search"),
        ("search/session.py", "import tilewright as tw", ":1: search may not import the whole package"),
        ("testing.py", "import tilewright.cli", ":1: testing may not import cli"),
        ("newcomer.py", "", "newcomer has no line in the layer table of python/README.md"),
        (
            "kernel.py",
            "if TYPE_CHECKING:\n    pass\nelse:\n    from tilewright import cli",
            ":4: kernel may not import cli",
        ),
    ],
)
def test_refused_imports(tree, path, text, message):
    (finding,) = python_findings(tree, {path: text})
    assert finding.startswith(f"python/tilewright/{path}") and message in finding


def test_modules_that_need_one_another(tree):
    table = PYTHON.replace("errors  -> _core", "errors  -> search")
    assert "python/README.md: layer errors depends on itself" in python_findings(tree, {}, table)


@pytest.mark.parametrize(
    ("files", "circle"),
    [
        (
            {"a": "from tilewright.kernel import b", "b": "def f():\n    from tilewright.kernel.a import g"},
            {"kernel.a", "kernel.b"},
        ),
        (
            {"__init__": "from tilewright.kernel.a import f", "a": "import tilewright.kernel"},
            {"kernel", "kernel.a"},
        ),
    ],
)
def test_circles_inside_of_a_folder(tree, files, circle):
    (finding,) = python_findings(tree, {f"kernel/{name}.py": text for name, text in files.items()})
    assert finding.startswith("python/tilewright/kernel: modules import one another in a circle: ")
    assert set(finding.rpartition(": ")[2].split(" <- ")) == circle


@pytest.mark.parametrize(
    "files",
    [
        {"a": "from tilewright.kernel.b import f", "b": "from tilewright.kernel import c", "c": ""},
        {"a": "from tilewright.kernel import b", "b": "if TYPE_CHECKING:\n    from tilewright.kernel.a import g"},
        {"a": "from tilewright.errors import Error", "b": "from tilewright.kernel.a import f"},
    ],
)
def test_no_circles(tree, files):
    assert python_findings(tree, {f"kernel/{name}.py": text for name, text in files.items()}) == []
