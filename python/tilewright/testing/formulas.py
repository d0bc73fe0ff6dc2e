"""Workloads as tensor expressions, at any size: inputs first, the result last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, mul
from typing import Any

from tilewright import _core, te

#: The operators that compilers are compared by: four shapes each, as parameters of the function.
CONFIGS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "C1D": (
        "conv1d_nlc",
        [
            (1, 256, 64, 128, 3, 2, 1),
            (1, 128, 128, 256, 1, 2, 0),
            (1, 64, 256, 256, 5, 1, 2),
            (1, 32, 512, 512, 3, 1, 1),
        ],
    ),
    "C2D": (
        "conv2d_nhwc",
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 64, 1, 1, 0),
            (1, 14, 14, 256, 256, 3, 1, 1),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "C3D": (
        "conv3d_ndhwc",
        [
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 16, 14, 14, 256, 256, 3, 1, 1),
            (1, 16, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "GMM": (
        "batch_matmul_nkkm",
        [(1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)],
    ),
    "GRP": (
        "conv2d_nhwc",
        [
            (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
            (1, 56, 56, 64, 64, 1, 1, 0, 1, 4),
            (1, 14, 14, 256, 256, 3, 1, 1, 1, 4),
            (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
        ],
    ),
    "DIL": (
        "conv2d_nhwc",
        [
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 14, 14, 256, 256, 3, 1, 1, 2),
            (1, 7, 7, 512, 512, 3, 1, 1, 2),
        ],
    ),
    "DEP": (
        "depthwise_conv2d_nhwc",
        [(1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 2, 1), (1, 7, 7, 1024, 3, 1, 1)],
    ),
    "T2D": (
        "conv2d_transpose_nhwc",
        [
            (1, 4, 4, 512, 256, 4, 2, 1),
            (1, 8, 8, 256, 128, 4, 2, 1),
            (1, 16, 16, 128, 64, 4, 2, 1),
            (1, 32, 32, 64, 3, 4, 2, 1),
        ],
    ),
    "CAP": (
        "conv2d_capsule_nhwijc",
        [
            (1, 16, 16, 32, 32, 3, 2, 1),
            (1, 8, 8, 32, 32, 3, 1, 1),
            (1, 16, 16, 8, 16, 3, 2, 1),
            (1, 8, 8, 16, 16, 3, 1, 1),
        ],
    ),
    "NRM": ("norm_bmn", [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": ("softmax_mn", [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (
        "conv2d_nhwc_bn_relu",
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 128, 3, 2, 1),
            (1, 28, 28, 128, 256, 1, 2, 0),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "TBG": ("transpose_batch_matmul", [(1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)]),
}


def workload(family: str, index: int, batch_size: int = 1, **types: str) -> Any:
    """Return the program of an operator of CONFIGS.

    Args:
        family: "GMM", ...
        index: number of the shape.
        batch_size: the first parameter, which is 1 in CONFIGS; of matrices without a batch, nothing.
        types: in_dtype, out_dtype.
    """
    name, shapes = CONFIGS[family]
    shape = shapes[index]
    if name != "softmax_mn":
        shape = (batch_size, *shape[1:])
    return te.create_prim_func(globals()[name](*shape, **types), name="main")


def matmul(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """Return C[n, m] = A[n, k] @ B[k, m], summed in `out_dtype`."""
    a = te.placeholder((n, k), name="A", dtype=in_dtype)
    b = te.placeholder((k, m), name="B", dtype=in_dtype)
    r = te.reduce_axis((0, k), name="k")
    return a, b, te.compute((n, m), lambda i, j: _sum_of_products(out_dtype, a[i, r], b[r, j], [r]), name="C")


def matmul_relu(n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """Return max(A @ B, 0)."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    d = te.compute((n, m), lambda i, j: te.max(c[i, j], te.const(0, out_dtype)), name="compute")
    return a, b, d


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[te.Tensor, ...]:
    """Return Z[b] = X[b] @ Y[b] for each b."""
    x = te.placeholder((B, N, K), name="X", dtype=in_dtype)
    y = te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    k = te.reduce_axis((0, K), name="k")
    return (
        x,
        y,
        te.compute((B, N, M), lambda b, i, j: _sum_of_products(out_dtype, x[b, i, k], y[b, k, j], [k]), name="Z"),
    )


