"""Two small dialects of this test: arithmetic modulo 7 inside a tensor program, and functions written as formulas.

`ring` stands on `tir`: statements are those of tensor programs, only operators mean something else. `formula` stands on
Python's expressions alone: a function is a list of equations between whole buffers.
"""

import ast
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.script.core import script
from tilewright.script.dialect import dialect, register
from tilewright.script.expressions import operand
from tilewright.script.parser import Parser
from tilewright.script.report import ScriptProblem
from tilewright.script.tir.functions import define_function

dialect("ring", base="tir")
_OPERATORS = {ast.Add: "__add__", ast.Mult: "__mul__"}


@register("ring", "BinOp")
def _ring_operator(parser: Parser, node: ast.BinOp) -> Any:
    left, right = operand(parser, node.left), operand(parser, node.right)
    parser.mark(node)
    if type(node.op) not in _OPERATORS:
        raise ScriptProblem("ring/operator", "the ring of integers modulo 7 has + and * only", "write x * y", node)
    return getattr(left, _OPERATORS[type(node.op)])(right) % 7


class Ring(nullcontext[None]):
    script_dialect = "ring"


dialect("formula")


@register("formula", "Assign")
def _equation(parser: Parser, node: ast.Assign) -> None:
    """`C = A + B`: element by element."""
    target = parser.eval(node.targets[0])
    inputs = {name.id: parser.eval(name) for name in ast.walk(node.value) if isinstance(name, ast.Name)}
    parser.mark(node)
    with script.grid(list(target.shape)) as loops, script.block(target.name), parser.scope():
        axes = list(loops) if isinstance(loops, tuple) else [loops]
        indices = script.remap("S" * len(axes), axes)
        for name, buffer in inputs.items():
            parser.define(name, buffer[tuple(indices)])
        script.buffer_store(target, parser.eval(node.value), tuple(indices))


class Formula:
    script_dialect = "formula"

    def __call__(self, func: Any) -> Any:
        return func

    def define_function(self, parser: Parser, node: ast.FunctionDef, is_private: bool, annotations: Any) -> None:
        define_function(parser, node, is_private, annotations)


formula = Formula()
names = {"Ring": Ring, "formula": formula}

PROGRAM = """
@I.ir_module
class M:
    @T.prim_func
    def powers(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = A[i] + 1
            with Ring():
                A[i] = A[i] * A[i]
                if A[i] > 3:
                    A[i] = A[i] + 5
            A[i] = A[i] + 1

    @formula
    def mix(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
        C = A * B + A
        B = C + C
"""


def run(module: ir.IRModule, name: str, *arrays: np.ndarray) -> None:
    ir.interpret(module, name, *arrays)


def test_operators_change_inside_the_scope_only() -> None:
    module = tw.script.from_source(PROGRAM, names)
    array = np.arange(8, dtype="int32")
    run(module, "powers", array)
    expected = (np.arange(8) + 1) ** 2 % 7
    np.testing.assert_array_equal(array, np.where(expected > 3, (expected + 5) % 7, expected) + 1)


def test_a_function_of_another_dialect_in_a_module() -> None:
    module = tw.script.from_source(PROGRAM, names)
    a, b, c = (np.random.default_rng(i).integers(0, 9, (4, 4), "int32") for i in range(3))
    expected = a * b + a
    run(module, "mix", a, b, c)
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(b, 2 * expected)
    ir.assert_structural_equal(tw.script.from_source(module.script()), module)


def test_from_decorators() -> None:
    @I.ir_module
    class M:
        @formula
        def twice(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
            B = A + A  # noqa: F841

    array, result = np.arange(4, dtype="int32"), np.zeros(4, "int32")
    run(M, "twice", array, result)
    np.testing.assert_array_equal(result, 2 * array)


def test_errors_of_a_dialect_are_placed() -> None:
    with pytest.raises(tw.ScriptError, match=r"has \+ and \* only") as caught:
        tw.script.from_source(PROGRAM.replace("A[i] * A[i]", "A[i] - A[i]"), names)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("ring/operator", 9, 24)


def test_what_a_dialect_has_not_is_refused_by_its_name() -> None:
    with pytest.raises(tw.ScriptError, match="'for' is not part of the dialect 'formula'"):
        tw.script.from_source(PROGRAM.replace("B = C + C", "for i in range(4): pass"), names)
