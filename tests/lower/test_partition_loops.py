"""Tails by choice: "pragma_loop_partition_hint" cuts a loop off where its conditions end, or keeps them."""

import numpy as np
import pytest
from tests.lower.passes import TARGET, check

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


@T.prim_func
def doubled(A: T.Buffer((37,), "float32"), B: T.Buffer((37,), "float32")):
    for i in range(37):
        with T.block("B"):
            vi = T.axis.spatial(37, i)
            B[vi] = A[vi] * T.float32(2)


def tiled(hint, vectorized=False):
    sch = tw.Schedule(doubled)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, 8])
    if vectorized:
        sch.vectorize(inner)
    if hint is not None:
        sch.annotate(outer, "pragma_loop_partition_hint", hint)
        sch.annotate(inner, "pragma_loop_partition_hint", hint)
    return sch.mod


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize(("hint", "copies", "conditions"), [(None, 2, None), (1, 2, 0), (0, 1, 1)])
def test_tails_are_peeled_or_masked(hint, copies, conditions, vectorized):
    module = tiled(hint, vectorized)
    lowered = tw.lower(module, after="partition_loops")
    text = lowered.script()
    assert text.count("* T.float32(2.0)") == copies
    if not vectorized and conditions is not None:
        assert text.count("if ") == conditions
    check_equivalent(module, lowered)
    a, b = np.arange(37, dtype="float32"), np.zeros(37, "float32")
    tw.compile(module, schedule="as written")(a, b)
    assert (b == 2 * a).all()


def test_a_large_body_is_copied_where_that_is_asked_for():
    terms = [f"A[i * 8 + j + {k}]" for k in range(4100)]
    while len(terms) > 1:
        terms = [" + ".join(f"({term})" for term in terms[at : at + 2]) for at in range(0, len(terms), 2)]
    program = """
@T.prim_func
def main(A: T.Buffer((5000,), "float32"), B: T.Buffer((37,), "float32")):
    for i in T.serial(5{}):
        for j in range(8):
            if i * 8 + j < 37:
                B[i * 8 + j] = {}
"""
    counts = {}
    for hint in ("", ', annotations={"pragma_loop_partition_hint": 1}'):
        text = tw.lower(tw.script.from_source(program.format(hint, terms[0])), after="partition_loops").script()
        counts[hint] = text.count("for j in ")
    assert [*counts.values()] == [1, 2]


