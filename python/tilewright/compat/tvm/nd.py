"""tvm.nd."""

from __future__ import annotations

from tilewright.compat.tvm.runtime.devices import cpu, cuda, device, opencl
from tilewright.compat.tvm.runtime.ndarray import NDArray, array, empty

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "opencl"]
