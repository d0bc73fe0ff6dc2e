"""Programs whose loops and conditions are those of data: what they leave alone, candidates leave alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T
from tilewright.search.expectations import Expectations
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of

N = 100


@T.prim_func
def loops_of_data(O: T.Buffer((11,), "int32"), Y: T.Buffer((10,), "float32")):
    for i in range(10):
        for _ in range(O[i]):
            Y[i] = 1.0


@T.prim_func
def ragged_sums(O: T.Buffer((11,), "int32"), X: T.Buffer((100,), "float32"), Y: T.Buffer((10,), "float32")):
    for i in range(10):
        Y[i] = 0.0
        for k in range(O[i + 1] - O[i]):
            Y[i] = Y[i] + X[O[i] + k]


@T.prim_func
def some_floats(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "float32")):
    for i in range(N):
        if O[i] > 3:
            Y[i] = 1.0


@T.prim_func
def some_integers(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "int32")):
    for i in range(N):
        if O[i] > 3:
            Y[i] = -1


@T.prim_func
def some_bytes(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "uint8")):
    for i in range(N):
        with T.block("Y"):
            vi = T.axis.spatial(N, i)
            if O[vi] > 3:
                Y[vi] = T.uint8(0)


@T.prim_func
def some_truths(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "bool")):
    for i in range(N):
        with T.block("Y"):
            vi = T.axis.spatial(N, i)
            if O[vi] > 3:
                Y[vi] = T.bool(False)


@T.prim_func
def half(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "float16")):
    for i in range(N // 2):
        with T.block("Y"):
            vi = T.axis.spatial(N, i)
            Y[vi] = T.Cast("float16", O[vi])


@T.prim_func
def half_of_integers(O: T.Buffer((N,), "int32"), Y: T.Buffer((N,), "int32")):
    for i in range(N // 2):
        with T.block("Y"):
            vi = T.axis.spatial(N, i)
            Y[vi] = O[vi]


ALL = [loops_of_data, some_floats, some_integers, some_bytes, some_truths, half, half_of_integers]


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.attrs["global_symbol"])
def test_a_program_that_leaves_elements_alone_is_tuned(program: tw.ir.PrimFunc) -> None:
    result = tw.tune(program, trials=2, progress=None)
    assert result.record is not None and not result.progress.failures
    assert set(result.progress.outcomes) == {"ok"}
    assert result.verdict is not None and result.verdict.checked


def test_a_loop_whose_extent_is_read_from_a_buffer_is_tuned() -> None:
    offsets = np.array([0, 3, 3, 10, 20, 21, 40, 55, 80, 99, 100], "int32")
    result = tw.tune(ragged_sums, trials=2, inputs={"O": offsets}, progress=None)
    x = np.arange(100, dtype="float32")
    y = np.empty(10, "float32")
    result.kernel(offsets, x, y)
    np.testing.assert_array_equal(y, [x[a:b].sum() for a, b in itertools.pairwise(offsets)])
    assert not result.task.work.exact and result.task.work.flops > 0


def test_only_what_is_surely_written_in_full_is_said_to_be() -> None:
    def partly(program: tw.ir.PrimFunc) -> list[int]:
        return _core.analyze_workload(program)["partly_written"]

    assert all(partly(program) == [1] for program in ALL)
    assert partly(ragged_sums) == []
    assert partly(tw.testing.workloads.matmul(4, 4, 4)) == []


@pytest.mark.parametrize("program", [some_integers, some_bytes, some_truths], ids=["int32", "uint8", "bool"])
def test_integers_that_are_left_alone_are_known_before_the_call(program: tw.ir.PrimFunc) -> None:
    """Nothing but their initial contents tells them from others, so these are given, and are not what is written."""
    expectations = Expectations(task_of(program), {}, 0)
    (_, _, _, role, initial, _) = expectations.arguments()[1]
    assert role == "inout" and initial == make_arrays(task_of(program), {}, 0)["Y"].tobytes()
    written = np.asarray([-1], "int32") if program is some_integers else np.zeros(1, "uint8")
    assert (np.frombuffer(initial, written.dtype) != written).any()
