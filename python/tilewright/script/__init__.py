"""TVMScript: tensor programs as Python-syntax text.

>>> from tilewright.script import tir as T, ir as I
>>> program = from_source(text)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.script import ir, ir_builder, tir
    from tilewright.script.ir import ir_module
    from tilewright.script.scripts import evaluate, from_file, from_source

_MODULES = {"tir", "ir", "ir_builder"}
_NAMES = {"from_source": "scripts", "from_file": "scripts", "evaluate": "scripts", "ir_module": "ir"}

__all__ = ["evaluate", "from_file", "from_source", "ir", "ir_builder", "ir_module", "tir"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tilewright.script.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(f"tilewright.script.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tilewright.script' has no attribute {name!r}")
