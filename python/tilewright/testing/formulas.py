"""Workloads as tensor expressions, at any size: inputs first, the result last."""

from __future__ import annotations

from typing import Any

from tilewright import te


def matmul(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """C[n, m] = A[n, k] @ B[k, m], summed in `out_dtype`."""
    a = te.placeholder((n, k), name="A", dtype=in_dtype)
    b = te.placeholder((k, m), name="B", dtype=in_dtype)
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (n, m), lambda i, j: te.sum(a[i, r].astype(out_dtype) * b[r, j].astype(out_dtype), axis=[r]), name="C"
    )
    return a, b, c


def matmul_relu(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """max(A @ B, 0)."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    d = te.compute((n, m), lambda i, j: te.max(c[i, j], te.const(0, out_dtype)), name="compute")
    return a, b, d


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[te.Tensor, ...]:
    """Z[b] = X[b] @ Y[b] for each b."""
    x = te.placeholder((B, N, K), name="X", dtype=in_dtype)
    y = te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    k = te.reduce_axis((0, K), name="k")
    z = te.compute(
        (B, N, M),
        lambda b, i, j: te.sum(x[b, i, k].astype(out_dtype) * y[b, k, j].astype(out_dtype), axis=[k]),
        name="Z",
    )
    return x, y, z


def conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """A convolution of images, channels last, over their padded copy."""
    inputs = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI // groups, CO), name="weight", dtype=in_dtype)
    out_h = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1
    out_w = (W + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1
    rh = te.reduce_axis((0, kernel_size), name="rh")
    rw = te.reduce_axis((0, kernel_size), name="rw")
    rc = te.reduce_axis((0, CI // groups), name="rc")

    def padded_element(n: Any, h: Any, w: Any, c: Any) -> Any:
        inside = te.all(h >= padding, h - padding < H, w >= padding, w - padding < W)
        return te.if_then_else(inside, inputs[n, h - padding, w - padding, c], te.const(0, in_dtype))  # type: ignore[attr-defined]

    padded = te.compute((N, H + 2 * padding, W + 2 * padding, CI), padded_element, name="PadInput")

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        channel = co // (CO // groups) * (CI // groups) + rc
        pixel = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, channel]
        return te.sum(pixel.astype(out_dtype) * weight[rh, rw, rc, co].astype(out_dtype), axis=[rh, rw, rc])

    return inputs, weight, te.compute((N, out_h, out_w, CO), element, name="conv2d_nhwc")
