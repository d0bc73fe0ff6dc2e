"""Which loops have a buffer for each of their iterations: lowering and the interpreter agree on that."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T


def outcome(func, target, rows=8):
    """What the function makes of 0, 1, 2, ...; or the code that the interpreter stops it with."""
    a, c = np.arange(rows, dtype="float32"), np.full(rows, -1, "float32")
    try:
        tw.compile(func, target=target, schedule="as written")(a, c)
    except tw.Error as error:
        return str(error)
    return c.tolist()


def location(func, name):
    """The innermost loop around the place where lowering allocates the buffer; None for none."""
    lines = tw.lower(func, after="plan_allocations").script().split("\n")
    [at] = [i for i, line in enumerate(lines) if f" {name} = T.alloc_buffer(" in line]
    indent = len(lines[at]) - len(lines[at].lstrip())
    for line in reversed(lines[:at]):
        mine = len(line) - len(line.lstrip())
        if mine < indent:
            indent = mine
            if line.lstrip().startswith("for "):
                return line.split()[1]
    return None


def agree(func, expected):
    assert outcome(func, "interpreter") == expected
    assert outcome(func, "native") == expected


def test_neighbors_copy_overlapping_parts():
    @T.prim_func
    def halo(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in T.parallel(6):
            for j in range(3):
                with T.block("B"):
                    vi = T.axis.spatial(8, i + j)
                    B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                C[vi] = B[vi] + B[vi + 1] + B[vi + 2]

    assert location(halo, "B") == "i"
    agree(halo, [3, 6, 9, 12, 15, 18, -1, -1])


def test_a_cell_for_each_iteration():
    @T.prim_func
    def cell(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((1,))
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[0] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[0] * T.float32(2)

    assert location(cell, "B") == "i"
    agree(cell, [2 * i for i in range(8)])


def test_values_that_flow_between_serial_iterations_stay():
    @T.prim_func
    def delayed(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[T.max(vi - 1, 0)]

    assert location(delayed, "B") is None
    agree(delayed, [0, 0, 1, 2, 3, 4, 5, 6])


def test_values_that_flow_between_parallel_iterations_are_a_race():
    @T.prim_func
    def delayed(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in T.parallel(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[T.max(vi - 1, 0)]

    report = outcome(delayed, "interpreter")
    assert "interpret/race" in report
    assert "block 'C' reads B[0] in iteration i = 1 of a parallel loop, which iteration i = 0 has written" in report


def test_values_that_flow_between_executions_of_a_parallel_loop_stay():
    @T.prim_func
    def rounds(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for t in range(2):
            for i in T.parallel(8):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    T.where(t == 0)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    B[vi] = A[vi]
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vi] = B[vi] + T.Cast("float32", vt)

    assert location(rounds, "B") is None
    agree(rounds, [i + 1 for i in range(8)])


def test_reductions_keep_their_results():
    @T.prim_func
    def total(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for k in range(8):
            for i in T.parallel(8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vk]
                with T.block("C"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    T.where(k == 7)
                    C[vi] = B[vi]

    assert location(total, "B") is None
    agree(total, [28] * 8)


@pytest.mark.parametrize("kind", ["parallel", "vectorized"])
def test_outputs_written_twice_are_a_race(kind):
    loop = getattr(T, kind)

    @T.prim_func
    def twice(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((1,))
        for i in loop(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[0] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi // 2] = B[0]

    report = outcome(twice, "interpreter")
    assert "interpret/race" in report
    # Lanes of a vector share their buffers.
    assert ("writes C[0]" if kind == "parallel" else "B[0]") in report


def test_buffers_outside_of_blocks_are_shared():
    @T.prim_func
    def bare(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((1,))
        for i in T.parallel(8):
            B[0] = A[i]
            C[i] = B[0]

    assert location(bare, "B") is None
    assert "interpret/race" in outcome(bare, "interpreter")


def test_conditional_writes_do_not_count():
    @T.prim_func
    def sticky(A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for _t in range(8):
            for _i in range(1):
                with T.block("B"):
                    vi = T.axis.spatial(8, 0)
                    T.reads(C[vi])
                    T.writes(B[vi])
                    if C[vi] < T.float32(0):
                        B[vi] = T.float32(3)
            with T.block("C"):
                vi = T.axis.spatial(8, 0)
                C[vi] = B[vi]

    assert location(sticky, "B") is None
    agree(sticky, [3, -1, -1, -1, -1, -1, -1, -1])
