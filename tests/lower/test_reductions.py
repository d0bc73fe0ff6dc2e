"""Reductions that go on around other things, and buffers of iterations that a condition leaves out."""

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T


def test_a_reduction_around_a_buffer_of_its_own():
    @T.prim_func
    def taps(A: T.Buffer((6,)), C: T.Buffer((4,))):
        B = T.alloc_buffer((6,))
        for k in range(3):
            for i in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(6, i + k)
                    B[vi] = A[vi] * T.float32(2)
            for i in range(4):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + B[vi + vk]

    a, c = np.arange(6, dtype="float32"), np.zeros(4, "float32")
    # Each step has its own B, and the sums are set to zero once, before the first of them.
    text = tw.lower(taps, after="lower_init_blocks").script()
    assert text.index("C_init") < text.index("for k in range(3)") < text.index("B = T.alloc_buffer")
    tw.compile(taps, schedule="as written")(a, c)
    np.testing.assert_array_equal(c, [6, 12, 18, 24])


def test_a_tail_of_unknown_length():
    @T.prim_func
    def tiles(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n,))
        for i_0, i_1 in T.grid((n + 7) // 8, 2):
            for j in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(n, i_0 * 8 + i_1 * 4 + j)
                    T.where(i_0 * 8 + i_1 * 4 + j < n)
                    B[vi] = A[vi] + T.float32(1)
            for j in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(n, i_0 * 8 + i_1 * 4 + j)
                    T.where(i_0 * 8 + i_1 * 4 + j < n)
                    C[vi] = B[vi] * T.float32(2)

    # The second tile of nine elements is empty, and takes no negative amount of memory.
    assert "B = T.alloc_buffer((4,))" in tw.lower(tiles, after="compact_buffers").script()
    for size in (1, 9, 16):
        a, c = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        tw.compile(tiles, schedule="as written")(a, c)
        np.testing.assert_array_equal(c, (a + 1) * 2)


def test_a_hoisted_initialization_keeps_the_guard_of_its_tiles():
    @T.prim_func
    def sums(A: T.Buffer((14, 9)), C: T.Buffer((14,))):
        for i, k in T.grid(14, 9):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    sch = tw.Schedule(sums)
    outer, inner, unit = sch.split(sch.get_loops("C")[0], [None, 4, 1], preserve_unit_iters=False)
    sch.reorder(outer, sch.get_loops("C")[-1], inner, unit)
    text = tw.lower(sch.mod, after="lower_init_blocks").script()
    assert text.count("T.where(i_0 * 4 + i_1") == 2
    a, c = np.ones((14, 9), "float32"), np.full(24, 7, "float32")
    tw.compile(sch.mod)(a, c[:14])
    np.testing.assert_array_equal(c, [9] * 14 + [7] * 10)


def test_a_sum_of_nothing_leaves_what_was_there():
    """Also where it goes through a copy, which is then not taken back."""
    n = te.var("n")
    x, k = te.placeholder((4, n), name="X"), te.reduce_axis((0, n), name="k")
    program = te.create_prim_func([x, te.compute((4,), lambda i: te.sum(x[i, k], axis=[k]), name="Y")])
    sch = tw.Schedule(program)
    sch.cache_write("Y", 0, "local")
    for kernel in (tw.compile(sch), tw.compile(program, schedule="as written"), tw.compile(sch, "interpreter")):
        y = np.ones(4, "float32")
        kernel(np.ones((4, 0), "float32"), y)
        np.testing.assert_array_equal(y, np.ones(4))


def test_a_sum_over_nothing_does_not_ask_for_its_start():
    """The start is an element that is not there when there are no steps."""

    @T.prim_func
    def sums(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        C = T.alloc_buffer((3,))
        for k, i in T.grid(n, 3):
            with T.block("C"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    C[vi] = A[n - 1]
                C[vi] = C[vi] + A[vk]
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = C[vi % 3]

    for target in ("interpreter", "native"):
        kernel = tw.compile(tw.Schedule(sums), target, check_bounds=target == "native")
        for n in (0, 1, 5):
            a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
            kernel(a, b)
            np.testing.assert_array_equal(b, np.full(n, a.sum() + n - 1, "float32"))
