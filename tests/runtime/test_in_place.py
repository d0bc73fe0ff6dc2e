"""An input that is the output: allowed where each element is only read to compute that very element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.script import tir as T


def elementwise(shape: tuple[int, ...], dtype: str = "float32"):
    a, b = te.placeholder(shape, dtype, name="A"), te.placeholder(shape, dtype, name="B")
    return te.create_prim_func([a, b, te.compute(shape, lambda *i: a[i] * a[i] - b[i] * te.const(3, dtype), name="C")])


def values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (1003,), (3, 5), (33, 127), (4, 4, 16), (257, 1024)])
@pytest.mark.parametrize("schedule", ["as written", "by rules"])
def test_elementwise(shape: tuple[int, ...], dtype: str, schedule: str) -> None:
    kernel = tw.compile(elementwise(shape, dtype), schedule=schedule)
    a, b = values(shape, dtype, 1), values(shape, dtype, 2)
    for first, second in ((a.copy(), b), (a, b.copy())):
        out = first if first is not a else second
        kernel(first, second, out)
        np.testing.assert_array_equal(out, a * a - b * 3)
    both = a.copy()
    kernel(both, both, both)
    np.testing.assert_array_equal(both, a * a - a * 3)


@pytest.mark.parametrize("shape", [(1,), (67,), (3, 5)])
def test_the_interpreter_takes_the_same_calls(shape: tuple[int, ...]) -> None:
    kernel = tw.compile(elementwise(shape), target="interpreter")
    a, b = values(shape, "float32", 1), values(shape, "float32", 2)
    out = b.copy()
    kernel(a, out, out)
    np.testing.assert_array_equal(out, a * a - b * 3)
    both = a.copy()
    kernel(both, both, both)
    np.testing.assert_array_equal(both, a * a - a * 3)


def test_the_interpreter_reads_what_was_there_before_the_call() -> None:
    """Compiled code keeps B[i] in a register; the interpreter, which stores it twice, has to agree."""

    @T.prim_func
    def twice_stored(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
        for i in range(9):
            with T.block("B"):
                v = T.axis.spatial(9, i)
                B[v] = A[v] + 1
                B[v] = B[v] * A[v]

    a = values((9,), "int32", 1)
    answers = []
    for target in ("native", "interpreter"):
        both = a.copy()
        try:
            tw.compile(twice_stored, target=target)(both, both)
        except tw.ArgumentError as error:
            answers.append(error.code)
        else:
            answers.append(both.tolist())
    assert answers[0] == answers[1] and answers[0] in ("call/overlap", ((a + 1) * a).tolist())


@pytest.mark.parametrize("size", [1, 5, 64, 1001])
def test_open_size(size: int) -> None:
    n = te.var("n")
    a = te.placeholder((n,), "float32")
    kernel = tw.compile(
        te.create_prim_func([a, te.compute((n,), lambda i: te.exp(a[i]) + a[i])]), schedule="as written"
    )
    x = values((size,), "float32", 3)
    want = kernel(x)
    kernel(x, x)
    np.testing.assert_array_equal(x, want)


SHAPES = (
    *("n", "n, m", "8, n", "n, n", "n, n + 1", "n, 8", "n, m, 3", "n, 2, m", "n, m, n", "2, n, m, 3", "n, m, n + 1"),
    # Loops over i and j become one of 2 n iterations, where the axis i // n has two values whatever n is.
    *("2, n, m", "3, n, m", "7, n, n"),
)
OPEN_SIZES = [
    (shape, dtype, how) for shape in SHAPES for dtype in ("int32", "int64") for how in ("as written", "by rules")
]


@pytest.mark.parametrize(("shape", "dtype", "schedule"), OPEN_SIZES)
def test_open_sizes(shape: str, dtype: str, schedule: str) -> None:
    """Rows end in masked vectors, and programs whose sizes may be too large begin with an assertion."""
    extents = eval(f"({shape},)", {"n": te.var("n", dtype), "m": te.var("m", dtype)})
    kernel = tw.compile(elementwise(extents), schedule=schedule)
    for n, m in ((1, 1), (37, 5), (64, 33), (0, 3)):
        a = values(eval(f"({shape},)", {"n": n, "m": m}), "float32", 1)
        b = a + 1
        expected = a * a - b * 3
        kernel(a, b, a)
        np.testing.assert_array_equal(a, expected)


def test_a_schedule_with_tails_threads_and_vectors(tmp_path: Path) -> None:
    sch = tw.Schedule(elementwise((1003,)))
    outer, middle, inner = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4, 8])
    sch.parallel(outer)
    sch.unroll(middle)
    sch.vectorize(inner)
    for kernel in (tw.compile(sch), tw.load(tw.compile(sch).export(tmp_path, "f").library)):
        a, b = values((1003,), "float32", 1), values((1003,), "float32", 2)
        want = a * a - b * 3
        kernel(a, b, b)
        np.testing.assert_array_equal(b, want)


@T.prim_func
def guarded(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        with T.block("B"):
            v = T.axis.spatial(50, i)
            B[v] = T.if_then_else(A[v] > 3, A[v] - 1, 7)


@T.prim_func
def neighbor(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        B[i] = A[T.max(i - 1, 0)]


@T.prim_func
def mirrored(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        B[i] = A[49 - i]


@T.prim_func
def turned(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        B[i, j] = A[j, i]


@T.prim_func
def twice(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for _, i in T.grid(2, 50):
        B[i] = A[i] + 1


@T.prim_func
def overlapping(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for o, i in T.grid(7, 8):
        with T.block("B"):
            v = T.axis.spatial(50, T.min(o * 8, 42) + i)
            B[v] = A[v] + 1


@T.prim_func
def two_results(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32"), C: T.Buffer((50,), "int32")):
    for i in range(50):
        B[i] = A[i] + 1
        C[i] = A[i] - 1


@T.prim_func
def again(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        B[i] = A[i]
    for i in range(50):
        B[i] = A[i] + B[i]


@T.prim_func
def asked_first(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        if A[0] > 3:
            B[i] = A[i] + 1


@T.prim_func
def other_type(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "float32")):
    for i in range(50):
        B[i] = T.Cast("float32", A[i])


@T.prim_func
def gathered(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
    for i in range(50):
        B[i] = A[T.max(T.min(A[i], 49), 0)]


def test_a_choice_between_elements_of_one_index() -> None:
    a = values((50,), "int32", 4)
    want = np.where(a > 3, a - 1, 7)
    tw.compile(guarded)(a, a)
    np.testing.assert_array_equal(a, want)


@T.prim_func
def rows_that_overlap(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32")):
    flat, out = T.decl_buffer((64,), "int32", data=A.data), T.decl_buffer((64,), "int32", data=B.data)
    for i, j in T.grid(7, 9):
        out[i * 8 + j] = flat[i * 8 + j] + 1


REFUSED = [rows_that_overlap, neighbor, mirrored, turned, twice, overlapping, two_results, again, asked_first, gathered]


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.attrs["global_symbol"])
@pytest.mark.parametrize(
    "options", [{"schedule": "as written"}, {"schedule": "by rules"}, {"target": "interpreter"}], ids=str
)
def test_what_is_not_proved_is_refused(program: tw.ir.PrimFunc, options: dict[str, str]) -> None:
    kernel = tw.compile(program, **options)
    shape = [int(extent) for extent in program.buffer_map[program.params[0]].shape]
    a = values(tuple(shape), "int32", 5)
    others = [np.zeros(shape, "int32") for _ in program.params[2:]]
    with pytest.raises(tw.ArgumentError, match="overlaps argument") as caught:
        kernel(a, a, *others)
    assert caught.value.code == "call/overlap"


@pytest.mark.parametrize("columns", ["m + 1", "m // 2 + 1", "n"])
def test_rows_of_open_sizes_that_may_overlap(columns: str) -> None:
    text = f"""
@T.prim_func
def rows(A: T.Buffer((400,), "int32"), B: T.Buffer((400,), "int32"), n: T.int32, m: T.int32):
    for o, i, j in T.grid(2, n, {columns}):
        B[(o * n + i) * m + j] = A[(o * n + i) * m + j] * 2
"""
    a = values((400,), "int32", 7)
    with pytest.raises(tw.ArgumentError, match="overlaps argument"):
        tw.compile(from_source(text), schedule="as written")(a, a, 2, 5)


def test_another_type_and_parts_are_refused() -> None:
    memory = values((60,), "int32", 6)
    with pytest.raises(tw.ArgumentError, match="overlaps argument"):
        tw.compile(other_type)(memory[:50], memory[:50].view("float32"))
    with pytest.raises(tw.ArgumentError, match="overlaps argument"):
        tw.compile(guarded)(memory[:50], memory[1:51])


def test_a_sum_is_refused() -> None:
    a, k = te.placeholder((8, 8)), te.reduce_axis((0, 8))
    kernel = tw.compile(te.create_prim_func([a, te.compute((8, 8), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k))]))
    x = np.ones((8, 8), "float32")
    with pytest.raises(tw.ArgumentError, match="overlaps argument"):
        kernel(x, x)
