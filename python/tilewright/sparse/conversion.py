"""Conversions that follow from rules: the structure once, values whenever they change, and back."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.sparse.array_kernels import gather_kernel, repeated
from tilewright.sparse.array_memory import kept_array_memory
from tilewright.sparse.by_nonzeros import (
    MANY_NONZEROS,
    AllNonzeros,
    ByNonzeros,
    NotByNonzeros,
    Positions,
    Scattered,
)
from tilewright.sparse.fill import ByRows, LastNonzeros, NotByRows, by_rows_of, count, fill
from tilewright.sparse.format_rule import (
    FormatAxis,
    FormatRewriteRule,
    Nonzeros,
    checked_rules,
    checked_shape,
    shape_of,
)
from tilewright.sparse.row_copies import RowCopies, row_copies
from tilewright.sparse.structure import largest, name_of, read_only
from tilewright.sparse.taken_rows import TakenNonzeros, TakenRows, rows_of_rules

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


#: stored elements for each nonzero beyond which nonzeros are stored at their positions, rather than gathered
LEAST_PADDING = 1.25
#: rows for each nonzero beyond which rows are not visited one by one
MOST_ROWS_OF_NONZERO = 64


#: elements that no memory holds, and that int64 still counts
MOST_ELEMENTS = 1 << 56


@dataclass(frozen=True, eq=False)
class StoredAxis:
    """An axis of a converted structure.

    Attributes:
        axis: the axis in the rule.
        count: positions below all of the parent's.
        indptr: position p of the parent has those from indptr[p] to before indptr[p + 1]; None for a dense axis.
        indices: the coordinate of each position, 0 for padding; None where the axis stores none.
    """

    axis: FormatAxis
    count: int
    indptr: Array | None
    indices: Array | None


@dataclass(frozen=True, eq=False)
class StoredPart:
    """The stored form of the nonzeros that a rule takes.

    Attributes:
        rule: the rule.
        axes: axes by name, outermost first.
        size: number of stored elements.
        coordinates: coordinates of all nonzeros, along each dimension of the tensor.
    """

    rule: FormatRewriteRule
    axes: Mapping[str, StoredAxis]
    size: int
    coordinates: tuple[Array, ...]
    #: how elements are stored; or which nonzero each is
    _copies: RowCopies | Scattered | Array = field(repr=False)

    @functools.cached_property
    def source(self) -> Array:
        """Return for each stored element the position of its nonzero, or -1 for padding. Conversions
        of values seldom need it: then it is computed on first use."""
        if isinstance(self._copies, np.ndarray):
            return self._copies
        with kept_array_memory():
            return read_only(self._copies.numbers())

    def stored(self, values: Array) -> Array:
        """Return the elements for values of all nonzeros, 0 for padding."""
        if isinstance(self._copies, np.ndarray):
            return _gathered(values, self.source, np.empty(self.size, values.dtype))
        return self._copies.elements(values)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled and copied: without kernels."""
        return {**self.__dict__, "_copies": self.source}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def keys(self, elements: Array) -> dict[str, Array]:
        """Return where stored elements are along each axis: which position below one of the axis around it.

        Args:
            elements: positions in `source`.
        """
        found = {}
        for axis in reversed(self.rule.axes):
            offsets = self.axes[axis.name].indptr
            if offsets is None:
                elements, found[axis.name] = np.divmod(elements, max(axis.extent, 1))
            else:
                above = np.searchsorted(offsets, elements, side="right") - 1
                found[axis.name], elements = elements - offsets[above], above
        return found

    @property
    def padding(self) -> float:
        """Return the share of stored elements that are no nonzeros."""
        return float(np.mean(self.source < 0)) if self.size else 0.0


