"""Single elements of what programs compute, against all of it."""

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T

from .programs import INDEX_LIMITS, PROGRAMS, arguments_of


def module_of(program: tw.ir.PrimFunc) -> tw.ir.Module:
    return tw.ir.Module({"main": program})


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_those_of_the_whole_program(name: str) -> None:
    module, arrays = module_of(PROGRAMS[name]), arguments_of(PROGRAMS[name], INDEX_LIMITS.get(name, 0))
    whole = {key: array.copy() for key, array in arrays.items()}
    before = {key: array.copy() for key, array in arrays.items()}
    tw.ir.interpret(module, "main", *whole.values())
    generator = np.random.default_rng(0)
    shape = whole["Y"].shape
    points = [tuple(int(generator.integers(0, n)) for n in shape) for _ in range(20)]
    points += [tuple(0 for _ in shape), tuple(n - 1 for n in shape)]
    found = tw.ir.interpret_at(module, "main", *arrays.values(), points={"Y": points})
    assert found == {"Y": [whole["Y"][point] for point in points]}
    for key, array in arrays.items():  # the call has changed nothing
        np.testing.assert_array_equal(array, before[key])


@T.prim_func
def two_products(
    A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), D: T.Buffer((1024, 1024), "float32")
):
    C = T.alloc_buffer((1024, 1024))
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid(1024, 1024):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * T.float32(2)


def test_an_element_costs_what_it_depends_on() -> None:
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 5, (1024, 1024)).astype(np.float32) for _ in range(2))
    found = tw.ir.interpret_at(  # the 2 ** 30 multiplications of all elements would take minutes
        module_of(two_products), "main", a, b, np.empty_like(a), points={"D": [(7, 9), (1023, 0)]}
    )
    assert found == {"D": [2 * (a @ b)[7, 9], 2 * (a @ b)[1023, 0]]}


