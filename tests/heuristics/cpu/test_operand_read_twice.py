"""Contractions that read an operand twice get the tiles that products get."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

PROGRAM = """
@T.prim_func
def main(A: T.Buffer(({rows}, {steps}), "float32"), B: T.Buffer(({columns}, {steps}), "float32"),
         C: T.Buffer(({rows}, {columns}), "float32")):
    for i, j, k in T.grid({rows}, {columns}, {steps}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + {term}
"""
A, B = "A[vi, vk]", "B[vj, vk]"
TERMS = {
    "squared distance": (f"({A} - {B}) * ({A} - {B})", lambda a, b: (a - b) ** 2),
    "sum of squares": (f"({A} * {A} + {B} * {B})", lambda a, b: a * a + b * b),
    "chi squared": (f"({A} - {B}) * ({A} - {B}) * ({A} + {B})", lambda a, b: (a - b) ** 2 * (a + b)),
    "relative": (f"T.max({A}, {B}) * {A}", lambda a, b: np.maximum(a, b) * a),
}


def check(text: str, term, rows: int, columns: int, steps: int) -> None:
    """Values by NumPy, of small integers, whose sums are exact; results in registers."""
    kernel = tw.compile(from_source(text), schedule="by rules")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (n, steps)).astype(np.float32) for n in (rows, columns))
    c = np.empty((rows, columns), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, term(a[:, None], b[None]).sum(-1))
    schedule = kernel.inspect("schedule")
    assert 'set_scope(C, 0, "local")' in schedule and "cache_read" in schedule


@pytest.mark.parametrize("sizes", [(256, 512, 64), (100, 300, 17)])
@pytest.mark.parametrize("kind", TERMS)
def test_an_operand_that_is_read_twice(kind: str, sizes: tuple[int, int, int]) -> None:
    rows, columns, steps = sizes
    text, term = TERMS[kind]
    check(PROGRAM.format(rows=rows, columns=columns, steps=steps, term=text), term, *sizes)


@pytest.mark.parametrize("kind", ["product", *TERMS])
def test_one_operand_in_two_places(kind: str) -> None:
    """Distances between the rows of one matrix."""
    text, term = {"product": (f"{A} * {B}", lambda a, b: a * b), **TERMS}[kind]
    program = from_source(PROGRAM.format(rows=200, columns=200, steps=33, term=text.replace("B[", "A[")))
    kernel = tw.compile(program, schedule="by rules")
    a = np.random.default_rng(0).integers(-4, 5, (200, 33)).astype(np.float32)
    c = np.empty((200, 200), np.float32)
    kernel(a, a.copy(), c)
    np.testing.assert_array_equal(c, term(a[:, None], a[None]).sum(-1))
    assert 'set_scope(C, 0, "local")' in kernel.inspect("schedule")


def test_a_search_has_a_choice() -> None:
    text, _ = TERMS["squared distance"]
    program = from_source(PROGRAM.format(rows=64, columns=128, steps=32, term=text))
    result = tw.tune(program, trials=4, progress=None)
    assert result.progress.trials == 4
