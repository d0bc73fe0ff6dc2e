"""cache_read and cache_write."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def test_reading_an_intermediate_buffer():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        B = T.alloc_buffer((4, 6))
        C = T.alloc_buffer((4, 6))
        B_shared = T.alloc_buffer((4, 6), scope="shared")
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for ax0, ax1 in T.grid(4, 6):
            with T.block("B_shared"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B_shared[v0, v1] = B[v0, v1]
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_shared[vi, vj] * T.float32(2)
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] - A[vi, vj]

    sch = check(workloads.elementwise_chain(4, 6), lambda sch: sch.cache_read("C", 0, "shared"), after)
    assert sch.get(sch.get_block("B_shared")).name_hint == "B_shared"


def test_only_named_consumers_read_the_copy():
    def transform(sch):
        sch.cache_read("D", "A", "global", consumer_blocks=[sch.get_block("D")])

    sch = check(workloads.elementwise_chain(4, 6), transform)
    text = sch.mod.script()
    assert "C[vi, vj] - A_global[vi, vj]" in text and "A[vi, vj] + T.float32(1.0)" in text
    assert "consumer_blocks=[b" in "\n".join(sch.trace.as_python())
    both = check(workloads.elementwise_chain(4, 6), lambda sch: sch.cache_read("D", "A", "global"))
    assert "A_global[vi, vj] + T.float32(1.0)" in both.mod.script()


def test_under_shared_loops_the_copy_stays_there():
    def transform(sch):
        i, _ = sch.get_loops("C")
        sch.compute_at(sch.get_block("B"), i)
        sch.cache_read("C", 0, "local")
        assert [repr(loop) for loop in sch.get_loops("B_local")][1:] == ["Loop(ax0, extent=1)", "Loop(ax1, extent=6)"]

    check(workloads.elementwise_chain(4, 6), transform)


def test_both_operands_of_a_matmul():
    def transform(sch):
        for number, scope in [(0, "local"), (1, "global")]:
            sch.cache_read("C", number, scope)

    check(workloads.matmul(4, 6, 5), transform)


def test_the_buffer_itself_selects_it():
    def transform(sch):
        buffer = sch.get(sch.get_block("C")).reads[1].buffer
        sch.cache_read("C", buffer, "global")

    sch = check(workloads.matmul(4, 6, 5), transform)
    assert "read_buffer_index=1" in "\n".join(sch.trace.as_python())


def test_writing_back():
    def transform(sch):
        sch.cache_write("C", 0, "local")

    sch = check(workloads.matmul(4, 6, 5), transform)
    assert 'C_local = T.alloc_buffer((4, 6), scope="local")' in sch.mod.script()


def test_writing_back_before_a_reader():
    sch = check(workloads.matmul_relu(4, 6, 5), lambda sch: sch.cache_write("C", "C", "local"))
    children = [sch.get(b).name_hint for b in sch.get_child_blocks("root")]
    assert children == ["C", "C_local", "D"]

    def redirected(sch):
        sch.cache_write("C", 0, "local", consumer_blocks=["D"])

    assert "T.max(C_local[vi, vj]" in check(workloads.matmul_relu(4, 6, 5), redirected).mod.script()


def test_masked_loops():
    def transform(sch):
        i, *_ = sch.get_loops("C")
        sch.split(i, [None, 3])
        sch.cache_write("C", 0, "global")
        sch.cache_read("C", 0, "global")

    check(workloads.matmul(4, 6, 5), transform)


def test_after_a_parallel_loop():
    def transform(sch):
        sch.parallel(sch.get_loops("C")[0])
        sch.cache_write("C", 0, "global")

    check(workloads.matmul(4, 6, 5), transform)


@T.prim_func
def bare(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    B[0] = T.float32(0)


@T.prim_func
def two_writers(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("low"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("high"):
            vi = T.axis.spatial(4, i)
            B[vi + 4] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def in_place(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def half_written(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(8, i * 2)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(8, i * 2)
            C[vi] = B[vi]


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("root", 0, "local"), "cache_read/P1"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("C", 2, "local"), "cache_read/P1"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("C", "X", "local"), "cache_read/P1"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("C", 0, "nowhere"), "cache_read/P2"),
        (two_writers, lambda sch: sch.cache_read("C", 0, "local"), "cache_read/P3"),
        (in_place, lambda sch: sch.cache_read("B", 0, "local"), "cache_read/P3"),
        (half_written, lambda sch: sch.cache_read("C", 0, "local"), "cache_read/P4"),
        (
            workloads.elementwise_chain(4, 4),
            lambda sch: sch.cache_read("D", "A", "local", consumer_blocks=["C"]),
            "cache_read/P5",
        ),
        (bare, lambda sch: sch.cache_read("B", 0, "local"), "cache_read/P6"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_write("root", 0, "local"), "cache_write/P1"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_write("C", 1, "local"), "cache_write/P1"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("C", 0, "sharedd"), "cache_read/P2"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_read("C", 0, "local.foo"), "cache_read/P2"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_write("C", 0, "nowhere"), "cache_write/P2"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.cache_write("C", 0, "shared.dynamic"), "cache_write/P2"),
        (two_writers, lambda sch: sch.cache_write("low", 0, "local"), "cache_write/P3"),
        (in_place, lambda sch: sch.cache_write("A", 0, "local"), "cache_write/P3"),
        (half_written, lambda sch: sch.cache_write("B", 0, "local"), "cache_write/P4"),
        (
            workloads.matmul_relu(4, 4, 4),
            lambda sch: sch.cache_write("C", 0, "local", consumer_blocks=["C"]),
            "cache_write/P5",
        ),
        (bare, lambda sch: sch.cache_write("B", 0, "local"), "cache_write/P6"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


@T.prim_func
def read_written_read(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * T.float32(2)
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = B[v]
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            D[v] = A[v]


def test_readers_before_the_writer_keep_the_old_values():
    sch = check(read_written_read, lambda sch: sch.cache_read("D", "A", "global"))
    assert "C[v] = A[v]" in sch.mod.script() and "D[v] = A_global[v]" in sch.mod.script()
    sch = check(read_written_read, lambda sch: sch.cache_read("C", "A", "global"))
    assert "C[v] = A_global[v]" in sch.mod.script() and "D[v] = A[v]" in sch.mod.script()
    for block, consumer in [("D", "C"), ("C", "D")]:
        check_refused(
            read_written_read,
            lambda sch, block=block, consumer=consumer: sch.cache_read(block, "A", "global", [consumer]),
            "cache_read/P5",
        )


def test_readers_before_the_writer_in_a_loop_see_its_values():
    @T.prim_func
    def swapped(A: T.Buffer((8,)), B: T.Buffer((4, 8))):
        for t in range(4):
            for i in range(8):
                with T.block("B"):
                    vt, v = T.axis.remap("SS", [t, i])
                    B[vt, v] = A[v]
            for i in range(8):
                with T.block("A"):
                    vt, v = T.axis.remap("SS", [t, i])
                    A[v] = T.float32(2) * T.Cast("float32", vt)

    check_refused(swapped, lambda sch: sch.cache_read("B", "A", "global"), "cache_read/P3")
    check_refused(swapped, lambda sch: sch.cache_write("A", "A", "global"), "cache_write/P3")


def test_a_reader_before_the_writer_is_no_reader_of_what_it_writes():
    sch = check(read_written_read, lambda sch: sch.cache_write("A", 0, "global"))
    assert [sch.get(b).name_hint for b in sch.get_child_blocks("root")] == ["C", "A", "A_global", "D"]


@T.prim_func
def tiles(B: T.Buffer((16,)), C: T.Buffer((16,))):
    A = T.alloc_buffer((16,))
    for i0 in range(4):
        with T.block("tile"):
            i = T.axis.spatial(4, i0)
            for x in range(4):
                with T.block("A"):
                    v = T.axis.spatial(16, i * 4 + x)
                    A[v] = C[v] + T.float32(1)
            for x in range(4):
                with T.block("B"):
                    v = T.axis.spatial(16, i * 4 + x)
                    B[v] = A[v] + T.float32(1)
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            C[v] = A[v] * T.float32(2)


def test_a_block_may_read_what_blocks_inside_have_written():
    """Nothing of that is a value from before, so the outer block is a plain producer."""

    def transform(sch):
        sch.cache_read("B", "A", "local")
        sch.cache_read("C", "A", "global")

    text = check(tiles, transform).mod.script()
    assert "A_local[v0] = A[i * 4 + v0]" in text and "A_local[v - i * 4]" in text
    assert 'A_local = T.alloc_buffer((4,), scope="local")' in text and "C[v] = A_global[v]" in text

    def written(sch):
        sch.cache_write("A", 0, "local")
        sch.cache_write("tile", "A", "global")

    text = check(tiles, written).mod.script()
    assert "A_local[v - i * 4] = C[v]" in text and "A_global[i * 4 + v0] = A_local[v0]" in text


def test_a_copy_stands_right_before_its_first_reader():
    sch = check(workloads.elementwise_chain(4, 6), lambda sch: sch.cache_read("D", "A", "global"))
    assert sch.get(sch.get_child_blocks("root")[0]).name_hint == "A_global"

    @T.prim_func
    def two_readers(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        X = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("X"):
                v = T.axis.spatial(8, i)
                X[v] = A[v] + T.float32(1)
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = X[v]
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = X[v]

    def order(transform):
        sch = check(two_readers, transform)
        return [sch.get(b).name_hint for b in sch.get_child_blocks("root")]

    assert order(lambda sch: sch.cache_read("C", 0, "global", ["C"])) == ["X", "B", "X_global", "C"]
    assert order(lambda sch: sch.cache_write("X", 0, "global", ["B"])) == ["X", "B", "X_global", "C"]
    assert order(lambda sch: sch.cache_write("X", 0, "global", ["B", "C"])) == ["X", "B", "C", "X_global"]


def test_constants_are_copied_where_they_are_known():
    @T.prim_func
    def table(A: T.Buffer((4,)), C: T.Buffer((4,))):
        B = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        table = T.decl_buffer((4,), data=B)
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = A[v] + table[v]

    def transform(sch):
        sch.cache_read("C", "table", "global")
        sch.cache_read("C", "A", "global")
        sch.cache_write("C", 0, "global")

    sch = check(table, transform)
    assert [sch.get(b).name_hint for b in sch.get_child_blocks("root")] == ["A_global", "table_global", "C", "C_global"]


def test_pointers_follow_a_copy_of_the_whole():
    @T.prim_func
    def called(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(1):
            with T.block("B"):
                T.reads(A[0:8])
                T.writes(B[0:8])
                T.evaluate(T.call_extern("void", "copy8", A.access_ptr("r"), B.access_ptr("w")))

    sch = tw.Schedule(called)
    sch.cache_read("B", "A", "global")
    assert "A_global.data" in sch.mod.script() and "copy8" in sch.mod.script()

    @T.prim_func
    def changed(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(1):
            with T.block("B"):
                T.reads(A[0:8])
                T.writes(B[0:8])
                T.evaluate(T.call_extern("void", "swap8", A.access_ptr("rw"), B.access_ptr("w")))

    check_refused(changed, lambda sch: sch.cache_read("B", "A", "global"), "cache_read/P4")


def test_a_copy_of_a_part_serves_no_reader_of_the_whole():
    @T.prim_func
    def partly(A: T.Buffer((16,)), C: T.Buffer((16,)), D: T.Buffer((16,))):
        for i in range(9):
            with T.block("C"):
                v = T.axis.spatial(16, i)
                C[v] = A[v] * T.float32(2)
        for i in range(16):
            with T.block("D"):
                v = T.axis.spatial(16, i)
                D[v] = C[v]

    check_refused(partly, lambda sch: sch.cache_read("D", "C", "global"), "cache_read/P4")
    check_refused(partly, lambda sch: sch.cache_write("C", 0, "global", consumer_blocks=["D"]), "cache_write/P4")


def test_a_copy_for_padded_reads_in_a_nested_block():
    @T.prim_func
    def padded(A: T.Buffer((16,)), D: T.Buffer((16,))):
        for o in range(4):
            with T.block("O"):
                vo = T.axis.spatial(4, o)
                T.reads(A[vo * 4 - 3 : vo * 4 + 7])
                T.writes(D[vo * 4 : vo * 4 + 4])
                for i in range(4):
                    with T.block("D"):
                        v = T.axis.spatial(4, i)
                        D[vo * 4 + v] = T.if_then_else(vo * 4 + v >= 3, A[vo * 4 + v - 3], T.float32(0))

    check(padded, lambda sch: sch.cache_read("D", "A", "global"))


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_copy_of_padded_reads_may_be_empty(size):
    """Below the last rows, the padding covers all that a block reads."""

    @T.prim_func
    def shifted(a: T.handle, D: T.Buffer((6, 2))):
        m = T.int32()
        A = T.match_buffer(a, (m, 2))
        for o in range(6):
            with T.block("O"):
                vo = T.axis.spatial(6, o)
                for i in range(2):
                    with T.block("D"):
                        v = T.axis.spatial(2, i)
                        D[vo, v] = T.if_then_else(vo + 2 < m, A[vo + 2, v], T.float32(-1))

    sch = tw.Schedule(shifted)
    sch.cache_read("D", "A", "global")
    a = np.arange(2 * size, dtype="float32").reshape(size, 2)
    expected = np.full((6, 2), -1, "float32")
    expected[: max(size - 2, 0)] = a[2:]
    for target in ("interpreter", "native"):
        d = np.zeros((6, 2), "float32")
        tw.compile(sch, target=target)(a, d)
        assert (d == expected).all()


@T.prim_func
def open_product(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, k))
    B = T.match_buffer(b, (k, m))
    C = T.match_buffer(c, (n, m))
    for i, j, x in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vx = T.axis.remap("SSR", [i, j, x])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vx] * B[vx, vj]


def test_copies_of_sums_over_nothing_that_are_refused():
    def written_at(sch):
        sch.write_at(sch.get_loops("C")[1], "C", 0, "local")

    check_refused(open_product, written_at, "write_at/P4")
    check_refused(open_product, lambda sch: sch.reindex("C", ("write", 0)), "reindex/P5")
    check_refused(
        open_product,
        lambda sch: sch.reindex_cache_write("C", 0, "local", lambda i, j, x: (i, j)),
        "reindex_cache_write/P6",
    )


def test_what_is_written_to_a_cache_stays_there_where_sums_are_over_nothing():
    """A copy back on a condition, which goes with the copy under a loop, and leaves tiles in registers."""
    sch = tw.Schedule(open_product)
    copy = sch.cache_write("C", 0, "local")
    rows, columns, _ = sch.get_loops("C")
    (row, i), (column, j) = sch.split(rows, [None, 2]), sch.split(columns, [None, 8])
    sch.reorder(row, column, sch.get_loops("C")[-1], i, j)
    sch.unroll(i)
    sch.vectorize(j)
    sch.reverse_compute_at(copy, column)
    assert "T.where(k > 0 and " in sch.mod["main"].script()
    kernel = tw.compile(sch)
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    for inner in (3, 0):
        a, b = np.ones((5, inner), "float32"), np.ones((inner, 9), "float32")
        for compute in (kernel, tw.compile(sch, target="interpreter")):
            c = np.full((5, 9), 7, "float32")
            compute(a, b, c)
            np.testing.assert_array_equal(c, np.full((5, 9), inner or 7, "float32"))


def test_sums_whose_steps_differ_are_not_written_to_a_cache():
    @T.prim_func
    def triangle(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            for x in range(i):
                with T.block("C"):
                    vi, vx = T.axis.spatial(n, i), T.axis.reduce(n, x)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vx]

    check_refused(triangle, lambda sch: sch.cache_write("C", 0, "local"), "cache_write/P4")


def test_copies_of_sums_that_are_read_anyhow():
    """What reads all of the sums has no meaning where there are none: the copy needs no condition."""

    @T.prim_func
    def squares(a: T.handle, d: T.handle):
        n, k = T.int32(), T.int32()
        A = T.match_buffer(a, (n, k))
        D = T.match_buffer(d, (n,))
        C = T.alloc_buffer((n,))
        for i, x in T.grid(n, k):
            with T.block("C"):
                vi, vx = T.axis.remap("SR", [i, x])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vx]
        for i in range(n):
            with T.block("D"):
                vi = T.axis.spatial(n, i)
                D[vi] = C[vi] * C[vi]

    for cache in (lambda sch: sch.cache_read("D", 0, "local"), lambda sch: sch.cache_write("C", 0, "local")):
        sch = tw.Schedule(squares)
        cache(sch)
        assert "T.where" not in sch.mod["main"].script()
        a, d = np.ones((3, 4), "float32"), np.zeros(3, "float32")
        tw.compile(sch, target="interpreter")(a, d)
        np.testing.assert_array_equal(d, np.full(3, 16, "float32"))


def test_sums_over_nothing_that_a_reader_leaves_out():
    @T.prim_func
    def guarded(a: T.handle, d: T.handle):
        n, k = T.int32(), T.int32()
        A = T.match_buffer(a, (n, k))
        D = T.match_buffer(d, (n,))
        C = T.alloc_buffer((n,))
        for i, x in T.grid(n, k):
            with T.block("C"):
                vi, vx = T.axis.remap("SR", [i, x])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vx]
        for i in range(n):
            with T.block("D"):
                vi = T.axis.spatial(n, i)
                D[vi] = T.if_then_else(k > 0, C[vi], T.float32(-1))

    sch = check(guarded, lambda sch: sch.cache_read("D", "C", "local"))
    assert "T.where(k > 0)" in sch.mod.script()
    for k in (0, 2):
        d = np.zeros(3, "float32")
        tw.compile(sch, "interpreter")(np.ones((3, k), "float32"), d)
        np.testing.assert_array_equal(d, np.full(3, k or -1, "float32"))


def test_sums_over_nothing_that_a_block_around_the_reader_leaves_out():
    """Its declared region is that of any size; the loop inside it, of the same size as the sum, may not run."""

    @T.prim_func
    def wrapped(a: T.handle, d: T.handle):
        n, k = T.int32(), T.int32()
        A = T.match_buffer(a, (n, k))
        D = T.match_buffer(d, (n, k))
        C = T.alloc_buffer((n,))
        for i, x in T.grid(n, k):
            with T.block("C"):
                vi, vx = T.axis.remap("SR", [i, x])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vx]
        for i, x in T.grid(n, k):
            with T.block("D"):
                vi, vx = T.axis.remap("SS", [i, x])
                D[vi, vx] = C[(vi + vx) % n]

    def cache(sch):
        sch.blockize(sch.get_loops("D")[0])
        sch.cache_write("C", 0, "local")

    check_refused(wrapped, cache, "cache_write/P4")


@T.prim_func
def through_views(A: T.Buffer((16,)), D: T.Buffer((16,))):
    for o in range(4):
        with T.block("O"):
            vo = T.axis.spatial(4, o)
            T.reads(A[vo * 4 : vo * 4 + 4])
            T.writes(D[vo * 4 : vo * 4 + 4])
            V = T.match_buffer(A[vo * 4 : vo * 4 + 4], (4,), offset_factor=1)
            W = T.match_buffer(D[vo * 4 : vo * 4 + 4], (4,), offset_factor=1)
            for i in range(4):
                with T.block("D"):
                    v = T.axis.spatial(4, i)
                    W[v] = V[v] + T.float32(1)


def test_views_follow_into_the_scope_of_the_copy():
    sch = check(through_views, lambda sch: sch.cache_read("O", 0, "shared"))
    assert 'A_shared[vo * 4:vo * 4 + 4], (4,), scope="shared"' in sch.mod.script()
    check(through_views, lambda sch: sch.cache_write("O", 0, "shared"))


def test_a_buffer_with_two_names_in_a_scope():
    @T.prim_func
    def named_twice(A: T.Buffer((16,)), D: T.Buffer((16,))):
        for o in range(4):
            with T.block("O"):
                vo = T.axis.spatial(4, o)
                T.reads(A[vo * 4 : vo * 4 + 4])
                T.writes(A[vo * 4 : vo * 4 + 4], D[vo * 4 : vo * 4 + 4])
                V = T.match_buffer(A[vo * 4 : vo * 4 + 4], (4,), offset_factor=1)
                for i in range(4):
                    with T.block("A"):
                        v = T.axis.spatial(4, i)
                        A[vo * 4 + v] = T.float32(3)
                for i in range(4):
                    with T.block("D"):
                        v = T.axis.spatial(4, i)
                        D[vo * 4 + v] = V[v]

    check_refused(named_twice, lambda sch: sch.cache_read("D", 0, "global"), "cache_read/P3")
    check_refused(named_twice, lambda sch: sch.cache_write("A", 0, "global"), "cache_write/P3")


@pytest.mark.parametrize(
    ("loops", "binding", "accepted"),
    [
        (("6",), "k", True),
        (("6",), "5 - k", False),  # the init comes last
        (("6",), "(k + 3) % 6", False),
        (("3", "2"), "k * 2 + l", True),
        (("2", "3"), "l * 2 + k", True),
        (("3", "2"), "k * 2 + (1 - l)", False),
        (("3", "2"), "(2 - k) * 2 + l", False),
        (("6", "2"), "k", True),  # each step twice, the init as well
    ],
)
def test_a_copy_is_written_only_by_reductions_that_begin_with_their_init(loops, binding, accepted):
    names = ["k", "l"][: len(loops)]
    headers = "".join(f"{' ' * 4 * (i + 2)}for {names[i]} in range({loops[i]}):\n" for i in range(len(loops)))
    deeper = " " * 4 * (len(loops) + 2)
    program = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((4, 6)), C: T.Buffer((4,))):\n"
        f"    for i in range(4):\n{headers}"
        f'{deeper}with T.block("C"):\n'
        f"{deeper}    vi = T.axis.spatial(4, i)\n{deeper}    vk = T.axis.reduce(6, {binding})\n"
        f"{deeper}    with T.init():\n{deeper}        C[vi] = T.float32(3)\n"
        f"{deeper}    C[vi] = C[vi] * T.float32(2) + A[vi, vk]\n"
    )
    if accepted:
        check(program, lambda sch: sch.cache_write("C", 0, "local"))
    else:
        check_refused(program, lambda sch: sch.cache_write("C", 0, "local"), "cache_write/P4")


def test_tiles_behind_the_end_have_no_copy():
    """A block of such tiles reads less than nothing of its input where it lies behind it."""

    @T.prim_func
    def chain(A: T.Buffer((1, 4)), C: T.Buffer((1, 4))):
        B = T.alloc_buffer((1, 4))
        for i, j in T.grid(1, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(1, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)

    def transform(sch):
        _, inner = sch.split(sch.get_loops("C")[0], [2, 2])
        sch.blockize(inner)
        sch.cache_read("C", 0, "local")

    check(chain, transform)


@pytest.mark.parametrize("outer", ["", 'with T.block("outer"):'])
def test_cache_read_p4_of_what_nothing_writes(outer):
    """A condition that never holds is all that reads the buffer: a copy would read it anyhow."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((4,))
    for i in range(4):
        {outer or "if True:"}
            {"vo = T.axis.spatial(4, i)" if outer else "vo = i"}
            with T.block("C"):
                vi = T.axis.spatial(4, vo)
                C[vi] = A[vi] + T.if_then_else(vi > 9, B[vi], T.float32(0))
