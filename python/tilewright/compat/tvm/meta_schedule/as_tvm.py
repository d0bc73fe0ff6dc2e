"""Objects of a search as their TVM-compatible subclasses, which have TVM's names and errors."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.tir.schedule.schedule import ScheduleAsTVM

_SUBCLASSES: dict[type, type] = {}


def register_subclass(native: type, subclass: type) -> None:
    """Register a subclass, which adds names and no state, as the TVM-compatible class of objects of `native`."""
    _SUBCLASSES[native] = subclass


def as_tvm(value: Any) -> Any:
    """Return an object as its TVM-compatible subclass; a list item by item."""
    if isinstance(value, list):
        return [as_tvm(item) for item in value]
    if type(value) is _core.Schedule:
        return value.seen_as(ScheduleAsTVM)
    if type(value) in _SUBCLASSES:
        value.__class__ = _SUBCLASSES[type(value)]
    return value
