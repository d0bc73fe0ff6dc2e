"""Updates of elements that data choose run on all threads, by atomic operations: judged by NumPy, on OpenCL and in the
interpreter after every pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from tilewright import _core
from tilewright.heuristics import by_target
from tilewright.script import from_source
from tilewright.testing import everyday

N, BINS = 700, 23
UPDATES: dict[str, tuple[str, Callable[..., Any]]] = {
    "sum": ("H[I[vp]] + V[vp]", np.add),
    "difference": ("H[I[vp]] - V[vp]", np.subtract),
    "minimum": ("T.min(H[I[vp]], V[vp])", np.minimum),
    "maximum": ("T.max(V[vp], H[I[vp]])", np.maximum),
    "and": ("H[I[vp]] & V[vp]", np.bitwise_and),
    "or": ("H[I[vp]] | V[vp]", np.bitwise_or),
    "xor": ("V[vp] ^ H[I[vp]]", np.bitwise_xor),
}


def scattered(value: str, dtype: str, axis: str = "reduce") -> Any:
    """Steps of a block that update elements of H; without a kind of axis, of plain loops."""
    block = f'with T.block("H"):\n            vp = T.axis.{axis}({N}, p)\n            H[I[vp]] = {value}'
    if not axis:
        block = f"H[I[p]] = {value.replace('vp', 'p')}"
    return from_source(f"""
@T.prim_func
def main(I: T.Buffer(({N},), "int32"), V: T.Buffer(({N},), "{dtype}"), H: T.Buffer(({BINS},), "{dtype}")):
    for p in range({N}):
        {block}
""")


def arguments(dtype: str) -> list[np.ndarray]:
    """Small integers, whose sums are exact in any order."""
    draw = np.random.default_rng(3)
    values, starts = (draw.integers(0, 50, count).astype(dtype) for count in (N, BINS))
    return [draw.integers(0, BINS, N).astype("int32"), values, starts]


def check(program: Any, given: list[np.ndarray], expected: np.ndarray) -> Any:
    """Compare the kernel, and the scheduled program after each pass, with what is expected in the last array."""
    kernel = tw.compile(program, target="opencl")
    module = by_target.heuristic_schedules(_core.as_module(program), tw.Target("opencl")).module
    name = next(str(each.name_hint) for each in module.functions)
    stages = [lambda *a, m=m: _core.interpret(m, name, *a) for _, m in _core.lower_stages(module, "opencl")]
    for run in (kernel, *stages):
        arrays = [each.copy() for each in given]
        run(*arrays)
        np.testing.assert_array_equal(arrays[-1], expected)
    return kernel


@pytest.mark.parametrize("axis", ["reduce", "opaque", ""])
@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_that_meet_in_an_element(name: str, dtype: str, axis: str) -> None:
    value, ufunc = UPDATES[name]
    given = arguments(dtype)
    expected = given[-1].copy()
    ufunc.at(expected, given[0], given[1])
    kernel = check(scattered(value, dtype, axis), given, expected)
    assert "tw_atomic_" in kernel.inspect("opencl") and not [n for n in kernel.notes if n.code.startswith("compile/")]
    assert "lower/one-thread" not in [note.code for note in kernel.notes]


@pytest.mark.parametrize("axis", ["reduce", "opaque", ""])
def test_sums_of_floats_have_a_note(axis: str) -> None:
    given = arguments("float32")
    expected = given[-1].copy()
    np.add.at(expected, given[0], given[1])
    kernel = check(scattered(UPDATES["sum"][0], "float32", axis), given, expected)
    (note,) = [each for each in kernel.notes if each.code == "compile/unordered-sums"]
    assert "adds to 'H'" in note.message and "may differ between calls" in note.message


@pytest.mark.parametrize("value", ["V[vp]", "H[I[vp]] * V[vp]", "H[I[vp]] + H[0]", "V[vp] - H[I[vp]]"])
@pytest.mark.parametrize("axis", ["opaque", ""])
def test_other_steps_keep_their_order(value: str, axis: str) -> None:
    given = arguments("int32")
    expected = given[-1].copy()
    for bin_, added in zip(given[0], given[1], strict=True):
        names = {"H": expected, "I": [bin_], "V": [added], "vp": 0}
        with np.errstate(over="ignore"):
            expected[bin_] = eval(value, names)
    kernel = check(scattered(value, "int32", axis), given, expected)
    assert "lower/one-thread" in [note.code for note in kernel.notes]


def test_elements_of_64_bits_need_a_target_that_has_them() -> None:
    """Atomic operations on them are extensions of OpenCL, which a device may lack."""
    given = arguments("int64")
    expected = given[-1].copy()
    np.add.at(expected, given[0], given[1])
    program = scattered(UPDATES["sum"][0], "int64")
    assert "tw_atomic_" not in check(program, given, expected).inspect("opencl")
    assert "atomicAdd" in compiled(program).inspect("cuda")


def test_sums_of_floats_with_columns_keep_their_order() -> None:
    """A thread has a column, to which it adds in the order of the steps."""
    draw = np.random.default_rng(4)
    x, index = draw.standard_normal((300, 70)).astype("float32"), draw.integers(0, 20, 300).astype("int32")
    expected = np.zeros((20, 70), "float32")
    for row, added in zip(index, x, strict=True):
        expected[row] += added
    program = from_source("""
