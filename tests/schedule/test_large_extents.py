"""Extents near the limits of their types: steps cover all elements, or are refused. Python's integers say which."""

from __future__ import annotations

import contextlib
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source

LIMIT = 2**31 - 1


def copy(*shape: int, dtype: str = "int32") -> ir.PrimFunc:
    """An element-wise copy; the loops have the type."""
    names = [f"i{d}" for d in range(len(shape))]
    large = [f"T.{dtype}({extent})" for extent in shape]
    axes = "\n".join(f"            v{d} = T.axis.spatial({large[d]}, i{d})" for d in range(len(shape)))
    at = ", ".join(f"v{d}" for d in range(len(shape)))
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({", ".join(large)},), "uint8"), B: T.Buffer(({", ".join(large)},), "uint8")):
    for {", ".join(names)} in T.grid({", ".join(large)}):
        with T.block("B"):
{axes}
            B[{at}] = A[{at}]
""")


def extents_of(sch: tw.Schedule) -> list[int]:
    return [int(sch.get(loop).extent.value) for loop in sch.get_loops("B")]


def draw_extent(rng: random.Random, limit: int) -> int:
    return rng.choice(
        [
            lambda: rng.randint(1, 1000),
            lambda: rng.randint(1, limit),
            lambda: limit - rng.randint(0, 100),
            lambda: max(1, 2 ** rng.randint(1, limit.bit_length() - 1) + rng.randint(-2, 2)),
        ]
    )()


def draw_factors(rng: random.Random, extent: int, limit: int) -> list[int | None]:
    factors: list[int | None] = [
        max(1, draw_extent(rng, limit) // rng.choice([1, 1, 1000, extent])) for _ in range(rng.randint(1, 3))
    ]
    if rng.random() < 0.8:
        factors[rng.randrange(len(factors))] = None
    return factors


@pytest.mark.parametrize("part", range(4))
def test_splits_cover_all_or_are_refused(part: int) -> None:
    rng = random.Random(part)
    kept = refused = 0
    for _ in range(250):
        dtype, limit = rng.choice([("int32", LIMIT), ("int32", LIMIT), ("int64", 2**63 - 1)])
        extent = max(2, draw_extent(rng, min(limit, 2**40)))
        factors = draw_factors(rng, extent, limit)
        sch = tw.Schedule(copy(extent, dtype=dtype))
        given = math.prod(factor for factor in factors if factor is not None)
        total = -(-extent // given) * given if None in factors else given
        try:
            sch.split(sch.get_loops("B")[0], factors)
        except tw.ScheduleError as error:
            assert error.code == ("split/P4" if total > limit else "split/P5"), (extent, factors, str(error))
            assert total > limit or total < extent
            refused += 1
            continue
        assert total <= limit and math.prod(extents_of(sch)) == total >= extent, (extent, factors)
        assert ("T.where" in sch.mod.script()) == (total > extent)
        kept += 1
    assert kept > 50 and refused > 50


def test_fused_loops_are_split_like_others() -> None:
    rng = random.Random(5)
    kept = refused = 0
    for _ in range(150):
        first = rng.randint(2, 70000)
        shape = (first, max(1, LIMIT // first + rng.randint(-2, 1)))
        sch = tw.Schedule(copy(*shape))
        size = math.prod(shape)
        try:
            fused = sch.fuse(*sch.get_loops("B"))
        except tw.ScheduleError as error:
            assert error.code == "fuse/P6" and size > LIMIT
            refused += 1
            continue
        assert extents_of(sch) == [size] and size <= LIMIT
        by = draw_extent(rng, LIMIT)
        total = -(-size // by) * by
        try:
            sch.split(fused, [None, by])
        except tw.ScheduleError as error:
            assert error.code == "split/P4" and total > LIMIT
            refused += 1
            continue
        assert extents_of(sch) == [total // by, by] and total <= LIMIT
        kept += 1
    assert kept > 20 and refused > 20


@pytest.mark.parametrize(
    ("extent", "factors"),
    [(1500000000, [None, 1000000000]), (LIMIT, [None, 2]), (LIMIT, [2, None]), (2147441940, [None, 1000000])],
)
def test_what_rounding_up_takes_beyond_the_type_is_refused(extent: int, factors: list[int | None]) -> None:
    sch = tw.Schedule(copy(extent))
    total = -(-extent // (factors[0] or factors[1])) * (factors[0] or factors[1])
    if total <= LIMIT:
        sch.split(sch.get_loops("B")[0], factors)
        assert math.prod(extents_of(sch)) == total
        return
    with pytest.raises(tw.ScheduleError, match=r"round it up to a multiple of .* beyond int32") as error:
        sch.split(sch.get_loops("B")[0], factors)
    assert error.value.code == "split/P4"


def test_pads_that_do_not_fit_are_refused() -> None:
    for extent, by in [(LIMIT, 16), (LIMIT - 3, 8), (5, 2**40)]:
        with pytest.raises(tw.ScheduleError, match="does not fit int32") as error:
            tw.Schedule(copy(extent)).pad_einsum("B", [by])
        assert error.value.code == "pad_einsum/P1"


def test_parts_of_large_loops() -> None:
    sch = tw.Schedule(copy(LIMIT))
    parts = sch.loop_partition(sch.get_loops("B")[0], [1000000000, None])
    assert [int(sch.get(part).extent.value) for part in parts] == [1000000000, LIMIT - 1000000000]


# ---- open sizes: the argument check of a call refuses what an extent cannot hold

OPEN = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    z, n, m = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (z, n, m), "uint8")
    B = T.match_buffer(b, (z, n, m), "uint8")
    for k, i, j in T.grid(z, n, m):
        with T.block("B"):
            vk, vi, vj = T.axis.remap("SSS", [k, i, j])
            B[vk, vi, vj] = A[vk, vi, vj]
"""


