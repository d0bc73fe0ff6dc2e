"""tvm.meta_schedule.testing.te_workload: workloads as formulas."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm import te
from tilewright.compat.tvm.target import Target
from tilewright.testing import formulas
from tilewright.testing.winograd import conv2d_winograd_nhwc as winograd_nhwc

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
    "conv2d_winograd_nhwc",
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


def _with_te_tensors(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the formula, wrapped so that its tensors are those of tvm.te."""

    @functools.wraps(formula)
    def call(*args: Any, **kwargs: Any) -> Any:
        return te.as_tvm(formula(*args, **kwargs))

    return call


batch_matmul_nkkm = _with_te_tensors(formulas.batch_matmul_nkkm)
conv1d_nlc = _with_te_tensors(formulas.conv1d_nlc)
conv2d_capsule_nhwijc = _with_te_tensors(formulas.conv2d_capsule_nhwijc)
conv2d_nchw = _with_te_tensors(formulas.conv2d_nchw)
conv2d_nchw_bias_bn_relu = _with_te_tensors(formulas.conv2d_nchw_bias_bn_relu)
conv2d_nhwc = _with_te_tensors(formulas.conv2d_nhwc)
conv2d_nhwc_bn_relu = _with_te_tensors(formulas.conv2d_nhwc_bn_relu)
conv2d_transpose_nhwc = _with_te_tensors(formulas.conv2d_transpose_nhwc)
conv3d_ndhwc = _with_te_tensors(formulas.conv3d_ndhwc)
depthwise_conv2d_nhwc = _with_te_tensors(formulas.depthwise_conv2d_nhwc)
matmul = _with_te_tensors(formulas.matmul)
matmul_relu = _with_te_tensors(formulas.matmul_relu)
max_pool2d_nchw = _with_te_tensors(formulas.max_pool2d_nchw)
norm_bmn = _with_te_tensors(formulas.norm_bmn)
softmax_mn = _with_te_tensors(formulas.softmax_mn)
transpose_batch_matmul = _with_te_tensors(formulas.transpose_batch_matmul)


def conv2d_winograd_nhwc(*args: Any, **kwargs: Any) -> Any:
    """Return a Winograd convolution with the tiling level of the current target: 3 for CUDA, otherwise 2."""
    target = Target.current(allow_none=True)
    level = 3 if target is not None and str(target.kind) == "cuda" else 2
    return te.as_tvm(winograd_nhwc(*args, **{"write_cache_level": level, **kwargs}))


CONFIGS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    family: (getattr(formulas, name), shapes) for family, (name, shapes) in formulas.CONFIGS.items()
}
CONFIGS["C2D_WIN_NHWC"] = (conv2d_winograd_nhwc, [(1, 14, 14, 128, 128, 6)])


def create_te_workload(name: str, idx: int) -> Any:
    """Return the program of an operator of CONFIGS."""
    function, shapes = CONFIGS[name]
    return te.create_prim_func(function(*shapes[idx]))
