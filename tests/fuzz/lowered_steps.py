"""Random steps of the primitives for lowered sparse programs, which also apply to others."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.steps import Dice


def _reverse_cache(d: Dice, kind: str) -> None:
    """A copy of what data select, with the default order of axes or another one."""
    block = d.block()
    node = d.sch.get(block)
    position = d.take(range(len(node.reads if kind == "read" else node.writes)))
    orders = [[], *(list(o) for o in itertools.islice(itertools.permutations(range(len(node.iter_vars))), 12))]
    order = orders[d.take(range(len(orders)))] if d.chance(0.3) else []
    method = d.sch.reverse_cache_read if kind == "read" else d.sch.reverse_cache_write
    d.made(method(block, position, d.take(["global", "local"]), order))


def reverse_cache_read(d: Dice) -> None:
    _reverse_cache(d, "read")


def reverse_cache_write(d: Dice) -> None:
    _reverse_cache(d, "write")


def horizontal_fuse(d: Dice) -> None:
    """Loops of blocks that follow one another, mostly over one block each."""
    names = [name for name, block in d.blocks.items() if len(d.loops(block)) == 1]
    if len(names) < 2:
        d.take([])  # nothing to choose
    first = d.take(range(len(names) - 1))
    count = d.take([2, 2, 3])
    d.sch.horizontal_fuse(*(d.loops(d.blocks[name])[0] for name in names[first : first + count]))


def lift_loop(d: Dice) -> None:
    block = d.block()
    d.sch.lift_loop(d.loop(block))
