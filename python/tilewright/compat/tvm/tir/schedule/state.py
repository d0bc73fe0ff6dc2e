"""tvm.tir.schedule.state."""

from __future__ import annotations

import enum
from typing import Any

from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.tir.schedule.schedule import CachedFlags, Schedule, StateAsTVM

__all__ = ["CachedFlags", "ScheduleDebugMask", "ScheduleState"]


class ScheduleDebugMask(enum.IntEnum):
    """Checks that TVM runs after each step; a Tilewright schedule always runs them."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


_MASKS = {"all": int(ScheduleDebugMask.VERIFY_SREF_TREE | ScheduleDebugMask.VERIFY_CACHED_FLAGS), "none": 0}


class ScheduleState(metaclass=Renamed):
    """The state of a new schedule."""

    node = StateAsTVM

    @staticmethod
    def make(mod: Any, *, debug_mask: str | int = "none", enable_check: bool = True) -> Any:
        """Return the state of a schedule of a function or module."""
        state = Schedule.make(mod, debug_mask=debug_mask, enable_check=enable_check).state
        state.debug_mask = _MASKS[debug_mask] if isinstance(debug_mask, str) else int(debug_mask)
        return state
