"""Random schedules of loops near 2^31 iterations: what no type holds is refused, and nothing is lost.

The programs are too long to run. After each instruction, extents are computed with Python's integers: those of loops,
axes and buffers are positive numbers of their types, the loops of a block are as many iterations as its domain at
least, and at random points its bindings stay inside of their domains.
"""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source

LIMIT = 2**31
FACTORS = [2, 3, 7, 16, 1000, 65536, 10**6, 2**30, 10**9, LIMIT - 1]
#: The functions of scripts that expressions print, on Python's integers.
EXACT = SimpleNamespace(
    **dict.fromkeys(("int8", "int32", "int64", "bool"), int),
    **{name.capitalize(): getattr(operator, name) for name in ("add", "sub", "mul")},
    Cast=lambda dtype, value: value,
    max=max,
    min=min,
    Select=lambda condition, yes, no: yes if condition else no,
    if_then_else=lambda condition, yes, no: yes if condition else no,
    likely=bool,
)


def exact(e: Any, env: dict[str, int]) -> int:
    return int(eval(str(e), {"T": EXACT}, env))


def extents(rng: random.Random) -> list[int]:
    """Of which the product is near 2^31, or beyond."""
    near = [LIMIT - 1, LIMIT - rng.randint(2, 5000), 1_500_000_000, 2**30 + rng.randint(-2, 2), 46340 * 46340]
    sides = [46340, 46341, 32768, 65535, 65536, rng.randint(1000, 60000)]
    short = [1290, 1291, 1000, 2048, rng.randint(2, 2048)]
    return rng.choice([[rng.choice(near)], [rng.choice(sides), rng.choice(sides)], [rng.choice(short) for _ in "abc"]])


def program(rng: random.Random) -> tuple[str, list[int]]:
    sizes = extents(rng)
    typed = rng.choice(["{}", "{}", "T.int64({})"])
    shape = ", ".join(rng.choice([typed, "{}"]).format(size) for size in sizes)
    loops = ", ".join(f"i{at}" for at in range(len(sizes)))
    axes = "\n".join(f"            v{at} = T.axis.spatial({typed.format(n)}, i{at})" for at, n in enumerate(sizes))
    grid = ", ".join(typed.format(size) for size in sizes)
    at = loops.replace("i", "v")
    return (
        f"""\
@T.prim_func
def main(A: T.Buffer(({shape},), "int8"), B: T.Buffer(({shape},), "int8")):
    for {loops} in T.grid({grid}):
        with T.block("B"):
{axes}
            B[{at}] = A[{at}]
""",
        sizes,
    )