@T.prim_func
def main(X: T.Buffer((300, 70)), I: T.Buffer((300,), "int32"), Y: T.Buffer((20, 70))):
    for p, j in T.grid(300, 70):
        with T.block("Y"):
            vp, vj = T.axis.remap("RS", [p, j])
            Y[I[vp], vj] = Y[I[vp], vj] + X[vp, vj]
""")
    kernel = check(program, [x, index, np.zeros((20, 70), "float32")], expected)
    assert "tw_atomic_" not in kernel.inspect("opencl")
    assert "compile/unordered-sums" not in [note.code for note in kernel.notes]


def test_rows_that_are_added_in_any_order() -> None:
    draw = np.random.default_rng(5)
    x, index = draw.integers(-9, 9, (300, 7)).astype("float32"), draw.integers(0, 20, 300).astype("int32")
    expected = np.zeros((20, 7), "float32")
    np.add.at(expected, index, x)
    kernel = check(everyday.scatter_add(20, 300, 7), [x, index, np.zeros((20, 7), "float32")], expected)
    assert [note.code for note in kernel.notes] == ["compile/unordered-sums"]


def test_a_histogram() -> None:
    numbers = np.random.default_rng(0).integers(0, 37, 5000).astype("int32")
    kernel = check(everyday.histogram(5000, 37), [numbers, np.full(37, 9, "int32")], np.bincount(numbers, minlength=37))
    assert not kernel.notes
    assert "atomicAdd" in compiled(everyday.histogram(5000, 37)).inspect("cuda")


CSC = """
@T.prim_func
def main(P: T.Buffer((61,), "int32"), I: T.Buffer((400,), "int32"), V: T.Buffer((400,), "{0}"),
         X: T.Buffer((60,), "{0}"), Y: T.Buffer((50,), "{0}")):
    for i in range(50):
        with T.block("zero"):
            vi = T.axis.spatial(50, i)
            Y[vi] = T.Cast("{0}", 0)
    for j in range(60):
        with T.block("column"):
            vj = T.axis.{1}(60, j)
            for p in range(P[vj + 1] - P[vj]):
                with T.block("Y"):
                    vp = T.axis.reduce(P[vj + 1] - P[vj], p)
                    Y[I[P[vj] + vp]] = Y[I[P[vj] + vp]] + V[P[vj] + vp] * X[vj]
"""


@pytest.mark.parametrize("axis", ["reduce", "opaque"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_columns_of_a_sparse_matrix_add_to_rows(dtype: str, axis: str) -> None:
    """A matrix in CSC times a vector: a thread has a column, a block around the updates of its nonzeros."""
    draw = np.random.default_rng(6)
    ends = np.sort(draw.integers(0, 400, 59))
    places = np.concatenate([[0], ends, [400]]).astype("int32")
    rows, values = draw.integers(0, 50, 400).astype("int32"), draw.integers(-9, 9, 400).astype(dtype)
    x = draw.integers(-9, 9, 60).astype(dtype)
    expected = np.zeros(50, dtype)
    np.add.at(expected, rows, values * np.repeat(x, np.diff(places)))
    kernel = check(from_source(CSC.format(dtype, axis)), [places, rows, values, x, np.ones(50, dtype)], expected)
    assert "tw_atomic_" in kernel.inspect("opencl") and 'thread="threadIdx.x"' in kernel.inspect("tir")
    assert "lower/one-thread" not in [note.code for note in kernel.notes]
    assert ("compile/unordered-sums" in [note.code for note in kernel.notes]) == (dtype == "float32")