@dataclass(frozen=True, eq=False)
class ConvertedStructure:
    """A structure in another format: one part for each rule.

    Attributes:
        parts: parts in the order of the rules.
        nnz: number of nonzeros of the original structure.
        shape: shape of the tensor.
        seconds: seconds of the conversion.
    """

    parts: tuple[StoredPart, ...]
    nnz: int
    shape: tuple[int, ...]
    seconds: float = field(default=0.0)

    def convert_values(self, values: Array) -> list[Array]:
        """Return the stored elements of each part: a gather, 0 for padding.

        Args:
            values: values of the nonzeros in row-major order, (nnz,).
        """
        values = self._checked(values, self.nnz)
        with kept_array_memory():
            return [part.stored(values) for part in self.parts]

    def values_back(self, stored: Sequence[Array]) -> Array:
        """Return the values of the nonzeros in row-major order: the inverse of :meth:`convert_values`."""
        if len(stored) != len(self.parts):
            raise ArgumentError.of("sparse/values", f"{len(stored)} arrays", f"there are {len(self.parts)} parts")
        arrays = [self._checked(each, part.size) for part, each in zip(self.parts, stored, strict=True)]
        result = np.zeros(self.nnz, np.result_type(*arrays) if arrays else "float32")
        for part, values in zip(self.parts, arrays, strict=True):
            kept = part.source >= 0
            result[part.source[kept]] = values[kept]
        return result

    @staticmethod
    def _checked(values: Any, count: int) -> Array:
        array = _array("values", values)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ArgumentTypeError.of("sparse/values", f"values of {array.dtype}", "give numbers of at most 64 bits")
        if array.shape != (count,):
            raise ArgumentError.of("sparse/values", f"values of shape {array.shape}", f"there are {count}")
        return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _array(name: str, given: Any) -> Array:
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"{name} is a value of type {type(given).__name__}"
        raise ArgumentTypeError.of("sparse/arrays", message, "it is an array of one dimension") from error


def _integers(coordinates: Sequence[Any]) -> list[Array]:
    """Convert coordinates to arrays of one type, int32 or int64."""
    arrays = []
    for d, given in enumerate(coordinates):
        array = _array(f"coordinates[{d}]", given)
        if array.ndim != 1:
            message = f"coordinates[{d}] has {array.ndim} dimensions"
            raise ArgumentTypeError.of("sparse/arrays", message, "there is one array for each dimension of the tensor")
        if array.size and (array.dtype.kind not in "iu" or array.dtype == np.dtype("uint64")):
            message = f"coordinates[{d}] is of {array.dtype}"
            raise ArgumentTypeError.of("sparse/index-type", message, "coordinates are int32 or int64")
        arrays.append(array if array.dtype == np.dtype("int32") else array.astype("int64", copy=False))
    common = np.result_type(*arrays) if arrays else np.dtype("int64")
    return [np.ascontiguousarray(array.astype(common, copy=False)) for array in arrays]


@kept_array_memory()
def gathered(values: Array, source: Array, out: Array | None = None) -> Array:
    """Return ``values[source]``, 0 where the source is -1, in an array that is given or in a new one."""
    return _gathered(values, source, np.empty(len(source), values.dtype) if out is None else out)


def _gathered(values: Array, source: Array, out: Array) -> Array:
    gather_kernel(name_of(values.dtype), name_of(source.dtype))(values, source, out)
    return out


def convert_structure(
    rules: Sequence[FormatRewriteRule],
    shape: Sequence[int],
    coordinates: Sequence[Array],
    indptr: Array | None = None,
) -> ConvertedStructure:
    """Convert a structure: rules divide its nonzeros among them.

    Args:
        rules: rules of one format, or of several that are composed.
        shape: shape of the tensor.
        coordinates: coordinates of the nonzeros, along each dimension, in row-major order.
        indptr: offsets of a matrix, if known: row i has the nonzeros from indptr[i] to before indptr[i + 1].

    Raises:
        tilewright.ArgumentError: Coordinates are out of range, not in row-major order, or contradict `indptr`; a
            nonzero is dropped, taken by several rules, does not fit an axis, or shares its position with another one;
            two nonzeros have the same coordinates, or share a position of an axis that stores different ones.
    """
    start = time.perf_counter()
    rules, shape = checked_rules(rules), checked_shape(shape)
    if (own := shape_of(rules)) is not None and own != shape:
        message = f"rule {rules[0].name!r} is for the shape {own}, and the structure has the shape {shape}"
        raise ArgumentError.of("sparse/shape", message, "make the format for the shape of the tensor")
    coordinates = _integers(coordinates)
    _check_coordinates(shape, coordinates)
    if indptr is not None:
        indptr = _checked_offsets(shape, coordinates, indptr)
    return convert_validated(rules, shape, coordinates, indptr, start)


