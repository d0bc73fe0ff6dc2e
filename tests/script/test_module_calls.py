"""Functions of a module that call one another with buffers."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

SOURCE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def square(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            y[i] = x[i] * x[i]

    @T.prim_func
    def main(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32"{more})):
        t = T.alloc_buffer((8,), "float32")
        Module.square(x, t)
        Module.square({given}, y)
"""


@pytest.mark.parametrize("target", ["native", "interpreter"])
@pytest.mark.parametrize("given", ["t", "t.data"])
def test_a_buffer_stands_for_its_memory(given: str, target: str) -> None:
    module = from_source(SOURCE.format(given=given, more=""))
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.compile(module, target)(x, y)
    np.testing.assert_array_equal(y, x**4)
    assert tw.ir.structural_equal(from_source(module.script()), module)


@pytest.mark.parametrize(
    "given, more, code",
    [
        ("t", ", strides=(1,)", "builder/call"),
        ("t[0]", "", "verify/call"),
        ("t[0:8]", "", "verify/call"),
        ("[t]", "", "arguments/items"),
    ],
)
def test_what_is_no_memory_is_refused_at_the_line(given: str, more: str, code: str) -> None:
    with pytest.raises(tw.ScriptError) as caught:
        tw.compile(from_source(SOURCE.format(given=given, more=more)))
    assert caught.value.code == code and "Module.square(" in str(caught.value)


@pytest.mark.parametrize("name", ["_name", "_parts", "__dunder", "__init__", "mro", "T", "cls", "metadata"])
def test_functions_of_any_name(name: str) -> None:
    module = from_source(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def {name}(x: T.int32) -> T.int32:
        return x + 1

    @T.prim_func
    def main(A: T.Buffer((2,), "int32")):
        A[0] = Module.{name}(A[1])
""")
    tw.ir.assert_structural_equal(from_source(module.script()), module)
    a = np.array([0, 7], "int32")
    tw.ir.interpret(module, "main", a)
    assert a[0] == 8


def test_a_function_that_is_missing() -> None:
    text = SOURCE.replace("Module.square(x, t)", "Module.sqare(x, t)").format(given="t", more="")
    with pytest.raises(tw.ScriptError, match="module 'Module' has no function 'sqare'") as caught:
        from_source(text)
    assert "'square'" in caught.value.hint
