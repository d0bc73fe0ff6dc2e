"""sch.loop_partition: consecutive loops, each with a copy of the body."""

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def copy(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def cut(block, number, lengths, **options):
    return lambda sch: sch.loop_partition(sch.get_loops(sch.get_block(block))[number], lengths, **options)


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,))):
        with T.block("root"):
            T.reads()
            T.writes()
            with T.block("B_i_common"):
                with T.block("B_i0_partition"):
                    for i0 in range(2):
                        with T.block("B_i0"):
                            vi = T.axis.spatial(2, i0)
                            B[vi] = A[vi]
                with T.block("B_i1_partition"):
                    for i1 in range(2, 8):
                        with T.block("B_i1"):
                            vi = T.axis.spatial((2, 8), i1)
                            B[vi] = A[vi]

    def transform(sch):
        loops = cut("B", 0, [2, None])(sch)
        assert [repr(loop) for loop in loops] == ["Loop(i0, extent=2)", "Loop(i1, extent=6)"]
        names = ["B_i_common", "B_i0_partition", "B_i0", "B_i1_partition", "B_i1"]
        assert all(sch.get(sch.get_block(name)).name_hint == name for name in names)

    check(copy, transform, after)


@pytest.mark.parametrize(
    ("lengths", "extents"),
    [([2, 1], [2, 1, 5]), ([None, 3], [5, 3]), ([1, None, 3], [1, 4, 3]), ([7], [7, 1]), ([None], [8])],
)
def test_what_is_left(lengths, extents):
    def transform(sch):
        loops = cut("B", 0, lengths)(sch)
        assert [int(sch.get(loop).extent) for loop in loops] == extents

    check(copy, transform)


def test_parts_are_scheduled_by_themselves():
    def transform(sch):
        first, _second = cut("B", 0, [4])(sch)
        sch.vectorize(first)
        sch.loop_partition(sch.get_loops("B_i1")[0], [1, 2])

    check(copy, transform)


def test_below_other_loops_and_around_blocks_in_blocks():
    def transform(sch):
        cut("C", 1, [2])(sch)
        cut("D", 0, [None, 1], preserve_unit_iters=False)(sch)

    sch = check(workloads.matmul_relu(4, 5, 6), transform)
    assert sch.get(sch.get_block("C_j1")).init is not None


def test_drawn_lengths():
    def transform(sch):
        length = sch.sample_categorical([2, 3], [0.5, 0.5], decision=1)
        cut("B", 0, [length])(sch)

    check(copy, transform)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (copy, lambda sch: (sch.unroll(sch.get_loops("B")[0]), cut("B", 0, [2])(sch)), "loop_partition/P1"),
        (copy, cut("B", 0, [None, None]), "loop_partition/P3"),
        (copy, cut("B", 0, [0, None]), "loop_partition/P3"),
        (copy, cut("B", 0, [-2]), "loop_partition/P3"),
        (copy, cut("B", 0, [8]), "loop_partition/P4"),
        (copy, cut("B", 0, [4, None, 4]), "loop_partition/P4"),
        (copy, cut("B", 0, [2**62, 2**62, 2**62]), "loop_partition/P4"),
        (workloads.matmul(4, 4, 4), cut("C", 2, [2]), "loop_partition/P5"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_p2_a_constant_range():
    @T.prim_func
    def symbolic(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi]

    with pytest.raises(tw.ScheduleError, match="loop_partition/P2"):
        cut("B", 0, [2])(tw.Schedule(symbolic))


def test_views_with_sizes_of_their_own():
    """What a match_buffer defines is defined by each copy of it."""

    @T.prim_func
    def through_a_view(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                s, o = T.int32(), T.int32()
                V = T.match_buffer(A[vi, 0:8], (8,), strides=[s], elem_offset=o, offset_factor=1)
                for j in range(8):
                    with T.block("row"):
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = V[vj]

    check(through_a_view, cut("B", 0, [1, 2]))


def test_sizes_from_around_stay():
    @T.prim_func
    def rows(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (4, n), "int32")
        B = T.match_buffer(b, (4, n), "int32")
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                V = T.match_buffer(A[vi, 0:n], (n,), "int32", offset_factor=1)
                for j in range(n):
                    with T.block("row"):
                        vj = T.axis.spatial(n, j)
                        B[vi, vj] = V[vj]

    sch = check(rows, cut("B", 0, [1, None]))
    func = sch.mod["main"]
    size = func.buffer_map[func.params[0]].shape[1]
    matches = []
    ir.post_order_visit(
        func.body, lambda node: matches.append(node) if isinstance(node, ir.MatchBufferRegion) else None
    )
    assert len(matches) == 2 and all(match.buffer.shape[0].same_as(size) for match in matches)


@pytest.mark.parametrize("step", ["partition", "blockize", "cache_read"])
def test_blocks_around_do_not_speak_of_sizes_that_a_view_defines(step):
    @T.prim_func
    def viewed(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                n = T.int32()
                V = T.match_buffer(A[vi, 0:8], (n,))
                for j in range(n):
                    with T.block("inner"):
                        vj = T.axis.spatial(n, j)
                        B[vi, vj] = V[vj] * T.float32(2)

    def transform(sch):
        loop = sch.get_loops("outer")[0]
        if step == "partition":
            sch.loop_partition(loop, [1, None])
        elif step == "blockize":
            sch.blockize(loop)
        else:
            sch.cache_read("outer", 0, "local")

    check(viewed, transform)


def test_axes_of_parts_beyond_a_domain_keep_it():
    """A split without a rest of one row leaves seven iterations in which no row is started, and no element is of."""

    @T.prim_func
    def sums(A: T.Buffer((1, 4)), B: T.Buffer((2,))):
        for i, k in T.grid(1, 4):
            with T.block("B"):
                v, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[v * 2] = T.float32(2)
                B[v * 2] = B[v * 2] + A[v, vk]

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("B")[0], [8, None], preserve_unit_iters=False)
        sch.loop_partition(outer, [1])

    sch = check(sums, transform)
    axes = [int(sch.get(block).iter_vars[0].dom.extent) for block in (sch.get_block("B_i_00"), sch.get_block("B_i_01"))]
    assert axes == [1, 1]


def test_a_reduction_inside_of_parts():
    """Blocks that the step makes have no axes; what stands in them is bound to the loops around them."""

    @T.prim_func
    def sums(A: T.Buffer((4, 6)), B: T.Buffer((4,))):
        for k, i in T.grid(6, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 9.0
                B[vi] += A[vi, vk]

    def twice(sch):
        k, i = sch.get_loops("B")
        sch.loop_partition(i, [1, None])
        sch.loop_partition(k, [1, None])

    check_refused(sums, twice, "loop_partition/P5")


def test_data_that_are_read_at_the_same_place_in_each_iteration():
    """What the new blocks declare says nothing of loops inside of them."""

    @T.prim_func
    def table(A: T.Buffer((3, 2), "int32"), C: T.Buffer((3,), "int32"), B: T.Buffer((5,), "int32")):
        for i, j in T.grid(3, 2):
            with T.block("B"):
                v = T.axis.spatial(5, i * 2 + j)
                T.where(i * 2 + j < 5)
                B[v] = C[A[2, T.max(T.min(v * 3 + 5, 0), 0)] % 3]

    def parts(sch):
        sch.loop_partition(sch.get_loops("B")[0], [2, None])
        tw.ir.verify(sch.mod)

    check(table, parts)