@kept_array_memory()
def convert_validated(
    rules: Sequence[FormatRewriteRule],
    shape: Sequence[int],
    coordinates: Sequence[Array],
    indptr: Array | None,
    start: float,
) -> ConvertedStructure:
    """Convert a structure whose coordinates and offsets have been validated (:func:`convert_structure`).

    Args:
        rules: rules of one format, or of several that are composed.
        shape: shape of the tensor.
        coordinates: coordinates of the nonzeros. Rules that are filled by rows (:mod:`tilewright.sparse.fill`) read
            only the columns if `indptr` is given.
        indptr: offsets of a matrix, or None.
        start: time at which the conversion began, for its seconds.
    """
    count = len(coordinates[0])
    if (parts := _of_whole_rows(rules, shape, coordinates, indptr)) is not None:
        return ConvertedStructure(tuple(parts), count, tuple(shape), time.perf_counter() - start)
    rows = int(np.prod(shape[:-1], dtype="int64"))
    wide = [np.asarray(along, "int64") for along in coordinates]
    nonzeros = Nonzeros(shape, wide, np.arange(count), rows)
    times = np.zeros(count, "int64")
    parts, owners = [], _RowOwners(rules)
    known: dict[tuple[Any, ...], Nonzeros] = {}
    for number, rule in enumerate(rules):
        taken = rule.taken(nonzeros, known)
        owners.add(number, taken)
        times[taken.position] += 1
        part = _taken_by_rows(rule, taken, coordinates)
        if part is None and len(taken.position) >= MANY_NONZEROS:
            part = _by_nonzeros(rule, taken, coordinates)
        parts.append(part or _stored(rule, taken, coordinates))
    for wrong, what in ((times == 0, "no rule takes"), (times > 1, "several rules take")):
        if wrong.any():
            at = int(np.argmax(wrong))
            where = ", ".join(str(along[at]) for along in coordinates)
            hint = "the conditions of rules divide all nonzeros among them"
            raise ArgumentError.of("sparse/partition", f"{what} nonzero {at} at ({where})", hint)
    return ConvertedStructure(tuple(parts), count, tuple(shape), time.perf_counter() - start)


class _RowOwners:
    """Which rule of a group of disjoint ones takes the nonzeros of each row of a matrix."""

    def __init__(self, rules: Sequence[FormatRewriteRule]) -> None:
        self._rules = rules
        #: by group: rows with nonzeros that rules take, ascending, and the number of the rule of each
        self._known: dict[str, tuple[Array, Array]] = {}

    def add(self, number: int, taken: Nonzeros) -> None:
        """Note the rows of a rule; refuse one that another rule of its group takes, too."""
        group = self._rules[number].disjoint_rows
        if not group or len(taken.shape) != 2:
            return
        rows = taken.row[taken.runs[0]]
        known, owners = self._known.get(group, (rows[:0], np.zeros(0, "int64")))
        at = np.searchsorted(known, rows)
        if (wrong := np.append(known, -1)[at] == rows).any():
            first = int(np.argmax(wrong))
            one, other = self._rules[int(owners[at[first]])].name, self._rules[number].name
            message = f"rules {one!r} and {other!r} of group {group!r} both take nonzeros of row {rows[first]}"
            raise ArgumentError.of(
                "sparse/disjoint", message, 'rules that share rows are in no group: disjoint_rows=""'
            )
        self._known[group] = np.insert(known, at, rows), np.insert(owners, at, number)


def _check_coordinates(shape: Sequence[int], coordinates: Sequence[Array]) -> None:
    if len(shape) != len(coordinates) or len({len(along) for along in coordinates}) != 1 or len(shape) < 2:
        message = f"{len(coordinates)} arrays of coordinates for a tensor of shape {tuple(shape)}"
        raise ArgumentError.of("sparse/arrays", message, "give arrays of one length, one for each dimension")
    if (rows := math.prod(shape[:-1])) > np.iinfo("int64").max:
        message = f"a tensor of shape {tuple(shape)} has {rows} rows"
        raise ArgumentError.of("sparse/shape", message, "rows are numbered in int64: make extents smaller")
    row, descent = coordinates[0], -1
    for d, (extent, along) in enumerate(zip(shape, coordinates, strict=True)):
        outside, unsorted, _ = _core.examine_values(along, 0, extent)
        if outside >= 0:
            message = f"coordinates[{d}][{outside}] is {along[outside]}, which is not in 0 to before {extent}"
            raise ArgumentError.of(
                "sparse/index", message, "coordinates must be below the extents in the shape of the tensor"
            )
        if d == 0:
            descent = unsorted
        elif d + 1 < len(shape):
            row = row.astype("int64") * extent + along
    if len(shape) > 2:
        _, descent, _ = _core.examine_values(row, 0, np.iinfo("int64").max)
    if descent >= 0:
        message = f"nonzero {descent} is in an earlier row than nonzero {descent - 1}"
        raise ArgumentError.of("sparse/sorted", message, "sort nonzeros by rows: matrix.tocsr().tocoo()")
    _check_duplicates(row, coordinates, shape[-1])


