"""Instructions on tensors, as data: importing this registers those of known processors by name."""

from __future__ import annotations

from tilewright.tensor_intrin import arm_cpu, cuda, hexagon, rocm, x86
from tilewright.tensor_intrin.table import TensorIntrin

__all__ = ["TensorIntrin", "arm_cpu", "cuda", "hexagon", "rocm", "x86"]
