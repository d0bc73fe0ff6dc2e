"""Vectorizing loops of reductions. What vectorize shares with parallel and bind is in test_parallel.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check_equivalent

STEPS = {
    "sum": "C[vi] + A[vi, vk]",
    "difference": "C[vi] - A[vi, vk]",
    "product": "A[vi, vk] * C[vi]",
    "least": "T.min(C[vi], A[vi, vk])",
    "greatest": "T.max(A[vi, vk], C[vi])",
}


def rows(step: str) -> Any:
    return from_source(f"""@T.prim_func
def rows(A: T.Buffer((6, 40), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 40):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(1)
            C[vi] = {step}
""")


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("apart", [False, True])
def test_the_loop_of_a_reduction(step: str, apart: bool) -> None:
    before = rows(step)
    sch = tw.Schedule(before)
    block = sch.get_block("C")
    _, k = sch.get_loops(block)
    if apart:
        sch.decompose_reduction(block, k)
    sch.vectorize(k)
    assert "for k in T.vectorized(40):" in sch.mod.script()
    assert not tw.compile(sch).notes
    check_equivalent(before, sch.mod)


def test_steps_on_a_condition() -> None:
    """The first of them may do nothing: the init comes before all the same."""
    before = from_source("""@T.prim_func
def rows(A: T.Buffer((6, 40), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 40):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 1
            if A[vi, vk] > 2:
                C[vi] = C[vi] + A[vi, vk]
""")
    sch = tw.Schedule(before)
    sch.vectorize(sch.get_loops(sch.get_block("C"))[1])
    check_equivalent(before, sch.mod)
    a = np.random.default_rng(0).integers(0, 5, (6, 40)).astype("int32")
    c = np.zeros(6, "int32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, 1 + np.where(a > 2, a, 0).sum(1))


@pytest.mark.parametrize("step", ["C[vi] * T.float32(2) + A[vi, vk]", "A[vi, vk] - C[vi]", "C[vi] / A[vi, vk]"])
def test_steps_that_need_their_order(step: str) -> None:
    sch = tw.Schedule(rows(step))
    with pytest.raises(tw.ScheduleError) as caught:
        sch.vectorize(sch.get_loops(sch.get_block("C"))[1])
    assert caught.value.code == "vectorize/P3"


def test_the_place_of_the_greatest_stays_scalar() -> None:
    """A pair is no single value: the loop of an argmax is refused, and one written by hand runs in order."""

    @T.prim_func
    def argmax(A: T.Buffer((4, 40), "int32"), m: T.Buffer((4,), "int32"), at: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 40):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(m[vi], at[vi])
                with T.init():
                    m[vi] = -100
                    at[vi] = -1
                best: T.int32 = T.Select(m[vi] >= A[vi, vk], m[vi], A[vi, vk])
                place: T.int32 = T.Select(m[vi] >= A[vi, vk], at[vi], vk)
                m[vi] = best
                at[vi] = place

    @T.prim_func
    def by_hand(A: T.Buffer((4, 40), "int32"), m: T.Buffer((4,), "int32"), at: T.Buffer((4,), "int32")):
        for i in range(4):
            m[i] = -100
            at[i] = -1
            for k in T.vectorized(40):
                if A[i, k] > m[i]:
                    m[i] = A[i, k]
                    at[i] = k

    sch = tw.Schedule(argmax)
    with pytest.raises(tw.ScheduleError) as caught:
        sch.vectorize(sch.get_loops(sch.get_block("argmax"))[1])
    assert caught.value.code == "vectorize/P3"
    a = np.random.default_rng(0).integers(0, 9, (4, 40)).astype("int32")
    m, at = np.zeros(4, "int32"), np.zeros(4, "int32")
    tw.compile(by_hand)(a, m, at)
    np.testing.assert_array_equal(m, a.max(1))
    np.testing.assert_array_equal(at, a.argmax(1))


def test_a_reader_below_the_loop_would_see_part_of_the_sum() -> None:
    @T.prim_func
    def running(A: T.Buffer((40,), "int32"), C: T.Buffer((1,), "int32"), B: T.Buffer((40,), "int32")):
        for k in range(40):
            with T.block("C"):
                vk = T.axis.reduce(40, k)
                with T.init():
                    C[0] = 0
                C[0] = C[0] + A[vk]
            with T.block("B"):
                v = T.axis.spatial(40, k)
                B[v] = C[0]

    sch = tw.Schedule(running)
    with pytest.raises(tw.ScheduleError):
        sch.vectorize(sch.get_loops(sch.get_block("C"))[0])
