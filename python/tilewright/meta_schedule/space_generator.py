"""Space generators: the schedules of a search."""

from __future__ import annotations

from tilewright._core import PostOrderApply, ScheduleFn, SpaceGenerator, SpaceGeneratorUnion
from tilewright.search.spaces import CpuRules

__all__ = [
    "CpuRules",
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
]

PySpaceGenerator = SpaceGenerator
create = SpaceGenerator.create