def _checked_offsets(shape: Sequence[int], coordinates: Sequence[Array], indptr: Any) -> Array:
    """Return offsets of rows in the type of the coordinates. They must say what the coordinates say."""
    array, rows = _array("indptr", indptr), coordinates[0]
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(shape) != 2:
        message = f"indptr is an array of {array.dtype} with {array.ndim} dimensions, for a tensor of {len(shape)}"
        raise ArgumentTypeError.of("sparse/arrays", message, "it holds the integer offsets of the rows of a matrix")
    hint = "indptr[i] is the number of nonzeros in the rows before row i; omit it, and it is made of the coordinates"
    if len(array) != shape[0] + 1:
        message = f"indptr has {len(array)} entries for {shape[0]} rows"
        raise ArgumentError.of("sparse/indptr", message, hint)
    counted = np.zeros(shape[0] + 1, rows.dtype)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=counted[1:])
    if (wrong := array != counted).any():
        at = int(np.argmax(wrong))
        message = f"indptr[{at}] is {array[at]}, and {counted[at]} coordinates are in the rows before row {at}"
        raise ArgumentError.of("sparse/indptr", message, hint)
    return counted


def _check_duplicates(row: Array, coordinates: Sequence[Array], extent: int) -> None:
    """Refuse duplicate coordinates; the rows are in ascending order."""
    columns = coordinates[-1]
    if not len(row):
        return
    changes = np.flatnonzero(row[1:] != row[:-1]) + 1
    segments = np.concatenate([[0], changes, [len(row)]]).astype(columns.dtype)
    _, descent, repeat = _core.examine_values(columns, 0, extent, segments)
    at = repeat if descent < 0 else _core.find_duplicate(columns, extent, segments)
    if at >= 0:
        where = ", ".join(str(along[at]) for along in coordinates)
        message = f"nonzero {at} at ({where}) has occurred before"
        raise ArgumentError.of("sparse/duplicate", message, "add duplicates up, as SciPy's sum_duplicates does")


def _of_whole_rows(
    rules: Sequence[FormatRewriteRule], shape: Sequence[int], coordinates: Sequence[Array], indptr: Array | None
) -> list[StoredPart] | None:
    """Return the parts of rules that take whole rows, all of a row or nothing; None if a part needs other passes."""
    if len(shape) != 2 and (len(rules) > 1 or rules[0].conditions):
        return None
    columns = np.ascontiguousarray(coordinates[-1])
    if indptr is None and _has_few_nonzeros(shape, len(columns)):
        return None
    if indptr is None and len(shape) == 2:
        indptr = np.zeros(shape[0] + 1, columns.dtype)
        np.cumsum(np.bincount(coordinates[0], minlength=shape[0]), out=indptr[1:])
    whole = AllNonzeros(shape, coordinates, indptr)
    taken = rows_of_rules(rules, whole)
    if taken is None:
        return None
    parts = []
    for rule, rows in zip(rules, taken, strict=True):
        part = _by_rows(rule, shape, coordinates, columns, rows) if indptr is not None else None
        if part is None and len(columns) >= MANY_NONZEROS:
            part = _by_nonzeros(rule, whole if rows.is_all else TakenNonzeros(whole, rows), coordinates)
        if part is None:
            return None
        parts.append(part)
    return parts


def _has_few_nonzeros(shape: Sequence[int], count: int) -> bool:
    """Return whether a matrix has so many more rows than nonzeros that offsets of all rows would be too large."""
    return len(shape) == 2 and shape[0] > MOST_ROWS_OF_NONZERO * (count + MANY_NONZEROS)


def _by_rows(
    rule: FormatRewriteRule, shape: Sequence[int], coordinates: Sequence[Array], columns: Array, taken: TakenRows
) -> StoredPart | None:
    """Return the part of a rule, built in one pass over the rows; None if the rule needs more."""
    try:
        return _filled(rule, by_rows_of(rule, shape), shape, columns, taken, coordinates)
    except NotByRows:
        return None


