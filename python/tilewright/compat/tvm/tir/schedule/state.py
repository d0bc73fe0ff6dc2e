"""tvm.tir.schedule.state."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing
from tilewright.compat.tvm.tir.schedule.schedule import Schedule

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.state")

__all__ = ["ScheduleState"]


class ScheduleState(metaclass=Renamed):
    """The state of a new schedule."""

    node = _core.ScheduleState

    @staticmethod
    def make(mod: Any, *, debug_mask: str | int = "none", enable_check: bool = True) -> Any:
        """What a schedule of the function or module knows."""
        return Schedule.make(mod, debug_mask=debug_mask, enable_check=enable_check).state
