"""What parallel, vectorize and bind have in common, and each of its own rules."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads

METHODS = {
    "parallel": lambda sch, loop: sch.parallel(loop),
    "vectorize": lambda sch, loop: sch.vectorize(loop),
    "bind": lambda sch, loop: sch.bind(loop, "threadIdx.x"),
}
#: Refusals by rule, P1 first.
CODES = {
    "parallel": ["parallel/P1", "parallel/P2", "parallel/P3", "parallel/P4", "parallel/P5"],
    "vectorize": ["vectorize/P1", "vectorize/P2", "vectorize/P3", "vectorize/P4", "vectorize/P5"],
    "bind": ["bind/P1", "bind/P2", "bind/P3", "bind/P4", "bind/P5"],
}
EACH = pytest.mark.parametrize("method", METHODS)


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def apply(method, block, number):
    return lambda sch: METHODS[method](sch, loops_of(sch, block)[number])


@EACH
@pytest.mark.parametrize("number", [0, 1])
def test_spatial_loops(method, number):
    check(workloads.transpose(4, 6), apply(method, "B", number))


@EACH
def test_spatial_loops_of_a_reduction(method):
    def inner(sch):
        i, j, k = loops_of(sch, "C")
        sch.reorder(i, k, j)
        METHODS[method](sch, j)

    check(workloads.matmul(4, 6, 5), inner)


@EACH
def test_masked_and_fused_loops(method):
    def tile(sch):
        i, j, _ = loops_of(sch, "C")
        outer, _ = sch.split(sch.fuse(i, j), [None, 7])
        METHODS[method](sch, outer)

    check(workloads.matmul(4, 6, 5), tile)


@pytest.mark.parametrize("method", ["parallel", "bind"])  # vectorize takes some: test_vectorize.py
def test_reductions_are_refused(method):
    def reduction(sch):
        loop = loops_of(sch, "C")[2]
        if method == "bind":
            sch.bind(loop, "blockIdx.x")
        else:
            METHODS[method](sch, loop)

    error = check_refused(workloads.matmul(4, 6, 5), reduction, CODES[method][2])
    assert "drives the reduction axis 'vl'" in str(error)
    assert "rfactor() over this loop" in str(error) and "write the update" not in str(error)  # it is a sum

    def factored(sch):
        loop = loops_of(sch, "C")[2]
        block = sch.rfactor(loop, 0)
        METHODS[method](sch, sch.get_loops(block)[2])

    check(workloads.matmul(4, 6, 5), factored)  # as the hint says


MIRRORED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A, C = T.match_buffer(a, (n, m), "int32"), T.match_buffer(c, (n, m), "int32")
    for i, j in T.grid(n, m):
        with T.block("C"):
            vi, vj = T.axis.spatial(n, {i}), T.axis.spatial(m, {j})
            C[vi, vj] = A[vi, vj] + vi
"""


@pytest.mark.parametrize("number", [0, 1])
def test_mirrored_axes_of_open_sizes(number):
    sch = tw.Schedule(from_source(MIRRORED.format(i="n - 1 - i", j="m - (j + 1)")))
    apply("parallel", "C", number)(sch)
    a, c = np.arange(35, dtype="int32").reshape(5, 7), np.zeros((5, 7), "int32")
    for target in ("interpreter", "native"):
        tw.compile(sch, target, schedule="as written")(a, c)
        np.testing.assert_array_equal(c, a + np.arange(5)[:, None])
        a += 1


@pytest.mark.parametrize("index", ["n - 1 - i // 2", "T.max(n - 1 - i, 0)", "i - i", "n - 1 - i * 0", "n - 1 - i + j"])
def test_axes_that_stand_still_with_a_loop_are_refused(index):
    program = from_source(MIRRORED.format(i=index, j="j // 2"))
    check_refused(program, apply("parallel", "C", 0), "parallel/P4")


def test_threads_of_a_block_share_a_reduction():
    sch = check(workloads.matmul(4, 6, 5), apply("bind", "C", 2))
    assert 'T.thread_binding(5, thread="threadIdx.x")' in sch.mod.script()

    def without_init(sch):
        _, _, k = loops_of(sch, "C")
        sch.decompose_reduction("C", k)
        sch.bind(k, "threadIdx.x")

    check(workloads.matmul(4, 6, 5), without_init)  # threads add to the value that there is

    def consumer_inside(sch):
        *_, k = loops_of(sch, "C")
        sch.bind(k, "threadIdx.x")
        sch.reverse_compute_at("D", k)

    check_refused(workloads.matmul_relu(4, 6, 5), consumer_inside, "reverse_compute_at/P5")


