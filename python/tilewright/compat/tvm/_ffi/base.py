"""tvm._ffi.base."""

from __future__ import annotations

from tilewright.errors import Error as TVMError

__all__ = ["TVMError"]
