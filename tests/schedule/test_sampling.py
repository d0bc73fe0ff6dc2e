import collections
import math

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loop_of(sch, number=0):
    return sch.get_loops(sch.get_block("B"))[number]


def draws(sample, count, seed=0):
    """Decisions of `count` fresh schedules with consecutive seeds."""
    transpose = workloads.transpose(12, 36)
    found = []
    for number in range(count):
        sch = tw.Schedule(transpose, seed=seed + number)
        sample(sch)
        found.append([*sch.trace.decisions.values()][-1])
    return found


def test_categorical_follows_the_weights():
    counts = collections.Counter(draws(lambda sch: sch.sample_categorical([5, 6, 7], [1, 0, 3]), 4000))
    assert counts[1] == 0
    assert abs(counts[0] - 1000) < 120


def test_perfect_tiles_are_uniform():
    counts = collections.Counter(
        map(tuple, draws(lambda sch: sch.sample_perfect_tile(loop_of(sch), n=3, max_innermost_factor=4), 4000))
    )
    # 36 = 2^2 * 3^2 in three factors whose last is 1, 2, 3 or 4.
    possible = [
        t for t in ((a, b, 36 // (a * b)) for a in range(1, 37) for b in range(1, 37) if 36 % (a * b) == 0) if t[2] <= 4
    ]
    assert set(counts) == set(possible)
    for tile in possible:
        assert abs(counts[tile] - 4000 / len(possible)) < 5 * math.sqrt(4000 / len(possible))


def test_the_same_seed_draws_the_same():
    def sample(sch):
        return [sch.sample_perfect_tile(loop_of(sch, n), n=4) and None for n in range(2)]

    assert draws(sample, 5, seed=3) == draws(sample, 5, seed=3)
    assert draws(sample, 5, seed=3) != draws(sample, 5, seed=100)


def test_decisions_are_taken_and_repaired():
    sch = tw.Schedule(workloads.transpose(12, 36))
    assert [int(v) for v in sch.sample_perfect_tile(loop_of(sch), n=3, decision=[3, 3, 4])] == [3, 3, 4]
    assert [int(v) for v in sch.sample_perfect_tile(loop_of(sch), n=3, decision=[1, 5, 4])] == [1, 9, 4]
    assert int(sch.sample_categorical([8, 9], [1.0, 1.0], decision=1)) == 9
    assert [*sch.trace.decisions.values()] == [[3, 3, 4], [1, 9, 4], 1]


def test_a_symbolic_extent_gives_the_trivial_tile():
    @T.prim_func
    def before(a: T.handle):
        n = T.int32(is_size_var=True)
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(1)

    def tile(sch):
        factors = sch.sample_perfect_tile(loop_of(sch), n=3)
        assert factors[0] is None
        sch.split(loop_of(sch), factors)

    sch = check(before, tile)
    assert "_, v2, v3 = sch.sample_perfect_tile" in "\n".join(sch.trace.as_python())


def test_sampled_tiles_as_factors():
    def tile(sch):
        sch.split(loop_of(sch), sch.sample_perfect_tile(loop_of(sch), n=3))
        assert not sch.decisions_read

    check(workloads.transpose(12, 36), tile)


@pytest.mark.parametrize(
    "read",
    [
        int,
        bool,
        float,
        lambda v: v + 1,
        lambda v: 2 * v,
        lambda v: v == 4,
        lambda v: v < v,
        lambda v: range(v),
        lambda v: [0] * 99 and "abc"[v % 2],
    ],
)
def test_reading_a_value_is_noticed(read):
    sch = tw.Schedule(workloads.transpose(12, 36))
    v = sch.sample_categorical([4], [1.0])
    assert repr(v) == "Expr(v0=4)" and not sch.decisions_read
    read(v)
    assert sch.decisions_read


def test_values_behave_as_integers():
    sch = tw.Schedule(workloads.transpose(12, 36))
    v = sch.sample_categorical([4], [1.0])
    w = sch.sample_categorical([3], [1.0])
    assert v + 1 == 5 and 1 + v == 5 and v * w == 12 and v // w == 1 and v % w == 1 and 10 - v == 6
    assert v > w and v >= 4 and v != w and not v < 4 and 2**v == 16 and v / 8 == 0.5
    assert sch.get(v) == 4


def test_refusals():
    transpose = workloads.transpose(12, 36)
    for candidates, probs in [([], []), ([1, 2], [1.0])]:
        check_refused(
            transpose, lambda sch, c=candidates, p=probs: sch.sample_categorical(c, p), "sample_categorical/P1"
        )
    for probs in [[0.0, 0.0], [-1.0, 2.0], [float("nan"), 1.0], [float("inf"), 1.0]]:
        check_refused(transpose, lambda sch, p=probs: sch.sample_categorical([1, 2], p), "sample_categorical/P2")
    check_refused(transpose, lambda sch: sch.sample_categorical([1, 2], [1, 1], decision=2), "sample_categorical/P3")
    check_refused(transpose, lambda sch: sch.sample_perfect_tile(loop_of(sch), n=0), "sample_perfect_tile/P1")
    check_refused(transpose, lambda sch: sch.sample_perfect_tile(loop_of(sch), n=1), "sample_perfect_tile/P2")
    check_refused(transpose, lambda sch: sch.sample_perfect_tile(loop_of(sch), 2, 0), "sample_perfect_tile/P2")
    for decision in [[36], [6, 0], [1, 2, 18]]:
        check_refused(
            transpose,
            lambda sch, d=decision: sch.sample_perfect_tile(loop_of(sch), n=2, decision=d),
            "sample_perfect_tile/P4",
        )

    @T.prim_func
    def empty(A: T.Buffer((8,))):
        for i in range(0):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(1)

    check_refused(empty, lambda sch: sch.sample_perfect_tile(loop_of(sch), n=2), "sample_perfect_tile/P3")


def test_decisions_that_draws_take():
    def draws(sch):
        i, j = sch.get_loops("B")
        first = sch.sample_categorical([10, 20, 30], [1.0, 1.0, 1.0])
        tile = sch.sample_perfect_tile(i, n=2)
        return int(first), [int(factor) for factor in tile], int(sch.sample_categorical([7, 8], [1.0, 1.0], decision=0))

    sch = tw.Schedule(workloads.transpose(12, 6), seed=1)
    sch.take_decisions([2, [3, 2], 1])
    assert draws(sch) == (30, [3, 2], 7)  # what the script says itself goes first
    free = tw.Schedule(workloads.transpose(12, 6), seed=1)
    expected = draws(free)
    mixed = tw.Schedule(workloads.transpose(12, 6), seed=1)
    mixed.take_decisions([None])
    assert draws(mixed) == expected
    with pytest.raises(tw.Error):
        wrong = tw.Schedule(workloads.transpose(12, 6))
        wrong.take_decisions([[1, 2]])
        draws(wrong)


def test_partitioned_tiles_are_uniform():
    counts = collections.Counter(
        map(
            tuple,
            draws(
                lambda sch: sch.sample_partitioned_tile(loop_of(sch), n=3, partition_pos=1, innerpart_factor=6), 4000
            ),
        )
    )
    # 36 in three factors, of which the last two make a multiple of 6.
    possible = [
        (36 // (b * c), b, c) for b in range(1, 37) for c in range(1, 37) if 36 % (b * c) == 0 and b * c % 6 == 0
    ]
    assert set(counts) == set(possible)
    for tile in possible:
        assert abs(counts[tile] - 4000 / len(possible)) < 5 * math.sqrt(4000 / len(possible))


@pytest.mark.parametrize(
    ("arguments", "decision", "taken"),
    [
        ((3, 1, 4), [3, 2, 6], [3, 2, 6]),
        ((3, 1, 4), [18, 2, 1], [9, 4, 1]),
        ((3, 2, 4), [2, 9, 1], [9, 1, 4]),
        ((3, 0, 4), [5, 5, 5], [36, 1, 1]),
        ((3, 1, 5), [3, 2, 6], [-1, 1, 1]),
        ((2, 1, 1), [36, 1], [36, 1]),
    ],
)
def test_partitioned_tiles_take_decisions(arguments, decision, taken):
    n, position, factor = arguments
    sch = tw.Schedule(workloads.transpose(12, 36))
    loop = loop_of(sch)
    drawn = sch.sample_partitioned_tile(loop, n, position, factor, decision=decision)
    assert [*sch.trace.decisions.values()] == [taken]
    assert [None if v is None else int(v) for v in drawn] == [None if v == -1 else v for v in taken]
    sch.split(loop, drawn)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((0, 0, 1), "sample_partitioned_tile/P1"),
        ((2, 2, 1), "sample_partitioned_tile/P2"),
        ((2, 1, 0), "sample_partitioned_tile/P2"),
        ((2, 1, 2, [1, 2, 3]), "sample_partitioned_tile/P4"),
    ],
)
def test_partitioned_tiles_that_are_refused(arguments, code):
    check_refused(
        workloads.transpose(12, 36),
        lambda sch: sch.sample_partitioned_tile(loop_of(sch), *arguments),
        code,
    )


def test_partitioned_tiles_of_no_iterations():
    @T.prim_func
    def empty(B: T.Buffer((4,))):
        for i in range(0):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.float32(1)

    check_refused(empty, lambda sch: sch.sample_partitioned_tile(loop_of(sch), 2), "sample_partitioned_tile/P3")


@T.prim_func
def product_of_sums(A: T.Buffer((8, 6)), C: T.Buffer((8, 4))):
    B = T.alloc_buffer((8, 6))
    for i, k in T.grid(8, 6):
        with T.block("A2"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] + T.float32(1)
    for i_0, u, j, k, i_1 in T.grid(4, 1, 4, 6, 2):
        with T.block("B"):
            vi = T.axis.spatial(8, i_0 * 2 + i_1)
            vj = T.axis.spatial(4, j + u)
            vk = T.axis.reduce(6, k)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi, vk] * T.Cast("float32", vj)


