"""tvm.te: tensor expressions."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.tir import op
from tilewright.te import *  # noqa: F403
from tilewright.te import __all__ as _names

__path__: list[str] = []
_missing = missing("tvm.te")

__all__ = list(_names)


def __getattr__(name: str) -> object:
    """Functions of expressions are in this namespace too."""
    if name in op.__all__:
        return getattr(op, name)
    return _missing(name)
