"""Tensor intrinsics of Nvidia's GPUs. Those of scope "m16n8k8..." and of float8 are data."""

from __future__ import annotations

from tilewright.tensor_intrin import cuda_m16n8k8, cuda_mma, cuda_wmma, dot_product_common
from tilewright.tensor_intrin.cuda_m16n8k8 import *  # noqa: F403
from tilewright.tensor_intrin.cuda_mma import *  # noqa: F403
from tilewright.tensor_intrin.cuda_wmma import *  # noqa: F403
from tilewright.tensor_intrin.dot_product_common import *  # noqa: F403

__all__ = [*cuda_m16n8k8.__all__, *cuda_mma.__all__, *cuda_wmma.__all__, *dot_product_common.__all__]
