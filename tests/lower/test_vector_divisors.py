"""Quotients that only some lanes ask for: a vector has no short cut around a divisor of 0."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright import script

GUARDS = {
    "or": "T.if_then_else({d} == 0 or {x} {op} {d} > 1, {x}, T.{dtype}(7))",
    "and": "T.if_then_else({d} != 0 and {x} {op} {d} > 1, {x}, T.{dtype}(7))",
    "chosen": "T.if_then_else({d} != 0, {x} {op} {d}, T.{dtype}(7))",
    "by another": "T.if_then_else(A[i] > 50, {x} {op} {d}, T.{dtype}(7))",
    "twice": "T.if_then_else(A[i] > 50 and i < 60, {x} {op} {d} + T.{dtype}(1), T.{dtype}(7))",
}


@pytest.mark.parametrize("loop", ["T.vectorized", "T.serial"])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_lanes_that_ask_for_no_quotient(loop: str, guard: str, dtype: str) -> None:
    divisors = ("A[i]", "m", "(A[i] - T.{dtype}(3))", "(m + A[i] * T.{dtype}(0))", "A[0]", "(m - m)")
    texts, functions = {}, {}
    for divisor, value, op in itertools.product(divisors, ("A[i]", "m", "T.{dtype}(5)"), ("//", "%")):
        text = GUARDS[guard].replace("{d}", divisor).replace("{x}", value).replace("{op}", op)
        name = f"f{len(texts)}"
        texts[name] = text
        functions[name] = script.from_source(
            f"""from tilewright.script import tir as T
@T.prim_func
def {name}(A: T.Buffer((67,), "{dtype}"), m: T.{dtype}, B: T.Buffer((67,), "{dtype}")):
    for i in {loop}(67):
        B[i] = {text.replace("{dtype}", dtype)}
"""
        )
    # Together, since LLVM takes longer for a module than for a function.
    kernels = tw.compile(tw.ir.Module(functions), schedule="as written")
    references = tw.compile(tw.ir.Module(functions), target="interpreter")
    compared = 0
    for name, top, m in itertools.product(texts, (5, 60), (0, 3)):
        a = np.random.default_rng(top).integers(0, top, 67).astype(dtype)
        b, expected = np.zeros(67, dtype), np.zeros(67, dtype)
        try:
            references[name](a, m, expected)
        except tw.ScriptError as error:
            assert error.code == "interpret/divide-by-zero"
            continue
        kernels[name](a, m, b)
        np.testing.assert_array_equal(b, expected, err_msg=texts[name])
        compared += 1
    assert compared > 50