""")
    error = check_refused(func, lambda sch: sch.cache_read("C", "B", "global"), "cache_read/P4")
    assert "nothing has written 'B'" in str(error)


@pytest.mark.parametrize("condition", ["i > i", "i * 4 + n > i * 4 + m", "T.int32(2147483646) + T.int32(2) > i - i"])
def test_cache_write_p4_under_a_condition_that_no_iteration_decides(condition):
    """It may hold for none of them: the copy then would take what nothing has written."""
    func = from_source(f"""
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    for i in range(n):
        for j in range(m):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where({condition})
                A[vi, vj] = T.float32(1)
""")
    sch = tw.Schedule(func)
    try:
        sch.cache_write("A", 0, "global")
    except tw.ScheduleError as error:
        assert error.code == "cache_write/P4"
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        a = np.full((3, 2), 7, "float32")
        kernel(a)
        want = np.full((3, 2), 7, "float32")
        tw.compile(func, "interpreter", schedule="as written")(want)
        np.testing.assert_array_equal(a, want)


def test_cache_read_in_a_block_does_not_divide_by_a_size_of_zero():
    @T.prim_func
    def wrapped(a: T.handle, C: T.Buffer((4,))):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(4):
            with T.block("outer"):
                vo = T.axis.spatial(4, i)
                with T.block("C"):
                    C[vo] = T.if_then_else(n > 0, A[vo % n], T.float32(2))

    error = check_refused(wrapped, lambda sch: sch.cache_read("C", "A", "global"), "cache_read/P4")
    assert "divides by what may be zero" in str(error)


def test_cache_read_p4_of_what_lies_outside_of_the_buffer():
    @T.prim_func
    def outside(C: T.Buffer((4,))):
        B = T.alloc_buffer((6,))
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.float32(1)
        for i in range(4):
            with T.block("outer"):
                vo = T.axis.spatial(4, i)
                with T.block("C"):
                    C[vo] = T.if_then_else(vo - 4 >= 0, B[vo - 4], T.float32(2))

    error = check_refused(outside, lambda sch: sch.cache_read("C", "B", "global"), "cache_read/P4")
    assert "there is nothing to copy" in str(error)


@pytest.mark.parametrize("limit", ["T.int64(0) <= T.Cast('int64', i)", "T.Cast('int64', i) < T.int64(3)", "i < k"])
@pytest.mark.parametrize("size", ["5", "n"])
def test_conditions_of_a_wider_type_than_the_loops(limit, size):
    func = from_source(f"""
