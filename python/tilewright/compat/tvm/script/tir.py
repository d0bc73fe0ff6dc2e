"""tvm.script.tir: the T of Tilewright's scripts, with TVM's spelling of compact buffers, and functions that return a
value without declaring its type."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from tilewright.compat.tvm.script.earlier import buffer_decl, load, preflattened_buffer, range, store, var
from tilewright.errors import ScriptError
from tilewright.script import tir
from tilewright.script.core import script as _script
from tilewright.script.tir.functions import decorate

globals().update({name: getattr(tir, name) for name in vars(tir)["__all__"]})
buffer = tir.Buffer
__all__ = [*vars(tir)["__all__"], "buffer", "buffer_decl", "load", "preflattened_buffer", "range", "store", "var"]


def alloc_buffer(shape: Any, dtype: str = "float32", data: Any = None, strides: Any = None, **layout: Any) -> Any:
    """Allocate a buffer of the block; TVM prints the strides [1] for a compact one of any number of dimensions."""
    if isinstance(shape, list | tuple) and len(shape) > 1 and strides is not None and list(strides) == [1]:
        strides = None
    return tir.alloc_buffer(shape, dtype, data, strides, **layout)


def _prim_func(
    func: FunctionType | None = None, private: bool = False, check_well_formed: bool = True, s_tir: bool = False
) -> Any:
    return _decorated(func, private, check_well_formed, sys._getframe(1))


def _decorated(func: Any, private: bool, check_well_formed: bool, frame: FrameType) -> Any:
    if func is None:
        made = decorate(func, private, check_well_formed, frame)
        return _like(made, lambda func: _decorated(func, private, check_well_formed, sys._getframe(1)))
    try:
        return decorate(func, private, check_well_formed, frame)
    except ScriptError as error:
        # TVM's functions have no declared return type.
        if error.code != "verify/return":
            raise
        return decorate(func, private, False, frame)


def _like(boundary: Any, function: Callable[..., Any]) -> Any:
    """Return a boundary around a function, with the attributes of another one."""
    made = _script.Boundary(function)
    vars(made).update(vars(boundary))
    return made


_prim_func.__name__ = _prim_func.__qualname__ = "prim_func"
prim_func: Callable[..., Any] = _like(tir.prim_func, _prim_func)
vars(prim_func)["__signature__"] = inspect.signature(_prim_func)


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
