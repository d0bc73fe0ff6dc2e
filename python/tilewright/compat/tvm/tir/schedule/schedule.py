"""tvm.tir.schedule.schedule."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright._core import BlockRV, ExprRV, LoopRV
from tilewright.compat.tvm.alias import Renamed, missing
from tilewright.errors import ScheduleError

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.schedule")

__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError"]


def checked_debug_mask(mask: str | int) -> None:
    """Refuses what TVM refuses.

    The mask asks for checks of caches; Tilewright derives those facts anew after each step, so every schedule is as
    checked as one with the mask "all".
    """
    if not isinstance(mask, str | int):
        raise TypeError(f"debug_mask is 'all', 'none' or a number, not {mask!r}")
    if isinstance(mask, str) and mask not in ("all", "none"):
        raise ValueError(f"debug_mask is 'all', 'none' or a number, not {mask!r}")


class Schedule(metaclass=Renamed):
    """A schedule."""

    node = _core.Schedule

    @staticmethod
    def make(
        mod: Any,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> Any:
        """A schedule of a function or a module."""
        checked_debug_mask(debug_mask)
        if not enable_check:
            raise ValueError("Tilewright has no schedules without checks (enable_check=False) yet")
        return _core.Schedule(mod, seed=seed, error_render_level=error_render_level)
