"""Formats of sparse tensors as rules: where each nonzero goes, along which axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.sparse.structure import offsets_of
from tilewright.support import limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True)
class FormatAxis:
    """One axis of a format. The index map says for each nonzero the key along it, and perhaps a coordinate.

    Attributes:
        name: of the axis.
        kind: ``"dense"``: as many positions below each of the parent's as `extent`, the key is one of them.
            ``"varied"``: as many as the largest key below the parent's position needs. ``"compressed"``: one for each
            key that occurs, in ascending order.
        extent: of a dense axis.
        parent: the name of the axis below whose positions this one stands; None: the axis before it.
    """

    name: str
    kind: Literal["dense", "varied", "compressed"]
    extent: int = 0
    parent: str | None = None


def dense(name: str, extent: int, parent: str | None = None) -> FormatAxis:
    """Return an axis of `extent` positions below each of the parent's."""
    return FormatAxis(name, "dense", limits.whole("extent", extent, 0), parent)


def varied(name: str) -> FormatAxis:
    """Return an axis with as many positions as keys need: 0 to the largest one."""
    return FormatAxis(name, "varied")


def compressed(name: str) -> FormatAxis:
    """Return an axis with a position for each key that occurs."""
    return FormatAxis(name, "compressed")


class Rows:
    """What the key of a rank may be made of: for each fiber of the last dimension (row of a matrix) its number, and how
    many nonzeros it has."""

    def __init__(self, row: Array, length: Array) -> None:
        self.row, self.length = row, length


class Nonzeros:
    """What index maps and conditions are made of, for each nonzero of a sorted tensor, in row-major order.

    Attributes:
        shape: of the tensor.
        coordinates: along each dimension.
        position: of the nonzero among those of the tensor, from 0.
        row: the number of its fiber: all coordinates but the last, in row-major order.
        column: its last coordinate.
        place: which one in its row it is, from 0.
        length: how many nonzeros its row has.
        longest: the largest length, at least 1.
    """

    def __init__(self, shape: Sequence[int], coordinates: Sequence[Array], position: Array, rows: int) -> None:
        self.shape, self.coordinates, self.position = tuple(shape), tuple(coordinates), position
        self._rows = rows
        self.row = coordinates[0]
        for extent, along in zip(shape[1:-1], coordinates[1:-1], strict=True):
            self.row = self.row * extent + along
        self.column = coordinates[-1]
        self._lengths = np.bincount(self.row, minlength=rows)
        begins = np.cumsum(self._lengths) - self._lengths
        self.place = np.arange(len(self.row)) - begins[self.row]
        self.length = self._lengths[self.row]
        self.longest = max(1, int(self._lengths.max(initial=0)))

    def rank(self, key: Callable[[Rows], Any], window: int | None = None) -> Array:
        """Return the stable rank of each nonzero's row by a key, among all rows, or within windows of so many rows.

        The first rank of a window is the number of its first row.
        """
        return self._ranks(key, window)[self.row]

    def _ranks(self, key: Callable[[Rows], Any], window: int | None) -> Array:
        rows = np.arange(self._rows)
        keys = np.asarray(key(Rows(rows, self._lengths)), "int64")
        order = _sorted(keys - keys.min(initial=0))
        if window is not None:
            order = order[_sorted((order // window).astype("int64"))]
        ranks = np.empty_like(rows)
        ranks[order] = rows
        return ranks

    def strip_rank(self, height: int) -> Array:
        """Return the rank of each nonzero's column among the distinct columns of its strip of `height` rows."""
        strip = self.row // height
        order = _sorted(self.column.astype("int64"))
        order = order[_sorted(strip[order].astype("int64"))]
        ranks = distinct_ranks(strip[order], self.column[order])
        strips = strip[order]
        begins = np.zeros(self._rows // height + 2, "int64")
        firsts = np.flatnonzero(np.diff(strips, prepend=-1))
        begins[strips[firsts]] = ranks[firsts]
        result = np.empty_like(ranks)
        result[order] = ranks - begins[strips]
        return result

    def among(self, condition: Any) -> Nonzeros:
        """Return those that fulfill a condition; places and lengths count these alone."""
        kept = np.broadcast_to(condition, self.row.shape)
        return Nonzeros(self.shape, [along[kept] for along in self.coordinates], self.position[kept], self._rows)


def _sorted(keys: Array) -> Array:
    """Positions in the order of keys that are not negative, stably."""
    return offsets_of(np.ascontiguousarray(keys, "int64"), int(keys.max(initial=-1)) + 1)[1]


def distinct_ranks(*keys: Array) -> Array:
    """Return the rank of each element among the distinct ones of a sorted sequence of tuples."""
    is_new = np.zeros(len(keys[0]), bool)
    for key in keys:
        is_new[1:] |= key[1:] != key[:-1]
    return np.cumsum(is_new)


@dataclass(frozen=True)
class FormatRewriteRule:
    """How nonzeros are stored: SparseTIR's rule (arXiv 2207.04606, section 3.2), with an index map that may also use a
    row's length, the place in the row, ranks of rows, and ranks of columns in a strip.

    Attributes:
        name: of the format.
        axes: outermost first.
        index_map: from :class:`Nonzeros` to one key for each axis; a pair of key and coordinate where the axis stores
            coordinates. A compressed axis stores its keys by itself. The map must be a bijection on the nonzeros that
            the rule takes: no two of them get the same position.
        conditions: which nonzeros the rule takes: one after another, each of what is left; places and lengths are
            counted again.
        disjoint_rows: the name of a group. No two rules of one group take nonzeros of the same row of a matrix:
            programs rely on it, and conversions check it. "" for none.
    """

    name: str
    axes: tuple[FormatAxis, ...]
    index_map: Callable[[Nonzeros], Sequence[Any]]
    conditions: tuple[Callable[[Nonzeros], Any], ...] = ()
    disjoint_rows: str = ""

    def when(self, *conditions: Callable[[Nonzeros], Any]) -> FormatRewriteRule:
        """Return the rule for fewer nonzeros, in no group of `disjoint_rows`: several such rules may share rows."""
        return replace(self, conditions=(*self.conditions, *conditions), disjoint_rows="")

    def entries(self, nonzeros: Any) -> Sequence[Any]:
        """Return what the index map gives: for each axis a key, or a pair of key and coordinate.

        Raises:
            tilewright.ArgumentError: It gives another number of entries ("sparse/index-map").
        """
        given = self.index_map(nonzeros)
        if not isinstance(given, tuple | list):
            message = f"the index map of {self.name!r} gives {type(given).__name__}"
            raise ArgumentTypeError.of("sparse/index-map", message, "it gives a tuple, with one key for each axis")
        if len(given) != len(self.axes):
            message = f"the index map of {self.name!r} gives {len(given)} keys for {len(self.axes)} axes"
            raise ArgumentError.of("sparse/index-map", message, "it gives one for each axis")
        return given

    def taken(self, nonzeros: Nonzeros) -> Nonzeros:
        """Return the nonzeros that the rule takes."""
        for condition in self.conditions:
            nonzeros = nonzeros.among(condition(nonzeros))
        return nonzeros
