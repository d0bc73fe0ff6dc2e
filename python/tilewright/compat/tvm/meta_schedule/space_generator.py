"""tvm.meta_schedule.space_generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.space_generator")

__all__ = ["ScheduleFn"]


class ScheduleFn:
    """The space of what a function makes of a schedule, with the values that it samples."""

    def __init__(self, sch_fn: Callable[[Any], Any]) -> None:
        self.sch_fn = sch_fn
