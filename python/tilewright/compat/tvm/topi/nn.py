"""tvm.topi.nn: operators of neural networks. Other names can be mentioned; each use of one raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm import te
from tilewright.compat.tvm.alias import absent, as_expr
from tilewright.compat.tvm.topi.elementwise import broadcast_shape, element, elementwise, over_axes
from tilewright.compat.tvm.topi.shapes import reshape
from tilewright.script.tir.intrinsics import INTRINSICS

__getattr__ = absent("tvm.topi.nn")

__all__ = [
    *("batch_matmul", "bias_add", "dense", "flatten", "leaky_relu", "log_softmax", "matmul", "pad", "pool2d", "relu"),
    "softmax",
]


def relu(x: Any) -> Any:
    """Return each element, or 0 where it is negative."""
    return elementwise(lambda value: _core.max(value, _core.const(0, value.dtype)), x)


def leaky_relu(x: Any, alpha: float) -> Any:
    """Return each element, or a fraction of it where it is negative."""

    def leaky(value: Any) -> Any:
        return _core.select(value > 0, value, value * _core.const(alpha, value.dtype))

    return elementwise(leaky, x)


def bias_add(data: Any, bias: Any, axis: int = 1) -> Any:
    """Return the data plus a bias for each index of an axis."""
    at = axis % len(data.shape)
    return te.compute(data.shape, lambda *i: data[i] + bias[i[at]], name="T_add", tag="broadcast")


def flatten(data: Any) -> Any:
    """Return the data with all dimensions but the first flattened into one."""
    rest = _core.const(1)
    for extent in data.shape[1:]:
        rest = rest * extent
    return reshape(data, (data.shape[0], rest))


def pad(
    data: Any,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    pad_value: Any = 0.0,
    name: str = "PadInput",
    attrs: Any = None,
) -> Any:
    """Return the data with a border of one value, by default as wide behind each dimension as before it."""
    after = pad_after or pad_before
    for what, given in (("pad_before", pad_before), ("pad_after", after)):
        if len(given) != len(data.shape):
            raise ValueError(f"Input dimension and {what} dismatch : {len(data.shape)} vs {len(given)}")
    return _padded(data, pad_before, after, as_expr(pad_value, data.dtype), name, attrs)


def matmul(
    tensor_a: Any,
    tensor_b: Any,
    bias: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Any:
    """Return the products of matrices, whose leading dimensions are broadcast."""
    dtype = tensor_a.dtype if out_dtype is None else out_dtype
    rows, reduction = tensor_a.shape[-2:][:: -1 if transpose_a else 1]
    other, columns = tensor_b.shape[-2:][:: -1 if transpose_b else 1]
    if isinstance(reduction, _core.IntImm) and isinstance(other, _core.IntImm) and reduction.value != other.value:
        raise ValueError(f"factors of {reduction} columns and {other} rows")
    k = te.reduce_axis((0, reduction), name="k")
    kinds = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")

    def product(*indices: Any) -> Any:
        *batch, i, j = indices
        a, b = ((k.var, i) if transpose_a else (i, k.var)), ((j, k.var) if transpose_b else (k.var, j))
        left, right = element(tensor_a, (*batch, *a)), element(tensor_b, (*batch, *b))
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=k)

    batch = broadcast_shape(tensor_a.shape[:-2], tensor_b.shape[:-2])
    tag = "dense" if kinds == "NT" else "matmul"
    found = te.compute(
        (*batch, rows, columns),
        product,
        name=f"T_matmul_{kinds}",
        tag=tag,
        attrs={"layout_free_placeholders": [tensor_b]},
    )
    if bias is None:
        return found
    return elementwise(lambda x, y: x + y.astype(dtype), found, bias, name="T_add", tag="broadcast")


def dense(data: Any, weight: Any, bias: Any = None, out_dtype: str | None = None) -> Any:
    """Return the product with the transpose of the weights."""
    return matmul(data, weight, bias, out_dtype, transpose_b=True)


def batch_matmul(
    tensor_a: Any,
    tensor_b: Any,
    oshape: Sequence[Any] | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Any:
    """Return the product of each pair of matrices; a single matrix is broadcast."""
    dtype = tensor_a.dtype if out_dtype is None else out_dtype
    reduction = tensor_a.shape[1 if transpose_a else 2]
    k = te.reduce_axis((0, reduction), name="k")
    kinds = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    rows, columns = tensor_a.shape[2 if transpose_a else 1], tensor_b.shape[1 if transpose_b else 2]
    shape = oshape or (*broadcast_shape(tensor_a.shape[:1], tensor_b.shape[:1]), rows, columns)

    def product(b: Any, i: Any, j: Any) -> Any:
        left = element(tensor_a, (b, k.var, i) if transpose_a else (b, i, k.var))
        right = element(tensor_b, (b, j, k.var) if transpose_b else (b, k.var, j))
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=k)

    attrs = {"layout_free_placeholders": [tensor_b]}
    return te.compute(shape, product, name=f"T_batch_matmul_{kinds}", tag="batch_matmul", attrs=attrs)


def _without(indices: Sequence[Any], axis: int) -> tuple[Any, ...]:
    return (*indices[:axis], *indices[axis + 1 :])


def _reduced(x: Any, at: int, reduce: Callable[..., Any], value: Callable[..., Any], name: str = "compute") -> Any:
    """Reduce a dimension of `value(index, element)`, where the index is that of the result."""
    k = te.reduce_axis((0, x.shape[at]), name="k")
    return te.compute(
        _without(x.shape, at), lambda *i: reduce(value(i, x[(*i[:at], k.var, *i[at:])]), axis=k), name=name
    )


def softmax(x: Any, axis: int = -1) -> Any:
    """Return exp of each element over the sum of these along an axis."""
    at = axis % len(x.shape)
    largest = _reduced(x, at, te.max, lambda _, value: value, "T_softmax_maxelem")
    powers = te.compute(x.shape, lambda *i: INTRINSICS["exp"](x[i] - largest[_without(i, at)]), name="T_softmax_exp")
    total = _reduced(powers, at, te.sum, lambda _, value: value, "T_softmax_expsum")
    return te.compute(
        x.shape, lambda *i: powers[i] / total[_without(i, at)], name="T_softmax_norm", attrs={"axis": axis}
    )


def log_softmax(x: Any, axis: int = -1) -> Any:
    """Return the logarithm of :func:`softmax`."""
    at = axis % len(x.shape)
    largest = _reduced(x, at, te.max, lambda _, value: value, "T_softmax_maxelem")
    total = _reduced(x, at, te.sum, lambda i, value: INTRINSICS["exp"](value - largest[i]))
    return te.compute(
        x.shape,
        lambda *i: x[i] - largest[_without(i, at)] - INTRINSICS["log"](total[_without(i, at)]),
        attrs={"axis": axis},
    )


def _padded(
    data: Any, before: Sequence[Any], after: Sequence[Any], value: Any, name: str = "pad_temp", attrs: Any = None
) -> Any:
    """Return the data with a border of one value."""
    shape = [extent + low + high for extent, low, high in zip(data.shape, before, after, strict=True)]

    def element(*indices: Any) -> Any:
        at = [index - low for index, low in zip(indices, before, strict=True)]
        inside = []
        for index, extent, low, high in zip(indices, data.shape, before, after, strict=True):
            inside += [] if isinstance(low, int) and low == 0 else [index >= low]
            inside += [] if isinstance(high, int) and high == 0 else [index < low + extent]
        return _core.if_then_else(te.all(*inside), data[tuple(at)], value) if inside else data[tuple(at)]

    return over_axes(shape, element, name=name, attrs=attrs)


def pool2d(
    input: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Any:
    """Return the maximum, or the average, of each window of an image; padding is top, left, bottom, right."""
    if pool_type not in ("max", "avg") or layout.upper() != layout or not {"H", "W"} <= set(layout):
        raise ValueError(
            f"pool2d of type {pool_type!r} in layout {layout!r}: the types are 'max' and 'avg', of H and W"
        )
    padded = any(padding) or ceil_mode
    if pool_type == "avg" and padded and not count_include_pad:
        raise ValueError("pool2d takes averages with the padding counted in: count_include_pad=True")
    rank, dimensions = len(input.shape), [layout.index("H"), layout.index("W")]
    before, after, shape = [0] * rank, [0] * rank, list(input.shape)
    for number, dimension in enumerate(dimensions):
        before[dimension] = padding[number]
        after[dimension] = padding[number + 2] + (stride[number] - 1 if ceil_mode else 0)
        reach = (kernel[number] - 1) * dilation[number] + 1
        room = input.shape[dimension] - reach + before[dimension] + after[dimension]
        shape[dimension] = room // stride[number] + 1
    largest = pool_type == "max"
    border = _core.min_value(input.dtype) if largest else _core.const(0, input.dtype)
    data = _padded(input, before, after, border) if padded else input
    steps = [te.reduce_axis((0, extent), f"rv{number}") for number, extent in enumerate(kernel)]

    def window(*indices: Any) -> Any:
        at = list(indices)
        for number, dimension in enumerate(dimensions):
            at[dimension] = indices[dimension] * stride[number] + steps[number].var * dilation[number]
        return (te.max if largest else te.sum)(data[tuple(at)], axis=steps)

    pooled = over_axes(shape, window, name="pool_max" if largest else "pool_sum")
    if largest:
        return pooled
    count = kernel[0] * kernel[1]
    return over_axes(shape, lambda *at: pooled[at] / count, name="pool_avg")
