"""tvm.sparse.format: rules between index spaces, and arrays of three formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import ir
from tilewright.compat.tvm.nd import array
from tilewright.compat.tvm.sparse.decompose import decomposed
from tilewright.compat.tvm.tir.transform.statements import function_pass, require_module
from tilewright.compat.tvm.transform import Pass
from tilewright.script.tir.index_maps import index_map
from tilewright.sparse import FormatRewriteRule as Rule
from tilewright.sparse import Nonzeros, compressed, convert_structure, dense, formats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(eq=False)
class FormatRewriteRule:
    """How buffers are stored in other axes: a function that declares these, and maps of coordinates both ways.

    Attributes:
        name: what the names of the format end in.
        new_format_desc: declares axes and buffers; these stand for `buffers_to_rewrite`, in their order.
        buffers_to_rewrite: by name.
        axes_before_rewrite: the names of the axes that `inv_idx_map` gives coordinates of.
        axes_after_rewrite: the names of the axes that `idx_map` gives coordinates of.
        axis_map: the new axes in the place of an old one.
        idx_map: from old coordinates to new ones.
        inv_idx_map: from new coordinates to old ones.
    """

    name: str
    new_format_desc: ir.PrimFunc
    buffers_to_rewrite: Sequence[str]
    axes_before_rewrite: Sequence[str]
    axes_after_rewrite: Sequence[str]
    axis_map: Mapping[str, Sequence[str]]
    idx_map: Any
    inv_idx_map: Any

    def __post_init__(self) -> None:
        if not isinstance(self.idx_map, ir.IndexMap):
            self.idx_map = index_map(self.idx_map)
        if not isinstance(self.inv_idx_map, ir.IndexMap):
            self.inv_idx_map = index_map(self.inv_idx_map)
        if not isinstance(self.new_format_desc, ir.PrimFunc):
            raise TypeError(f"rule {self.name!r}: new_format_desc is a function that declares axes and buffers")
        before, after = list(self.axes_before_rewrite), list(self.axes_after_rewrite)
        declared = [axis.name for axis in self.new_format_desc.axes]
        self._require(not {*after} - {*declared}, f"axes_after_rewrite {after} are axes of the format: {declared}")
        mapped = {name for names in self.axis_map.values() for name in names}
        self._require(mapped <= {*declared}, f"axis_map leads to axes of the format: {declared}")
        for what, given, taken, made in (
            ("idx_map", self.idx_map, before, after),
            ("inv_idx_map", self.inv_idx_map, after, before),
        ):
            sizes = len(given.initial_indices), len(given.final_indices)
            self._require(sizes == (len(taken), len(made)), f"{what} takes {taken} and returns {made}")

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise ValueError(f"rule {self.name!r}: {rule}")


def format_decompose(
    mod: Any, composable_formats: Sequence[FormatRewriteRule], include_format_rewrite_blks: bool = True
) -> Any:
    """Return the module with each iteration replaced by one per rule, after iterations that copy into the formats.

    As published, each of them has the init of the original one. :func:`tilewright.sparse.decompose_format` makes
    programs that are initialized once.
    """
    require_module(mod)
    if not composable_formats:
        raise ValueError("format_decompose takes a list of at least one rule")
    return SparseFormatDecompose(composable_formats, include_format_rewrite_blks)(mod)


def SparseFormatDecompose(
    composable_formats: Sequence[FormatRewriteRule], include_format_rewrite_blks: bool = True
) -> Pass:
    """Return the pass of :func:`format_decompose`."""
    return function_pass(
        "SparseFormatDecompose", lambda func: decomposed(func, composable_formats, include_format_rewrite_blks)
    )


def _numpy(given: Any) -> Array:
    return np.asarray(given.numpy() if hasattr(given, "numpy") else given)


def column_part_hyb(
    num_rows: int, num_cols: int, indptr_nd: Any, indices_nd: Any, num_col_parts: int, buckets: Sequence[int]
) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
    """Return the rows of a matrix in buckets, for each of equal parts of its columns: hyb(c, k).

    Args:
        num_rows: number of rows of the matrix.
        num_cols: number of columns of the matrix.
        indptr_nd: offsets of the rows, (num_rows + 1,).
        indices_nd: columns of the nonzeros.
        num_col_parts: the number of parts.
        buckets: how many nonzeros a row of each bucket holds, ascending. Longer rows are cut.

    Returns:
        Row indices (r,), column indices (r, width) and mask (r, width) of each part and bucket. Padding is 0.
    """
    indptr, indices = _numpy(indptr_nd), _numpy(indices_nd)
    if indptr.shape != (num_rows + 1,):
        raise ValueError(f"indptr of shape {indptr.shape}, and {num_rows} rows have {num_rows + 1} offsets")
    if num_col_parts < 1 or not buckets or [*buckets] != sorted({*buckets}):
        raise ValueError(f"{num_col_parts} parts and buckets {[*buckets]}: at least one of each, buckets ascending")
    rows = np.repeat(np.arange(num_rows, dtype=indices.dtype), np.diff(indptr))
    order = np.lexsort((indices, rows))
    size = -(-num_cols // num_col_parts)
    rules = [
        _bucket(part, size, before, width, is_last=width == buckets[-1])
        for part in range(num_col_parts)
        for before, width in zip([0, *buckets], buckets, strict=False)
    ]
    converted = convert_structure(rules, (num_rows, num_cols), (rows, np.ascontiguousarray(indices[order])))
    arrays: tuple[list[list[Any]], ...] = ([], [], [])
    for number, part in enumerate(converted.parts):
        row, column = part.axes["I"].indices, part.axes["J"].indices
        assert row is not None and column is not None
        shape = (len(row), buckets[number % len(buckets)])
        made = row, column.reshape(shape), (part.source >= 0).astype(indices.dtype).reshape(shape)
        for kind, each in zip(arrays, made, strict=True):
            if number % len(buckets) == 0:
                kind.append([])
            kind[-1].append(array(np.array(each)))
    return arrays[0], arrays[1], arrays[2]


def _bucket(part: int, size: int, before: int, width: int, is_last: bool) -> Rule:
    def parts_of_rows(z: Nonzeros) -> Any:
        return (z.row * z.longest + z.place // width, z.row), (z.place % width, z.column)

    def is_here(z: Nonzeros) -> Any:
        return (z.length > before) & (is_last | (z.length <= width))

    rule = Rule(f"hyb_{part}_{width}", (compressed("I"), dense("J", width)), parts_of_rows)
    return rule.when(lambda z: z.column // size == part, is_here)


def condense(indptr_nd: Any, indices_nd: Any, t: int, g: int) -> tuple[Any, Any, Any]:
    """Return strips of rows, whose distinct columns are stored in groups: SR-BCRS(t, g).

    Args:
        indptr_nd: offsets of the rows.
        indices_nd: columns of the nonzeros.
        t: rows of a strip.
        g: columns of a group.

    Returns:
        Offsets of the strips among the groups, the columns of each group (groups, g), and the mask (groups, t, g).
    """
    indptr, indices = _numpy(indptr_nd), _numpy(indices_nd)
    m, n = len(indptr) - 1, int(indices.max(initial=0)) + 1
    rows = np.repeat(np.arange(m, dtype=indices.dtype), np.diff(indptr))
    columns = np.ascontiguousarray(indices[np.lexsort((indices, rows))])
    (part,) = convert_structure(formats.sr_bcrs(m, n, t, g), (m, n), (rows, columns)).parts
    groups, tiles = part.axes["JO"].indptr, part.axes["JI"].indices
    assert groups is not None and tiles is not None
    mask = (part.source >= 0).astype(indices.dtype).reshape(-1, t, g)
    return array(np.array(groups)), array(tiles.reshape(-1, g)), array(mask)


def csf_to_ell3d(
    csf_indptr_0: Any,
    csf_indices_0: Any,
    csf_indptr_1: Any,
    csf_indices_1: Any,
    nnz_rows_bkt: Sequence[int],
    nnz_cols_bkt: Sequence[int],
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the rows of each relation in buckets, in groups of equally many: the format of relational graphs.

    Args:
        csf_indptr_0: offsets of the relations among the rows.
        csf_indices_0: the row of each.
        csf_indptr_1: offsets of these rows among the nonzeros.
        csf_indices_1: columns of the nonzeros.
        nnz_rows_bkt: how many rows a group of each bucket has.
        nnz_cols_bkt: how many nonzeros a row of each bucket holds, ascending. Longer rows are cut.

    Returns:
        For each bucket the offsets of the relations among its groups, row indices (groups, rows), column indices
        (groups, rows, width) and mask of that shape. A group is filled up with its last row.
    """
    of_relation, row_of, of_row, columns = map(_numpy, (csf_indptr_0, csf_indices_0, csf_indptr_1, csf_indices_1))
    relation_of = np.repeat(np.arange(len(of_relation) - 1), np.diff(of_relation))
    lengths = np.diff(of_row)
    bucket_of = np.minimum(np.searchsorted(nnz_cols_bkt, lengths), len(nnz_cols_bkt) - 1)
    result: tuple[list[Any], ...] = ([], [], [], [])
    for bucket, (rows, width) in enumerate(zip(nnz_rows_bkt, nnz_cols_bkt, strict=True)):
        here = np.flatnonzero((bucket_of == bucket) & (lengths > 0))
        parts_of_rows = -(-lengths[here] // width)
        fiber = np.repeat(here, parts_of_rows)
        place = np.arange(len(fiber)) - np.repeat(np.cumsum(parts_of_rows) - parts_of_rows, parts_of_rows)
        counts = np.bincount(relation_of[fiber], minlength=len(of_relation) - 1)
        groups = np.concatenate([[0], np.cumsum(-(-counts // rows))])
        rank = np.arange(len(fiber)) - (np.cumsum(counts) - counts)[relation_of[fiber]]
        slot = groups[relation_of[fiber]] * rows + rank
        begin = of_row[fiber] + place * width
        size = np.minimum(width, of_row[fiber + 1] - begin)
        made = _filled(groups[-1] * rows, width, slot, row_of[fiber], begin, size, columns)
        shape = (int(groups[-1]), rows)
        row_indices, column_indices, mask = (each.astype(columns.dtype) for each in made)
        result[0].append(array(groups.astype(columns.dtype)))
        result[1].append(array(row_indices.reshape(shape)))
        result[2].append(array(column_indices.reshape(*shape, width)))
        result[3].append(array(mask.reshape(*shape, width)))
    return result[0], result[1], result[2], result[3]


def _filled(
    slots: int, width: int, slot: Array, row: Array, begin: Array, size: Array, columns: Array
) -> tuple[Array, Array, Array]:
    last = np.zeros(slots, "int64")
    last[slot] = np.arange(len(slot))
    last = np.maximum.accumulate(last)  # slots at the end of a group repeat the last row
    row_indices = row[last] if slots else np.zeros(0, "int64")
    mask = np.zeros((slots, width), "int64")
    mask[slot] = np.arange(width) < size[:, None]
    column_indices = np.zeros((slots, width), "int64")
    at = begin[:, None] + np.arange(width)
    column_indices[slot] = np.where(mask[slot] > 0, columns[np.minimum(at, max(len(columns) - 1, 0))], 0)
    return row_indices, column_indices, mask
