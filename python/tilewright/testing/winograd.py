"""Convolutions with 3x3 kernels by Winograd's method, as tensor expressions.

A tile of m x m results takes (m + 2) x (m + 2) products of transformed pixels and weights, where the direct sum takes
9 m x m (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). The three transforms come from
polynomials evaluated at a few points (Cook and Toom); which points keep the error small is from Barabasz et al.,
"Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2018, table 5.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tilewright import _core, te
from tilewright.testing.formulas import padded

#: for tiles of 2 to 8 results with a kernel of 3: as many finite points as the tile has pixels, less one
POINTS = (0, -1, 1, Fraction(1, 2), -2, Fraction(-1, 2))
MORE_POINTS = (0, -1, 1, Fraction(1, 2), Fraction(-1, 2), 2, -2, Fraction(-1, 4), 4)

Matrix = list[list[Fraction]]


def _times_root(polynomial: list[Fraction], root: Fraction) -> list[Fraction]:
    """Coefficients, lowest first, of the polynomial times (x - root)."""
    zero = [Fraction(0)]
    return [high - root * low for high, low in zip(zero + polynomial, polynomial + zero, strict=True)]


def transforms(tile: int, kernel: int = 3) -> tuple[Matrix, Matrix, Matrix]:
    """A (of results), B (of pixels) and G (of weights).

    Results of one dimension are A' ((G w) * (B' d)), with the pixels d and the weights w of one tile; of two, each
    matrix is applied to rows and columns. Shapes: (pixels, tile), (pixels, pixels), (pixels, kernel), where
    pixels = tile + kernel - 1.
    """
    count = tile + kernel - 2
    if not 2 <= tile <= 8 or count > len(MORE_POINTS):
        raise ValueError(f"tiles of {tile} results with kernels of {kernel}: points are known for tiles of 2 to 8")
    points = [Fraction(p) for p in (POINTS if count <= len(POINTS) else MORE_POINTS)[:count]]
    at_infinity = [Fraction(int(row == count)) for row in range(count + 1)]
    scales = []
    columns = []
    for i, point in enumerate(points):
        scale, polynomial = Fraction(1), [Fraction(1)]
        for k, other in enumerate(points):
            if k != i:
                scale *= point - other
                polynomial = _times_root(polynomial, other)
        # the sign of a product may stand with the pixels or with the weights; the first one's scale is positive
        sign = -1 if i == 0 and scale < 0 else 1
        scales.append(sign * scale)
        columns.append([sign * c for c in [*polynomial, Fraction(0)]])
    whole = [Fraction(1)]
    for point in points:
        whole = _times_root(whole, point)
    columns.append(whole)
    powers = [[point**j for j in range(max(tile, kernel))] for point in points]
    a = [row[:tile] for row in powers] + [at_infinity[-tile:]]
    g = [[power / scale for power in row[:kernel]] for row, scale in zip(powers, scales, strict=True)]
    g.append(at_infinity[-kernel:])
    b = [[column[row] for column in columns] for row in range(count + 1)]
    return a, b, g


def _constant(matrix: Matrix, name: str) -> Any:
    """The matrix as a stage without inputs, which a rule computes inline."""
    rows, columns = len(matrix), len(matrix[0])

    def element(i: Any, j: Any) -> Any:
        value = te.const(0.0, "float32")
        for row in range(rows):
            for column in range(columns):
                here = te.all(i % rows == row, j % columns == column)
                value = _core.Select(here, te.const(float(matrix[row][column]), "float32"), value)
        return value

    return te.compute((rows, columns), element, name=name, attrs={"const_matrix": True, "schedule_rule": "None"})


def conv2d_winograd_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    tile_size: int = 4,
    write_cache_level: int = 2,
) -> tuple[te.Tensor, ...]:
    """Images with channels last, and weights that are transformed already: `kernel_size` is tile_size + 2.

    Shapes: data [N, H, W, CI], weight [kernel_size, kernel_size, CO, CI]. `write_cache_level`: at which level of the
    tiling of the products their sums are cached, 2 for a CPU, 3 for a GPU.
    """
    _require(kernel_size, stride, dilation, tile_size)
    data = te.placeholder((N, H, W, CI), name="data")
    weight = te.placeholder((kernel_size, kernel_size, CO, CI), name="weight")
    m, alpha = tile_size, kernel_size
    (rows, down, extra_down), (columns, across, extra_across) = (_tiles(size, padding, m) for size in (H, W))
    source = padded(
        data,
        (0, padding, padding, 0),
        "data_pad",
        (0, padding + extra_down, padding + extra_across, 0),
        attrs={"schedule_rule": "None"},
    )
    per_image = down * across
    count = N * per_image
    a, b, _ = transforms(m)
    input_tile = te.compute(
        (alpha, alpha, count, CI),
        lambda eps, nu, p, ci: source[p // per_image, p // across % down * m + eps, p % across * m + nu, ci],
        name="input_tile",
        attrs={"schedule_rule": "None"},
    )
    of_pixels = _constant(b, "B")
    r_a, r_b = (te.reduce_axis((0, alpha), name) for name in ("r_a", "r_b"))
    data_pack = te.compute(
        (alpha, alpha, count, CI),
        lambda eps, nu, p, ci: te.sum(
            input_tile[r_a, r_b, p, ci] * of_pixels[r_a, eps] * of_pixels[r_b, nu], axis=[r_a, r_b]
        ),
        name="data_pack",
        attrs={
            "auto_scheduler_simplify_const_tensor_indices": ["eps", "nu", "r_a", "r_b"],
            "schedule_rule": "conv2d_nhwc_winograd_data_pack",
        },
    )
    ci = te.reduce_axis((0, CI), name="ci")
    bgemm = te.compute(
        (alpha, alpha, count, CO),
        lambda eps, nu, p, co: te.sum(data_pack[eps, nu, p, ci] * weight[eps, nu, co, ci], axis=[ci]),
        name="bgemm",
        attrs={"layout_free_placeholders": [weight], "meta_schedule.write_cache_level": [write_cache_level]},
    )
    of_results = _constant(a, "A")
    r_a, r_b = (te.reduce_axis((0, alpha), name) for name in ("r_a", "r_b"))
    inverse = te.compute(
        (m, m, count, CO),
        lambda vh, vw, p, co: te.sum(
            bgemm[r_a, r_b, p, co] * of_results[r_a, vh] * of_results[r_b, vw], axis=[r_a, r_b]
        ),
        name="inverse",
        attrs={
            "auto_scheduler_simplify_const_tensor_indices": ["vh", "vw", "r_a", "r_b"],
            "schedule_rule": "conv2d_nhwc_winograd_inverse",
        },
    )
    output = te.compute(
        (N, rows, columns, CO),
        lambda n, h, w, co: inverse[h % m, w % m, n * per_image + h // m * across + w // m, co],
        name="conv2d_winograd",
    )
    return data, weight, output


def conv2d_winograd_nchw(
    N: int,
    CI: int,
    H: int,
    W: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    tile_size: int = 4,
    write_cache_level: int = 2,
) -> tuple[te.Tensor, ...]:
    """Images with channels first: data [N, CI, H, W], transformed weights [kernel_size, kernel_size, CI, CO]."""
    _require(kernel_size, stride, dilation, tile_size)
    data = te.placeholder((N, CI, H, W), name="data")
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight")
    m, alpha = tile_size, kernel_size
    (rows, down, extra_down), (columns, across, extra_across) = (_tiles(size, padding, m) for size in (H, W))
    source = padded(data, (0, 0, padding, padding), "data_pad", (0, 0, padding + extra_down, padding + extra_across))
    per_image = down * across
    count = N * per_image
    a, b, _ = transforms(m)
    input_tile = te.compute(
        (CI, count, alpha, alpha),
        lambda ci, p, eps, nu: source[p // per_image, ci, p // across % down * m + eps, p % across * m + nu],
        name="input_tile",
        attrs={"schedule_rule": "None"},
    )
    of_pixels = _constant(b, "B")
    r_a, r_b = (te.reduce_axis((0, alpha), name) for name in ("r_a", "r_b"))
    data_pack = te.compute(
        (alpha, alpha, CI, count),
        lambda eps, nu, ci, p: te.sum(
            input_tile[ci, p, r_a, r_b] * of_pixels[r_a, eps] * of_pixels[r_b, nu], axis=[r_a, r_b]
        ),
        name="data_pack",
        attrs={"schedule_rule": "conv2d_nchw_winograd_data_pack"},
    )
    ci = te.reduce_axis((0, CI), name="ci")
    bgemm = te.compute(
        (alpha, alpha, CO, count),
        lambda eps, nu, co, p: te.sum(data_pack[eps, nu, ci, p] * weight[eps, nu, ci, co], axis=[ci]),
        name="bgemm",
        attrs={"layout_free_placeholders": [weight], "meta_schedule.write_cache_level": [write_cache_level]},
    )
    of_results = _constant(a, "A")
    r_a, r_b = (te.reduce_axis((0, alpha), name) for name in ("r_a", "r_b"))
    inverse = te.compute(
        (CO, count, m, m),
        lambda co, p, vh, vw: te.sum(
            bgemm[r_a, r_b, co, p] * of_results[r_a, vh] * of_results[r_b, vw], axis=[r_a, r_b]
        ),
        name="inverse",
        attrs={"schedule_rule": "conv2d_nchw_winograd_inverse"},
    )
    output = te.compute(
        (N, CO, rows, columns),
        lambda n, co, h, w: inverse[co, n * per_image + h // m * across + w // m, h % m, w % m],
        name="conv2d_winograd",
    )
    return data, weight, output


def _require(kernel_size: int, stride: int, dilation: int, tile_size: int) -> None:
    if stride != 1 or dilation != 1 or kernel_size != tile_size + 2:
        raise ValueError(
            f"Winograd's method here is for kernels of 3x3 without stride and dilation, transformed to {tile_size + 2} "
            f"x {tile_size + 2}, not stride {stride}, dilation {dilation}, weights of {kernel_size} x {kernel_size}"
        )


def _tiles(size: int, padding: int, tile: int) -> tuple[int, int, int]:
    """Results of a dimension, tiles that hold them, and what has to be added behind for the last tile to be whole."""
    results = size + 2 * padding - 2
    tiles = -(-results // tile)
    return results, tiles, tiles * tile - results