def test_compute_locations():
    """Inline, in place, and the loops i_0, j and k; u has one iteration, i_1 is a spatial loop below k."""
    found = set()
    for seed in range(100):
        sch = tw.Schedule(product_of_sums, seed=seed)
        sch.sample_compute_location("A2")
        found.add([*sch.trace.decisions.values()][-1])
    assert found == {-2, -1, 0, 2, 3}


@pytest.mark.parametrize(("decision", "taken"), [(-2, -2), (-1, -1), (0, 0), (1, 0), (2, 2), (3, 3), (4, 3), (17, 3)])
def test_compute_at_goes_where_the_location_says(decision, taken):
    def transform(sch):
        loop = sch.sample_compute_location("A2", decision=decision)
        sch.compute_at("A2", loop)
        assert [*sch.trace.decisions.values()] == [taken]

    sch = check(product_of_sums, transform)
    if taken == -2:
        assert "A2" not in sch.mod.script()
    elif taken == -1:
        assert len(sch.get_loops("A2")) == 2
    else:
        assert len(sch.get_loops("A2")) > taken


def test_locations_are_no_loops_but_for_compute_at():
    sch = tw.Schedule(product_of_sums)
    block = sch.get_block("A2")
    for decision, text in ((-2, "inline"), (-1, "in place")):
        loop = sch.sample_compute_location(block, decision=decision)
        assert text in repr(loop)
        with pytest.raises(tw.ScheduleError, match="schedule/mark"):
            sch.split(loop, [None, 2])


def test_a_block_that_nobody_reads_stays_or_goes_to_its_producer():
    sch = tw.Schedule(product_of_sums)
    sch.reverse_compute_at("B", sch.sample_compute_location("B"))
    assert [*sch.trace.decisions.values()] == [-1] and len(sch.get_loops("B")) == 5
    check_refused(
        product_of_sums, lambda sch: sch.sample_compute_location(sch.get_block("root")), "sample_compute_location/P1"
    )
    check_refused(
        product_of_sums, lambda sch: sch.sample_compute_location("A2", decision=-3), "sample_compute_location/P2"
    )
