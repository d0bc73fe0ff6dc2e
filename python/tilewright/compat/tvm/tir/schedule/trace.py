"""tvm.tir.schedule.trace."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing

__path__: list[str] = []
__getattr__ = missing("tvm.tir.schedule.trace")

__all__ = ["Trace"]


class Trace(metaclass=Renamed):
    """The steps of a schedule."""

    node = _core.Trace

    @staticmethod
    def make(insts: Any, decisions: Any) -> Any:
        """Not from instructions."""
        raise TypeError("Tilewright makes traces by schedules and Trace.from_json only")

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Any) -> None:
        """Applies the steps that ``as_json`` wrote."""
        _core.Trace.from_json(json_obj).apply_to_schedule(sch)
