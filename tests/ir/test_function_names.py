"""The functions of a module are found by their names and by GlobalVars."""

import pickle

import tilewright as tw
from tilewright.testing import workloads


def test_names_and_global_vars():
    mod = tw.ir.IRModule({"f": workloads.matmul(4, 4, 4), "g": workloads.matmul(8, 8, 8)})
    functions = mod.functions
    f = mod.get_global_var("f")
    assert list(functions) == ["f", "g"] and [name.name_hint for name in functions] == ["f", "g"]
    assert functions[f].same_as(functions["f"]) and f in functions and "h" not in functions
    assert functions.get(f).same_as(mod["f"]) and functions.get("h") is None
    assert repr(list(functions)) == "['f', 'g']"
    assert list(pickle.loads(pickle.dumps(functions))) == ["f", "g"]
