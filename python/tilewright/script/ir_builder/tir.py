"""The namespace T of builders: that of scripts, but `prim_func` opens a function."""

from __future__ import annotations

import builtins
from typing import Any

from tilewright.script import tir as _tir
from tilewright.script.core import script as _script
from tilewright.script.tir import *  # noqa: F403


def prim_func(is_private: builtins.bool = False) -> Any:  # type: ignore[no-redef]
    """Open a function; set its name with T.func_name and its parameters with T.arg."""
    return _script.prim_func(is_private)


def __getattr__(name: str) -> Any:
    return getattr(_tir, name)
