"""read_at and write_at."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def doubled(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            v = T.axis.spatial(16, i * 4 + j)
            B[v] = A[v] * T.float32(2)


def first(sch, block):
    return sch.get_loops(block)[0]


def test_reading():
    @T.prim_func
    def after(A: T.Buffer((16,)), B: T.Buffer((16,))):
        A_local = T.alloc_buffer((16,), scope="local")
        for i in range(4):
            with T.block("A_local"):
                v0 = T.axis.spatial(4, i)
                T.reads(A[v0 * 4 : v0 * 4 + 4])
                T.writes(A_local[v0 * 4 : v0 * 4 + 4])
                T.block_attr({"auto_copy": 1})
                for ax0 in range(4):
                    A_local[v0 * 4 + ax0] = A[v0 * 4 + ax0]
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(16, i * 4 + j)
                    B[v] = A_local[v] * T.float32(2)

    def transform(sch):
        block = sch.read_at(first(sch, "B"), "B", 0, "local")
        assert sch.get(block).name_hint == "A_local"

    check(doubled, transform, after)


def test_writing():
    @T.prim_func
    def after(A: T.Buffer((16,)), B: T.Buffer((16,))):
        B_local = T.alloc_buffer((16,), scope="local")
        for i in range(4):
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(16, i * 4 + j)
                    B_local[v] = A[v] * T.float32(2)
            with T.block("B_local"):
                v0 = T.axis.spatial(4, i)
                T.reads(B_local[v0 * 4 : v0 * 4 + 4])
                T.writes(B[v0 * 4 : v0 * 4 + 4])
                T.block_attr({"auto_copy": 1})
                for ax0 in range(4):
                    B[v0 * 4 + ax0] = B_local[v0 * 4 + ax0]

    check(doubled, lambda sch: sch.write_at(first(sch, "B"), "B", 0, "local"), after)


def test_a_tiled_product_runs():
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.read_at(k0, "C", 0, "global")
    sch.read_at(k0, "C", 1, "global")
    sch.write_at(j0, "C", 0, "global")
    assert "A_global[v0 * 4:v0 * 4 + 4, v1 * 4:v1 * 4 + 4]" in sch.mod.script()
    check(workloads.matmul(16, 16, 16), sch.trace.apply_to_schedule)
    arrays = [np.random.default_rng(n).random((16, 16), "float32") for n in range(3)]
    tw.compile(sch)(*arrays)
    np.testing.assert_allclose(arrays[2], arrays[0] @ arrays[1], rtol=1e-5)


def test_between_producer_and_consumer():
    def fused(sch):
        loop = first(sch, "C")
        sch.compute_at("B", loop)
        return loop

    def reading(sch):
        sch.read_at(fused(sch), "C", "B", "local")

    def writing(sch):
        sch.write_at(fused(sch), "B", 0, "local")

    assert "B_local[vi, vj] * T.float32(2.0)" in check(workloads.elementwise_chain(4, 6), reading).mod.script()
    assert "B[vi, vj] * T.float32(2.0)" in check(workloads.elementwise_chain(4, 6), writing).mod.script()


def test_tiles_that_stick_out():
    def transform(sch):
        loop, _ = sch.split(first(sch, "B"), [None, 3])
        sch.read_at(loop, "B", 0, "global")

    check(doubled, transform)


def test_each_thread_copies_what_it_reads():
    @T.prim_func
    def threads(A: T.Buffer((2, 64)), B: T.Buffer((2, 64))):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            for t in T.thread_binding(4, thread="threadIdx.x"):
                for o, i in T.grid(2, 4):
                    with T.block("B"):
                        vo = T.axis.spatial(2, o)
                        v = T.axis.spatial(64, b * 16 + t * 4 + i)
                        B[vo, v] = A[vo, v] * T.float32(2)

    def private(sch):
        sch.read_at(sch.get_loops("B")[2], "B", 0, "local")
        sch.write_at(sch.get_loops("B")[2], "B", 0, "local")

    assert "A_local[v0, v1 * 16 + v2 * 4:v1 * 16 + v2 * 4 + 4]" in check(threads, private).mod.script()


@T.prim_func
def changed(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v]
        with T.block("A"):
            v = T.axis.spatial(16, i)
            A[v] = B[v] + T.float32(1)


@T.prim_func
def bare(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
        A[0] = T.float32(0)


@T.prim_func
def conditional(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        if i > 3:
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v]


@T.prim_func
def spread(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in T.vectorized(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            T.reads(A[0:8])
            T.writes(B[v * 2 : v * 2 + 2])
            for j in range(2):
                B[v * 2 + j] = A[7 - v * 2 - j]


@T.prim_func
def holes(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i, j in T.grid(2, 4):
        with T.block("B"):
            v = T.axis.spatial(16, i * 8 + j * 2)
            B[v] = A[v]


@T.prim_func
def renamed(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
    for o in range(1):
        with T.block("O"):
            T.axis.spatial(1, o)
            T.reads(A[0:8])
            T.writes(B[0:8], C[0:8])
            V = T.match_buffer(A[0:8], (8,), offset_factor=1)
            for i in range(8):
                with T.block("B"):
                    v = T.axis.spatial(8, i)
                    B[v] = A[v]
                with T.block("C"):
                    v = T.axis.spatial(8, i)
                    C[v] = V[v]


@T.prim_func
def backwards(A: T.Buffer((4, 5)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 5):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            vk = T.axis.reduce(5, 4 - k)
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, vk]


@T.prim_func
def aliased(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for o in range(1):
        with T.block("O"):
            T.axis.spatial(1, o)
            T.reads(A[0:8])
            T.writes(A[0:8], B[0:8])
            V = T.match_buffer(A[0:8], (8,), offset_factor=1)
            for i in range(8):
                with T.block("A"):
                    v = T.axis.spatial(8, i)
                    A[v] = T.float32(1)
            for i in range(8):
                with T.block("B"):
                    v = T.axis.spatial(8, i)
                    B[v] = V[v]


@T.prim_func
def unwritten(A: T.Buffer((8,)), B: T.Buffer((8,))):
    X = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("X"):
            v = T.axis.spatial(8, i)
            X[v] = A[v]
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else(v < 4, X[v], T.float32(0))


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.elementwise_chain(4, 6), lambda sch: sch.read_at(first(sch, "B"), "C", 0, "local"), "read_at/P1"),
        (doubled, lambda sch: sch.read_at(first(sch, "B"), "B", 1, "local"), "read_at/P1"),
        (bare, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "local"), "read_at/P1"),
        (conditional, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "local"), "read_at/P1"),
        (doubled, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "nowhere"), "read_at/P2"),
        (changed, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "local"), "read_at/P3"),
        (renamed, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "local"), "read_at/P3"),
        (unwritten, lambda sch: sch.read_at(first(sch, "B"), "B", "X", "local"), "read_at/P4"),
        (aliased, lambda sch: sch.write_at(first(sch, "A"), "A", 0, "local"), "write_at/P3"),
        (spread, lambda sch: sch.read_at(first(sch, "B"), "B", 0, "local"), "read_at/P9"),
        (workloads.elementwise_chain(4, 6), lambda sch: sch.write_at(first(sch, "B"), "C", 0, "local"), "write_at/P1"),
        (doubled, lambda sch: sch.write_at(first(sch, "B"), "B", 0, "nowhere"), "write_at/P2"),
        (backwards, lambda sch: sch.write_at(first(sch, "C"), "C", 0, "local"), "write_at/P4"),
        (holes, lambda sch: sch.write_at(first(sch, "B"), "B", 0, "local"), "write_at/P4"),
        (workloads.matmul(4, 4, 4), lambda sch: sch.write_at(sch.get_loops("C")[2], "C", 0, "local"), "write_at/P4"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


@T.prim_func
def rows(A: T.Buffer((6,)), B: T.Buffer((6,)), C: T.Buffer((6,))):
    for i in range(6):
        with T.block("B"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] * T.float32(2)
        with T.block("C"):
            v = T.axis.spatial(6, i)
            C[v] = B[v]


@pytest.mark.parametrize("factors", [[2, 2, None], [1, 2, None], [2, None]])
def test_a_copy_is_made_only_where_the_writer_runs(factors):
    """Loops of one iteration in the tiles, and tiles in which the writer does nothing: a copy of them would read what
    nothing has written."""
    accepted = 0
    for depth in range(len(factors) + 1):

        def transform(sch, depth=depth):
            unit = sch.add_unit_loop("B")
            sch.split(unit, factors)
            sch.write_at(sch.get_loops("B")[depth], "B", 0, "local")

        try:
            check(rows, transform)
            accepted += 1
        except tw.ScheduleError as error:
            assert error.code == "write_at/P4"
    assert accepted > 0


@pytest.mark.parametrize("bound", ["0", "1 - t"])
def test_axes_that_select_nothing_may_keep_the_writer_from_running(bound):
    """`u` is inside of its domain in the second tile only, in which all of the row is written."""
    func = tw.script.from_source(f"""@T.prim_func
