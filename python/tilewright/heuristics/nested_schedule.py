"""A schedule restricted to blocks inside loops that several blocks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.schedule import BlockRV, LoopRV, Schedule

if TYPE_CHECKING:
    _Base = Schedule
else:
    _Base = object


class NestedSchedule(_Base):
    """A schedule whose blocks have only the loops inside the shared ones. The shared loops are already scheduled, and
    one thread runs their body.

    Attributes:
        outside: the whole schedule.
        shared: the shared loops, outermost first.
    """

    def __init__(self, outside: Schedule, shared: Sequence[LoopRV]) -> None:
        self.outside, self.shared = outside, tuple(shared)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outside, name)

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """Return the loops of a block that are not shared."""
        loops = self.outside.get_loops(block)
        return loops[len(self.shared) :] if self._begins(loops) else loops

    def contains(self, block: BlockRV) -> bool:
        """Return whether a block is inside the shared loops."""
        return self._begins(self.outside.get_loops(block))

    def parallelize(self) -> None:
        """Parallelize the shared loops, after all blocks inside are scheduled."""
        schedule, shared = self.outside, self.shared
        schedule.parallel(schedule.fuse(*shared) if len(shared) > 1 else shared[0])

    def _begins(self, loops: Sequence[LoopRV]) -> bool:
        variables = [[self.outside.get(loop).loop_var for loop in some] for some in (self.shared, loops)]
        return len(loops) >= len(self.shared) and all(a.same_as(b) for a, b in zip(*variables, strict=False))
