"""Steps on loops and producers that several patterns share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright import ir
from tilewright.heuristics.block_info import (
    is_parameter,
    is_plain,
    loops_of_axes,
    number_of_read,
)
from tilewright.heuristics.sampling import try_step
from tilewright.schedule import BlockRV, LoopRV, Schedule


def function_of(schedule: Schedule) -> ir.PrimFunc | None:
    """Return the function that the schedule works on; None if the module does not have it."""
    functions, worked_on = schedule.mod.functions, schedule.func_working_on
    name = worked_on.name_hint if worked_on is not None else next(iter(functions), None)
    function = None if name is None else functions.get(name)
    return function if isinstance(function, ir.PrimFunc) else None


def root_of(schedule: Schedule) -> BlockRV | None:
    """Return the block that is the body of the function, whatever its name; None if there is no such block."""
    body = getattr(function_of(schedule), "body", None)
    return try_step(schedule.get_block, body.block.name_hint) if isinstance(body, ir.BlockRealize) else None


def fuse_all(schedule: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """Fuse loops and return the fused loop."""
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]


def order_loops(schedule: Schedule, block: BlockRV) -> None:
    """Order the loops of a block as its axes, as patterns expect: programs may nest them in any order."""
    wanted, loops = loops_of_axes(schedule, block), schedule.get_loops(block)
    in_order = all(schedule.get(a).same_as(schedule.get(b)) for a, b in zip(wanted, loops, strict=False))
    if wanted and not in_order and is_plain(schedule, loops):
        schedule.reorder(*wanted)


def innermost(schedule: Schedule, *blocks: BlockRV | None) -> list[LoopRV]:
    """Return the innermost loops of blocks, without those that are None because a step was refused."""
    return [schedule.get_loops(block)[-1] for block in blocks if block is not None]


def starts_with(schedule: Schedule, block: BlockRV, loop: LoopRV) -> bool:
    """Return whether a loop is the outermost one of a block."""
    own = schedule.get_loops(block)
    return bool(own) and schedule.get(own[0]).loop_var.same_as(schedule.get(loop).loop_var)


def copy_operand(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV:
    """Return a new block that copies an operand for this block alone."""
    number = number_of_read(schedule, block, buffer)
    return schedule.cache_read(block, number, "global", consumer_blocks=[block])


def is_private(schedule: Schedule, block: BlockRV) -> bool:
    """Return whether a block writes a buffer that only one other block reads, and that is not a parameter."""
    return len(schedule.get_consumers(block)) == 1 and not is_parameter(schedule, schedule.get(block).writes[0].buffer)


def producer_of(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> BlockRV | None:
    """Return the block that writes an operand of another one."""
    for producer in schedule.get_producers(block):
        if any(region.buffer.same_as(buffer) for region in schedule.get(producer).writes):
            return producer
    return None


def index_map(rank: int, order: Callable[[list[Any]], Iterable[Any]]) -> ir.IndexMap:
    """Return the map of `rank` indices to the indices that `order` returns for them."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    return ir.IndexMap(indices, [*order(indices)])


def largest_divisor(size: int | None, most: int, fewest: int = 1) -> int | None:
    """Return the largest divisor between two bounds, None if there is none or the size is not known."""
    return next((each for each in range(most, fewest - 1, -1) if size and size % each == 0), None)