def _taken_by_rows(rule: FormatRewriteRule, taken: Nonzeros, coordinates: Sequence[Array]) -> StoredPart | None:
    """Fill the format of a rule in one pass over the rows; return None if the rule cannot be filled row by row."""
    if len(taken.shape) != 2 or _has_few_nonzeros(taken.shape, len(taken.column)):
        return None
    columns = taken.column.astype(coordinates[1].dtype)
    indptr = np.zeros(taken.shape[0] + 1, columns.dtype)
    np.cumsum(taken._lengths, out=indptr[1:])
    part = _by_rows(rule, taken.shape, coordinates, columns, TakenRows(indptr))
    if part is None or len(columns) == len(coordinates[0]):
        return part
    source = np.append(taken.position, -1).astype(part.source.dtype)[part.source]
    return replace(part, _copies=read_only(source))


def _filled(
    rule: FormatRewriteRule,
    by_rows: ByRows,
    shape: Sequence[int],
    columns: Array,
    taken: TakenRows,
    coordinates: Sequence[Array],
) -> StoredPart | None:
    """Return the part, made of columns, and the rows that the rule takes; None if several nonzeros have one position,
    which slower passes report."""
    indptr, dtype = taken.indptr, columns.dtype
    is_empty = by_rows.has_positions and taken.rows is not None and not len(taken.rows)
    if is_empty and dtype in by_rows.empty:
        return StoredPart(rule, by_rows.empty[dtype], 0, tuple(coordinates), read_only(np.zeros(0, dtype)))
    last = LastNonzeros(shape, columns, taken)
    ranks, order = _rows_in_order(by_rows, last, dtype)
    longest = last.longest if by_rows.uses_longest else 0
    bounds = count(by_rows, taken, columns, ranks, order, longest)
    if bounds is None and by_rows.is_cut:
        return None
    if bounds is None:
        axes = _axes_of_rows(rule, last, dtype)
    else:
        axes = {}
        for axis, (size, offsets) in zip(rule.axes, bounds, strict=True):
            _check_count(size, dtype)
            if axis.kind == "compressed":
                rows_of = np.arange(shape[0], dtype=dtype) if order is None else order
                if offsets is not None:
                    rows_of = repeated(rows_of, offsets)
                axes[axis.name] = StoredAxis(axis, size, read_only(np.array([0, size], dtype)), read_only(rows_of))
            else:
                axes[axis.name] = StoredAxis(axis, size, None if offsets is None else read_only(offsets), None)
    starts = [stored.indptr for stored in axes.values() if stored.axis.kind == "varied" and stored.indptr is not None]
    if by_rows.is_cut and bounds is not None and bounds[0][1] is not None:
        starts = [bounds[0][1]]
    sizes = tuple(axes[axis.name].count for axis in rule.axes)
    copies: RowCopies | Array | None = row_copies(by_rows, indptr, (ranks, starts), order, sizes)
    if isinstance(copies, RowCopies):
        stored_columns = copies.elements(columns) if by_rows.stores_column else None
    else:
        filled = fill(by_rows, indptr, columns, (ranks, starts), order, longest, sizes)
        if filled is None:
            return None
        copies, stored_columns = read_only(filled[0]), filled[1]
    if by_rows.stores_column and stored_columns is not None:
        stored = axes[rule.axes[-1].name]
        axes[stored.axis.name] = StoredAxis(stored.axis, stored.count, stored.indptr, read_only(stored_columns))
    if is_empty:
        by_rows.empty[dtype] = axes
    return StoredPart(rule, axes, sizes[-1], tuple(coordinates), copies)


def _rows_in_order(by_rows: ByRows, last: LastNonzeros, dtype: Any) -> tuple[list[Array], Array | None]:
    """Return the ranks of rows, and the rows of which a rule takes nonzeros, in the order of the result.

    Returns:
        No ranks where the only one is the place in the order of rows; None for all rows as they are.
    """
    taken = last.taken
    if by_rows.asked:
        order = last._order(*by_rows.asked[0]).astype(dtype, copy=False)
        if taken.is_all and len(by_rows.asked) == 1:
            return [], order
        ranks = [last._ranks(*asked) for asked in by_rows.asked]
        return ranks, order if taken.is_all else order[taken.lengths[order] > 0]
    if taken.is_all and not by_rows.has_positions:
        return [], None
    return [], taken.with_nonzeros()


