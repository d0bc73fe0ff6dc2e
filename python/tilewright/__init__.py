"""Tilewright: write a tensor program as Python-syntax text, schedule it by hand or by search, get a fast kernel.

>>> import tilewright as tw
>>> from tilewright.script import tir as T

Names are loaded when they are first used, so that ``import tilewright`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tilewright.errors import ArgumentError, Error, InternalError, ResourceError, ScheduleError, ScriptError
from tilewright.support import other_names
from tilewright.version import __version__ as __version__

if TYPE_CHECKING:
    from tilewright import arith, ir, script, te, testing

#: public name -> the module that defines it
_NAMES: dict[str, str] = {
    "compile": "tilewright.kernel",
    "lower": "tilewright.kernel",
    "Kernel": "tilewright.kernel",
    "PerformanceWarning": "tilewright.support.notes",
    "KernelModule": "tilewright.kernel",
    "Target": "tilewright.support.target_context",
    "get_num_threads": "tilewright.kernel",
    "load": "tilewright.kernel",
    "set_num_threads": "tilewright.kernel",
    "Schedule": "tilewright.schedule",
    "TensorIntrin": "tilewright.tensor_intrin",
    "Trace": "tilewright.schedule",
    "ModuleResult": "tilewright.search",
    "Space": "tilewright.search",
    "TuneResult": "tilewright.search",
    "space": "tilewright.search",
    "tune": "tilewright.search",
}
_MODULES = {"arith", "ir", "script", "te", "tensor_intrin", "testing", "schedule", "kernel"}

other_names.install()

__all__ = [
    "ArgumentError",
    "Error",
    "InternalError",
    "ResourceError",
    "ScheduleError",
    "ScriptError",
    "arith",
    "ir",
    "script",
    "te",
    "testing",
    *_NAMES,
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES or f"{__name__}.{name}" in other_names.MOVED:
        value = importlib.import_module(f"tilewright.{name}")
    else:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}{_perhaps(name)}")
    globals()[name] = value
    return value


def _perhaps(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, [*__all__, *_MODULES], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