def main(A: T.Buffer((6,)), B: T.Buffer((6,))):
    for t, i in T.grid(2, 6):
        with T.block("B"):
            u = T.axis.spatial(1, {bound})
            v = T.axis.spatial(6, i)
            T.where(t >= 1)
            B[v] = A[v] * T.float32(2)
""")

    def transform(sch):
        sch.write_at(sch.get_loops("B")[0], "B", 0, "local")

    check_refused(func, transform, "write_at/P4")


@T.prim_func
def gathered(I: T.Buffer((5,), "int32"), A: T.Buffer((8,)), B: T.Buffer((5,))):
    for i in range(5):
        with T.block("B"):
            v = T.axis.spatial(5, i)
            B[v] = A[I[4 - v] % 8]


def test_what_data_select_is_copied_only_where_the_data_are():
    def transform(number):
        def apply(sch):
            sch.split(sch.get_loops("B")[0], [None, 2])
            sch.read_at(sch.get_loops("B")[number], "B", "A", "local")

        return apply

    check(gathered, lambda sch: sch.read_at(first(sch, "B"), "B", "A", "local"))
    check_refused(gathered, transform(1), "read_at/P4")


def test_a_copy_of_a_sum_over_nothing_is_made_where_it_has_a_value():
    """cache_write takes its copy back on the condition `0 < m`; another copy of that must not read without it."""

    @T.prim_func
    def main(a: T.handle, B: T.Buffer((8,))):
        m = T.int32()
        A = T.match_buffer(a, (m,))
        for i, k in T.grid(8, m):
            with T.block("B"):
                v, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[v] = T.float32(1)
                B[v] = B[v] + A[vk]

    sch = tw.Schedule(main)
    back = sch.cache_write("B", 0, "global")
    sch.read_at(sch.split(sch.get_loops(back)[0], [None, 4])[0], back, 0, "local")
    sch.verify()
    for m in (0, 3):
        args = np.ones(m, "float32"), np.full(8, 7, "float32")
        for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
            kernel(*args)
            np.testing.assert_array_equal(args[1], np.full(8, 7 if m == 0 else 4, "float32"))


def test_p4_iterations_of_which_no_block_runs():
    """The condition of an element that stays where it is: it does not show in which iterations nothing is written."""

    @T.prim_func
    def one(B: T.Buffer((2,), "int8")):
        for i in range(1):
            with T.block("B"):
                v = T.axis.spatial(1, i)
                B[v] = T.int8(3)

    def transform(sch):
        sch.split(sch.get_loops("B")[0], factors=[2, None], preserve_unit_iters=False)
        outer, inner = sch.get_loops("B")
        sch.split(inner, factors=[None, 8])
        sch.write_at(outer, "B", 0, "local")

    check_refused(one, transform, "write_at/P4")

    @T.prim_func
    def some(B: T.Buffer((6,), "int8")):
        for i, j in T.grid(2, 4):
            with T.block("B"):
                v = T.axis.spatial(6, i * 4 + j)
                T.where(i * 4 + j < 6)
                B[v] = T.int8(3)

    check(some, lambda sch: sch.write_at(sch.get_loops("B")[0], "B", 0, "local"))


@pytest.mark.parametrize("bound", [False, True])
def test_a_block_that_asks_for_data_before_they_are_copied_back(bound):
    @T.prim_func
    def condition(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(B[i, j] > 2)
                C[vi, vj] = 1

    @T.prim_func
    def binding(A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] % 4
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(4, B[i, j])
                C[vi, vj] = 1

    func = binding if bound else condition
    check_refused(func, lambda sch: sch.write_at(first(sch, "B"), "B", 0, "local"), "write_at/P4")
    check(func, lambda sch: sch.write_at(sch.get_loops("B")[1], "B", 0, "local"))


def test_data_wrap_in_a_condition_that_seems_to_hold():
    """Products of bytes and a negative number are at most 255, where they do not leave their type."""

    @T.prim_func
    def masked(A: T.Buffer((16,), "uint8"), C: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("C"):
                v = T.axis.spatial(16, i)
                T.where(T.Cast("int32", A[i]) * -2147483393 <= 255)
                C[v] = 1

    check_refused(masked, lambda sch: sch.write_at(first(sch, "C"), "C", 0, "global"), "write_at/P4")


@pytest.mark.parametrize(
    ("fused", "axes"),
    [
        # What A has is the same for several values of the fused loop, of which the block has one axis each.
        (("i", "j"), ["v0 = T.axis.spatial(4, f // 2)", "v0 = T.axis.spatial(2, f % 2)", "v0 = T.axis.spatial(8, f)"]),
        (("j", "i"), ["v0 = T.axis.spatial(4, f % 4)", "v0 = T.axis.spatial(2, f // 4)", "v0 = T.axis.spatial(8, f)"]),
        (
            ("k", "i", "j"),
            [
                "v0 = T.axis.spatial(4, f % 8 // 2)",
                "v1 = T.axis.spatial(2, f // 8)",
                "v0 = T.axis.spatial(2, f // 8)",
                "v1 = T.axis.spatial(2, f % 2)",
            ],
        ),
    ],
)
def test_axes_are_the_digits_of_a_fused_loop_that_are_spoken_of(fused, axes):
    def transform(sch):
        i, j, k = sch.get_loops("C")
        (i, i_1), (j, j_1), (k, k_1) = sch.split(i, [4, 4]), sch.split(j, [2, 4]), sch.split(k, [2, 4])
        outer = {"i": i, "j": j, "k": k}
        others = [loop for name, loop in outer.items() if name not in fused]
        sch.reorder(*(outer[name] for name in fused), *others, i_1, j_1, k_1)
        loop = sch.fuse(*(outer[name] for name in fused))
        sch.read_at(loop, "C", 0, "local")
        sch.read_at(loop, "C", 1, "local")
        if "k" not in fused:
            sch.write_at(loop, "C", 0, "local")
            sch.bind(loop, "blockIdx.x")

    sch = check(workloads.matmul(16, 8, 8), transform)
    name = sch.get(sch.get_loops("C")[0]).loop_var.name_hint
    text = sch.mod.script().replace(name, "f")
    assert all(axis in text for axis in axes)


def product_of_threads(size: int = 64) -> tw.ir.PrimFunc:
    """A product whose tiles of 32 x 32 blocks of threads compute, each thread 8 x 8 elements."""
    return tw.script.from_source(f"""@T.prim_func
