"""tvm.tir.analysis."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.errors import ScriptError

__path__: list[str] = []
__getattr__ = missing("tvm.tir.analysis")

__all__ = ["expr_deep_equal", "verify_well_formed"]


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two expressions are the same, their variables included."""
    return _core.structural_equal(lhs, rhs)


def verify_well_formed(obj: Any, assert_mode: bool = True) -> bool:
    """Whether a program is well formed; with `assert_mode` raises where it is not."""
    try:
        _core.verify(obj)
    except ScriptError:
        if assert_mode:
            raise
        return False
    return True
