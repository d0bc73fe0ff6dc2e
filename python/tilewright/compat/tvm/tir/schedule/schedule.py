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


class NonTraced(_core.Schedule):
    """A schedule that shows no trace."""

    trace = None  # type: ignore[assignment]


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
        """A schedule of a function or a module. What `enable_check` leaves out in TVM is checked all the same."""
        return _made(_core.Schedule, mod, seed, debug_mask, error_render_level)

    @staticmethod
    def _create_non_traced(
        mod: Any,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> Any:
        """A schedule whose trace is None."""
        return _made(NonTraced, mod, seed, debug_mask, error_render_level)


def _made(kind: type[_core.Schedule], mod: Any, seed: int | None, debug_mask: str | int, level: str) -> Any:
    checked_debug_mask(debug_mask)
    if seed is not None and not isinstance(seed, int):
        raise TypeError(f"seed is a number, not {seed!r}")
    if seed is not None and not 1 <= seed <= 2**31 - 1:
        raise ValueError(f"seed is from 1 to 2147483647, not {seed}")
    return kind(mod, seed=seed, error_render_level=level)
