"""Statements outside of blocks: nothing passes them that uses what they use."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_refused

#: what may stand between a block that makes L of A and one that makes P of L
BETWEEN = {
    "store to an input": "for i in range(8):\n        A[i] = 7",
    "store to what is read": "for i in range(8):\n        L[i] = L[i] * 10",
    "read of what is made": "for i in range(8):\n        Q[i] = L[7 - i]",
    "atomic update of an input": "for i in range(8):\n        Q[i] = T.atomic_add(A[0], 1)",
    "atomic update of what is read": "for i in range(8):\n        Q[i] = T.atomic_max(L[i], 4)",
    "bounds of a loop": "for i in range(L[3]):\n        Q[0] = i",
    "condition": "if L[2] > 3:\n        Q[0] = 5",
    "value": "x = L[3]\n    Q[1] = x",
    "assertion": 'assert L[2] > 0, "made"',
}

SOURCE = """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), Q: T.Buffer((8,), "int32"), P: T.Buffer((8,), "int32")):
    L = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("a"):
            v = T.axis.spatial(8, i)
            L[v] = A[v] + 1
    BETWEEN
    for i in range(8):
        with T.block("c"):
            v = T.axis.spatial(8, i)
            P[v] = L[v]
"""

STEPS = {
    "compute_inline": lambda sch: sch.compute_inline("a"),
    "reverse_compute_inline": lambda sch: sch.reverse_compute_inline("c"),
    "compute_at": lambda sch: sch.compute_at("a", sch.get_loops("c")[0]),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at("c", sch.get_loops("a")[0]),
}


def results(program, **how):
    arrays = np.arange(8, dtype="int32"), np.zeros(8, "int32"), np.zeros(8, "int32")
    tw.compile(program, **how)(*arrays)
    return arrays


@pytest.mark.parametrize("between", BETWEEN)
def test_blocks_do_not_pass_them(between):
    program = tw.script.from_source(SOURCE.replace("BETWEEN", BETWEEN[between]))
    expected = results(program, target="interpreter")
    refused = 0
    for step in STEPS.values():
        sch = tw.Schedule(program)
        try:
            step(sch)
        except tw.ScheduleError as error:
            assert "outside of blocks" in str(error) or "below a statement" in str(error)
            refused += 1
            continue
        for one, other in zip(results(sch, target="interpreter"), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    # what reads L and writes P may well pass what writes A, or only reads L
    passed = {
        "store to an input": 2,
        "atomic update of an input": 2,
        "read of what is made": 1,
        "bounds of a loop": 1,
        "condition": 1,
    }
    assert refused == 4 - passed.get(between, 0)
    for way in ("as written", "by rules"):
        for one, other in zip(results(program, schedule=way), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_uses_other_buffers_is_passed():
    program = tw.script.from_source(SOURCE.replace("BETWEEN", "for i in range(8):\n        Q[i] = i"))
    for step in STEPS.values():
        sch = tw.Schedule(program)
        step(sch)
        assert sch.verify()


def test_an_init_does_not_pass_them():
    @T.prim_func
    def sums(A: T.Buffer((8, 4)), P: T.Buffer((8,)), Q: T.Buffer((8,))):
        for i in range(8):
            Q[i] = P[7 - i]
            for k in range(4):
                with T.block("a"):
                    v, r = T.axis.remap("SR", [i, k])
                    with T.init():
                        P[v] = T.float32(0)
                    P[v] = P[v] + A[v, r]

    check_refused(sums, lambda sch: sch.decompose_reduction("a", sch.get_loops("a")[0]), "decompose_reduction/P5")


@T.prim_func
def decides_itself(L: T.Buffer((65,), "int32")):
    for i in range(64):
        with T.block("c"):
            v = T.axis.spatial(65, i + 1)
            T.where(L[i] > 2)
            L[v] = L[v] % 3


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_what_a_condition_reads_is_read(step):
    sch = tw.Schedule(decides_itself)
    with pytest.raises(tw.ScheduleError, match="decides where, or whether, it runs"):
        getattr(sch, step)(sch.get_loops("c")[0])


def test_conditions_of_data_are_asked_where_the_block_runs():
    @T.prim_func
    def masked(A: T.Buffer((33,), "bool"), P: T.Buffer((33,))):
        for i in range(33):
            with T.block("b"):
                v = T.axis.spatial(33, i)
                T.where(A[i])
                P[v] = T.float32(5)

    sch = tw.Schedule(masked)
    sch.split(sch.get_loops("b")[0], [None, 32])
    assert "T.where(i_0 * 32 + i_1 < 33 and A[i_0 * 32 + i_1])" in sch.mod.script()
    assert sch.verify()
    mask, p = np.arange(33) % 2 == 0, np.zeros(33, "float32")
    tw.compile(sch, check_bounds=True)(mask, p)
    np.testing.assert_array_equal(p, np.where(mask, 5, 0))


def test_the_root_block_is_nobodys_neighbor():
    @T.prim_func
    def one(A: T.Buffer(())):
        with T.block("root"):
            A[()] = T.float32(1)

    for step in ("compute_inline", "reverse_compute_inline"):
        sch = tw.Schedule(one)
        with pytest.raises(tw.ScheduleError, match="root block"):
            getattr(sch, step)("root")
