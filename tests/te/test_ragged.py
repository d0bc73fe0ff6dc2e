"""Reductions over ranges that depend on an index, or on another axis: against NumPy."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, te
from tilewright.script import tir as T
from tilewright.testing import check_same

RNG = np.random.default_rng(0)
A = RNG.integers(-9, 9, (7, 11)).astype("float32")


def results(tensors: list[Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """Of the interpreter, of the compiler, and of the compiler with its own schedule."""
    func = te.create_prim_func(tensors)
    ir.verify(ir.as_module(func))
    check_same(func, func)
    shape, dtype = [int(extent) for extent in tensors[-1].shape], tensors[-1].dtype
    made = []
    out = np.full(shape, 77, dtype)
    ir.interpret(ir.as_module(func), next(iter(ir.as_module(func).functions)), *arrays, out)
    made.append(out)
    for schedule in ("as written", "by rules"):
        out = np.full(shape, 77, dtype)
        tw.compile(func, schedule=schedule)(*arrays, out)
        made.append(out)
    return made


BOUNDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "triangle": (lambda i: 0, lambda i: i + 1),
    "empty first row": (lambda i: 0, lambda i: i),
    "upper triangle": (lambda i: i, lambda i: 11),
    "window": (lambda i: i, lambda i: i + 3),
    "adaptive": (lambda i: i * 11 // 7, lambda i: ((i + 1) * 11 + 6) // 7),
}


@pytest.mark.parametrize("case", BOUNDS)
@pytest.mark.parametrize("reducer", ["sum", "max", "min"])
def test_rows(case: str, reducer: str) -> None:
    begin, end = BOUNDS[case]
    x = te.placeholder((7, 11), name="A")

    def row(i: Any) -> Any:
        k = te.reduce_axis((begin(i), end(i)), name="k")
        return getattr(te, reducer)(x[i, k], axis=k)

    limit = np.finfo("float32")
    start = {"sum": 0, "max": limit.min, "min": limit.max}[reducer]
    numpy = {"sum": np.sum, "max": np.max, "min": np.min}[reducer]
    want = [numpy(A[i, begin(i) : end(i)], initial=start) for i in range(7)]
    for got in results([x, te.compute((7,), row, name="B")], A):
        np.testing.assert_array_equal(got, np.array(want, "float32"))


def test_adaptive_pooling_in_two_dimensions() -> None:
    x = te.placeholder((2, 7, 11), name="X")

    def window(i: Any, size: int, count: int) -> tuple[Any, Any]:
        return i * size // count, ((i + 1) * size + count - 1) // count

    def pooled(n: Any, i: Any, j: Any) -> Any:
        h = te.reduce_axis(window(i, 7, 3), name="h")
        w = te.reduce_axis(window(j, 11, 4), name="w")
        return te.sum(x[n, h, w], axis=[h, w])

    images = np.stack([A, -A])
    want = np.zeros((2, 3, 4), "float32")
    for n, i, j in np.ndindex(want.shape):
        want[n, i, j] = images[n, slice(*window(i, 7, 3)), slice(*window(j, 11, 4))].sum()
    for got in results([x, te.compute((2, 3, 4), pooled, name="Y")], images):
        np.testing.assert_array_equal(got, want)


def test_an_axis_that_depends_on_an_axis() -> None:
    x = te.placeholder((7, 11), name="A")
    for step in (1, -1):

        def double(i: Any) -> Any:
            k = te.reduce_axis((0, 7), name="k")
            m = te.reduce_axis((k, T.min(k + i, 11)), name="m")
            return te.sum(x[k, m], axis=[k, m][::step], where=x[k, m] > 0.0)  # noqa: B023

        want = [sum(A[k, m] for k in range(7) for m in range(k, min(k + i, 11)) if A[k, m] > 0) for i in range(5)]
        for got in results([x, te.compute((5,), double, name="B")], A):
            np.testing.assert_array_equal(got, np.array(want, "float32"))


def test_rows_whose_ends_are_data() -> None:
    indptr = te.placeholder((6,), "int32", name="indptr")
    values = te.placeholder((13,), name="values")

    def row(i: Any) -> Any:
        k = te.reduce_axis((indptr[i], indptr[i + 1]), name="k")
        return te.sum(values[k], axis=k)

    ends = np.array([0, 3, 3, 8, 12, 13], "int32")
    data = np.arange(1, 14).astype("float32")
    want = np.array([data[a:b].sum() for a, b in pairwise(ends)], "float32")
    tensors = [indptr, values, te.compute((5,), row, name="sums")]
    assert tensors[-1].op.input_tensors == [values, indptr]
    for got in results(tensors, ends, data):
        np.testing.assert_array_equal(got, want)


def test_pairs_of_values() -> None:
    x = te.placeholder((7, 11), name="A")
    greatest = te.comm_reducer(
        lambda a, b: (T.Select(a[1] >= b[1], a[0], b[0]), T.Select(a[1] >= b[1], a[1], b[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
    )

    def row(i: Any) -> Any:
        k = te.reduce_axis((0, i + 1), name="k")
        return greatest((k.var, x[i, k]), axis=k)

    places, values = te.compute((7,), row, name="best")
    func = te.create_prim_func([x, places, values])
    got = [np.zeros(7, "int32"), np.zeros(7, "float32")]
    tw.compile(func)(A, *got)
    assert got[0].tolist() == [int(A[i, : i + 1].argmax()) for i in range(7)]
    assert got[1].tolist() == [float(A[i, : i + 1].max()) for i in range(7)]


def test_the_program() -> None:
    x = te.placeholder((7, 11), name="A")

    def row(i: Any) -> Any:
        k = te.reduce_axis((0, i + 1), name="k")
        return te.sum(x[i, k], axis=k)

    func = te.create_prim_func([x, te.compute((7,), row, name="B")], name="main")

    @T.prim_func
    def main(A: T.Buffer((7, 11)), B: T.Buffer((7,))):
        T.func_attr({"tir.noalias": True})
        for i in range(7):
            with T.block("B"):
                v_i = T.axis.spatial(7, i)
                with T.block("B_init"):
                    B[v_i] = T.float32(0)
                for k in range(v_i + 1):
                    with T.block("B_update"):
                        v_k = T.axis.reduce(v_i + 1, k)
                        B[v_i] = B[v_i] + A[v_i, v_k]

    ir.assert_structural_equal(func, main)
    sch = tw.Schedule(func)
    sch.parallel(sch.get_loops("B")[0])
    k = sch.get_loops("B_update")[-1]
    sch.split(k, [None, 4])
    sch.verify()


def test_formulas_in_scripts() -> None:
    def row(values: Any, i: Any) -> Any:
        k = T.reduce_axis((0, i + 1), "k")
        return T.sum(values[i, k], axis=k)

    @T.prim_func
    def main(A: T.Buffer((7, 11)), B: T.Buffer((7,))):
        T.compute((7,), lambda i: row(A, i), name="rows", out=B)

    out = np.zeros(7, "float32")
    tw.compile(main)(A, out)
    np.testing.assert_array_equal(out, [A[i, : i + 1].sum() for i in range(7)])


def test_a_bound_that_nobody_knows() -> None:
    x = te.placeholder((7, 11), name="A")
    n = te.var("n")
    k = te.reduce_axis((0, n), name="k")
    with pytest.raises(
        tw.ArgumentError, match="'n' in the formula of 'B' is neither an index of it nor a size"
    ) as info:
        te.create_prim_func([x, te.compute((7,), lambda i: te.sum(x[i, k], axis=k), name="B")])
    assert "hint" in str(info.value)
