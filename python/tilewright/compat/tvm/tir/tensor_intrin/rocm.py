"""tvm.tir.tensor_intrin.rocm: the intrinsics of AMD's GPUs."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime import convert
from tilewright.tensor_intrin import rocm as own
from tilewright.tensor_intrin.rocm import *  # noqa: F403

__getattr__ = missing("tvm.tir.tensor_intrin.rocm")

__all__ = [*own.__all__, "M_DIM", "N_DIM", "WARP_SIZE", "lift"]

lift = convert
M_DIM = N_DIM = 16
WARP_SIZE = 64
