"""tvm.script.parser.core.utils: what the functions of a script know by name."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from tilewright.compat.tvm.alias import missing

__getattr__ = missing("tvm.script.parser.core.utils")

__all__ = ["inspect_class_capture", "inspect_function_capture"]


def inspect_function_capture(func: FunctionType) -> dict[str, Any]:
    """Return the names that are visible to a function."""
    return {**func.__globals__, **inspect.getclosurevars(func).nonlocals}


def inspect_class_capture(cls: type) -> dict[str, Any]:
    """Return the names that are visible to the functions of a class."""
    captured: dict[str, Any] = {}
    for member in vars(cls).values():
        if isinstance(member, FunctionType):
            captured.update(inspect_function_capture(member))
    return captured
