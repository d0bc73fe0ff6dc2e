"""tvm.tir.tensor_intrin: importing it registers the intrinsics."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.tir.tensor_intrin import arm_cpu, cuda, hexagon, rocm, x86

__getattr__ = missing("tvm.tir.tensor_intrin")

__all__ = ["arm_cpu", "cuda", "hexagon", "rocm", "x86"]
