"""tvm.tir.tensor_intrin: descriptions and implementations of instructions for tensors, by processor."""

from __future__ import annotations

from tilewright import tensor_intrin
from tilewright.compat.tvm.tir.tensor_intrin import cuda, rocm
from tilewright.tensor_intrin import arm_cpu, dot_product_common, hexagon, x86

TensorIntrin = tensor_intrin.TensorIntrin

__all__ = ["TensorIntrin", "arm_cpu", "cuda", "dot_product_common", "hexagon", "rocm", "x86"]