def padded(
    tensor: te.Tensor,
    before: Sequence[int],
    name: str = "PadInput",
    after: Sequence[int] | None = None,
    attrs: dict[str, Any] | None = None,
) -> Any:
    """Return a zero-padded copy: `before` elements before each dimension, and `after` behind it, by default equally
    many."""
    behind = before if after is None else after
    sizes = [_size(extent) for extent in tensor.shape]
    shape = [left + size + right for left, size, right in zip(before, sizes, behind, strict=True)]

    def element(*indices: Any) -> Any:
        inside = []
        for index, left, size, right in zip(indices, before, sizes, behind, strict=True):
            if left:
                inside.append(_core.LE(left, index))
            if right:
                inside.append(index < left + size)
        source = tensor[tuple(i - left if left else i for i, left in zip(indices, before, strict=True))]
        if not inside:
            return source
        return te.if_then_else(te.all(*inside), source, te.const(0, tensor.dtype))  # type: ignore[attr-defined]

    return te.compute(shape, element, name=name, varargs_names=[f"i{d}" for d in range(len(shape))], attrs=attrs or {})


def _size(extent: Any) -> int:
    return int(extent.value) if hasattr(extent, "value") else int(extent)


def _length(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Return the number of positions of a kernel along a padded dimension."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _axes(**extents: int) -> list[Any]:
    return [te.reduce_axis((0, extent), name=name) for name, extent in extents.items()]


def _sum_of_products(dtype: str, left: Any, right: Any, axes: Sequence[Any]) -> Any:
    return te.sum(left.astype(dtype) * right.astype(dtype), axis=axes)


def _convolution(
    name: str,
    letters: str,
    shape: Sequence[int],
    channels: int,
    kernel_size: int,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    dtypes: tuple[str, str],
) -> tuple[te.Tensor, ...]:
    """Return a convolution along the dimensions of `shape` called `letters`, which are between those of batch and
    channels."""
    n, *sizes, ci = shape
    inputs = te.placeholder(shape, name="inputs", dtype=dtypes[0])
    kernel = [kernel_size] * len(sizes)
    weight = te.placeholder((*kernel, ci // groups, channels), name="weight", dtype=dtypes[0])
    source = padded(inputs, (0, *[padding] * len(sizes), 0))
    axes = _axes(**{f"r{letter}": kernel_size for letter in letters}, rc=ci // groups)

    def element(n: Any, *indices: Any) -> Any:
        *at, co = indices
        positions = [x * stride + r * dilation for x, r in zip(at, axes, strict=False)]
        value = source[(n, *positions, co // (channels // groups) * (ci // groups) + axes[-1])]
        return _sum_of_products(dtypes[1], value, weight[(*axes, co)], axes)

    results = [_length(size, kernel_size, stride, padding, dilation) for size in sizes]
    names = ["n", *letters, "co"]
    return inputs, weight, te.compute((n, *results, channels), element, name=name, varargs_names=names)


def conv1d_nlc(
    N: int,
    L: int,
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
    """Return a convolution of sequences, channels last, over their padded copy."""
    return _convolution(
        "conv1d_nlc", "l", (N, L, CI), CO, kernel_size, stride, padding, dilation, groups, (in_dtype, out_dtype)
    )


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
    """Return a convolution of images, channels last, over their padded copy."""
    return _convolution(
        "conv2d_nhwc", "hw", (N, H, W, CI), CO, kernel_size, stride, padding, dilation, groups, (in_dtype, out_dtype)
    )


def conv3d_ndhwc(
    N: int,
    D: int,
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
    """Return a convolution of volumes, channels last, over their padded copy."""
    return _convolution(
        "conv3d_ndhwc",
        "dhw",
        (N, D, H, W, CI),
        CO,
        kernel_size,
        stride,
        padding,
        dilation,
        groups,
        (in_dtype, out_dtype),
    )


def depthwise_conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    C: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    factor: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a depthwise convolution of images, channels last."""
    inputs = te.placeholder((N, H, W, C), name="placeholder", dtype=in_dtype)
    weight = te.placeholder((factor, kernel_size, kernel_size, C), name="placeholder_1", dtype=in_dtype)
    source = padded(inputs, (0, padding, padding, 0))
    rh, rw = _axes(rh=kernel_size, rw=kernel_size)

    def element(n: Any, h: Any, w: Any, c: Any) -> Any:
        pixel = source[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor]
        return _sum_of_products(out_dtype, pixel, weight[c % factor, rh, rw, c // factor], [rh, rw])

    rows, columns = (_length(size, kernel_size, stride, padding, dilation) for size in (H, W))
    return inputs, weight, te.compute((N, rows, columns, C * factor), element, name="depth_conv2d_nhwc")


def conv2d_transpose_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a transposed convolution of images, channels last.

    The zeros between the pixels are a condition of the computation itself, so that unrolling removes what multiplies
    them.
    """
    inputs = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight", dtype=in_dtype)
    around = kernel_size - 1 - padding
    border = (around + stride - 1) // stride
    source = padded(inputs, (0, border, border, 0))
    shift = (stride - around % stride) % stride
    rh, rw, rc = _axes(rh=kernel_size, rw=kernel_size, rc=CI)

    def spread(n: Any, h: Any, w: Any, c: Any) -> Any:
        if stride == 1:
            return source[n, h, w, c]
        is_pixel = te.all(h % stride == 0, w % stride == 0)
        return te.if_then_else(is_pixel, source[n, h // stride, w // stride, c], te.const(0, in_dtype))  # type: ignore[attr-defined]

    def element(n: Any, h: Any, w: Any, co: Any) -> Any:
        pixel = spread(n, h + rh + shift, w + rw + shift, rc)
        tap = weight[kernel_size - 1 - rh, kernel_size - 1 - rw, rc, co]
        return _sum_of_products(out_dtype, pixel, tap, [rh, rw, rc])

    rows, columns = ((size - 1) * stride - 2 * padding + kernel_size for size in (H, W))
    return inputs, weight, te.compute((N, rows, columns, CO), element, name="conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    capsule_size: int = 4,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a convolution whose pixels are matrices, which are multiplied."""
    inputs = te.placeholder((N, H, W, capsule_size, capsule_size, CI), name="inputs", dtype=in_dtype)
    kernel = (kernel_size, kernel_size, capsule_size, capsule_size, CI, CO)
    weight = te.placeholder(kernel, name="weight", dtype=in_dtype)
    source = padded(inputs, (0, padding, padding, 0, 0, 0))
    rh, rw, cap_k, rc = _axes(rh=kernel_size, rw=kernel_size, cap_k=capsule_size, rc=CI)

    def element(n: Any, h: Any, w: Any, cap_i: Any, cap_j: Any, co: Any) -> Any:
        pixel = source[n, h * stride + rh, w * stride + rw, cap_i, cap_k, rc]
        tap = weight[rh, rw, cap_k, cap_j, rc, co]
        return _sum_of_products(out_dtype, pixel, tap, [rh, rw, cap_k, rc])

    rows, columns = (_length(size, kernel_size, stride, padding, 1) for size in (H, W))
    shape = (N, rows, columns, capsule_size, capsule_size, CO)
    return inputs, weight, te.compute(shape, element, name="conv2d_capsule_nhwijc")


def norm_bmn(B: int, M: int, N: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """Return the square root of the sum of squares of each matrix."""
    a = te.placeholder((B, M, N), name="A", dtype=in_dtype)
    i, j = _axes(i=M, j=N)
    c = te.compute((B,), lambda b: _sum_of_products(out_dtype, a[b, i, j], a[b, i, j], [i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(c[b]), name="D")  # type: ignore[attr-defined]


def softmax_mn(m: int, n: int, in_dtype: str = "float32", out_dtype: str = "float32") -> tuple[te.Tensor, ...]:
    """Return the softmax of each row."""
    a = te.placeholder((m, n), name="A", dtype=in_dtype)
    (k,) = _axes(k=n)
    largest = te.compute((m,), lambda i0: te.max(a[i0, k], axis=[k]), name="T_softmax_maxelem")
    exp = te.compute((m, n), lambda i0, i1: te.exp(a[i0, i1] - largest[i0]), name="T_softmax_exp")  # type: ignore[attr-defined]
    (k,) = _axes(k=n)
    total = te.compute((m,), lambda i0: te.sum(exp[i0, k], axis=[k]), name="T_softmax_expsum")
    norm = te.compute((m, n), lambda i0, i1: exp[i0, i1] / total[i0], name="T_softmax_norm", attrs={"axis": 1})
    return a, norm


def conv2d_nhwc_bn_relu(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    strides: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a convolution, channels last, with a bias, a batch normalization, and a ReLU."""
    data = te.placeholder((N, H, W, CI), name="data", dtype=in_dtype)
    kernel = te.placeholder((kernel_size, kernel_size, CI, CO), name="kernel", dtype=in_dtype)
    bias, bn_scale, bn_offset = (
        te.placeholder((CO,), name=name, dtype=out_dtype) for name in ("bias", "bn_scale", "bn_offset")
    )
    source = padded(data, (0, padding, padding, 0), "PaddedInput")
    ry, rx, rc = _axes(ry=kernel_size, rx=kernel_size, rc=CI)

    def element(nn: Any, yy: Any, xx: Any, ff: Any) -> Any:
        pixel = source[nn, yy * strides + ry * dilation, xx * strides + rx * dilation, rc]
        return _sum_of_products(out_dtype, pixel, kernel[ry, rx, rc, ff], [ry, rx, rc])

    shape = (N, *(_length(size, kernel_size, strides, padding, dilation) for size in (H, W)), CO)
    conv = te.compute(shape, element, name="Conv2dOutput")
    return data, kernel, bias, bn_offset, bn_scale, _normalized(conv, 3, bias, bn_scale, bn_offset, out_dtype)


def _normalized(value: Any, channel: int, bias: Any, scale: Any, offset: Any, dtype: str) -> Any:
    """Return max((value + bias) * scale + offset, 0), where these have an element for each channel."""
    for name, function, operand in (("bias_add", add, bias), ("bn_mul", mul, scale), ("bn_add", add, offset)):
        value = _by_channel(name, function, value, operand, channel)
    return te.compute(
        value.shape,
        lambda *i: te.max(value[i], te.const(0, dtype)),
        name="compute",
        varargs_names=[f"i{d}" for d in range(len(value.shape))],
    )


def _by_channel(name: str, function: Callable[[Any, Any], Any], value: Any, operand: Any, channel: int) -> Any:
    zeros = [0] * (operand.ndim - 1)

    def element(i: Any, j: Any, k: Any, l: Any) -> Any:  # noqa: E741
        return function(value[i, j, k, l], operand[((i, j, k, l)[channel], *zeros)])

    return te.compute(value.shape, element, name=name)


def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a convolution of images, channels before rows."""
    x = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype)
    weight = te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    source = padded(x, (0, 0, padding, padding), "pad_temp")
    rc, ry, rx = _axes(rc=ci, ry=kh, rx=kw)

    def element(nn: Any, ff: Any, yy: Any, xx: Any) -> Any:
        pixel = source[nn, rc, yy * stride + ry * dilation, xx * stride + rx * dilation]
        return _sum_of_products(out_dtype, pixel, weight[ff, rc, ry, rx], [rc, ry, rx])

    rows, columns = _length(h, kh, stride, padding, dilation), _length(w, kw, stride, padding, dilation)
    return x, weight, te.compute((n, co, rows, columns), element, name="conv2d_nchw")


def conv2d_nchw_bias_bn_relu(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> tuple[te.Tensor, ...]:
    """Return a convolution with a bias, a batch normalization, and a ReLU."""
    x, weight, conv = conv2d_nchw(n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype)
    bias, bn_scale, bn_offset = (
        te.placeholder((co, 1, 1), name=name, dtype=out_dtype) for name in ("B", "bn_scale", "bn_offset")
    )
    return x, weight, bias, bn_scale, bn_offset, _normalized(conv, 1, bias, bn_scale, bn_offset, out_dtype)


def max_pool2d_nchw(
    n: int, h: int, w: int, ci: int, padding: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[te.Tensor, ...]:
    """Return two-by-two max pooling."""
    x = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype)
    around = (0, 0, padding, padding)

    def padded_element(*i: Any) -> Any:
        inside = te.all(padding <= i[2], i[2] < padding + h, padding <= i[3], i[3] < padding + w)
        source = x[i[0], i[1], i[2] - padding, i[3] - padding]
        return te.if_then_else(inside, source, te.min_value(in_dtype))  # type: ignore[attr-defined]

    shape = [size + 2 * left for size, left in zip((n, ci, h, w), around, strict=True)]
    source = (
        x
        if padding == 0
        else te.compute(shape, padded_element, name="pad_temp", varargs_names=["i0", "i1", "i2", "i3"])
    )
    rv0, rv1 = _axes(rv0=2, rv1=2)
    result = te.compute(
        (n, ci, (h + 2 * padding - 2) // 2 + 1, (w + 2 * padding - 2) // 2 + 1),
        lambda ax0, ax1, ax2, ax3: te.max(source[ax0, ax1, ax2 * 2 + rv0, ax3 * 2 + rv1], axis=[rv0, rv1]),
        name="pool_max",
    )
    return x, result


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> tuple[te.Tensor, ...]:
    """Return the products of queries and values of each head, which are interleaved in memory."""
    query = te.placeholder((batch, seq_len, n_head, n_dim), name="query", dtype=in_dtype)
    value = te.placeholder((batch, seq_len, n_head, n_dim), name="value", dtype=in_dtype)
    query_t = te.compute((batch, n_head, seq_len, n_dim), lambda b, h, l, d: query[b, l, h, d], name="query_T")  # noqa: E741
    value_t = te.compute((batch, n_head, n_dim, seq_len), lambda b, h, d, l: value[b, l, h, d], name="value_T")  # noqa: E741
    (k,) = _axes(k=n_dim)

    def element(b: Any, h: Any, i: Any, j: Any) -> Any:
        return _sum_of_products(out_dtype, query_t[b, h, i, k], value_t[b, h, k, j], [k])

    return query, value, te.compute((batch, n_head, seq_len, seq_len), element, name="C")
