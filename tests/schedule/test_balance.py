"""balance: in schedules, and how threads then share a loop."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused
from tilewright.timing import limit_threads


@T.prim_func
def lengths(P: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = P[vi + 1] - P[vi]


def step(sch: tw.Schedule) -> None:
    sch.parallel(sch.get_loops("B")[0])
    sch.balance(sch.get_loops("B")[0], "B", "P")


def test_the_example() -> None:
    @T.prim_func
    def after(P: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.parallel(8, annotations={"balanced_by": [P.data, 9]}):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = P[vi + 1] - P[vi]

    sch = check(lengths, step, after)
    assert "sch.balance(l1, b0, 0)" in str(sch.trace) or "sch.balance(" in str(sch.trace)


#: each iteration counts itself, so that one that is left out or runs twice shows
COUNT = """@T.prim_func
def count(p: T.handle, b: T.handle):
    m = T.int32(is_size_var=True)
    P = T.match_buffer(p, (m + 1,), "{dtype}")
    B = T.match_buffer(b, (m, 64), "int32")
    for i in range(m):
        for j in range(64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi, vj], P[vi])
                T.writes(B[vi, vj])
                B[vi, vj] = B[vi, vj] + 1
"""


def offsets(kind: str, m: int, random: np.random.Generator) -> np.ndarray:
    if kind == "power law":
        return np.cumsum(np.concatenate([[0], random.zipf(1.5, m).clip(max=100_000)]))
    if kind == "one dense row":
        return np.where(np.arange(m + 1) > m // 3, 1_000_000, 5)
    if kind == "empty rows":
        return np.full(m + 1, 7)
    if kind == "descending":
        return np.arange(m + 1)[::-1] * 100
    return random.integers(-1_000_000, 1_000_000, m + 1)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["power law", "one dense row", "empty rows", "descending", "random"])
def test_each_iteration_runs_once_whatever_the_offsets_are(kind: str, dtype: str) -> None:
    sch = tw.Schedule(from_source(COUNT.format(dtype=dtype)))
    sch.parallel(sch.get_loops("B")[0])
    sch.balance(sch.get_loops("B")[0], "B", "P")
    kernel = tw.compile(sch, schedule="as written")
    random = np.random.default_rng(0)
    for threads in (1, 2, 3):
        with limit_threads(threads):
            for m in (0, 1, 2, 3, 100, 4097):
                b = np.zeros((m, 64), "int32")
                kernel(offsets(kind, m, random).astype(dtype), b)
                assert (b == 1).all(), (threads, m)


def test_an_annotation_that_is_too_large_is_no_harm() -> None:
    @T.prim_func
    def short(P: T.Buffer((4,), "int32"), B: T.Buffer((1000, 64), "int32")):
        for i in T.parallel(1000, annotations={"balanced_by": [P.data, 4]}):
            for j in range(64):
                B[i, j] = B[i, j] + P[0]

    b = np.zeros((1000, 64), "int32")
    with limit_threads(2):
        tw.compile(short, schedule="as written")(np.ones(4, "int32"), b)
    assert (b == 1).all()


def parallel_first(sch: tw.Schedule) -> None:
    sch.parallel(sch.get_loops("B")[0])


def test_p1_which_loops() -> None:
    take = lambda sch: sch.balance(sch.get_loops("B")[0], "B", "P")  # noqa: E731
    check_refused(lengths, take, "balance/P1")  # serial
    check_refused(lengths, lambda sch: (step(sch), take(sch)), "balance/P1")  # twice

    @T.prim_func
    def two(P: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = P[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = P[vi]

    other = lambda sch: (parallel_first(sch), sch.balance(sch.get_loops("B")[0], "C", "P"))  # noqa: E731
    check_refused(two, other, "balance/P1")


@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ('P: T.Buffer((9,), "int8")', "vi"),
        ('P: T.Buffer((9,), "float32")', "vi"),
        ('P: T.Buffer((9, 1), "int32")', "vi, 0"),
        ('P: T.Buffer((9,), "int32", strides=(2,))', "vi"),
    ],
)
def test_p2_which_buffers(kind: str, index: str) -> None:
    program = from_source(f"""@T.prim_func
def copy({kind}, B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.Cast("int32", P[{index}])
""")
    check_refused(program, step, "balance/P2")
    check_refused(
        program, lambda sch: (parallel_first(sch), sch.balance(sch.get_loops("B")[0], "B", "Q")), "balance/P2"
    )


def test_p3_how_many_offsets() -> None:
    for size in (8, 10):
        program = from_source(f"""@T.prim_func
def copy(P: T.Buffer(({size},), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = P[vi]
""")
        check_refused(program, step, "balance/P3")


def test_p4_offsets_that_are_written() -> None:
    @T.prim_func
    def moved(P: T.Buffer((9,), "int32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                P[vi] = P[vi] + 1

    check_refused(moved, step, "balance/P4")


#: the offsets are computed in the function
COMPUTED = """@T.prim_func
def main(L: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32")):
    P = T.alloc_buffer((9,), "int32")
    for i in range(9):
        with T.block("P"):
            vi = T.axis.spatial(9, i)
            P[vi] = L[vi] * 2
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = P[vi + 1] - P[vi]
"""


@pytest.mark.parametrize(
    "later",
    [
        lambda sch: sch.compute_inline("P"),
        lambda sch: sch.unsafe_set_dtype("P", 0, "int64"),
        lambda sch: sch.compute_at("P", sch.get_loops("B")[0]),
    ],
    ids=["compute_inline", "unsafe_set_dtype", "compute_at"],
)
def test_the_offsets_stay_before_the_loop(later) -> None:
    program = from_source(COMPUTED)

    def transform(sch: tw.Schedule) -> None:
        step(sch)
        later(sch)

    check_refused(program, transform, "schedule/balanced-loop")

    def unannotated(sch: tw.Schedule) -> None:
        step(sch)
        sch.unannotate(sch.get_loops("B")[0], "balanced_by")
        later(sch)

    sch = tw.Schedule(program)
    unannotated(sch)
    b = np.zeros(8, "int32")
    tw.compile(sch, schedule="as written")(np.arange(9, dtype="int32") * 3, b)
    np.testing.assert_array_equal(b, np.full(8, 6))


def test_offsets_that_are_computed_may_be_copied() -> None:
    def transform(sch: tw.Schedule) -> None:
        step(sch)
        sch.cache_read("B", 0, "global")
        sch.split(sch.get_loops("P")[0], [3, None])

    check(from_source(COMPUTED), transform)
