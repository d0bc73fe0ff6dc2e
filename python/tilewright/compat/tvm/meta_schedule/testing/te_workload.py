"""tvm.meta_schedule.testing.te_workload: workloads as formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm import te
from tilewright.compat.tvm.alias import missing
from tilewright.testing import formulas
from tilewright.testing.formulas import (
    batch_matmul_nkkm,
    conv1d_nlc,
    conv2d_capsule_nhwijc,
    conv2d_nchw,
    conv2d_nchw_bias_bn_relu,
    conv2d_nhwc,
    conv2d_nhwc_bn_relu,
    conv2d_transpose_nhwc,
    conv3d_ndhwc,
    depthwise_conv2d_nhwc,
    matmul,
    matmul_relu,
    max_pool2d_nchw,
    norm_bmn,
    softmax_mn,
    transpose_batch_matmul,
)

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.testing.te_workload")

__all__ = [
    "CONFIGS",
    "batch_matmul_nkkm",
    "conv1d_nlc",
    "conv2d_capsule_nhwijc",
    "conv2d_nchw",
    "conv2d_nchw_bias_bn_relu",
    "conv2d_nhwc",
    "conv2d_nhwc_bn_relu",
    "conv2d_transpose_nhwc",
    "conv3d_ndhwc",
    "create_te_workload",
    "depthwise_conv2d_nhwc",
    "matmul",
    "matmul_relu",
    "max_pool2d_nchw",
    "norm_bmn",
    "softmax_mn",
    "transpose_batch_matmul",
]

CONFIGS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    family: (getattr(formulas, name), shapes) for family, (name, shapes) in formulas.CONFIGS.items()
}


def create_te_workload(name: str, idx: int) -> Any:
    """The program of an operator of CONFIGS."""
    function, shapes = CONFIGS[name]
    return te.create_prim_func(function(*shapes[idx]))