def test_an_unrolled_loop_keeps_its_iterations():
    """Of a tile at the end of an open size each row has its condition: indices of registers stay constants."""

    @T.prim_func
    def program(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range((n + 3) // 4):
            with T.block("tile"):
                vi = T.axis.spatial((n + 3) // 4, i)
                tile = T.alloc_buffer((4,), "float32", scope="local")
                for j in T.unroll(4):
                    if vi * 4 + j < n:
                        tile[j] = A[vi * 4 + j]
                for j in T.unroll(4):
                    if vi * 4 + j < n:
                        B[vi * 4 + j] = tile[j] + T.float32(1)

    kernel = tw.compile(program, schedule="as written")
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    for n in (0, 1, 3, 4, 9):
        a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize(
    "condition",
    ["T.Cast('int64', vj) >= T.Cast('int64', vi)", "vi <= T.Cast('int64', vj)", "vj >= T.Cast('int64', vi)"],
)
def test_conditions_of_wider_numbers(condition):
    """A comparison of 64 bits cuts a loop of 32 off where a loop around it says."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 9), "int64")):
    for i, j in T.grid(6, 9):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            if {condition}:
                A[vi, vj] = 1
""")
    a = np.zeros((6, 9), "int64")
    tw.compile(program, schedule="as written")(a)
    np.testing.assert_array_equal(a, np.triu(np.ones((6, 9), "int64")))


@pytest.mark.parametrize("shift", [30, 31, 40, 62, 63])
@pytest.mark.parametrize("outer", [0, 1])
def test_lines_of_numbers_wider_than_the_loop(shift, outer):
    """Where the comparison turns, no number of the loop's own type says it."""
    small, large = ("vj", "vi") if outer else ("vi", "vj")
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 4), "int64")):
    for i, j in T.grid(4, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            if T.Cast("int64", {small}) < T.shift_left(T.Cast("int64", {large}), T.int64({shift})):
                A[vi, vj] = 1
""")
    a, expected = np.zeros((4, 4), "int64"), np.zeros((4, 4), "int64")
    tw.compile(program, target="interpreter")(expected)
    tw.compile(program, schedule="as written")(a)
    np.testing.assert_array_equal(a, expected)


def test_loops_of_threads_keep_their_iterations():
    sch = tw.Schedule(doubled)
    block, thread = sch.split(sch.get_loops("B")[0], [None, 8])
    outer, block = sch.split(block, [None, 2])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    lowered = tw.lower(sch.mod, after="partition_loops")
    # Iterations 3 of the blocks and 5 to 7 of the last threads have nothing to do.
    assert lowered.script().count('T.thread_binding(8, thread="threadIdx.x")') >= 1
    assert "T.thread_binding(5" not in lowered.script()
    check_equivalent(sch.mod, lowered)


def test_full_tiles_have_no_conditions() -> None:
    @T.prim_func
    def before(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        for i, a in T.grid(17, 6):
            if i * 6 + a < 100:
                B[i * 6 + a] = T.nextafter(A[i * 6 + a], T.float32(0))

    @T.prim_func
    def expected(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        A_1 = T.decl_buffer((100,), "float32", data=A.data)
        B_1 = T.decl_buffer((100,), "float32", data=B.data)
        for i, a in T.grid(16, 6):
            B_1[i * 6 + a] = T.nextafter(A_1[i * 6 + a], T.float32(0))
        for a in range(4):
            B_1[96 + a] = T.nextafter(A_1[96 + a], T.float32(0))

    check(before, "partition_loops", expected)


def test_iterations_in_which_nothing_happens_are_left_out() -> None:
    """Two tails in one another: of the last tile's rows some are full, one is partial, and the others are not there."""

    @T.prim_func
    def rows(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64, 8), "float32")):
        for i, j in T.grid(64, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    sch = tw.Schedule(rows)
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    _, group, row = sch.split(i, [None, 8, 5])
    local = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(local, group)
    for loop in (j, sch.get_loops(local)[-1]):
        sch.vectorize(loop)
    sch.unroll(row)
    text = tw.lower(sch, after="partition_loops", target=TARGET).script()
    assert "T.min(" not in text and "if " not in text
    assert all(buffer["promoted"] for buffer in tw.compile(sch, target=TARGET).report["promotions"])
    a = np.arange(512, dtype="float32").reshape(64, 8)
    b = np.zeros_like(a)
    tw.compile(sch, target=TARGET)(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_both_ends_of_a_loop_may_be_idle() -> None:
    @T.prim_func
    def before(B: T.Buffer((100,), "int32"), C: T.Buffer((100,), "int32")):
        for i in range(20):
            for a in range(6):
                if i * 6 + a >= 30 and i * 6 + a < 62:
                    B[i * 6 + a] = a
            for a in range(6):
                if i * 6 + a < 32:
                    C[i * 6 + a] = a
        for i in range(20):
            for a in range(6):
                if i * 6 + a >= 31 and i * 6 + a < 62:
                    B[i * 6 + a] = B[i * 6 + a] + a

    check_equivalent(before, tw.lower(before, after="partition_loops"))
    text = tw.lower(before, after="partition_loops").script()
    assert "range(11, 20)" not in text and "range(20)" not in text


def test_symbolic_tails() -> None:
    @T.prim_func
    def before(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n,), "float32")
        for i in range((n + 3) // 4):
            for a in range(4):
                if i * 4 + a < n:
                    B[i * 4 + a] = T.nextafter(B[i * 4 + a], T.float32(0))

    text = tw.lower(before, after="partition_loops").script()
    assert "for i, a in T.grid(n // 4, 4):" in text
    assert "for a in range(n % 4):" in text  # of the last i, which there is where n % 4 is not 0
    assert "if " not in text


def test_parallel_loops_branch_instead() -> None:
    @T.prim_func
    def before(B: T.Buffer((100,), "float32")):
        for i in T.parallel(17):
            for a in range(6):
                if i * 6 + a < 100:
                    B[i * 6 + a] = T.nextafter(B[i * 6 + a], T.float32(0))

    text = tw.lower(before, after="partition_loops").script()
    assert text.count("T.parallel") == 1
    assert "if i < 16:" in text and "for a in range(4):" in text
