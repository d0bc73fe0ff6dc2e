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
