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
    """Return the coefficients, lowest first, of the polynomial times (x - root)."""
    zero = [Fraction(0)]
    return [high - root * low for high, low in zip(zero + polynomial, polynomial + zero, strict=True)]


def transforms(tile: int, kernel: int = 3) -> tuple[Matrix, Matrix, Matrix]:
    """Return the transforms A (of results), B (of pixels) and G (of weights).

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
    """Return the matrix as a stage without inputs, which a rule computes inline."""
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
    """Return a Winograd convolution of images, channels last, with transformed weights: `kernel_size` is tile_size + 2.

    Shapes: data [N, H, W, CI], weight [kernel_size, kernel_size, CO, CI]. `write_cache_level`: at which level of the
    tiling of the products their sums are cached, 2 for a CPU, 3 for a GPU.
    """
    _require(kernel_size, stride, dilation, tile_size)
    return _winograd("nhwc", (N, H, W, CI, CO), tile_size, padding, write_cache_level)


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
    """Return a Winograd convolution of images, channels first: data [N, CI, H, W], transformed weights [kernel_size,
    kernel_size, CI, CO]."""
    _require(kernel_size, stride, dilation, tile_size)
    return _winograd("nchw", (N, H, W, CI, CO), tile_size, padding, write_cache_level)


class _Order:
    """The order of four dimensions in memory."""

    def __init__(self, *order: int) -> None:
        self._order = order

    def put(self, *values: Any) -> tuple[Any, ...]:
        """Return one value for each dimension in this order."""
        return tuple(values[dimension] for dimension in self._order)

    def compute(self, name: str, axes: dict[str, int], value: Any, attrs: dict[str, Any] | None = None) -> Any:
        """Return a tensor with these axes in this order; `value` takes their variables as they are given here."""

        def element(*indices: Any) -> Any:
            return value(*(indices[self._order.index(dimension)] for dimension in range(len(indices))))

        names, shape = self.put(*axes), self.put(*axes.values())
        return te.compute(shape, element, name=name, varargs_names=list(names), attrs=attrs or {})


def _winograd(
    layout: str, sizes: tuple[int, int, int, int, int], m: int, padding: int, write_cache_level: int
) -> tuple[te.Tensor, ...]:
    """Return the convolution of images in a layout; sizes: images, rows, columns, channels of inputs and results."""
    N, H, W, CI, CO = sizes
    is_last = layout == "nhwc"
    in_order = _Order(0, 1, 2, 3)
    image, tiles, pack = (in_order,) * 3 if is_last else (_Order(0, 3, 1, 2), _Order(3, 2, 0, 1), _Order(0, 1, 3, 2))
    alpha = m + 2
    data = te.placeholder(image.put(N, H, W, CI), name="data")
    weight = te.placeholder(pack.put(alpha, alpha, CO, CI), name="weight")
    (rows, down, extra_down), (columns, across, extra_across) = (_tiles(size, padding, m) for size in (H, W))
    before, after = (0, padding, padding, 0), (0, padding + extra_down, padding + extra_across, 0)
    unscheduled = {"schedule_rule": "None"}
    source = padded(data, image.put(*before), "data_pad", image.put(*after), attrs=unscheduled if is_last else None)
    per_image = down * across
    count = N * per_image
    a, b, _ = transforms(m)

    def transformed(stage: str, axes: dict[str, int], order: _Order, of: Any, matrix: Any) -> Any:
        """Multiply both dimensions of each tile by a matrix."""
        first, second, *_ = axes
        r_a, r_b = (te.reduce_axis((0, alpha), name) for name in ("r_a", "r_b"))
        indices = {"auto_scheduler_simplify_const_tensor_indices": [first, second, "r_a", "r_b"]} if is_last else {}
        return order.compute(
            stage,
            axes,
            lambda x, y, p, c: te.sum(of(r_a, r_b, p, c) * matrix[r_a, x] * matrix[r_b, y], axis=[r_a, r_b]),
            {**indices, "schedule_rule": f"conv2d_{layout}_winograd_{stage}"},
        )

    input_tile = tiles.compute(
        "input_tile",
        {"eps": alpha, "nu": alpha, "p": count, "ci": CI},
        lambda eps, nu, p, ci: source[image.put(p // per_image, p // across % down * m + eps, p % across * m + nu, ci)],
        unscheduled,
    )
    data_pack = transformed(
        "data_pack",
        {"eps": alpha, "nu": alpha, "p": count, "ci": CI},
        pack,
        lambda *at: input_tile[tiles.put(*at)],
        _constant(b, "B"),
    )
    ci = te.reduce_axis((0, CI), name="ci")
    bgemm = pack.compute(
        "bgemm",
        {"eps": alpha, "nu": alpha, "p": count, "co": CO},
        lambda eps, nu, p, co: te.sum(
            data_pack[pack.put(eps, nu, p, ci)] * weight[pack.put(eps, nu, co, ci)], axis=[ci]
        ),
        {"layout_free_placeholders": [weight], "meta_schedule.write_cache_level": [write_cache_level]},
    )
    inverse = transformed(
        "inverse",
        {"vh": m, "vw": m, "p": count, "co": CO},
        tiles,
        lambda *at: bgemm[pack.put(*at)],
        _constant(a, "A"),
    )
    output = image.compute(
        "conv2d_winograd",
        {"n": N, "h": rows, "w": columns, "co": CO},
        lambda n, h, w, co: inverse[tiles.put(h % m, w % m, n * per_image + h // m * across + w // m, co)],
    )
    return data, weight, output


def _require(kernel_size: int, stride: int, dilation: int, tile_size: int) -> None:
    if stride != 1 or dilation != 1 or kernel_size != tile_size + 2:
        raise ValueError(
            f"Winograd's method here is for kernels of 3x3 without stride and dilation, transformed to {tile_size + 2} "
            f"x {tile_size + 2}, not stride {stride}, dilation {dilation}, weights of {kernel_size} x {kernel_size}"
        )


def _tiles(size: int, padding: int, tile: int) -> tuple[int, int, int]:
    """Return the number of results of a dimension, of the tiles that cover them, and the padding that completes the
    last tile."""
    results = size + 2 * padding - 2
    tiles = -(-results // tile)
    return results, tiles, tiles * tile - results
