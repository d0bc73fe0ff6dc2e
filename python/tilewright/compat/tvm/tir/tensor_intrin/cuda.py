"""tvm.tir.tensor_intrin.cuda: the intrinsics of Nvidia's GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime import convert
from tilewright.tensor_intrin import cuda as own
from tilewright.tensor_intrin.cuda import *  # noqa: F403

__getattr__ = missing("tvm.tir.tensor_intrin.cuda")

__all__ = [
    *own.__all__,
    *("HALF_WARP", "HALF_WARP_expr", "M_DIM", "N_DIM", "WARP_SIZE"),
    *("get_mma_intrin_group", "index_map_shared_16x16_to_ldmatrix_32x8_layout", "lift"),
]

lift = convert
M_DIM = N_DIM = HALF_WARP = 16
WARP_SIZE = 32
HALF_WARP_expr = convert(HALF_WARP)


def index_map_shared_16x16_to_ldmatrix_32x8_layout(ind: Sequence[Any]) -> Any:
    """Return the thread and the register that hold an element, whose row and column are passed as a list."""
    return convert(list(own.shared_16x16_to_ldmatrix_32x8_layout(ind[0], ind[1])))


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """Return the names of the tensor intrinsics of a product whose operands have one type, by role: init, load_a,
    load_b, compute, store."""
    return own.get_mma_intrin_group(
        *(load_scope, store_scope, in_dtype, in_dtype, out_dtype, trans_a, trans_b),
        *(not_use_mma_store_intrinic, store_to_smem_dtype or ""),
    )
