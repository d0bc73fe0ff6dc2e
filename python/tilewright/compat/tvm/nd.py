"""tvm.nd."""

from __future__ import annotations

from tilewright.compat.tvm.runtime.ndarray import NDArray, array, empty
from tilewright.kernel.device import cpu, cuda, device

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty"]