class Steps:
    """Draws instructions on block B."""

    def __init__(self, sch: tw.Schedule, sizes: list[int], rng: random.Random) -> None:
        self.sch, self.sizes, self.rng = sch, sizes, rng

    def factor(self) -> int:
        return self.rng.choice([*FACTORS, self.rng.randint(2, LIMIT - 1)])

    def loops(self) -> list[Any]:
        return list(self.sch.get_loops("B"))

    def split(self) -> None:
        factors: list[Any] = [None, self.factor(), *([self.factor()] if self.rng.random() < 0.4 else [])]
        self.rng.shuffle(factors)
        self.sch.split(self.rng.choice(self.loops()), factors)

    def fuse(self) -> None:
        self.sch.fuse(*self.loops())

    def loop_partition(self) -> None:
        self.sch.loop_partition(self.rng.choice(self.loops()), [None, self.factor()])

    def pad_einsum(self) -> None:
        self.sch.pad_einsum("B", [self.rng.choice([1, self.factor()]) for _ in self.sizes])

    def linear(self) -> Any:
        """A map to one index, or the reverse of it."""
        if len(self.sizes) == 1:
            factor = self.factor()
            return self.rng.choice([lambda i: (i // factor, i % factor), lambda i: (i * factor,)])
        steps = [math.prod(self.sizes[at + 1 :]) for at in range(len(self.sizes))]
        return lambda *v: (sum(index * step for index, step in zip(v, steps, strict=False)),)

    def transform_block_layout(self) -> None:
        self.sch.transform_block_layout("B", self.linear())

    def transform_layout(self) -> None:
        where = self.rng.choice([("read", 0), ("write", 0)])
        self.sch.transform_layout("B", where, self.linear(), pad_value=self.rng.choice([0, None]))

    def reindex_cache_read(self) -> None:
        self.sch.reindex_cache_read("B", 0, "global", self.linear())

    def reindex_cache_write(self) -> None:
        self.sch.reindex_cache_write("B", 0, "global", self.linear())

    def cache_read(self) -> None:
        copy = self.sch.cache_read("B", 0, "global")
        if self.rng.random() < 0.5:
            self.sch.compute_at(copy, self.rng.choice(self.loops()))


DRAWN = [
    *(Steps.split, Steps.split, Steps.fuse, Steps.loop_partition, Steps.pad_einsum, Steps.transform_block_layout),
    *(Steps.transform_layout, Steps.reindex_cache_read, Steps.reindex_cache_write, Steps.cache_read),
]


def sizes_of(sch: tw.Schedule) -> Iterator[tuple[str, Any]]:
    """The extents of loops, axes and buffers."""
    found: list[tuple[str, Any]] = []

    def look(node: Any) -> None:
        if isinstance(node, ir.For):
            found.append((f"loop {node.loop_var.name}", node.extent))
        elif isinstance(node, ir.Block):
            found.extend((f"axis {axis.var.name}", axis.dom.extent) for axis in node.iter_vars)
            found.extend((f"buffer {buffer.name}", extent) for buffer in node.alloc_buffers for extent in buffer.shape)

    ir.post_order_visit(sch.mod["main"].body, look)
    return iter(found)


def check_sizes(sch: tw.Schedule, env: dict[str, int], what: str) -> None:
    for where, extent in sizes_of(sch):
        try:
            value = exact(extent, env)
        except NameError:
            continue  # the part of a partition depends on outer loops
        end = 2 ** (int(str(extent.dtype).removeprefix("int")) - 1)
        assert 0 < value < end, f"{what}: {where} has extent {extent} = {value}\n{sch.mod.script()}"


def check_bindings(sch: tw.Schedule, rng: random.Random, what: str) -> bool:
    """Of block B, if there is one; whether the conditions hold anywhere that was tried."""
    realizes: list[Any] = []
    ir.post_order_visit(
        sch.mod["main"].body,
        lambda node: (
            realizes.append(node) if isinstance(node, ir.BlockRealize) and node.block.name_hint == "B" else None
        ),
    )
    if len(realizes) != 1:
        return False
    loops = [sch.get(loop) for loop in sch.get_loops("B")]
    trips = [exact(loop.extent, {}) for loop in loops]
    domain = [exact(axis.dom.extent, {}) for axis in realizes[0].block.iter_vars]
    assert math.prod(trips) >= math.prod(domain), f"{what}: {trips} for {domain}\n{sch.mod.script()}"
    seen = False
    for number in range(20):
        point = [rng.choice([0, trip - 1, rng.randrange(trip)]) if number else 0 for trip in trips]
        env = {str(loop.loop_var.name): at for loop, at in zip(loops, point, strict=True)}
        if len(env) < len(loops) or not exact(realizes[0].predicate, env):
            continue
        seen = True
        for value, extent in zip(realizes[0].iter_values, domain, strict=True):
            assert 0 <= exact(value, env) < extent, f"{what}: {value} at {env}\n{sch.mod.script()}"
    return seen


@pytest.mark.parametrize("part", range(2))
def test_large_extents(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds(part, 120):
        rng = random.Random(seed)
        text, sizes = program(rng)
        sch = tw.Schedule(from_source(text), error_render_level="none")
        steps = Steps(sch, sizes, rng)
        for _ in range(rng.randint(1, 4)):
            step = rng.choice(DRAWN)
            try:
                step(steps)
            except tw.ScheduleError as error:
                counts[f"{error.code.partition('/')[0]} refused"] += 1
                continue
            counts[f"{step.__name__} accepted"] += 1
            what = f"seed {seed}, {step.__name__}"
            check_sizes(sch, {}, what)
            if step is Steps.loop_partition:
                break
            counts["points"] += check_bindings(sch, rng, what)
    assert counts["points"] > 50, counts
    for step in set(DRAWN):
        assert counts[f"{step.__name__} accepted"] > 0, (step.__name__, counts)
