"""Programs and shapes that nothing was made for: odd, prime, tiny, long and thin; by rules, as written, and by PyTorch.

    python benchmarks/odd_shapes.py [NAME...] [--target "llvm -mcpu=x86-64-v3"]

Timed as shapes.py does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shapes
from operators import pytorch
from shapes import Made, each, product, reduce

from tilewright import te
from tilewright.testing import formulas

FORMULAS = {
    **{"C1D": "conv1d_nlc", "C2D": "conv2d_nhwc", "GRP": "conv2d_nhwc", "DIL": "conv2d_nhwc", "C3D": "conv3d_ndhwc"},
    **{"DEP": "depthwise_conv2d_nhwc", "T2D": "conv2d_transpose_nhwc", "CBR": "conv2d_nhwc_bn_relu"},
    **{"GMM": "batch_matmul_nkkm", "NRM": "norm_bmn", "SFM": "softmax_mn", "TBG": "transpose_batch_matmul"},
}


def operator(family: str, *shape: int) -> Made:
    """An operator of the suite with another shape; PyTorch's arrays lie as it likes them before the clock runs."""
    prepared: list[Callable[[], object] | None] = []

    def other(_: Any, *arrays: Any) -> object:
        if not prepared:
            prepared.append(pytorch(family, shape, [array.numpy() for array in arrays]))
        assert prepared[0] is not None
        return prepared[0]()

    return lambda: te.create_prim_func(getattr(formulas, FORMULAS[family])(*shape)), other


def contraction(left: tuple[int, ...], right: tuple[int, ...], equation: str) -> Any:
    """As numpy.einsum says it."""
    operands, result = equation.split("->")
    first, second = operands.split(",")
    size = dict(zip(first + second, left + right, strict=True))
    a, b = te.placeholder(left, name="A"), te.placeholder(right, name="B")
    summed = [name for name in size if name not in result]
    axes = dict(zip(summed, reduce(*(size[name] for name in summed)), strict=True))

    def element(*indices: Any) -> Any:
        at = {**axes, **dict(zip(result, indices, strict=True))}
        return te.sum(a[tuple(at[n] for n in first)] * b[tuple(at[n] for n in second)], axis=list(axes.values()))

    return te.create_prim_func([a, b, te.compute(tuple(size[name] for name in result), element, name="C")])


def einsum(left: tuple[int, ...], right: tuple[int, ...], equation: str, other: Callable[..., object]) -> Made:
    """PyTorch's einsum itself takes microseconds before it begins: `other` says the same."""
    return lambda: contraction(left, right, equation), lambda _, a, b: other(a, b)


def folded(shape: tuple[int, ...], axes: tuple[int, ...], fold: Callable[..., Any]) -> Any:
    x, summed = te.placeholder(shape, name="X"), dict(zip(axes, reduce(*(shape[i] for i in axes)), strict=True))
    kept = [i for i in range(len(shape)) if i not in axes]

    def element(*indices: Any) -> Any:
        at = {**summed, **dict(zip(kept, indices, strict=True))}
        return fold(x[tuple(at[i] for i in range(len(shape)))], axis=list(summed.values()))

    return te.create_prim_func([x, te.compute(tuple(shape[i] for i in kept), element, name="Y")])


def turned_round(n: int) -> Any:
    x = te.placeholder((n,), name="X")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[(i + 7) % n], name="Y")])


