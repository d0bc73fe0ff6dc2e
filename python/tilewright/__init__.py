"""Tilewright: write a tensor program as Python-syntax text, schedule it manually or by search, get a fast kernel.

>>> import tilewright as tw
>>> from tilewright.script import tir as T

Names are loaded when they are first used, so that ``import tilewright`` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import ArgumentError, Error, InternalError, ResourceError, ScheduleError, ScriptError
from tilewright.support import other_names
from tilewright.support.lazy_names import lazy
from tilewright.version import __version__ as __version__

if TYPE_CHECKING:
    from tilewright import arith, ir, script, sparse, te, testing

#: public name -> the module of this package that defines it
_NAMES: dict[str, str] = {
    "compile": "kernel",
    "lower": "kernel",
    "Device": "kernel.device",
    "DeviceArray": "kernel.device",
    "device": "kernel.device",
    "Kernel": "kernel",
    "PerformanceWarning": "support.notes",
    "KernelModule": "kernel",
    "Target": "support.target_context",
    "get_num_threads": "kernel",
    "load": "kernel",
    "set_num_threads": "kernel",
    "Schedule": "schedule",
    "TensorIntrin": "tensor_intrin",
    "Trace": "schedule",
    "FormatsResult": "search",
    "ModuleResult": "search",
    "Space": "search",
    "TuneResult": "search",
    "space": "search",
    "tune": "search",
}
_MODULES = {"arith", "ir", "kernel", "meta_schedule", "schedule", "script", "sparse", "te", "tensor_intrin", "testing"}

other_names.install()
__getattr__ = lazy(__name__, _NAMES, {*_MODULES, *(name.removeprefix(f"{__name__}.") for name in other_names.MOVED)})

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
    "sparse",
    "te",
    "testing",
    *_NAMES,
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
