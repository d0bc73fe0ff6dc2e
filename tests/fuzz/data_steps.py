"""Steps about where data lie and how much there is: hints for the cache, and shares of threads (see steps.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright import ir

if TYPE_CHECKING:
    from fuzz.steps import Dice


def prefetch_at(d: Dice) -> None:
    is_given = lambda region: region.buffer.name in d.params  # noqa: E731
    block = d.block_that(lambda block: d.loops(block) and any(map(is_given, d.sch.get(block).reads)))
    loop, reads = d.loop(block), d.sch.get(block).reads
    given = [i for i, region in enumerate(reads) if is_given(region)]
    position = d.take(given if given and d.chance(0.8) else range(len(reads)))
    d.made(d.sch.prefetch_at(loop, block, position, d.take([1, 1, 2])))


def _reads(expr: ir.Expr) -> bool:
    """Whether an expression depends on data."""
    loads: list[object] = []
    ir.post_order_visit(expr, lambda node: loads.append(node) if isinstance(node, ir.BufferLoad) else None)
    return bool(loads)


def prefetch_indirect(d: Dice) -> None:
    """Mostly of what an index selects."""
    by_data = lambda region: any(_reads(side.min) for side in region.region)  # noqa: E731
    block = d.block_that(lambda block: d.loops(block) and any(map(by_data, d.sch.get(block).reads)))
    reads = d.sch.get(block).reads
    selected = [i for i, region in enumerate(reads) if by_data(region)]
    position = d.take(selected if selected and d.chance(0.9) else range(len(reads)))
    d.made(d.sch.prefetch_indirect(d.loop(block), block, position, d.take([1, 2, 8]), d.take([0, 0, 100])))


def balance(d: Dice) -> None:
    """Of a parallel loop, by whatever the block reads: most buffers are not as long as that takes."""
    block = d.block_that(lambda block: d.loops(block) and d.sch.get(block).reads)
    loops = d.loops(block)
    d.sch.balance(loops[d.take(range(len(loops[:1])))], block, d.take(range(len(d.sch.get(block).reads))))
