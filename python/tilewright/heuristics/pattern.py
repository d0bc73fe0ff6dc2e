"""What a pattern is: a row of a table, tried in the order of the table (:mod:`tilewright.heuristics.cpu.patterns`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, block_info
from tilewright.heuristics.sampling import Sampler
from tilewright.schedule import BlockRV, Schedule


@dataclass(frozen=True)
class Match:
    """A block, as patterns see it.

    Attributes:
        schedule: of the program.
        info: what the block does.
        target: whose vectors, registers and caches count.
        sampler: of the decisions that are left open.
        copies: of operands that were made for this block, and have no schedule yet.
    """

    schedule: Schedule
    info: BlockInfo
    target: _core.Target
    sampler: Sampler
    copies: list[BlockRV] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        """Results in a vector."""
        return self.info.lanes(self.target)

    def again(self) -> BlockInfo:
        """Return what the block does after a step of the schedule."""
        return block_info(self.schedule, self.info.block) or self.info


Requirement = Callable[[Match], bool]


@dataclass(frozen=True)
class Pattern:
    """A way to schedule a block. What it gives ends the table: the patterns below are excluded.

    Attributes:
        name: of the pattern.
        requires: what must hold of the block, the target and where it stands.
        build: applies primitives. It returns whether the block is scheduled; else the next pattern is tried.
    """

    name: str
    requires: tuple[Requirement, ...]
    build: Callable[[Match], bool]


@dataclass(frozen=True)
class Rewrite:
    """A change of the block that patterns below build on: they match what it returns.

    Attributes:
        name: of the rewrite.
        requires: what has to hold as well.
        build: applies primitives, and returns what the block that goes on through the table does: the same object
            where nothing changed.
    """

    name: str
    requires: tuple[Requirement, ...]
    build: Callable[[Match], BlockInfo]


def apply_patterns(table: Sequence[Pattern | Rewrite], match: Match) -> list[str]:
    """Schedule a block by the first pattern that matches and can be built.

    Returns:
        the names of what was applied, the pattern last; the block may have matched none.
    """
    applied: list[str] = []
    for row in table:
        if not all(holds(match) for holds in row.requires):
            continue
        built = row.build(match)
        if isinstance(built, bool):
            if built:
                return [*applied, row.name]
        elif built is not match.info:
            match = replace(match, info=built)
            applied.append(row.name)
    return applied