def transposed_in_channels(size: int, channels: int, filters: int, kernel: int, stride: int) -> Made:
    """Channels first, and the zeros between pixels made in the sum itself."""

    def program() -> Any:
        x = te.placeholder((1, channels, size, size), name="X")
        w = te.placeholder((channels, filters, kernel, kernel), name="W")
        out = (size - 1) * stride + kernel
        c, rh, rw = reduce(channels, kernel, kernel)

        def term(co: Any, h: Any, v: Any) -> Any:
            h, v = h - rh, v - rw
            pixel = te.all(h >= 0, v >= 0, h % stride == 0, v % stride == 0, h // stride < size, v // stride < size)
            return te.if_then_else(pixel, x[0, c, h // stride, v // stride], 0.0) * w[c, co, rh, rw]  # type: ignore[attr-defined]

        shape = (1, filters, out, out)
        y = te.compute(shape, lambda n, co, h, v: te.sum(term(co, h, v), axis=[c, rh, rw]), name="Y")
        return te.create_prim_func([x, w, y])

    return program, lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, stride=stride)


def in_channels(size: int, channels: int, filters: int, kernel: int, stride: int, pad: int) -> Made:
    """Channels first."""
    shape = (1, size, size, channels, filters, kernel, kernel, stride, pad)
    return (
        lambda: te.create_prim_func(formulas.conv2d_nchw(*shape)),
        lambda t, x, w: t.nn.functional.conv2d(x, w, None, stride, pad),
    )


def functional(name: str) -> Callable[..., object]:
    return lambda t, x: getattr(t.nn.functional, name)(x)


def of_rows(n: int, m: int, k: int) -> Made:
    """A layer whose weights have a row for each result."""
    return einsum((n, k), (m, k), "ik,jk->ij", lambda a, b: a @ b.T)


#: rows, results and steps
LAYERS = [
    *((64, 768, 3072), (32, 1024, 2048), (16, 1024, 2048), (9, 1024, 2048), (7, 1024, 2048), (4, 1024, 2048)),
    *((3, 1024, 2048), (1, 1024, 2048), (64, 768, 3071), (3, 513, 4099), (128, 1024, 1024), (32, 1000, 1000)),
]
BYTES = ("int8", "int8", "int32")
OPERATORS: list[tuple[Any, ...]] = [
    *(("C2D", 1, 13, 17, 19, 23, 3, 1, 1), ("C2D", 1, 28, 28, 96, 40, 5, 1, 2), ("C2D", 2, 31, 29, 7, 50, 3, 2, 1)),
    *(("C2D", 1, 55, 55, 3, 10, 11, 4, 2), ("C2D", 1, 14, 14, 1, 33, 3, 1, 0), ("C2D", 1, 7, 7, 2048, 10, 1, 1, 0)),
    *(("GRP", 1, 28, 28, 96, 96, 3, 1, 1, 1, 32), ("GRP", 1, 14, 14, 60, 90, 3, 2, 1, 1, 6)),
    *(("GRP", 1, 29, 31, 36, 36, 3, 1, 1, 1, 12), ("DIL", 1, 33, 35, 24, 40, 3, 1, 2, 2)),
    *(("DIL", 1, 65, 65, 48, 21, 3, 1, 4, 4), ("DEP", 1, 57, 55, 24, 3, 2, 1), ("DEP", 1, 31, 33, 13, 5, 1, 2)),
    *(("DEP", 1, 112, 112, 3, 3, 1, 1), ("T2D", 1, 7, 7, 64, 64, 3, 2, 1), ("T2D", 1, 14, 14, 32, 3, 3, 2, 1)),
    *(("T2D", 1, 9, 11, 33, 17, 4, 2, 1), ("C1D", 1, 441, 40, 80, 5, 1, 2), ("C1D", 4, 100, 7, 13, 3, 1, 1)),
    *(("C3D", 1, 7, 15, 17, 12, 24, 3, 1, 1), ("CBR", 1, 30, 30, 20, 50, 3, 1, 1), ("GMM", 12, 197, 197, 64)),
    *(("GMM", 7, 33, 65, 19), ("GMM", 1, 3, 4099, 129), ("NRM", 3, 111, 77), ("SFM", 1000, 10), ("SFM", 7, 50257)),
    *(("SFM", 333, 77), ("TBG", 1, 77, 12, 64), ("TBG", 2, 50, 3, 40)),
]

PROGRAMS: dict[str, Made] = {
    **{f"{family} {'x'.join(map(str, shape))}": operator(family, *shape) for family, *shape in OPERATORS},
    "vector x matrix 512x1000": einsum((512,), (512, 1000), "k,kj->j", lambda a, b: b.T.mv(a)),
    "vector x matrix 10000x10": einsum((10000,), (10000, 10), "k,kj->j", lambda a, b: b.T.mv(a)),
    "matrix x vector 333x777": einsum((333, 777), (777,), "ik,k->i", lambda a, b: a.mv(b)),
    "matrix x vector 10000x10": einsum((10000, 10), (10,), "ik,k->i", lambda a, b: a.mv(b)),
    "product 3x3x10000": einsum((3, 10000), (10000, 3), "ik,kj->ij", lambda a, b: a @ b),
    "product 31x31x31": einsum((31, 31), (31, 31), "ik,kj->ij", lambda a, b: a @ b),
    "product 1024x7x1024": einsum((1024, 1024), (1024, 7), "ik,kj->ij", lambda a, b: a @ b),
    "product of B turned 8x512x64": of_rows(8, 512, 64),
    "product of B turned 32x1000x768": of_rows(32, 1000, 768),
    **{f"layer {'x'.join(map(str, shape))}": of_rows(*shape) for shape in LAYERS},
    "product of both turned 128x130x257": einsum((257, 128), (130, 257), "ki,jk->ij", lambda a, b: a.T @ b.T),
    "two sums 60x50x20x30": einsum(
        (60, 20, 30), (20, 30, 50), "ikl,klj->ij", lambda a, b: a.flatten(1) @ b.flatten(0, 1)
    ),
    "batched 64x17x19x23": einsum((64, 17, 23), (64, 23, 19), "bik,bkj->bij", lambda a, b: a.bmm(b)),
    "i8 x i8 128x256x512": (lambda: product(128, 256, 512, BYTES), lambda t, a, b: t._int_mm(a, b)),
    "i8 x i8 33x64x1000": (lambda: product(33, 64, 1000, BYTES), lambda t, a, b: t._int_mm(a, b)),
    "sums 30x50x70, outer and inner": (lambda: folded((30, 50, 70), (0, 2), te.sum), lambda t, x: t.sum(x, (0, 2))),
    "sums 64x300x5, middle": (lambda: folded((64, 300, 5), (1,), te.sum), lambda t, x: t.sum(x, 1)),
    "sums 100000x4, outer": (lambda: folded((100000, 4), (0,), te.sum), lambda t, x: t.sum(x, 0)),
    "greatest 3x9999, outer": (lambda: folded((3, 9999), (0,), te.max), lambda t, x: t.amax(x, 0)),
    "sigmoid 100000": (lambda: each((100000,), te.sigmoid), lambda t, x: t.sigmoid(x)),  # type: ignore[attr-defined]
    "silu 333x333": (lambda: each((333, 333), lambda v: v * te.sigmoid(v)), functional("silu")),  # type: ignore[attr-defined]
    "gelu 128x1024": (lambda: each((128, 1024), shapes.gelu), functional("gelu")),
    **{
        f"transposed, channels first {'x'.join(map(str, shape))}": transposed_in_channels(*shape)
        for shape in ((13, 12, 17, 3, 2), (14, 12, 17, 4, 2), (9, 7, 13, 5, 3), (13, 12, 32, 3, 2), (20, 5, 1, 3, 2))
    },
    **{
        f"channels first {'x'.join(map(str, shape))}": in_channels(*shape)
        for shape in ((28, 64, 64, 3, 2, 1), (29, 17, 33, 3, 2, 1), (56, 64, 128, 1, 2, 0), (112, 3, 64, 7, 2, 3))
    },
    "turned round 100000": (lambda: turned_round(100000), lambda t, x: t.roll(x, -7)),
}

if __name__ == "__main__":
    np.seterr(all="ignore")
    shapes.main(PROGRAMS)
