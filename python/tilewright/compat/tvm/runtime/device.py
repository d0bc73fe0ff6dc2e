"""tvm.runtime.device."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.kernel.device import Device, cpu, cuda, device

__path__: list[str] = []
__getattr__ = missing("tvm.runtime.device")

__all__ = ["Device", "cpu", "cuda", "device"]
