"""Extents near the limits of their types: steps cover all elements, or are refused. Python's integers say which."""

from __future__ import annotations

import math
import random

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