def test_symbolic_sizes_are_those_of_the_arguments() -> None:
    @T.prim_func
    def rows(x: T.handle, y: T.handle, n: T.int32):
        m = T.int32()
        X = T.match_buffer(x, (m, n), "float32")
        Y = T.match_buffer(y, (m,), "float32")
        for i, j in T.grid(m, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = T.float32(0)
                Y[vi] += X[vi, vj]

    x = np.arange(400 * 300, dtype=np.float32).reshape(400, 300) % 7
    found = tw.ir.interpret_at(module_of(rows), "main", x, np.empty(400, np.float32), 300, points={"Y": [(5,), (399,)]})
    assert found == {"Y": [x[5].sum(), x[399].sum()]}


def test_arrays_may_have_strides_and_narrow_types() -> None:
    import ml_dtypes

    @T.prim_func
    def double(x: T.handle, Y: T.Buffer((6, 4), "bfloat16")):
        stride = T.int32()
        X = T.match_buffer(x, (6, 4), "bfloat16", strides=(stride, 1))
        for i, j in T.grid(6, 4):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    x = np.arange(60).reshape(6, 10).astype(ml_dtypes.bfloat16)[:, 2:6]
    found = tw.ir.interpret_at(module_of(double), "main", x, np.zeros((6, 4), x.dtype), points={"Y": [(5, 3), (0, 0)]})
    assert found == {"Y": [110.0, 4.0]}


@pytest.mark.parametrize(
    "turned", ["x[::-1]", "x[:, ::-1]", "x[::-2, ::-1]", "x[::-1, :0]", "x.T[::-1].T", "x[3:2:-1]"]
)
def test_strides_may_be_negative(turned: str) -> None:
    @T.prim_func
    def copy(x: T.handle, y: T.handle):
        n, m = T.int32(), T.int32()
        s, t = T.int64(), T.int64()
        X = T.match_buffer(x, (n, m), "int16", strides=(s, t))
        Y = T.match_buffer(y, (n, m), "int16", strides=(s, t))
        for i, j in T.grid(n, m):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + T.int16(1)

    x = np.arange(24, dtype=np.int16).reshape(6, 4)
    given, expected = eval(turned, {"x": x}), eval(turned, {"x": x + 1})
    for run in (lambda *args: tw.ir.interpret(module_of(copy), "main", *args), tw.compile(copy)):
        memory = np.zeros_like(x)
        result = eval(turned, {"x": memory})
        run(given, result)
        np.testing.assert_array_equal(result, expected)
        assert np.count_nonzero(memory) == given.size
    if given.size:
        last = (len(given) - 1, 0)
        found = tw.ir.interpret_at(module_of(copy), "main", given, result, points={"Y": [last]})
        assert found == {"Y": [expected[last]]}


def test_results_without_elements_need_no_memory() -> None:
    @T.prim_func
    def two_results(Y: T.Buffer((3,), "int32"), z: T.handle):
        n, m = T.int64(), T.int64()
        Z = T.match_buffer(z, (n, m), "int8")
        for i, j in T.grid(n, m):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = T.int8(1)
        for i in range(3):
            with T.block("Y"):
                vi = T.axis.spatial(3, i)
                if n > 0:
                    Y[vi] = Z[0, 0]
                else:
                    Y[vi] = vi + 1

    row = 2**44  # 16 TiB
    empty = np.lib.stride_tricks.as_strided(np.zeros((0, 4), np.int8), (0, row), (row, 1))
    found = tw.ir.interpret_at(module_of(two_results), "main", np.zeros(3, np.int32), empty, points={"Y": [(2,)]})
    assert found == {"Y": [3]}


def test_what_the_time_does_not_suffice_for_is_none() -> None:
    @T.prim_func
    def endless(Y: T.Buffer((3,), "int32")):
        Y[0] = 1
        while Y[0] > 0:
            Y[0] = Y[0] + 1 - 1
        for i in range(3):
            with T.block("Y"):
                vi = T.axis.spatial(3, i)
                Y[vi] = 5

    found = tw.ir.interpret_at(
        module_of(endless), "main", np.zeros(3, np.int32), points={"Y": [(1,), (0,)]}, timeout=0.2
    )
    assert found == {"Y": [5, None]}  # the first does not depend on the loop


def test_a_slice_is_checked_as_it_runs() -> None:
    @T.prim_func
    def beyond(X: T.Buffer((100,), "float32"), Y: T.Buffer((100,), "float32")):
        for i in range(100):
            with T.block("Y"):
                vi = T.axis.spatial(100, i)
                Y[vi] = X[vi + 1]

    arrays = [np.ones(100, np.float32), np.ones(100, np.float32)]
    assert tw.ir.interpret_at(module_of(beyond), "main", *arrays, points={"Y": [(98,)]}) == {"Y": [1.0]}
    with pytest.raises(tw.ScriptError, match=r"reads X\[100\]") as caught:
        tw.ir.interpret_at(module_of(beyond), "main", *arrays, points={"Y": [(99,)]})
    assert caught.value.code == "interpret/out-of-bounds"


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"Z": [(0,)]}, "'main' has no tensor parameter 'Z'"),
        ({"Y": [(58,)]}, "a point of 'Y_handle' is not an element|a point of 'Y' is not an element"),
        ({"Y": [(0, 0)]}, "is not an element"),
        ({"Y": [(-1,)]}, "is not an element"),
    ],
)
def test_points_are_elements_of_parameters(points: dict[str, Any], message: str) -> None:
    arrays = [np.zeros(57, np.float32), np.zeros(58, np.float32)]
    with pytest.raises(tw.ArgumentError, match=message) as caught:
        tw.ir.interpret_at(module_of(PROGRAMS["padded_in_place"]), "main", *arrays, points=points)
    assert caught.value.code == "interpret/argument"


def test_arguments_are_those_of_the_function() -> None:
    with pytest.raises(tw.ArgumentError, match="argument"):
        tw.ir.interpret_at(module_of(PROGRAMS["scan"]), "main", np.zeros(300, np.float32), points={"Y": [(0,)]})


@pytest.mark.parametrize("n", [3, 5, 9])
def test_buffers_of_negative_extent_hold_nothing(n):
    """As loops of negative extent run not at all; kernels agree."""

    @T.prim_func
    def behind(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.alloc_buffer((n - 5, n - 7), "float32")
        for i, j in T.grid(n - 5, n - 7):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi] + A[vj]
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = T.if_then_else(vi < n - 7, C[vi, vi], A[vi])

    a = np.arange(n, dtype=np.float32)
    expected = np.where(np.arange(n) < n - 7, 2 * a, a)
    for target in ("interpreter", "native"):
        assert np.array_equal(tw.compile(behind, target=target)(a), expected)
