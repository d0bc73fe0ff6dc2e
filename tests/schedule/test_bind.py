"""bind: who runs a loop. tests/schedule/test_threads.py has what threads share, test_parallel.py what is refused."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T


def test_one_thread_may_run_steps_that_have_an_order():
    @T.prim_func
    def sums(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
        for i in range(50):
            with T.block("B"):
                v = T.axis.opaque(50, i)
                B[v] = A[v] + T.if_then_else(v > 0, B[v - 1], 0)

    sch = tw.Schedule(sums)
    (steps,) = sch.get_loops("B")
    with pytest.raises(tw.ScheduleError) as raised:
        sch.bind(steps, "blockIdx.x")
    assert raised.value.code == "bind/P2"
    sch.bind(sch.add_unit_loop(steps), "blockIdx.x")
    a, b = np.arange(50, dtype="int32"), np.zeros(50, "int32")
    tw.compile(sch, target="interpreter")(a, b)
    np.testing.assert_array_equal(b, np.cumsum(a))


def test_a_loop_that_is_bound_again_has_the_new_axis_alone():
    @T.prim_func
    def copy(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v]

    sch = tw.Schedule(copy)
    (i,) = sch.get_loops("B")
    for axis in ("threadIdx.x", "threadIdx.y", "blockIdx.x"):
        sch.bind(i, axis)
        assert sch.get(i).thread_binding.thread_tag == axis
