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
        sampler: chooses among alternatives: the best one in `tw.compile`, a sampled one in searches.
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
    """A way to schedule a block. If `build` returns True, no later row is tried.

    Attributes:
        name: of the pattern.
        requires: conditions on the block, its position in the program, and the target. They record nothing in the
            trace: `get_loops()` does, and would change the traces of all programs that the row does not schedule.
        build: applies primitives and returns whether the block is scheduled. If not, the next row is tried.
    """

    name: str
    requires: tuple[Requirement, ...]
    build: Callable[[Match], bool]


@dataclass(frozen=True)
class Rewrite:
    """A change of the block that patterns below build on: they match what it returns.

    Attributes:
        name: of the rewrite.
        requires: as for a Pattern.
        build: applies primitives, and returns the BlockInfo that later rows match: `match.info` itself if nothing
            changed.
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
