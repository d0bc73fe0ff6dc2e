"""tvm.tir.schedule.schedule."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright import _core
from tilewright._core import BlockRV, ExprRV, LoopRV
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.tir.schedule import sparse
from tilewright.compat.tvm.tir.schedule.errors import translated
from tilewright.compat.tvm.tir.schedule.reorder import reorder
from tilewright.compat.tvm.tir.schedule.rfactor import rfactor
from tilewright.compat.tvm.tir.schedule.split import split
from tilewright.compat.tvm.tir.schedule.vectorize import vectorize
from tilewright.errors import ScheduleError

__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError"]


def check_debug_mask(mask: str | int) -> None:
    """Raise an error for masks that TVM refuses.

    The mask is otherwise ignored: Tilewright recomputes the cached flags after each step.
    """
    if not isinstance(mask, str | int):
        raise TypeError(f"debug_mask is 'all', 'none' or a number, not {mask!r}")
    if isinstance(mask, str) and mask not in ("all", "none"):
        raise ValueError(f"debug_mask is 'all', 'none' or a number, not {mask!r}")


class CachedFlags(NamedTuple):
    """The properties that TVM's schedules store for each block."""

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class StateAsTVM:
    """The state of a schedule, with the properties that TVM's tests use."""

    #: the mask of checks, as bits; Tilewright always checks
    debug_mask = 0

    def __init__(self, state: _core.ScheduleState) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def get_sref(self, stmt: Any) -> Any:
        """Return the reference of a For or a Block; None for other statements, and for those of other programs."""
        is_other = isinstance(stmt, _core.Stmt) and not isinstance(stmt, _core.For | _core.Block)
        return None if is_other else self._state.get_sref(stmt)

    def _get_cached_flags(self, block_sref: Any) -> CachedFlags:
        """Return the properties of a block."""
        flags = self._state.get_block_flags(block_sref)
        return CachedFlags(flags.affine_binding, flags.region_cover, flags.stage_pipeline)


class ScheduleAsTVM(_core.Schedule):
    """A schedule that refuses what TVM refuses, in its words."""

    @property
    def state(self) -> Any:
        """Return the state of the schedule."""
        return StateAsTVM(_core.Schedule.state.__get__(self))


def set_axis_separator(self: Any, block: Any, buffer: Any, axis_separators: list[int] | None) -> None:
    """Set the dimensions at which the memory of a buffer is separated; None for no separation."""
    _core.Schedule.set_axis_separator(self, block, buffer, axis_separators or [])


_OWN: dict[str, Any] = {
    **sparse.METHODS,
    "reorder": reorder,
    "rfactor": rfactor,
    "set_axis_separator": set_axis_separator,
    "split": split,
    "vectorize": vectorize,
}
for _name, _method in [*vars(_core.Schedule).items(), *_OWN.items()]:
    if not _name.startswith("_") and callable(_method):
        setattr(ScheduleAsTVM, _name, translated(_name, _OWN.get(_name, _method)))


class NonTraced(ScheduleAsTVM):
    """A schedule that shows no trace."""

    trace = None  # type: ignore[assignment]


def _maker(kind: type[ScheduleAsTVM]) -> Any:
    def make(
        mod: Any,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> Any:
        """Return a schedule of a function or a module. Checks that `enable_check` disables in TVM are made
        regardless."""
        check_debug_mask(debug_mask)
        if seed is not None and not isinstance(seed, int):
            raise TypeError(f"seed is a number, not {seed!r}")
        if seed is not None and not 1 <= seed <= 2**31 - 1:
            raise ValueError(f"seed is from 1 to 2147483647, not {seed}")
        return kind(mod, seed=seed, error_render_level=error_render_level)

    return staticmethod(make)


class Schedule(metaclass=Renamed):
    """A schedule; `_create_non_traced` makes one whose trace is None."""

    node = _core.Schedule
    make = _maker(ScheduleAsTVM)
    _create_non_traced = _maker(NonTraced)
