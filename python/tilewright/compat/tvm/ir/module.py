"""tvm.ir.module."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import IRModule
from tilewright.support.wrong_arguments import explained

__path__: list[str] = []
__getattr__ = missing("tvm.ir.module")

__all__ = ["IRModule"]


@explained
def _get_attr(self: _core.Module, attr_key: str) -> Any:
    """The attribute of that name; None where there is none."""
    return self.attrs.get(attr_key)


setattr(_core.Module, "get_attr", _get_attr)  # noqa: B010