def main(A: T.Buffer(({size}, {size})), B: T.Buffer(({size}, {size})), C: T.Buffer(({size}, {size}))):
    for by in T.thread_binding({size // 32}, thread="blockIdx.y"):
        for bx in T.thread_binding({size // 32}, thread="blockIdx.x"):
            for vy in T.thread_binding(2, thread="vthread.y"):
                for ty in T.thread_binding(2, thread="threadIdx.y"):
                    for tx in T.thread_binding(4, thread="threadIdx.x"):
                        for k0 in range({size // 8}):
                            for k1, i, j in T.grid(8, 8, 8):
                                with T.block("C"):
                                    vi = T.axis.spatial({size}, by * 32 + vy * 16 + ty * 8 + i)
                                    vj = T.axis.spatial({size}, bx * 32 + tx * 8 + j)
                                    vk = T.axis.reduce({size}, k0 * 8 + k1)
                                    with T.init():
                                        C[vi, vj] = T.float32(0)
                                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")


LOOPS = ["by", "bx", "vy", "ty", "tx", "k0"]


@pytest.mark.parametrize("loop", ["vy", "ty", "tx"])
def test_threads_copy_back_together_what_they_share(loop):
    """All threads of a block store all of its tile: each element gets one value, whoever stores it."""

    def transform(sch):
        loops = dict(zip(LOOPS, sch.get_loops("C"), strict=False))
        if loop == "tx":
            sch.read_at(loops["k0"], "C", 0, "shared")
            sch.read_at(loops["k0"], "C", 1, "shared")
        sch.write_at(loops[loop], "C", 0, "shared")

    sch = tw.Schedule(product_of_threads())
    transform(sch)
    text = sch.mod.script()
    assert "C[v0 * 32 + ax0, v1 * 32 + ax1] = C_shared[v0 * 32 + ax0, v1 * 32 + ax1]" in text
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 64)).astype("float32") for _ in range(2))
    c = np.full((64, 64), 9, "float32")
    tw.compile(sch, "interpreter")(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_threads_do_not_copy_back_where_another_block_looks():
    """Threads that are behind would store over what a block of others has made of it since."""

    looked = tw.script.from_source("""@T.prim_func
def main(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("C"):
                v = T.axis.spatial(8, tx)
                C[v] = A[v] * T.float32(2)
            with T.block("D"):
                v = T.axis.spatial(8, tx)
                D[v] = C[v]
""")
    check_refused(looked, lambda sch: sch.write_at(sch.get_loops("C")[1], "C", 0, "shared"), "write_at/P4")
    # Parts of sums, once per step over k0.
    product = product_of_threads()
    check_refused(product, lambda sch: sch.write_at(sch.get_loops("C")[5], "C", 0, "shared"), "write_at/P4")


@pytest.mark.parametrize("axis", ["threadIdx.x", "vthread.x"])
def test_loops_over_blocks_stay_outside_of_the_threads_that_copy(axis):
    """The interpreter found races: what other threads compute was not there yet when the block was copied."""
    program = tw.script.from_source(f"""@T.prim_func
def main(A: T.Buffer((12,)), B: T.Buffer((12,))):
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="{axis}"):
            with T.block("B"):
                v = T.axis.spatial(12, bx * 4 + tx)
                B[v] = A[v] * T.float32(2)
""")

    def swap_after(sch):
        sch.write_at(sch.get_loops("B")[1], "B", 0, "shared")
        sch.reorder(*reversed(sch.get_loops("B")))

    def swap_before(sch):
        sch.reorder(*reversed(sch.get_loops("B")))
        sch.write_at(sch.get_loops("B")[1], "B", 0, "shared")

    check_refused(program, swap_after, "reorder/P4")
    check_refused(program, swap_before, "write_at/P1")
    check(program, lambda sch: sch.write_at(sch.get_loops("B")[1], "B", 0, "shared"))
    check(program, lambda sch: sch.reorder(*reversed(sch.get_loops("B"))))


def nest_with_condition():
    """A nest whose inner block reads one row of B, all that has been written, where its condition holds."""
    sch = tw.Schedule(
        tw.script.from_source("""@T.prim_func
def main(C: T.Buffer((1,))):
    B = T.alloc_buffer((2, 3))
    for i, j in T.grid(1, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.float32(1)
    for i in range(1):
        with T.block("outer"):
            v = T.axis.spatial(1, i)
            for j in range(1):
                with T.block("C"):
                    u = T.axis.spatial(1, j)
                    C[v] = T.max(T.if_then_else(u >= 1, B[u, v], T.float32(3)), B[u, u])
""")
    )
    sch.split(sch.get_loops("C")[0], [None, 8])
    return sch


def test_p4_a_copy_reads_no_more_than_the_block_around():
    """Where the condition does not hold, the copy would read rows that nothing has written."""
    sch = nest_with_condition()
    check_refused(sch.mod, lambda sch: sch.read_at(sch.get_loops("C")[1], "C", 0, "global"), "read_at/P4")
    check(sch.mod, lambda sch: sch.read_at(sch.get_loops("C")[0], "C", 0, "global"))


@pytest.mark.parametrize("counts", [[-(2**31)] * 4, [2**31 - 1] * 4, [0, 2, 2**31 - 1, -(2**31)], [5, 2, 1, 4]])
def test_ends_of_data_that_a_factor_multiplies(counts):
    """A loop over data may end anywhere; a condition bounds what the block reads."""
    sch = tw.Schedule(
        tw.script.from_source("""@T.prim_func
def main(A: T.Buffer((4, 7)), I: T.Buffer((4,), "int32"), B: T.Buffer((4, 3))):
    for i in range(4):
        for j in range(T.min(I[i % 4], T.max(I[2], 3)) - T.max(T.max(I[i % 4], 0) - 3, 0)):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                u = T.axis.spatial(3, j)
                B[v, u] = A[u, u]
""")
    )
    sch.split(sch.get_loops("B")[1], [None, 2])
    sch.read_at(sch.get_loops("B")[0], "B", 0, "global")
    a = np.arange(28, dtype="float32").reshape(4, 7)
    expected = np.zeros((4, 3), "float32")
    for i, count in enumerate(counts):
        end = max(0, min(count, max(counts[2], 3)) - max(max(count, 0) - 3, 0))
        expected[i, :end] = np.diagonal(a)[:end]
    for target in ("interpreter", "native"):
        result = np.zeros((4, 3), "float32")
        tw.compile(sch, target=target)(a, np.array(counts, "int32"), result)
        np.testing.assert_array_equal(result, expected)