ARGMAX = """
@T.prim_func
def main(X: T.Buffer((6, 40), "float32"), I: T.Buffer((6,), "int32"), V: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 40):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(X[vi, vk])
            T.writes(I[vi], V[vi])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            new_i: T.int32 = T.Select(V[vi] {keeps} X[vi, vk], I[vi], vk)
            new_v: T.float32 = T.Select(V[vi] {keeps} X[vi, vk], V[vi], X[vi, vk])
            I[vi] = new_i
            V[vi] = new_v
"""


@pytest.mark.parametrize("extent", [8, 13])
def test_threads_of_a_block_share_an_argmax(extent):
    sch = tw.Schedule(from_source(ARGMAX.replace("{keeps}", ">=")))
    _, k = loops_of(sch, "argmax")
    _, inner = sch.split(k, [None, extent])
    sch.bind(inner, "threadIdx.x")
    sch.verify()
    x = np.random.default_rng(3).permutation(240).astype("float32").reshape(6, 40)
    found, largest = np.zeros(6, "int32"), np.zeros(6, "float32")
    tw.compile(sch, "interpreter", schedule="as written")(x, found, largest)
    np.testing.assert_array_equal(found, x.argmax(axis=1))
    np.testing.assert_array_equal(largest, x.max(axis=1))


def test_threads_do_not_share_what_takes_the_last_or_depends_on_the_order():
    # A thread that has no step would put its start into the place of an equal element.
    last = from_source(ARGMAX.replace("{keeps}", ">"))
    error = check_refused(last, apply("bind", "argmax", 1), "bind/P3")
    assert "write the update as a sum" in str(error)
    for method in ["parallel", "vectorize"]:
        argmax = from_source(ARGMAX.replace("{keeps}", ">="))
        check_refused(argmax, apply(method, "argmax", 1), CODES[method][2])
    order = from_source(ARGMAX.replace("{keeps}", ">=").replace("I[vi], vk)", "I[vi] + 1, vk)"))
    check_refused(order, apply("bind", "argmax", 1), "bind/P3")


