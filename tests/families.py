"""The operator families of the benchmarks at small, odd sizes, and what NumPy computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import te
from tilewright.testing import formulas

Arrays = list[np.ndarray]


def windows(x: np.ndarray, sizes: tuple[int, ...], kernel: int, stride: int, padding: int, dilation: int) -> np.ndarray:
    """Return the windows of the dimensions behind the first one: positions, then offsets, then the other dimensions."""
    count = len(sizes)
    around = [(0, 0), *[(padding, padding)] * count, *[(0, 0)] * (x.ndim - 1 - count)]
    padded = np.pad(x, around)
    lengths = [(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for size in sizes]
    result = np.zeros((x.shape[0], *lengths, *[kernel] * count, *x.shape[1 + count :]), x.dtype)
    for offset in np.ndindex(*[kernel] * count):
        source = tuple(
            slice(o * dilation, o * dilation + (length - 1) * stride + 1, stride)
            for o, length in zip(offset, lengths, strict=True)
        )
        everything = slice(None)
        result[(everything, *[everything] * count, *offset)] = padded[(everything, *source)]
    return result


def convolution(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int = 1, groups: int = 1) -> Any:
    """Convolve images of any number of dimensions, channels last."""
    count = x.ndim - 2
    inputs = windows(x, x.shape[1:-1], w.shape[0], stride, padding, dilation)
    taps, each = math.prod(w.shape[:count]), w.shape[-1] // groups
    rows = inputs.reshape(*inputs.shape[: 1 + count], taps, groups, -1)
    kernel = w.reshape(taps, -1, groups, each)
    return np.einsum("...tgc,tcgo->...go", rows, kernel).reshape(*inputs.shape[: 1 + count], -1)


def transposed_convolution(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Add the kernel, times the pixel, at the place of each pixel; cut off the padding."""
    n, height, width, _ = x.shape
    kernel, channels = w.shape[0], w.shape[-1]
    whole = np.zeros((n, (height - 1) * stride + kernel, (width - 1) * stride + kernel, channels), x.dtype)
    for i, j in np.ndindex(height, width):
        at = whole[:, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
        at += np.einsum("nc,abco->nabo", x[:, i, j], w)
    end = -padding or None
    return whole[:, padding:end, padding:end]


def softmax(x: np.ndarray) -> np.ndarray:
    """Of each row, in float64."""
    power = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def depthwise(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Each channel by itself."""
    return np.einsum("nhwabc,abc->nhwc", windows(x, x.shape[1:3], w.shape[1], stride, padding, 1), w[0])


def capsules(x: np.ndarray, w: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Pixels are matrices, which are multiplied."""
    inputs = windows(x, x.shape[1:3], w.shape[0], stride, padding, 1)
    return np.einsum("nhwabikc,abkjco->nhwijo", inputs, w)


def with_batch_norm(x: Any, w: Any, bias: Any, offset: Any, scale: Any) -> np.ndarray:
    """max((x * w + bias) * scale + offset, 0)."""
    return np.maximum((convolution(x, w, 2, 1) + bias) * scale + offset, 0)


#: by family: the formula, its sizes, with odd edges and at least three tiles of the reduction, and what NumPy computes
FAMILIES: dict[str, tuple[str, tuple[int, ...], Callable[..., np.ndarray]]] = {
    "C1D": ("conv1d_nlc", (1, 37, 19, 45, 3, 2, 1), lambda x, w: convolution(x, w, 2, 1)),
    "C2D": ("conv2d_nhwc", (1, 11, 13, 17, 35, 3, 2, 1), lambda x, w: convolution(x, w, 2, 1)),
    "C3D": ("conv3d_ndhwc", (1, 5, 7, 9, 6, 19, 3, 1, 1), lambda x, w: convolution(x, w, 1, 1)),
    "GMM": ("batch_matmul_nkkm", (2, 37, 53, 101), np.matmul),
    "GRP": ("conv2d_nhwc", (1, 9, 9, 12, 36, 3, 1, 1, 1, 4), lambda x, w: convolution(x, w, 1, 1, groups=4)),
    "DIL": ("conv2d_nhwc", (1, 15, 13, 10, 21, 3, 1, 1, 2), lambda x, w: convolution(x, w, 1, 1, dilation=2)),
    "DEP": ("depthwise_conv2d_nhwc", (1, 13, 11, 21, 3, 2, 1), lambda x, w: depthwise(x, w, 2, 1)),
    "T2D": ("conv2d_transpose_nhwc", (1, 5, 7, 19, 23, 4, 2, 1), lambda x, w: transposed_convolution(x, w, 2, 1)),
    "CAP": ("conv2d_capsule_nhwijc", (1, 7, 9, 5, 11, 3, 2, 1), lambda x, w: capsules(x, w, 2, 1)),
    "NRM": ("norm_bmn", (3, 37, 53), lambda x: np.sqrt((x * x).sum(axis=(1, 2)))),
    "SFM": ("softmax_mn", (13, 205), softmax),
    "CBR": ("conv2d_nhwc_bn_relu", (1, 9, 11, 18, 37, 3, 2, 1), with_batch_norm),
    "TBG": ("transpose_batch_matmul", (2, 37, 3, 50), lambda q, v: np.einsum("blhd,bmhd->bhlm", q, v)),
}


def program_of(family: str) -> Any:
    """The program of a family."""
    formula, sizes, _ = FAMILIES[family]
    return te.create_prim_func(getattr(formulas, formula)(*sizes), name="main")


def arguments_of(family: str, seed: int = 0) -> Arrays:
    """Small integers for the inputs of a family, so that sums are exact in any order; no numbers for the result."""
    random = np.random.default_rng(seed)
    shapes = [[int(extent) for extent in buffer.shape] for buffer in program_of(family).buffer_map.values()]
    inputs = [random.integers(-3, 4, shape).astype("float32") for shape in shapes[:-1]]
    return [*inputs, np.full(shapes[-1], np.nan, "float32")]


def check_result(family: str, arrays: Arrays) -> None:
    """Assert that the last array is what NumPy computes of the others."""
    expected = FAMILIES[family][2](*arrays[:-1])
    if family in ("NRM", "SFM"):  # a square root, an exponential
        np.testing.assert_allclose(arrays[-1], expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(arrays[-1], expected)