def draw_open_schedule(rng: random.Random) -> tuple[tw.Schedule, bool, int]:
    """The schedule, whether rows and columns are one loop, and the multiple that the loop is rounded up to."""
    sch = tw.Schedule(from_source(OPEN))
    _, i, j = sch.get_loops("B")
    fused = rng.random() < 0.6
    loop = sch.fuse(i, j) if fused else i
    factors: list[int | None] = [rng.choice([2, 3, 32, 1000, 46341, 10**6]) for _ in range(rng.randint(0, 2))]
    by = math.prod(factors)
    if by > LIMIT:
        factors, by = factors[:1], factors[0]
    if factors:
        factors.insert(rng.randint(0, len(factors)), None)
        loops = sch.split(loop, factors)
        if factors[-1] == 32:
            sch.vectorize(loops[-1])
    return sch, fused, by


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_calls_with_sizes_that_extents_cannot_hold_are_refused(target: str) -> None:
    rng = random.Random(target)
    refused = ran = 0
    for _ in range(12):
        sch, fused, by = draw_open_schedule(rng)
        program = tw.compile(sch, target=target)
        for _ in range(12):
            n = draw_extent(rng, LIMIT)
            m = rng.choice([1, 2, max(1, LIMIT // n), LIMIT // n + 1, draw_extent(rng, LIMIT)])
            size = n * m if fused else n
            # Without elements, so that nothing has to run: what is asked is the check alone.
            a = np.empty((0, n, m), np.uint8)
            try:
                program(a, a.copy())
            except tw.Error as error:
                assert error.code == ("interpret/extent" if target == "interpreter" else "call/extent"), str(error)
                assert "goes beyond int32" in str(error) and error.hint
                assert size + by - 1 > LIMIT, (n, m, fused, by)
                refused += 1
            else:
                assert size <= LIMIT and -(-size // by) * by - 1 <= LIMIT, (n, m, fused, by)
                ran += 1
    assert refused > 20 and ran > 20


@pytest.mark.parametrize("extent", ["T.ceildiv(n, 64)", "(n + 63) // 64", "T.ceildiv(n, 2)", "(n + 6) // 7"])
def test_sums_inside_of_extents_do_not_leave_the_type(extent: str) -> None:
    """The number of tiles has a place, and the sum that is divided does not: conditions compute it in int32."""
    program = from_source(f"""
@T.prim_func
def main(n: T.int32, O: T.Buffer((1,), "int64")):
    for z in range(1):
        O[0] = T.int64(0)
    for i in range({extent}):
        O[0] = O[0] + T.int64(1)
""")
    by = {"T.ceildiv(n, 64)": 64, "(n + 63) // 64": 64, "T.ceildiv(n, 2)": 2, "(n + 6) // 7": 7}[extent]
    kernel = tw.compile(program)
    found = np.zeros(1, np.int64)
    with pytest.raises(tw.ArgumentError) as caught:
        kernel(LIMIT, found)
    assert caught.value.code == "call/extent"
    kernel(LIMIT - by + 1, found)
    assert found[0] == -(-(LIMIT - by + 1) // by)


def test_sizes_below_the_limit_are_computed() -> None:
    sch = tw.Schedule(from_source(OPEN))
    _, i, j = sch.get_loops("B")
    sch.split(sch.fuse(i, j), [1000, None, 7])
    a = np.arange(2 * 30 * 41, dtype=np.uint8).reshape(2, 30, 41)
    b = np.zeros_like(a)
    tw.compile(sch)(a, b)
    np.testing.assert_array_equal(a, b)


def test_allocated_buffers_whose_extents_leave_their_type_are_refused() -> None:
    kernel = tw.compile(
        from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    z, n, m = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (z, n, m), "uint8")
    B = T.match_buffer(b, (z, n, m), "uint8")
    C = T.alloc_buffer((n * m,), "uint8")
    for k, i, j in T.grid(z, n, m):
        with T.block("C"):
            vk, vi, vj = T.axis.remap("SSS", [k, i, j])
            C[vi * m + vj] = A[vk, vi, vj]
        with T.block("B"):
            vk, vi, vj = T.axis.remap("SSS", [k, i, j])
            B[vk, vi, vj] = C[vi * m + vj]
""")
    )
    a = np.empty((0, 65536, 65536), np.uint8)
    with pytest.raises(tw.Error, match=r"the extent n \* m of buffer 'C' goes beyond int32") as error:
        kernel(a, a.copy())
    assert error.value.code == "call/extent"
    a = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", ["native", "interpreter"])
@pytest.mark.parametrize("step", [2, 1000, 2**30, LIMIT])
def test_bounds_that_are_read_from_data_are_rounded_up_exactly(target: str, step: int) -> None:
    kernel = tw.compile(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        x: T.int32 = A[i]
        B[i] = 0
        for k in range(T.ceildiv(x, {step}) - T.ceildiv(x - 3, {step}) + 1):
            B[i] = B[i] + 1
"""),
        target=target,
    )
    a = np.array([LIMIT, LIMIT - 1, LIMIT - 5, 7], np.int32)
    b = np.zeros(4, np.int32)
    kernel(a, b)
    assert b.tolist() == [-(-int(x) // step) - (-(-(int(x) - 3) // step)) + 1 for x in a]


# ---- extents that are read from data: no call can be asked, so what rounds them up, or multiplies them, is int64


def data_program(first: str, second: str, dtype: str = "int32") -> ir.PrimFunc:
    """Counts the iterations of two loops, and notes the last of them."""
    return from_source(f"""
@T.prim_func
def main(N: T.Buffer((4,), "{dtype}"), C: T.Buffer((3,), "int64")):
    for i in range({first}):
        for j in range({second}):
            with T.block("C"):
                vi = T.axis.opaque({first}, i)
                vj = T.axis.opaque({second}, j)
                T.reads(C[0:3])
                T.writes(C[0:3])
                C[0] = C[0] + T.int64(1)
                C[1] = T.Cast("int64", vi)
                C[2] = T.Cast("int64", vj)
""")


def counted(program: tw.Schedule | ir.PrimFunc, numbers: list[int], target: str, dtype: str = "int32") -> list[int]:
    found = np.zeros(3, np.int64)
    tw.compile(program, target=target)(np.array(numbers, dtype), found)
    return found.tolist()


@pytest.mark.parametrize("target", ["native", "interpreter"])
@pytest.mark.parametrize("part", range(2))
def test_loops_over_data_run_as_often_as_before(target: str, part: int) -> None:
    rng = random.Random(part)
    wide = 0
    for _ in range(20):
        extents = ["N[0]", "N[1] - N[2]", "T.min(N[3], 9)", "N[0] // 2 + 1"]
        first, second = rng.choice(extents), rng.choice(extents)
        function = data_program(first, second)
        sch = tw.Schedule(function)
        loops = sch.get_loops("C")
        if rng.random() < 0.6:
            loops = [sch.fuse(*loops)]
        for splits in range(rng.randint(0, 2)):
            # Two large tiles, one in the other, would run for hours.
            factors: list[int | None] = [None, rng.choice([2, 3, 4, 5] if splits else [2, 3, 1000, 10**6])]
            rng.shuffle(factors)
            with contextlib.suppress(tw.ScheduleError):  # P6: what is below reads data, too
                sch.split(rng.choice(loops), factors)
            loops = sch.get_loops("C")
        wide += any(sch.get(loop).loop_var.dtype == "int64" for loop in loops)
        for _ in range(3):
            low = rng.randint(-3, 5)
            numbers = [rng.randint(-5, 7), low + rng.randint(-5, 7), low, rng.randint(-5, 12)]
            scope = {"N": numbers, "T": type("", (), {"min": min})}
            n, m = (max(0, eval(extent, {}, scope)) for extent in (first, second))
            expected = [n * m, n - 1, m - 1] if n * m else [0, 0, 0]
            assert counted(sch, numbers, target) == expected, (numbers, sch.mod.script())
    assert wide > 5


def test_a_product_of_data_that_leaves_int32_runs() -> None:
    """65536 * 65536 is 0 in int32, and 46341 * 46341 is negative: loops over these would run never."""
    sch = tw.Schedule(data_program("N[0]", "N[1]"))
    fused = sch.get(sch.fuse(*sch.get_loops("C")))
    assert fused.loop_var.dtype == "int64"
    text = sch.mod.script()
    assert 'T.Cast("int64", N[0])' in text and 'T.Cast("int64", N[1])' in text, text
    # What fits stays as it is.
    for second in ("T.min(N[1], 100)", "N[1] % 7"):
        sch = tw.Schedule(data_program("T.min(N[0], 1000)", second))
        assert sch.get(sch.fuse(*sch.get_loops("C"))).loop_var.dtype == "int32"


def test_tiles_of_data_are_counted_in_int64() -> None:
    """The last of 2148 tiles of a million ends beyond int32, where a sum in it would be negative again, and less than
    the extent: the block would run too often."""
    sch = tw.Schedule(data_program("1", "N[1]"))
    tiles = sch.split(sch.get_loops("C")[1], [None, 1000, 1000])
    assert {sch.get(loop).loop_var.dtype for loop in tiles} == {"int64"}
    assert counted(sch, [0, 2_500_001, 0, 0], "native") == [2_500_001, 0, 2_500_000]
    # What fits stays as it is.
    sch = tw.Schedule(data_program("1", "N[1] % 1000"))
    tiles = sch.split(sch.get_loops("C")[1], [None, 1000, 1000])
    assert {sch.get(loop).loop_var.dtype for loop in tiles} == {"int32"}


@pytest.mark.parametrize(
    ("extent", "number"),
    [
        ("T.min(N[0], T.max(N[2], 6)) - T.max(N[0] - 6, 0)", -(2**31)),  # 6, if N[0] - 6 wraps
        ("T.max(N[0] + 6, 2)", LIMIT),
        ("T.min(N[0] * 65536, 5)", 2**15),
        ("(N[0] + 6) // 2 + 3", LIMIT - 1),
        ("T.max(N[0] - N[1], 1) % 8", -(2**31)),
        ('T.Cast("int64", N[0] - 6)', -(2**31) + 5),
    ],
)
def test_the_interpreter_reports_extents_whose_data_wrap(extent: str, number: int) -> None:
    """Kernels compute them in 64 bits. A smaller number is as good as before, with all that schedules make of it."""
    program = data_program(extent, "1")
    with pytest.raises(tw.Error, match="leaves its type with the data that it reads") as caught:
        counted(program, [number, 1, 3, 0], "interpreter")
    assert caught.value.code == "interpret/extent"
    names = {"T": SimpleNamespace(min=min, max=max, Cast=lambda dtype, value: value)}
    for small in (-9, 0, 1, 7, 20):
        numbers = [small, 1, 3, 0]
        trips = max(0, eval(extent, {}, {"N": numbers, **names}))
        expected = [trips, trips - 1, 0] if trips else [0, 0, 0]
        sch = tw.Schedule(program)
        sch.split(sch.fuse(*sch.get_loops("C")), [None, 4])
        for each in (program, sch):
            for target in ("native", "interpreter"):
                assert counted(each, numbers, target) == expected, (small, target)


def test_sums_of_data_may_be_large_on_the_way() -> None:
    """(N[0] + N[1]) - N[2] is 9, however the sum before it wraps."""
    for target in ("native", "interpreter"):
        assert counted(data_program("N[0] + N[1] - N[2]", "1"), [LIMIT, 9, LIMIT, 0], target)[0] == 9


def test_int64_data_are_split_and_fused() -> None:
    sch = tw.Schedule(data_program("N[0]", "N[1]", "int64"))
    sch.split(sch.fuse(*sch.get_loops("C")), [None, 32])
    assert counted(sch, [5, 7, 0, 0], "native", "int64") == [35, 4, 6]


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_products_of_sizes_that_leave_int64_are_refused(target: str) -> None:
    """2^32 * 2^32 is 0 in int64."""
    function = from_source("""
@T.prim_func
def main(n: T.int64, m: T.int64, k: T.int64, C: T.Buffer((3,), "int64")):
    for a, b, c in T.grid(n, m, k):
        with T.block("C"):
            va, vb, vc = T.axis.remap("SSS", [a, b, c])
            C[(va + vb + vc) % T.int64(3)] = T.int64(1)
""")
    sch = tw.Schedule(function)
    sch.fuse(*sch.get_loops("C"))
    kernel = tw.compile(sch, target=target)
    rng = random.Random(target)
    refused = ran = 0
    for _ in range(200):
        sizes = [rng.choice([0, 1, 2, 3, 2**31, 2**32, 2**62, rng.randint(0, 2**40)]) for _ in range(3)]
        found = np.zeros(3, np.int64)
        total, of_two = math.prod(sizes), max(sizes[0] * sizes[1], sizes[1] * sizes[2])
        if 1000 < total < 2**63:
            continue  # takes too long
        try:
            kernel(*sizes, found)
        except tw.Error as error:
            assert error.code == ("interpret/extent" if target == "interpreter" else "call/extent")
            assert "goes beyond int64" in str(error) and max(total, of_two) >= 2**63
            refused += 1
        else:
            assert total <= 1000 and bool(found.any()) == (total > 0)
            ran += 1
    assert refused > 30 and ran > 30
