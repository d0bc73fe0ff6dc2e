import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def order(sch, block):
    return [sch.get(loop).loop_var.name_hint for loop in loops_of(sch, block)]


def test_a_tiled_matmul():
    def tile(sch):
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 2])
        j_0, j_1 = sch.split(j, [None, 3])
        sch.reorder(i_0, j_0, k, i_1, j_1)

    sch = check(workloads.matmul(4, 6, 5), tile)
    assert order(sch, "C") == ["i_0", "j_0", "l", "i_1", "j_1"]


def test_loops_that_are_not_named_stay():
    def swap(sch):
        i, _, k = loops_of(sch, "C")
        sch.reorder(k, i)

    assert order(check(workloads.matmul(4, 6, 5), swap), "C") == ["l", "j", "i"]


def test_nothing_to_do():
    def nothing(sch):
        i, j, _ = loops_of(sch, "C")
        sch.reorder()
        sch.reorder(j)
        sch.reorder(i, j)

    assert order(check(workloads.matmul(2, 3, 4), nothing), "C") == ["i", "j", "l"]


def test_masked_loops():
    def tile(sch):
        i, j, k = loops_of(sch, "C")
        i_0, i_1 = sch.split(i, [None, 4])
        k_0, k_1 = sch.split(k, [None, 3])
        sch.reorder(k_1, i_0, j, k_0, i_1)

    check(workloads.matmul(5, 2, 7), tile)


def test_structural_refusals():
    matmul = workloads.matmul(4, 6, 5)
    check_refused(matmul, lambda sch: sch.reorder(*[loops_of(sch, "C")[0]] * 2), "reorder/P1")
    chain = workloads.elementwise_chain(4, 4)
    check_refused(chain, lambda sch: sch.reorder(loops_of(sch, "B")[0], loops_of(sch, "C")[1]), "reorder/P2")

    @T.prim_func
    def triangle(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i in range(8):
            for j in range(i + 1):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    check_refused(triangle, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))), "reorder/P3")

    @T.prim_func
    def two(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi, 0]
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    error = check_refused(two, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))), "reorder/P2")
    assert "SeqStmt" in str(error)


def test_instances_that_depend_on_their_order():
    @T.prim_func
    def running(A: T.Buffer((8, 8))):
        for i, j in T.grid(8, 7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj + 1] = A[7 - vi, vj]

    check_refused(running, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))), "reorder/P4")

    @T.prim_func
    def overwrite(A: T.Buffer((4, 4)), B: T.Buffer((4,))):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[(vi + vj) // 2] = A[vi, vj]

    check_refused(overwrite, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))), "reorder/P4")


def test_what_is_around_the_steps_of_a_recurrence():
    """Each step reads the one before: no order is proved for the block, but one for blocks of all steps."""

    @T.prim_func
    def scans(A: T.Buffer((4, 6, 5)), S: T.Buffer((4, 6, 5))):
        for n, c, t in T.grid(4, 5, 6):
            with T.block("S"):
                vn, vt, vc = T.axis.remap("SSS", [n, t, c])
                S[vn, vt, vc] = T.if_then_else(vt == 0, T.float32(0), S[vn, vt - 1, vc]) + A[vn, vt, vc]

    def swap(sch):
        n, c, t = loops_of(sch, "S")
        with pytest.raises(tw.ScheduleError, match=r"blockize\(\) at the loop whose steps have an order") as error:
            sch.reorder(c, n)
        assert error.value.code == "reorder/P4"
        n, c = sch.get_loops(sch.blockize(t))
        sch.reorder(c, n)

    sch = check(scans, swap)
    assert order(sch, "S_o") == ["c", "n"]


def test_two_blocks_in_one_nest():
    @T.prim_func
    def same(A: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)

    check(same, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))))

    @T.prim_func
    def diagonal(A: T.Buffer((4, 6)), C: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.if_then_else(vi > 0 and vj < 5, B[vi - 1, vj + 1], T.float32(0))

    check_refused(diagonal, lambda sch: sch.reorder(*reversed(loops_of(sch, "B"))), "reorder/P4")


def test_a_loop_that_repeats_a_reduction_stays_outside():
    @T.prim_func
    def repeated(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
        for _r, i, k in T.grid(3, 4, 5):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    check(repeated, lambda sch: sch.reorder(loops_of(sch, "C")[1], loops_of(sch, "C")[0]))
    check_refused(repeated, lambda sch: sch.reorder(*reversed(loops_of(sch, "C"))), "reorder/P4")


def test_a_reduction_whose_order_matters():
    @T.prim_func
    def horner(A: T.Buffer((4, 3, 5)), C: T.Buffer((4,))):
        for i, j, k in T.grid(4, 3, 5):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] * T.float32(2) + A[vi, vj, vk]

    def spatial_inside(sch):
        i, j, k = loops_of(sch, "C")
        sch.reorder(j, k, i)

    check(horner, spatial_inside)
    check_refused(horner, lambda sch: sch.reorder(*reversed(loops_of(sch, "C")[1:])), "reorder/P5")


def test_a_reduction_against_its_loops():
    @T.prim_func
    def backwards(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 5):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(5, 4 - k)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    check_refused(backwards, lambda sch: sch.reorder(*reversed(loops_of(sch, "C"))), "reorder/P4")


def test_axes_against_their_loops():
    """Elements may come in any order, and so may the steps of a reduction without an init."""

    @T.prim_func
    def elements(A: T.Buffer((4, 5), "int32"), C: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 5):
            with T.block("C"):
                vi = T.axis.spatial(4, 3 - i)
                vk = T.axis.reduce(5, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

    @T.prim_func
    def update(A: T.Buffer((4, 5), "int32"), C: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 5):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(5, 4 - k)
                C[vi] = C[vi] + A[vi, vk]

    @T.prim_func
    def open_sizes(a: T.handle, c: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i, k in T.grid(n, m):
            with T.block("C"):
                vi = T.axis.spatial(n, n - 1 - i)
                vk = T.axis.reduce(m, m - 1 - k)
                C[vi] = C[vi] + A[vi, vk]

    given = np.arange(20, dtype="int32").reshape(4, 5) % 7
    for program in (elements, update, open_sizes):
        check(program, lambda sch: sch.reorder(*reversed(loops_of(sch, "C"))))
        sch = tw.Schedule(program)
        sch.reorder(*reversed(sch.get_loops("C")))
        out = np.zeros(4, "int32")
        tw.compile(sch)(given, out)
        np.testing.assert_array_equal(out, given.sum(axis=1))


def test_a_block_that_declares_more_than_it_stores_to():
    """Its instances are known to be apart by what they store to."""

    @T.prim_func
    def loose(A: T.Buffer((8, 4))):
        for i, j in T.grid(8, 4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(A[0:8, 0:4])
                A[vi, vj] = T.float32(1)

    check(loose, lambda sch: sch.reorder(*reversed(sch.get_loops("A"))))