def _axes_of_rows(rule: FormatRewriteRule, last: LastNonzeros, dtype: Any) -> dict[str, StoredAxis]:
    """Return the axes, by the keys of the last nonzero of each row; the first axis still without coordinates."""
    before: tuple[Array, int] = (np.zeros(len(last.row), "int64"), 1)
    axes: dict[str, StoredAxis] = {}
    for axis, entry in zip(rule.axes, rule.entries(last), strict=True):
        key = np.broadcast_to(np.asarray(entry[0] if isinstance(entry, tuple) else entry, "int64"), last.row.shape)
        positions, stored = _axis(rule, axis, key, before)
        _check_count(stored.count, dtype)
        indptr_of = None if stored.indptr is None else read_only(stored.indptr.astype(dtype))
        indices = read_only(key.astype(dtype)) if axis.kind == "compressed" else None
        axes[axis.name] = StoredAxis(axis, stored.count, indptr_of, indices)
        before = positions, stored.count
    return axes


def _by_nonzeros(rule: FormatRewriteRule, taken: Nonzeros, coordinates: Sequence[Array]) -> StoredPart | None:
    """Return the part of a rule whose keys are formulas of a nonzero, axis by axis; None if they are not formulas, or
    if two nonzeros have one position, which slower passes report."""
    dtype, size = coordinates[0].dtype, len(taken.position)
    try:
        formulas = ByNonzeros(rule, taken, str(dtype))
    except NotByNonzeros:
        return None
    slots = before = Positions(formulas, None, 1, 0, 1)
    known: dict[str, Positions] = {}
    axes: dict[str, StoredAxis] = {}
    for axis, key, coordinate in zip(rule.axes, formulas.keys, formulas.coordinates, strict=True):
        parent = known[axis.parent] if axis.parent else before
        indptr = indices = None
        if axis.kind == "dense":
            here, slots = parent.below(axis.extent, key), slots.below(axis.extent, key)
            _check_count(max(here.count, slots.count), dtype)
        else:
            here, indptr = parent.along(axis.kind == "compressed", key, dtype)
            _check_count(here.count, dtype)
            slots = here
        stored = key if coordinate is None and axis.kind == "compressed" else coordinate
        if stored is not None:
            indices = np.zeros(here.count, dtype)
            numbers = formulas.values(stored)
            _check_numbers(rule, axis, numbers, dtype)
            # As many positions as nonzeros are one for each, unless the axis has positions without a nonzero.
            may_differ = coordinate is not None and not (axis.kind == "compressed" and here.count == size)
            if not here.store(np.zeros(size, dtype) if numbers is None else numbers, indices, may_differ):
                return None
        arrays = (None if array is None else read_only(array) for array in (indptr, indices))
        axes[axis.name] = StoredAxis(axis, here.count, *arrays)
        before = known[axis.name] = here
    numbers = None if size == len(coordinates[0]) else taken.position
    are_apart = formulas.tell_apart(rule) or any(
        axis.kind == "compressed" and axes[axis.name].count == size for axis in rule.axes
    )
    if are_apart and slots.count > LEAST_PADDING * size:
        return StoredPart(rule, axes, slots.count, tuple(coordinates), Scattered(slots, numbers, dtype))
    source = np.full(slots.count, -1, dtype)
    if not slots.store(numbers, source, not are_apart):
        return None
    return StoredPart(rule, axes, slots.count, tuple(coordinates), read_only(source))


