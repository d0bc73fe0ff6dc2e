"""cache_inplace."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def doubled(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            T.reads(A[v * 4 : v * 4 + 4])
            T.writes(A[v * 4 : v * 4 + 4])
            for j in range(4):
                A[v * 4 + j] = A[v * 4 + j] * T.float32(2)
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v]


def test_in_and_out_right_around_the_block():
    @T.prim_func
    def after(A: T.Buffer((16,)), B: T.Buffer((16,))):
        A_local = T.alloc_buffer((16,), scope="local")
        for i in range(4):
            for ax0 in range(4):
                with T.block("A_local"):
                    v0 = T.axis.spatial(16, i * 4 + ax0)
                    A_local[v0] = A[v0]
            with T.block("A"):
                v = T.axis.spatial(4, i)
                T.reads(A_local[v * 4 : v * 4 + 4])
                T.writes(A_local[v * 4 : v * 4 + 4])
                for j in range(4):
                    A_local[v * 4 + j] = A_local[v * 4 + j] * T.float32(2)
            for ax0 in range(4):
                with T.block("A_local"):
                    v0 = T.axis.spatial(16, i * 4 + ax0)
                    A[v0] = A_local[v0]
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = A[v]

    def transform(sch):
        blocks = sch.cache_inplace("A", 0, "local")
        assert [sch.get(block).name_hint for block in blocks] == ["A_local", "A_local"]

    check(doubled, transform, after)


def test_further_copies_of_both_ends():
    def transform(sch):
        into, back = sch.cache_inplace("A", "A", "local")
        sch.cache_read(into, 0, "global", [into])
        sch.cache_write(back, 0, "global")

    check_refused(doubled, transform, "cache_read/P3")

    @T.prim_func
    def once(A: T.Buffer((16,))):
        for i in range(1):
            with T.block("A"):
                T.reads(A[0:16])
                T.writes(A[0:16])
                for j in range(16):
                    A[j] = A[j] * T.float32(2)

    text = check(once, transform).mod.script()
    assert "A_local[v0] = A_global[v0]" in text and "A_global_1[v0] = A_local[v0]" in text


def test_after_decomposing_a_reduction():
    def transform(sch):
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.cache_inplace("C_update", "C", "local")

    check(workloads.matmul(4, 6, 5), transform)


def test_masked_instances():
    def transform(sch):
        sch.split(sch.get_loops("A")[0], [None, 3])
        sch.cache_inplace("A", 0, "local")

    check(doubled, transform)


def test_parallel_iterations():
    """A copy in one iteration stands before the copy back of another one, in no order that is known."""

    def transform(sch):
        sch.parallel(sch.get_loops("A")[0])
        sch.cache_inplace("A", 0, "local")

    check_refused(doubled, transform, "cache_inplace/P9")


@T.prim_func
def partly(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            T.reads(A[v * 4], B[v])
            T.writes(A[v * 4 : v * 4 + 4])
            A[v * 4 + 1] = A[v * 4] + B[v]


@T.prim_func
def hidden(A: T.Buffer((16,))):
    for i in range(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            T.reads(A[v * 4])
            T.writes(A[v * 4])
            A[v * 4] = A[v * 4 + 1]


@T.prim_func
def stencil(A: T.Buffer((16,))):
    for i in T.parallel(4):
        with T.block("A"):
            v = T.axis.spatial(4, i)
            T.reads(A[0:16])
            T.writes(A[v])
            A[v] = A[v + 8]


@T.prim_func
def aliased(A: T.Buffer((16,)), B: T.Buffer((4,))):
    for o in range(1):
        with T.block("O"):
            T.axis.spatial(1, o)
            T.reads(A[0:16])
            T.writes(A[0:16], B[0:4])
            V = T.match_buffer(A[0:16], (16,), offset_factor=1)
            for i in range(16):
                with T.block("A"):
                    v = T.axis.spatial(16, i)
                    A[v] = A[v] + T.float32(1)
            for i in range(4):
                with T.block("B"):
                    v = T.axis.spatial(4, i)
                    B[v] = V[v]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (doubled, lambda sch: sch.cache_inplace("root", 0, "local"), "cache_inplace/P1"),
        (doubled, lambda sch: sch.cache_inplace("A", 1, "local"), "cache_inplace/P1"),
        (doubled, lambda sch: sch.cache_inplace("A", 0, "nowhere"), "cache_inplace/P2"),
        (doubled, lambda sch: sch.cache_inplace("B", 0, "local"), "cache_inplace/P3"),
        (aliased, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P3"),
        (partly, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P4"),
        (hidden, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P4"),
        (stencil, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P9"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


@T.prim_func
def own_value(A: T.Buffer((4,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
            B[v] = B[v] * B[v]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v]


def test_p4_the_first_writer_finds_nothing():
    check_refused(own_value, lambda sch: sch.cache_inplace("B", "B", "local"), "cache_inplace/P4")

    def wrapped(sch):
        sch.blockize(sch.get_loops("B")[0])
        sch.cache_inplace("B", "B", "local")

    check_refused(own_value, wrapped, "cache_inplace/P4")


def test_inside_of_a_block_what_was_set_before_counts():
    def transform(sch):
        outer = sch.blockize(sch.get_loops("C")[2])
        sch.decompose_reduction(outer, sch.get_loops(outer)[0])
        sch.cache_inplace("C", "C", "local")

    check(workloads.matmul(4, 6, 5), transform)


@T.prim_func
def called(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    with T.block("A"):
        T.reads(A[0:16])
        T.writes(A[0:16])
        T.evaluate(T.call_extern("int32", "sort_in_place", A.data))
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v]


def test_what_happens_behind_a_pointer_is_stated():
    """A call gets the pointer of the copy; that it stays within what the block declares nobody can check."""
    sch = tw.Schedule(called)
    into, back = sch.cache_inplace("A", 0, "local")
    assert 'T.call_extern("int32", "sort_in_place", A_local.data)' in sch.mod.script()
    assert list(sch.trace.stated.values()) == ["block 'A' touches of 'A' what it declares"]
    assert [sch.get(block).name_hint for block in (into, back)] == ["A_local", "A_local"]


def test_a_pointer_that_is_not_declared():
    @T.prim_func
    def other(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        for i in range(1):
            with T.block("A"):
                T.axis.spatial(1, i)
                T.reads(A[0:16])
                T.writes(A[0:16])
                T.evaluate(T.call_extern("int32", "add_to", A.data, C.data))

    check_refused(other, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P4")


def test_a_place_that_an_index_array_says_behind_a_tail():
    """Elements of the array of indices behind its end would say how long loops are that do nothing."""

    @T.prim_func
    def kept(A: T.Buffer((2,))):
        for i in range(2):
            with T.block("A"):
                v = T.axis.spatial(2, i)
                A[v] = A[T.max(v, 0)]

    def transform(sch, factors):
        sch.split(sch.get_loops("A")[0], factors)
        sch.cache_index("A", "global", 0)
        sch.cache_inplace("A", 0, "global")

    check_refused(kept, lambda sch: transform(sch, [1, 3]), "cache_inplace/P4")
    sch = tw.Schedule(kept)
    transform(sch, [2, 1])
    sch.verify()


def test_a_place_that_the_tail_alone_makes_simpler():
    """I[(i * 128 + j) // 2 % 2] is I[(i * 128 + j) // 2] where the block runs, and outside of I elsewhere."""

    @T.prim_func
    def rows(A: T.Buffer((2, 2), "int8"), I: T.Buffer((2,), "int32")):
        for i, j in T.grid(2, 2):
            with T.block("A"):
                v = T.axis.spatial(2, I[i % 2] % 2)
                w = T.axis.spatial(2, j)
                A[v, w] = T.min(A[w, w], A[1, v])

    def cache(sch):
        fused = sch.fuse(*sch.get_loops("A"))
        sch.split(fused, factors=[None, 128])
        sch.cache_inplace("A", 0, "local")

    text = check(rows, cache).mod.script()
    assert "_1 % 4 // 2] % 2) - T.min(" in text


def test_p4_places_that_the_block_changes():
    @T.prim_func
    def moves(A: T.Buffer((4, 5), "int32"), I: T.Buffer((4,), "int32")):
        for i, j in T.grid(4, 5):
            with T.block("A"):
                vi = T.axis.spatial(4, I[i] % 4)
                vj = T.axis.spatial(5, j)
                A[vi, vj] = A[vi, vj] + 1
                I[vi] = vj

    @T.prim_func
    def asks(A: T.Buffer((4, 5), "int32")):
        for i, j in T.grid(4, 5):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(A[i, 1] > 0)
                A[vi, vj] = A[vi, vj] - 2

    for program in (moves, asks):
        check_refused(program, lambda sch: sch.cache_inplace("A", 0, "local"), "cache_inplace/P4")


def test_p4_what_the_block_writes_before_it_reads():
    @T.prim_func
    def chain(A: T.Buffer((4,)), C: T.Buffer((4,))):
        B = T.alloc_buffer((4,))
        for i in range(1):
            with T.block("tail"):
                v = T.axis.spatial(1, i)
                B[v + 3] = T.float32(0)
        for i in range(3):
            with T.block("B"):
                v = T.axis.spatial(3, i)
                B[v] = A[v]
        for i in range(3):
            with T.block("C"):
                v = T.axis.spatial(3, i)
                C[v] = B[v]

    def cache(sch):
        both = sch.blockize([sch.get_block("B"), sch.get_block("C")])
        reads = [region.buffer.name for region in sch.get(both).reads]
        sch.cache_inplace(both, reads.index("B"), "local")

    check_refused(chain, cache, "cache_inplace/P4")
