"""TVMScript: tensor programs as Python-syntax text.

>>> from tilewright.script import tir as T, ir as I
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {"tir", "ir"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tilewright.script.{name}")
    raise AttributeError(f"module 'tilewright.script' has no attribute {name!r}")
