"""Objects of a search as scripts for TVM see them: of subclasses that have TVM's names and errors."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.tir.schedule.schedule import ScheduleAsTVM

_SEEN_AS: dict[type, type] = {}


def see_as(native: type, subclass: type) -> None:
    """Register a subclass, which adds names and no state, as the TVM-compatible class of objects of `native`."""
    _SEEN_AS[native] = subclass


def seen(value: Any) -> Any:
    """Return an object, or a list of objects, as a script for TVM sees it."""
    if isinstance(value, list):
        return [seen(item) for item in value]
    if type(value) is _core.Schedule:
        return value.seen_as(ScheduleAsTVM)
    if type(value) in _SEEN_AS:
        value.__class__ = _SEEN_AS[type(value)]
    return value
