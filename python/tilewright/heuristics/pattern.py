"""Patterns: the rows of a table, tried in the order of the table (:mod:`tilewright.heuristics.cpu.patterns`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tilewright import _core
from tilewright.heuristics.block_info import BlockInfo, block_info
from tilewright.heuristics.sampling import Sampler
from tilewright.schedule import BlockRV, Schedule


@dataclass(frozen=True)
class Match:
    """A block with everything that patterns need.

    Attributes:
        schedule: schedule of the program.
        info: access summary of the block.
        target: the processor, with its vectors, registers and caches.
        sampler: chooses among alternatives: the best one in `tw.compile`, a sampled one in searches.
        copies: copies of operands that patterns made for this block and have not scheduled yet.
    """

    schedule: Schedule
    info: BlockInfo
    target: _core.Target
    sampler: Sampler
    copies: list[BlockRV] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        """Return the number of results in a vector."""
        return self.info.lanes(self.target)

    def again(self) -> BlockInfo:
        """Return the access summary of the block after a schedule step."""
        return block_info(self.schedule, self.info.block) or self.info


Requirement = Callable[[Match], bool]


@dataclass(frozen=True)
class Pattern:
    """A way to schedule a block. If `build` returns True, no later row is tried.

    Attributes:
        name: name of the pattern.
        requires: conditions on the block, its position in the program, and the target. They record nothing in the
            trace: `get_loops()` does, and would change the traces of all programs that the row does not schedule.
        build: applies primitives and returns whether the block is scheduled. If not, the next row is tried.
    """

    name: str
    requires: tuple[Requirement, ...]
    build: Callable[[Match], bool]


@dataclass(frozen=True)
class Rewrite:
    """A change of the block before later patterns: they match the BlockInfo that it returns.

    Attributes:
        name: name of the rewrite.
        requires: conditions as in a Pattern.
        build: applies primitives, and returns the BlockInfo that later rows match: `match.info` itself if nothing
            changed.
    """

    name: str
    requires: tuple[Requirement, ...]
    build: Callable[[Match], BlockInfo]


def apply_patterns(table: Sequence[Pattern | Rewrite], match: Match) -> list[str]:
    """Schedule a block by the first pattern that matches and can be built.

    Returns:
        The names of the applied rows, the pattern last; only rewrites if no pattern matched.
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
