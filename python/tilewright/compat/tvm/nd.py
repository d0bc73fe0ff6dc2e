"""tvm.nd."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime.device import cpu, cuda, device
from tilewright.compat.tvm.runtime.ndarray import NDArray, array, empty

__path__: list[str] = []
__getattr__ = missing("tvm.nd")

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty"]
