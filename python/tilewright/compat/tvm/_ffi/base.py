"""tvm._ffi.base."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.errors import Error as TVMError

__path__: list[str] = []
__getattr__ = missing("tvm._ffi.base")

__all__ = ["TVMError"]
