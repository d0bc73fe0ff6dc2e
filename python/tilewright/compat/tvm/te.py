"""tvm.te: tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.tir import op
from tilewright.script.tir.intrinsics import AXIS_SEPARATOR
from tilewright.te import *  # noqa: F403
from tilewright.te import __all__ as _names

__path__: list[str] = []
_missing = missing("tvm.te")

__all__ = ["AXIS_SEPARATOR", *_names]


def create_prim_func(  # type: ignore[no-redef]
    ops: Sequence[Any], index_dtype_override: str | None = None
) -> Any:
    """The program that computes tensors; its name is "main"."""
    return te.create_prim_func(ops, index_dtype_override, name="main")


def __getattr__(name: str) -> object:
    """Functions of expressions are in this namespace too."""
    if name in op.__all__:
        return getattr(op, name)
    return _missing(name)