@EACH
def test_bare_statements_are_refused(method):
    @T.prim_func
    def before(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            A[i] = T.float32(0)
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.float32(0)

    check_refused(before, apply(method, "B", 0), CODES[method][0])


@EACH
def test_dependent_instances_are_refused(method):
    @T.prim_func
    def running(A: T.Buffer((8,))):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                A[vi + 1] = A[vi] + T.float32(1)

    check_refused(running, apply(method, "B", 0), CODES[method][1])

    @T.prim_func
    def same_element(A: T.Buffer((8,)), B: T.Buffer((1,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[0] = A[vi]

    check_refused(same_element, apply(method, "B", 0), CODES[method][1])

    @T.prim_func
    def scatter(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi], I[vi])
                T.writes(B[0:8])
                B[I[vi] % 8] = A[vi]

    check_refused(scatter, apply(method, "B", 0), CODES[method][1])


@EACH
def test_undeclared_accesses_are_refused(method):
    @T.prim_func
    def liar(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[7 - vi]

    error = check_refused(liar, apply(method, "B", 0), CODES[method][1])
    assert "reads more of 'A' than it declares" in str(error)


@EACH
def test_a_loop_that_selects_nothing_is_refused(method):
    @T.prim_func
    def repeated(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for _r, i in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check_refused(repeated, apply(method, "B", 0), CODES[method][3])


@EACH
def test_reading_what_another_iteration_writes_is_refused(method):
    @T.prim_func
    def neighbors(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[T.max(vi - 1, 0)]

    check_refused(neighbors, apply(method, "C", 0), CODES[method][4])

    @T.prim_func
    def overwritten(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    check_refused(overwritten, apply(method, "C", 0), CODES[method][4])


def test_private_copies_are_for_parallel_loops_only():
    def copy_rows(sch):
        i, _ = loops_of(sch, "C")
        sch.compute_at(sch.get_block("B"), i)
        return i

    check(workloads.elementwise_chain(4, 6), lambda sch: sch.parallel(copy_rows(sch)))


def test_vectorize_needs_a_constant_extent_from_zero():
    @T.prim_func
    def symbolic(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(1)

    check_refused(symbolic, apply("vectorize", "B", 0), "vectorize/P6")


def test_vectorize_takes_the_innermost():
    def both(sch):
        i, j = loops_of(sch, "B")
        sch.vectorize(j)
        sch.vectorize(i)

    check_refused(workloads.transpose(4, 6), both, "vectorize/P7")


def test_bind_names_and_repetitions():
    transpose = workloads.transpose(4, 6)
    for axis in ["threadIdx", "threadIdx.w", "warp.x", ""]:
        check_refused(transpose, lambda sch, axis=axis: sch.bind(loops_of(sch, "B")[0], axis), "bind/P6")

    def virtual(sch):
        for loop in loops_of(sch, "B"):
            sch.bind(loop, "vthread")

    assert check(transpose, virtual).mod.script().count('thread="vthread"') == 2

    def twice(sch):
        for loop in loops_of(sch, "B"):
            sch.bind(loop, "blockIdx.x")

    check_refused(transpose, twice, "bind/P7")

    def grid(sch):
        for loop, axis in zip(loops_of(sch, "B"), ["blockIdx.x", "threadIdx.x"], strict=True):
            sch.bind(loop, axis)

    check(transpose, grid)


@EACH
@pytest.mark.parametrize("number", [0, 1])
def test_parts_of_one_number_whose_digits_do_not_fit(method, number):
    """(a * 32 + b) // 40 and (a * 32 + b) % 40 tell a and b apart together, but not b alone."""

    @T.prim_func
    def copy(A: T.Buffer((12, 40)), B: T.Buffer((12, 40))):
        for i, j in T.grid(12, 40):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    def steps(sch):
        loops = sch.split(sch.fuse(*loops_of(sch, "B")), [None, 32])
        METHODS[method](sch, loops[number])

    check(copy, steps)


@EACH
def test_parts_of_one_number_out_of_order(method):
    @T.prim_func
    def copy(A: T.Buffer((64, 8)), B: T.Buffer((64, 8))):
        for i, j in T.grid(64, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    def steps(sch):
        a, b, c = sch.split(sch.fuse(*loops_of(sch, "B")), [None, 4, 32])
        sch.reorder(b, c, a)
        METHODS[method](sch, c)

    check(copy, steps)


@EACH
def test_digits_of_a_number_that_loops_count_together(method):
    """Tiles of 12 out of order, digits of 24 and 8: only as functions of the whole number are they one to one."""

    @T.prim_func
    def copy(A: T.Buffer((16, 3, 8)), B: T.Buffer((16, 3, 8))):
        for i, j, k in T.grid(16, 3, 8):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk]

    def steps(sch):
        a, b, c = sch.split(sch.fuse(*loops_of(sch, "B")), [None, 4, 12])
        sch.reorder(b, c, a)
        METHODS[method](sch, c)

    check(copy, steps)


@EACH
@pytest.mark.parametrize("tile", [12, 8, 20, 4])
def test_digits_of_which_some_need_a_part_of_the_number(method, tile):
    """Digits of i * tile + j, the last ones of j alone where they fit into a tile; the loops around have axes of their
    own."""
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((240,)), B: T.Buffer((3, 30, 8))):
    for n, i, j in T.grid(3, {240 // tile}, {tile}):
        with T.block("B"):
            vn = T.axis.spatial(3, n)
            vp = T.axis.spatial(30, (i * {tile} + j) // 48 * 6 + (i * {tile} + j) % 24 // 4)
            vc = T.axis.spatial(8, (i * {tile} + j) % 48 // 24 * 4 + j % 4)
            B[vn, vp, vc] = A[vp * 8 + vc]
""")
    check(func, lambda sch: METHODS[method](sch, loops_of(sch, "B")[1]))


@EACH
@pytest.mark.parametrize("last", ["j % 2", "i", "(i * 12 + j) % 3"])
def test_digits_that_do_not_make_up_the_number(method, last):
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((240,)), B: T.Buffer((30, 32))):
    for i, j in T.grid(20, 12):
        with T.block("B"):
            vp = T.axis.spatial(30, (i * 12 + j) // 48 * 6 + (i * 12 + j) % 24 // 4)
            vc = T.axis.spatial(32, {last})
            B[vp, vc] = A[vp * 8]
""")
    check_refused(func, lambda sch: METHODS[method](sch, loops_of(sch, "B")[0]), CODES[method][3])


@EACH
def test_sums_are_no_digits(method):
    """a + b is the same for several a and b: nothing tells them apart."""

    @T.prim_func
    def diagonal(A: T.Buffer((11,)), B: T.Buffer((11,))):
        for a, b in T.grid(8, 4):
            with T.block("B"):
                v = T.axis.spatial(11, a + b)
                B[v] = A[v] + T.float32(1)

    check_refused(diagonal, apply(method, "B", 0), CODES[method][3])


def of_open_sizes(dimensions):
    sizes, loops, axes = "hwc"[:dimensions], "ijk"[:dimensions], ["vi", "vj", "vk"][:dimensions]
    return from_source(f"""
@T.prim_func
def main({", ".join(f"{size}: T.int32" for size in sizes)}, x: T.handle, y: T.handle):
    X = T.match_buffer(x, ({",".join(sizes)},))
    Y = T.match_buffer(y, ({",".join(sizes)},))
    for {", ".join(loops)} in T.grid({", ".join(sizes)}):
        with T.block("Y"):
            {", ".join(axes)} = T.axis.remap("{"S" * dimensions}", [{", ".join(loops)}])
            Y[{", ".join(axes)}] = X[{", ".join(axes)}] * T.float32(2)
""")


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(
    "step",
    [
        lambda sch, loop: sch.parallel(loop),
        lambda sch, loop: sch.vectorize(sch.split(loop, [None, 16])[1]),
        lambda sch, loop: sch.bind(sch.split(loop, [None, 128])[1], "threadIdx.x"),
    ],
)
def test_fused_loops_of_open_sizes(dimensions, step):
    sch = tw.Schedule(of_open_sizes(dimensions))
    step(sch, sch.fuse(*sch.get_loops("Y")))
    assert sch.verify().elements > 0


@pytest.mark.parametrize("at", ["(i + i) % 4", "(i * 3 + i) % 4", "(i + i + i * 2) % 8 // 2"])
@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_sums_of_a_loop_and_itself_do_not_count(at, step):
    """i + i tells iterations apart, and (i + i) % 4 does not."""
    text = f"""
@T.prim_func
def main(B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("begin"):
            v = T.axis.spatial(4, {at})
            B[v] = i
        with T.block("add"):
            v = T.axis.spatial(4, {at})
            B[v] += i
"""
    check_refused(from_source(text), lambda sch: getattr(sch, step)(sch.get_loops("add")[0]), f"{step}/P4")


#: rows of a result that offsets divide
ROWS = """@T.prim_func
def rows(p: T.handle, x: T.handle, s: T.handle):
    m, z = T.int32(is_size_var=True), T.int32(is_size_var=True)
    X = T.match_buffer(x, (m,), "int32")
    P = T.match_buffer(p, (m + 1,), "int32")
    S = T.match_buffer(s, (z,), "int32")
    {of_all}
    for i in range(m):
        with T.block("row"):
            vi = T.axis.spatial(m, i)
            {of_block}
            for j in range({extent}):
                with T.block("S"):
                    vj = T.axis.spatial({extent}, j)
                    S[P[vi] + vj] = X[vi]
"""
ASCENDS = 'T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")'
LENGTH = "P[vi + 1] - P[vi]"


def rows(extent: str = LENGTH, of_all: str = "pass", of_block: str = "pass") -> tw.ir.PrimFunc:
    return from_source(ROWS.format(extent=extent, of_all=of_all, of_block=of_block))


def parallel_rows(sch: tw.Schedule) -> None:
    sch.parallel(loops_of(sch, "row")[0])


def test_rows_that_offsets_divide() -> None:
    """Where the block declares that offsets do not descend, its instances write behind one another."""
    program = rows(of_all=ASCENDS, of_block=ASCENDS)
    check(program, parallel_rows)
    sch = tw.Schedule(program)
    parallel_rows(sch)
    offsets = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(0, 5, 300))]).astype("int32")
    written = np.full(offsets[-1], -1, "int32")
    tw.compile(sch)(offsets, np.arange(300, dtype="int32"), written)
    np.testing.assert_array_equal(written, np.repeat(np.arange(300), np.diff(offsets)))


@pytest.mark.parametrize(
    "program",
    [
        rows(),
        rows(of_block="T.assume_buffer_domain(P, [0, z + 1])"),
        rows(of_block=ASCENDS, extent="P[vi + 1] - P[vi] + 1"),
        rows(of_block=ASCENDS, extent="3"),
    ],
)
def test_rows_that_may_overlap(program: tw.ir.PrimFunc) -> None:
    check_refused(program, parallel_rows, "parallel/P2")


def test_p4_a_loop_that_selects_elements_besides_the_axes():
    """Axes of the block are apart; what it writes is not: B[0] in each iteration, or B[vi + j]."""

    @T.prim_func
    def one_element(A: T.Buffer((16,)), B: T.Buffer((16,))):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi - i] = A[vi]

    @T.prim_func
    def shifted(A: T.Buffer((4, 4)), B: T.Buffer((8,))):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi + j] = A[vi, j]

    for program in (one_element, shifted):
        check_refused(program, lambda sch: sch.parallel(sch.get_loops("B")[0]), "parallel/P4")

    @T.prim_func
    def reads_only(A: T.Buffer((16,)), B: T.Buffer((16,))):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[15 - i]

    check(reads_only, lambda sch: sch.parallel(sch.get_loops("B")[0]))
