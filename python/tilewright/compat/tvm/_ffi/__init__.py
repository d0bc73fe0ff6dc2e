"""tvm._ffi: functions by their names."""

from __future__ import annotations

from tilewright.compat.tvm._ffi.base import TVMError
from tilewright.compat.tvm._ffi.registry import get_global_func, register_func, remove_global_func

__all__ = ["TVMError", "get_global_func", "register_func", "remove_global_func"]
