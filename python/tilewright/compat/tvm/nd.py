"""tvm.nd."""

from __future__ import annotations

from tilewright.compat.tvm.runtime.ndarray import NDArray, array, cpu, cuda, device, empty, from_dlpack, opencl

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "opencl"]