@T.prim_func
def main(a: T.handle, k: T.int64):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    for i in range({size}):
        with T.block("A"):
            vi = T.axis.spatial({size}, i)
            T.where({limit})
            A[vi] = T.float32(1)
""")
    sch = tw.Schedule(func)
    try:
        sch.cache_write("A", 0, "local")
    except tw.ScheduleError as error:
        assert error.code == "cache_write/P4" and ("k" in limit or size == "n")
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        got, want = np.zeros(5, "float32"), np.zeros(5, "float32")
        kernel(got, 2)
        tw.compile(func, "interpreter", schedule="as written")(want, 2)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.cache_read("early", 0, "local"), "cache_read/P4"),
        (lambda sch: sch.reindex("early", ("read", 0)), "reindex/P5"),
        (lambda sch: sch.reindex_cache_read("early", 0, "local", lambda i: (i,)), "reindex_cache_read/P6"),
        (lambda sch: sch.read_at(sch.get_loops("early")[0], "early", 0, "local"), "read_at/P4"),
    ],
)
def test_a_reader_that_never_runs_stands_before_the_writer(step, code):
    @T.prim_func
    def never(A: T.Buffer((4,)), C: T.Buffer((4,))):
        B = T.alloc_buffer((4,))
        for i in range(0):
            with T.block("early"):
                v = T.axis.spatial(4, i)
                C[v] = B[v]
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = A[v]

    check_refused(never, step, code)
