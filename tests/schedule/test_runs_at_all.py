"""Blocks that may not run at all, where a size is 0: copies of what they write, and blocks that move past them."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_refused

SIZES = [(0, 0), (0, 2), (3, 0), (3, 2), (1, 1)]
Arrays = list[np.ndarray]


def results(program: tw.ir.Module | tw.ir.PrimFunc, n: int, m: int, flags: list[int]) -> Arrays:
    """What the interpreter leaves in all arguments; it takes no element for granted that nothing has written."""
    random = np.random.default_rng(n * 7 + m)
    arrays = [
        random.integers(-4, 5, (n, m)).astype("int32"),
        np.array(flags, "int32"),
        random.integers(-4, 5, n).astype("int32"),
    ]
    tw.ir.interpret(tw.Schedule(program).mod, "main", *arrays)
    return arrays


def agree(program: tw.ir.PrimFunc, transform: Callable[[tw.Schedule], object]) -> tw.Schedule:
    """The schedule, which computes the same for all sizes and flags."""
    sch = tw.Schedule(program)
    transform(sch)
    for n, m in SIZES:
        for flag in (0, 1):
            want, got = (results(p, n, m, [flag]) for p in (program, sch.mod))
            for a, b in zip(want, got, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=f"n={n}, m={m}:\n{sch.mod.script()}")
    return sch


@T.prim_func
def repeated(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    """Loops over m drive no axis: without them there is nothing to read, and nobody who reads."""
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i, k in T.grid(n, m):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi, 0] + 1
    for i, k in T.grid(n, m):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] * 2


@T.prim_func
def chosen(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    """The flag decides whether anybody reads what the loop over m has written."""
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for k, i in T.grid(m, n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi, 0] + 1
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = T.if_then_else(Q[0] > 0 and m > 0, B[vi], 3) * 2


@T.prim_func
def inner(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    """Blocks of loops over m: they run, and what is inside may not."""
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i, k in T.grid(n, m):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi, 0] + 1
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            for k in range(m):
                with T.block("inner"):
                    vk = T.axis.opaque(m, k)
                    C[vi] = B[vi] * A[vi, vk]


COPIES: dict[str, Callable[[tw.Schedule, str], object]] = {
    "cache_read": lambda sch, block: sch.cache_read(block, 0, "global"),
    "reindex": lambda sch, block: sch.reindex(block, ("read", 0)),
    "reindex_cache_read": lambda sch, block: sch.reindex_cache_read(block, 0, "global", lambda i: i),
    "read_at": lambda sch, block: sch.read_at(sch.get_loops(block)[0], block, 0, "global"),
    "cache_write": lambda sch, block: sch.cache_write("B", 0, "global"),
}


@pytest.mark.parametrize("name", ["cache_read", "reindex", "reindex_cache_read", "read_at", "cache_write"])
def test_copies_have_a_value_where_their_writer_runs(name: str) -> None:
    text = agree(repeated, lambda sch: COPIES[name](sch, "C")).mod.script()
    assert "T.where(m > 0)" in text or "T.where(0 < m)" in text


def copy_of_b(name: str, program: tw.ir.PrimFunc) -> Callable[[tw.Schedule], object]:
    sch = tw.Schedule(program)
    position = [read.buffer.name for read in sch.get(sch.get_block("C")).reads].index("B")
    steps: dict[str, Callable[[tw.Schedule], object]] = {
        "cache_read": lambda sch: sch.cache_read("C", position, "global"),
        "cache_write": lambda sch: sch.cache_write("B", 0, "global"),
        "read_at": lambda sch: sch.read_at(sch.get_loops("C")[0], "C", position, "global"),
    }
    return steps[name]


@pytest.mark.parametrize("name", ["cache_read", "cache_write", "read_at"])
def test_nobody_knows_whether_a_reader_that_may_not_read_needs_a_copy(name: str) -> None:
    check_refused(inner, copy_of_b(name, inner), f"{name}/P4")


@pytest.mark.parametrize("name", ["cache_read", "cache_write", "read_at"])
def test_a_reader_reads_the_copy_where_the_copy_has_a_value(name: str) -> None:
    agree(chosen, copy_of_b(name, chosen))


def test_a_copy_inside_of_a_block_for_what_was_written_outside() -> None:
    agree(inner, lambda sch: sch.cache_read("inner", 0, "global"))


def test_a_block_that_moves_keeps_what_its_loops_say() -> None:
    sch = agree(repeated, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    assert "T.where(0 < m)" in sch.mod.script() or "T.where(m > 0)" in sch.mod.script()
    agree(repeated, lambda sch: sch.reverse_compute_inline("C"))


def test_a_block_does_not_move_to_where_it_would_not_run() -> None:
    check_refused(chosen, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "reverse_compute_at/P6")
    check_refused(chosen, lambda sch: sch.reverse_compute_inline("C"), "reverse_compute_inline/P6")


@T.prim_func
def repeated_consumer(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    n, m = T.int32(), T.int32()
    _A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = vi + 1
    for k, i in T.grid(m, n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[n - 1 - vi] = B[vi] * 2


@T.prim_func
def on_data(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    n, m = T.int32(), T.int32()
    _A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = vi + 1
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            T.where(Q[0] > 0)
            C[vi] = B[vi] * 2


def test_what_is_inlined_backwards_runs_where_it_did() -> None:
    agree(repeated_consumer, lambda sch: sch.reverse_compute_inline("C"))
    agree(repeated_consumer, lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0]))
    check_refused(on_data, lambda sch: sch.reverse_compute_inline("C"), "reverse_compute_inline/P6")


@T.prim_func
def set_and_perhaps_set_again(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i, k in T.grid(n, m):
        with T.block("first"):
            vi = T.axis.spatial(n, i)
            B[vi] = 5
    for i in range(n):
        with T.block("second"):
            vi = T.axis.spatial(n, i)
            for k in range(m):
                with T.block("inner"):
                    vk = T.axis.opaque(m, k)
                    B[vi] = A[vi, vk]
    for i, k in T.grid(n, m):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = B[vi] * 2


def test_an_update_by_blocks_that_may_not_run_is_no_value() -> None:
    check_refused(set_and_perhaps_set_again, lambda sch: sch.reindex("C", ("read", 0)), "reindex/P5")
    check_refused(
        set_and_perhaps_set_again,
        lambda sch: sch.read_at(sch.get_loops("C")[0], "C", 0, "global"),
        "read_at/P4",
    )


@pytest.mark.parametrize("block", ["B", "C"])
def test_a_fused_loop_says_by_its_quotient_that_it_runs(block: str) -> None:
    """`f // m` takes all values of its axis, if the loop of n * m iterations takes any."""

    def after_fuse(step: Callable[[tw.Schedule], object]) -> Callable[[tw.Schedule], object]:
        def transform(sch: tw.Schedule) -> None:
            sch.fuse(*sch.get_loops(block))
            step(sch)

        return transform

    agree(repeated, after_fuse(lambda sch: sch.cache_read("C", 0, "global")))
    agree(repeated, after_fuse(lambda sch: sch.reindex("C", ("read", 0))))
    if block == "C":
        check_refused(repeated, after_fuse(lambda sch: sch.reindex("C", ("write", 0))), "reindex/P5")
        agree(repeated, after_fuse(lambda sch: sch.reverse_compute_at("C", sch.get_loops("B")[0])))
        agree(repeated, after_fuse(lambda sch: sch.reverse_compute_inline("C")))


@T.prim_func
def both_axes(a: T.handle, Q: T.Buffer((1,), "int32"), c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n, m), "int32")
    for i, k in T.grid(n, m):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] + 1
    for i, k in T.grid(n, m):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] += B[vi, vk]


def test_a_fused_loop_over_all_axes_has_no_condition() -> None:
    def transform(sch: tw.Schedule) -> None:
        sch.cache_write("B", 0, "global")
        sch.cache_read("C", 0, "global")
        sch.fuse(*sch.get_loops("B"))
        sch.reindex("C", ("read", 0))

    assert "T.where" not in agree(both_axes, transform).mod.script()


def test_sums_over_nothing_leave_what_callers_passed():
    """That all of the buffer is read afterwards says nothing of the steps: it may hold what was there before."""

    @T.prim_func
    def read_again(a: T.handle, C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
        n = T.int32()
        A = T.match_buffer(a, (4, n), "int32")
        for i, k in T.grid(4, n):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] += A[vi, vk]
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi]

    check_refused(read_again, lambda sch: sch.cache_write("C", 0, "local"), "cache_write/P4")


@pytest.mark.parametrize("step", ["reindex", "cache_write", "reindex_cache_write"])
def test_a_sum_that_a_remainder_of_its_loops_keeps_from_beginning_goes_on_with_what_callers_passed(step: str) -> None:
    @T.prim_func
    def odd(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
        for i, j in T.grid(2, 2):
            with T.block("B"):
                v = T.axis.spatial(1, 0)
                k = T.axis.reduce(4, i * 2 + j)
                T.where((i * 2 + j) % 2 == 1)
                with T.init():
                    B[v] = 3
                B[v] = T.max(B[v], A[k])

    more = {
        "reindex": (("write", 0),),
        "cache_write": (0, "local"),
        "reindex_cache_write": (0, "local", lambda v, k: v),
    }
    with pytest.raises(tw.ScheduleError, match=f"{step}/P"):
        getattr(tw.Schedule(odd), step)("B", *more[step])


def test_a_loop_of_a_product_tells_nothing_of_a_factor_that_no_index_has():
    """Behind `fuse`, the step of a sum is a remainder of the loop, which has none where n is 0."""
    func = tw.script.from_source("""@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 1), "int32")
    B = T.alloc_buffer((), "int32")
    for i in range(n):
        with T.block("B"):
            B[()] = 7
    for i in range(n):
        for k in range(2):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial(1, k)
                vk = T.axis.reduce(1, k)
                A[vi, vj] = B[()]
""")
    sch = tw.Schedule(func)
    sch.fuse(*sch.get_loops("A"), preserve_unit_iters=True)
    sch.cache_read("A", 0, "local")
    assert "T.where(n > 0)" in sch.mod.script()
