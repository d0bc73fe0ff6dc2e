"""sch.decompose_padding: the constant first, then what is inside, without a test."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def pad(A: T.Buffer((8,)), B: T.Buffer((12,))):
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = T.if_then_else(vi >= 2 and vi < 10, A[vi - 2], T.float32(0))


def decompose(block, number):
    return lambda sch: sch.decompose_padding(block, sch.get_loops(sch.get_block(block))[number])


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((12,))):
        for i in range(12):
            with T.block("B_pad_const"):
                vi = T.axis.spatial(12, i)
                B[vi] = T.float32(0)
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi + 2] = A[vi]

    def transform(sch):
        loop = sch.get_loops("B")[0]
        assert sch.can_decompose_padding(sch.get_block("B"), loop) and sch.can_decompose_padding("B", loop)
        block = sch.decompose_padding("B", loop)
        assert sch.get(block).name_hint == "B_pad_const" and repr(loop) == "Loop(i, extent=8)"

    check(pad, transform, after)


@T.prim_func
def pool(A: T.Buffer((2, 9, 9)), B: T.Buffer((2, 9, 9))):
    P = T.alloc_buffer((2, 11, 11))
    for c, i, j in T.grid(2, 11, 11):
        with T.block("P"):
            vc, vi, vj = T.axis.remap("SSS", [c, i, j])
            P[vc, vi, vj] = T.if_then_else(
                vi >= 1 and vi < 10 and vj >= 1 and vj < 10, A[vc, vi - 1, vj - 1], T.float32(-3)
            )
    for c, i, j, h, w in T.grid(2, 9, 9, 3, 3):
        with T.block("B"):
            vc, vi, vj, vh, vw = T.axis.remap("SSSRR", [c, i, j, h, w])
            with T.init():
                B[vc, vi, vj] = T.min_value("float32")
            B[vc, vi, vj] = T.max(B[vc, vi, vj], P[vc, vi + vh, vj + vw])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_before_each_loop(number):
    sch = check(pool, decompose("P", number))
    extents = [int(sch.get(loop).extent) for loop in sch.get_loops("P")]
    assert extents == ([2, 11, 9] if number == 2 else [2, 9, 9])


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize("factors", [[3, 3], [None, 4]])
def test_tiled_with_the_consumer(number, factors):
    def transform(sch):
        c, i, j, h, w = sch.get_loops("B")
        i_0, i_1 = sch.split(i, factors)
        j_0, j_1 = sch.split(j, factors)
        sch.reorder(c, i_0, j_0, i_1, j_1, h, w)
        sch.compute_at("P", j_0)
        decompose("P", number)(sch)

    check(pool, transform)


def test_the_copy_vectorizes():
    def transform(sch):
        decompose("P", 1)(sch)
        sch.split(sch.get_loops("P")[2], [None, 3])
        sch.vectorize(sch.get_loops("P")[3])
        sch.vectorize(sch.get_loops("P_pad_const")[2])

    check(pool, transform)


def padded(condition, value="A[vi - 2]", constant="T.float32(0)"):
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,)), B: T.Buffer((12,))):
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = T.if_then_else({condition}, {value}, {constant})
""")


@T.prim_func
def read_back(A: T.Buffer((8,)), B: T.Buffer((12,)), C: T.Buffer((12,))):
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = B[11 - vi]
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = T.if_then_else(vi >= 2 and vi < 10, A[vi - 2], T.float32(0))


@pytest.mark.parametrize(
    ("program", "number", "code"),
    [
        (padded("vi < 8", "A[vi]", "A[0]"), 0, "decompose_padding/P1"),
        (padded("vi % 2 == 0", "A[vi // 2]"), 0, "decompose_padding/P3"),
        (padded("vi < 20", "A[vi % 8]"), 0, "decompose_padding/P3"),
        (padded("vi * 2 < 16", "A[vi]"), 0, "decompose_padding/P3"),
        (read_back, 0, "decompose_padding/P4"),
    ],
)
def test_refusals(program, number, code):
    check_refused(program, decompose("B", number), code)
    sch = tw.Schedule(program)
    assert not sch.can_decompose_padding(sch.get_block("B"), sch.get_loops("B")[number])


def test_p2_the_loop_is_around_it():
    check_refused(pool, lambda sch: sch.decompose_padding("P", sch.get_loops("B")[0]), "decompose_padding/P2")


def test_one_sided_bounds():
    check(padded("vi < 8", "A[vi]"), decompose("B", 0))
    check(padded("4 <= vi", "A[vi - 4]"), decompose("B", 0))


def test_p6_tiles_that_overlap_stay_with_their_thread():
    """Each iteration has a buffer of its own; filled before the parallel loop it would be one for all."""

    def transform(number):
        def apply(sch):
            _c, i, _j, _h, _w = sch.get_loops("B")
            sch.compute_at("P", i)
            sch.parallel(i)
            decompose("P", number)(sch)

        return apply

    check(pool, transform(2))
    check_refused(pool, transform(1), "decompose_padding/P6")


def test_p5_loops_that_depend_on_data():
    @T.prim_func
    def ragged(n: T.Buffer((1,), "int32"), A: T.Buffer((8,)), B: T.Buffer((12,))):
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                T.where(i < n[0])
                B[vi] = T.if_then_else(vi < 8, A[vi], T.float32(0))

    check_refused(ragged, decompose("B", 0), "decompose_padding/P5")


def test_loops_of_threads_stay_as_long_as_others_of_their_axis():
    @T.prim_func
    def padded(A: T.Buffer((3,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = T.float32(1)
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = T.if_then_else(v >= 1, A[v - 1], T.float32(0))

    sch = check(padded, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0]))
    assert [int(sch.get(sch.get_loops(name)[0]).extent) for name in ("B_pad_const", "B")] == [4, 4]


def test_p2_a_block_that_uses_its_loop_inside():
    """The loop becomes shorter: i would no longer be the axis."""

    @T.prim_func
    def padded(A: T.Buffer((8,), "int32"), C: T.Buffer((12,), "int32")):
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                C[vi] = T.if_then_else(vi >= 2 and vi < 10, A[i - 2], 0)

    check_refused(padded, lambda sch: sch.decompose_padding("B", sch.get_loops("B")[0]), "decompose_padding/P2")
