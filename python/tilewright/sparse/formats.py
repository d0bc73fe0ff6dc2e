"""The available formats. Each one is a list of rules for tensors of a given shape.

All functions take the shape first: `m` rows and `n` columns. Arguments that are not integers or are out of range raise
:class:`tilewright.ArgumentError` ("arguments/number").
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.sparse.format_rule import FormatRewriteRule, Nonzeros, compressed, dense, picklable, varied
from tilewright.support import limits

_Given = ParamSpec("_Given")
#: rules that divide the nonzeros among them
Rules = list[FormatRewriteRule]
#: a bucket of :func:`hyb` is at most 2 to this wide
WIDEST = 62


def _check(least: int, **numbers: Any) -> None:
    """Raise an error for a number that is no integer, or smaller than `least`."""
    for name, number in numbers.items():
        limits.whole(name, number, least)


def _of_matrix(make: Callable[_Given, Rules]) -> Callable[_Given, Rules]:
    """Decorate a format of matrices: rows and columns are checked, and its rules can be pickled."""

    @functools.wraps(make)
    def checked(*given: _Given.args, **named: _Given.kwargs) -> Rules:
        sizes = dict(zip("mn", given, strict=False)) | named
        _check(0, **{name: sizes[name] for name in "mn" if name in sizes})
        return make(*given, **named)

    return picklable(checked)


@_of_matrix
def csr(m: int, n: int) -> Rules:
    """Return compressed sparse rows."""
    return [
        FormatRewriteRule("csr", (dense("I", m), varied("J")), lambda z: (z.row, (z.place, z.column)), shape=(m, n))
    ]


@_of_matrix
def csc(m: int, n: int) -> Rules:
    """Return compressed sparse columns."""
    axes = (dense("J", n), compressed("I"))
    return [FormatRewriteRule("csc", axes, lambda z: (z.column, (z.row * z.longest + z.place, z.row)), shape=(m, n))]


@_of_matrix
def dcsr(m: int, n: int) -> Rules:
    """Return compressed sparse rows of those that are not empty."""
    return [
        FormatRewriteRule("dcsr", (compressed("I"), varied("J")), lambda z: (z.row, (z.place, z.column)), shape=(m, n))
    ]


@_of_matrix
def coo(m: int, n: int) -> Rules:
    """Return row and column of each nonzero."""
    axes = (compressed("I"), dense("J", 1))
    return [FormatRewriteRule("coo", axes, lambda z: ((z.position, z.row), (0, z.column)), shape=(m, n))]


@picklable
def csf(*shape: int) -> Rules:
    """Return compressed sparse fibers of a tensor of any number of dimensions (Smith and Karypis, IA3 2015)."""
    if not shape or isinstance(shape[0], tuple | list):
        message, hint = f"csf of {shape}", "give an extent for each dimension: csf(relations, rows, columns)"
        raise ArgumentTypeError.of("arguments/number", message, hint)
    _check(0, **{f"shape[{d}]": extent for d, extent in enumerate(shape)})
    axes = tuple(compressed(f"I{d}") for d in range(len(shape)))
    return [FormatRewriteRule("csf", axes, lambda z: z.coordinates, shape=shape)]


@_of_matrix
def bsr(m: int, n: int, height: int, width: int | None = None) -> Rules:
    """Return rows of dense blocks: of `height` rows and `width` columns, which is `height` unless given."""
    if isinstance(height, tuple | list):
        message, hint = f"height is {height!r}", "give height and width: bsr(m, n, height, width)"
        raise ArgumentTypeError.of("arguments/number", message, hint)
    width = height if width is None else width
    _check(1, height=height, width=width)
    axes = (dense("IO", math.ceil(m / height)), compressed("JO"), dense("II", height), dense("JI", width))
    blocks = lambda z: (z.row // height, z.column // width, z.row % height, z.column % width)  # noqa: E731
    return [FormatRewriteRule("bsr", axes, blocks, shape=(m, n))]


@picklable
def dbsr(m: int, n: int, height: int, width: int | None = None) -> Rules:
    """Return rows of dense blocks, without empty rows of blocks."""
    (rule,) = bsr(m, n, height, width)
    return [FormatRewriteRule("dbsr", (compressed("IO"), *rule.axes[1:]), rule.index_map, shape=(m, n))]


@_of_matrix
def ell(m: int, n: int, width: int) -> Rules:
    """Return rows of `width` nonzeros."""
    _check(0, width=width)
    return [
        FormatRewriteRule(
            "ell", (dense("I", m), dense("J", width)), lambda z: (z.row, (z.place, z.column)), shape=(m, n)
        )
    ]


@_of_matrix
def padded_csr(m: int, n: int, size: int) -> Rules:
    """Return rows of chunks of `size` nonzeros."""
    _check(1, size=size)
    chunks = lambda z: (z.row, z.place // size, (z.place % size, z.column))  # noqa: E731
    return [FormatRewriteRule("padded_csr", (dense("I", m), varied("JO"), dense("JI", size)), chunks, shape=(m, n))]


@_of_matrix
def hyb(m: int, n: int, parts: int, widest: int, cut: bool = True) -> Rules:
    """Return ELL in buckets (SparseTIR, section 4.1): columns in `parts` equal parts, rows by their length there,
    rounded up to a power of two. Rows longer than 2 ** `widest` are cut into several rows of the last bucket, or else
    stored behind the buckets as they are: then no row of a part occurs twice."""
    _check(1, parts=parts)
    limits.whole("widest", widest, 0, most=WIDEST)
    size = max(1, math.ceil(n / parts))
    return [rule for part in range(parts) for rule in _buckets((m, n), part, size, widest, bool(cut))]


def _buckets(shape: tuple[int, int], part: int, size: int, widest: int, cut: bool) -> Rules:
    """Return the rules of one part of :func:`hyb`."""
    whole = lambda z: (z.coordinates[-2], (z.place, z.column))  # noqa: E731
    rules: list[tuple[str, tuple[Any, ...], Callable[[Nonzeros], Any], int, int | None]] = []
    for bucket in range(widest + (not cut)):
        axes = (compressed("I"), dense("J", 1 << bucket))
        rules.append((f"{bucket}", axes, whole, (1 << bucket) // 2 if bucket else 0, 1 << bucket))
    width = 1 << widest
    if cut:
        chunks = lambda z: ((z.row * z.longest + z.place // width, z.coordinates[-2]), (z.place % width, z.column))  # noqa: E731
        rules.append((f"{widest}", (compressed("I"), dense("J", width)), chunks, width // 2 if widest else 0, None))
    else:
        rules.append(("rest", (compressed("I"), varied("J")), whole, width, None))
    is_here = lambda z: z.column // size == part  # noqa: E731
    return [
        FormatRewriteRule(
            f"hyb_{part}_{name}",
            axes,
            index_map,
            (is_here, _lengths(least, most)),
            disjoint_rows=f"hyb_{part}",
            shape=shape,
        )
        for name, axes, index_map, least, most in rules
    ]


def _lengths(least: int, most: int | None) -> Callable[[Nonzeros], Any]:
    """Return the condition that a row has more than `least` nonzeros, and `most` at most."""
    return lambda z: (z.length > least) & (z.length <= most) if most is not None else z.length > least


@_of_matrix
def sell(m: int, n: int, rows: int = 16, window: int | None = None) -> Rules:
    """Return SELL-C-sigma (Kreutzer et al., SISC 2014): slices of `rows` rows, sorted by descending length within
    windows of so many rows; a slice is stored column after column."""
    _check(1, rows=rows, **({} if window is None else {"window": window}))
    axes = (dense("S", math.ceil(m / rows)), varied("P"), dense("L", rows))

    def slices(z: Nonzeros) -> Any:
        rank = z.rank(lambda r: -r.length, window)
        return rank // rows, z.place, (rank % rows, z.column)

    return [FormatRewriteRule("sell", axes, slices, shape=(m, n))]


@_of_matrix
def ragged(m: int, n: int) -> Rules:
    """Return rows up to their last nonzero, dense."""
    return [FormatRewriteRule("ragged", (dense("I", m), varied("J")), lambda z: (z.row, z.column), shape=(m, n))]


@_of_matrix
def banded(m: int, n: int, below: int, above: int) -> Rules:
    """Return diagonals, from `below` ones under the main one to `above` over it: implicit, without coordinates."""
    _check(-limits.MOST, below=below, above=above)
    limits.whole("below + above", below + above, -1, "no diagonal would be left")
    axes = (dense("I", m), dense("D", below + above + 1))
    return [FormatRewriteRule("banded", axes, lambda z: (z.row, z.column - z.row + below), shape=(m, n))]


@_of_matrix
def strided(m: int, n: int, step: int) -> Rules:
    """Return the columns that are multiples of `step`: implicit."""
    _check(1, step=step)
    axes = (dense("I", m), dense("J", math.ceil(n / step)))
    return [
        FormatRewriteRule("strided", axes, lambda z: (z.row, z.column // step), shape=(m, n)).when(
            lambda z: z.column % step == 0
        )
    ]


@_of_matrix
def sr_bcrs(m: int, n: int, height: int, group: int) -> Rules:
    """Return strips of `height` rows, whose distinct columns are stored in groups (Chen et al., PPoPP 2021)."""
    _check(1, height=height, group=group)
    axes = (dense("IO", math.ceil(m / height)), varied("JO"), dense("II", height), dense("JI", group, parent="JO"))

    def groups(z: Nonzeros) -> Any:
        rank = z.strip_rank(height)
        return z.row // height, rank // group, z.row % height, (rank % group, z.column)

    return [FormatRewriteRule("sr_bcrs", axes, groups, shape=(m, n))]


@picklable
def relational(shape: Sequence[int], widest: int) -> Rules:
    """Return for each relation of a tensor (relations, rows, columns) rows in buckets, as :func:`hyb` does."""
    if not isinstance(shape, tuple | list) or len(shape) != 3:
        raise ArgumentError.of("sparse/shape", f"the shape is {shape!r:.80}", "it is (relations, rows, columns)")
    relations, m, n = shape
    _check(0, relations=relations, m=m, n=n)
    rules = []
    for rule in hyb(0, n, 1, widest):
        chunks = rule.index_map
        both = lambda z, chunks=chunks: (z.coordinates[0], *chunks(z))  # noqa: E731
        axes = (dense("R", relations), *rule.axes)
        name = rule.name.replace("hyb_0", "relational")
        rules.append(FormatRewriteRule(name, axes, both, rule.conditions, shape=(relations, m, n)))
    return rules
