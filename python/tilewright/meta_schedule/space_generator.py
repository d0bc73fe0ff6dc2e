"""Spaces: where the schedules of a search come from."""

from __future__ import annotations

from tilewright._core import PostOrderApply, ScheduleFn, SpaceGenerator, SpaceGeneratorUnion

__all__ = [
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
]

PySpaceGenerator = SpaceGenerator