def _stored(rule: FormatRewriteRule, taken: Nonzeros, coordinates: Sequence[Array]) -> StoredPart:
    """Compute positions axis by axis: count the positions below each position of the parent, scan, and fill."""
    keys, dtype = rule.entries(taken), coordinates[0].dtype
    size = len(taken.row)
    slots, slot_count = np.zeros(size, "int64"), 1
    before: tuple[Array, int] = (slots, 1)
    known: dict[str, tuple[Array, int]] = {}
    axes: dict[str, StoredAxis] = {}
    for axis, entry in zip(rule.axes, keys, strict=True):
        key, coordinate = entry if isinstance(entry, tuple) else (entry, None)
        key = np.broadcast_to(np.asarray(key, "int64"), (size,))
        parent = known[axis.parent] if axis.parent else before
        positions, stored = _axis(rule, axis, key, parent)
        _check_count(stored.count, dtype)
        if axis.kind == "dense":
            slots, slot_count = slots * axis.extent + key, slot_count * axis.extent
        else:
            slots, slot_count = positions, stored.count
        if coordinate is None and axis.kind == "compressed":
            coordinate = key
        indices = None if coordinate is None else np.zeros(stored.count, dtype)
        if indices is not None:
            _check_numbers(rule, axis, coordinate, dtype)
            indices[positions] = coordinate
            _check_coordinate(rule, axis, taken, indices[positions] != coordinate)
        arrays = (None if array is None else read_only(array.astype(dtype)) for array in (stored.indptr, indices))
        axes[axis.name] = StoredAxis(axis, stored.count, *arrays)
        before = known[axis.name] = positions, stored.count
    _check_count(slot_count, dtype)
    source = np.full(slot_count, -1, dtype)
    source[slots] = taken.position
    if np.count_nonzero(source >= 0) != size:
        at = int(np.flatnonzero(source[slots] != taken.position)[0])
        one, other = (_described(int(each), coordinates) for each in (taken.position[at], source[slots[at]]))
        message = f"rule {rule.name!r} gives the position of nonzero {one} to another one, too: {other}"
        raise ArgumentError.of("sparse/bijection", message, "add a key in which they differ, such as the place")
    return StoredPart(rule, axes, len(source), tuple(coordinates), read_only(source))


def _described(position: int, coordinates: Sequence[Array]) -> str:
    return f"{position} at ({', '.join(str(along[position]) for along in coordinates)})"


def _check_coordinate(rule: FormatRewriteRule, axis: FormatAxis, taken: Nonzeros, differs: Array) -> None:
    """Refuse nonzeros at one position of an axis to which the index map gives different coordinates along it."""
    if not differs.any():
        return
    at = int(taken.position[int(np.argmax(differs))])
    message = f"rule {rule.name!r} gives nonzero {at} a position of axis {axis.name!r} that stores another coordinate"
    hint = "along an axis, nonzeros with one key have one coordinate: make the key of what they differ in"
    raise ArgumentError.of("sparse/bijection", message, hint)


def _check_count(count: int, dtype: Any) -> None:
    if count > min(largest(dtype), MOST_ELEMENTS):
        hint = "use int64" if count <= MOST_ELEMENTS else "a varied axis has positions up to its largest key"
        raise ArgumentError.of("sparse/index-type", f"{count} stored elements with indices of {dtype}", hint)


def _check_numbers(rule: FormatRewriteRule, axis: FormatAxis, numbers: Any, dtype: Any) -> None:
    """Refuse keys or coordinates that an axis stores, and that exceed the type of the structure."""
    if (
        isinstance(numbers, np.ndarray)
        and numbers.dtype != dtype
        and (most := int(numbers.max(initial=0))) > largest(dtype)
    ):
        message = (
            f"rule {rule.name!r} stores the number {most} along axis {axis.name!r}, and coordinates are of {dtype}"
        )
        raise ArgumentError.of("sparse/index-type", message, "use int64")


def _axis(rule: FormatRewriteRule, axis: FormatAxis, key: Array, parent: tuple[Array, int]) -> tuple[Array, StoredAxis]:
    """Return the position of each nonzero along an axis; and the axis itself, still without coordinates."""
    above, count = parent
    wrong = (key < 0) | (key >= axis.extent) if axis.kind == "dense" else key < 0
    if wrong.any():
        at = int(np.argmax(wrong))
        limit = f"in 0 to before {axis.extent}" if axis.kind == "dense" else "0 or more"
        message = f"rule {rule.name!r}: the key of nonzero {at} along axis {axis.name!r} is {key[at]}, not {limit}"
        raise ArgumentError.of("sparse/key", message, "the rule takes nonzeros that its axes do not hold")
    if axis.kind == "dense":
        return above * axis.extent + key, StoredAxis(axis, count * axis.extent, None, None)
    positions, indptr = np.empty(len(key), "int64"), np.empty(count + 1, "int64")
    key = np.ascontiguousarray(key)
    found, _ = _core.axis_positions(axis.kind == "compressed", above, 1, None, key, positions, indptr)
    return positions, StoredAxis(axis, found, indptr, None)
