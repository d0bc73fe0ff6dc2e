"""The formats that operators work on: CSR, and SELL. Each is made of a matrix with the first call, and kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sparse import formats
from tilewright.sparse.array_kernels import gather_kernel
from tilewright.sparse.conversion import ConvertedStructure, convert_validated, gathered
from tilewright.sparse.matrix import Matrix
from tilewright.sparse.structure import Structure, is_writable, offsets_of, private
from tilewright.sparse.taken_rows import rows_by_length

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: rows of a slice of SELL: one or two vectors of float32
LANES = 16


def to_csr(matrix: Matrix) -> Matrix:
    """Return the matrix in CSR.

    A matrix in another format is converted by the first call, and the result is cached. Later calls copy the values
    again, unless the matrix owns them and they cannot have changed.
    """
    if matrix.structure.kind == "csr":
        return matrix
    if (known := matrix._converted.get("csr")) is None:
        gather_kernel(matrix.dtype, matrix.structure.index_dtype)  # compiled before the conversion is timed
        start = time.perf_counter()
        kept = matrix.structure._formats
        if "csr" not in kept:
            kept["csr"] = _csr_of(matrix.structure)
        structure, order = kept["csr"]
        memory = gathered(matrix.values.reshape(-1), order)
        csr = Matrix(structure, memory)
        csr._is_constant = matrix._is_constant
        matrix._converted["csr"] = csr, order, memory
        matrix._costs["csr"] = time.perf_counter() - start
        return csr
    kept_csr: Matrix
    kept_csr, order, memory = known
    if not matrix._is_constant:
        gathered(matrix.values.reshape(-1), order, memory)
    return kept_csr


def detach(matrix: Matrix) -> None:
    """Copy the values of a matrix if they are in memory that the caller can still modify."""
    if not matrix._is_constant:
        matrix.values = private(matrix.values)
        csr = to_csr(matrix)
        matrix._is_constant = csr._is_constant = True


def _csr_of(s: Structure) -> tuple[Structure, Array]:
    """Return the structure, and the position of the value of each nonzero."""
    rows, columns = coordinates_of(s)
    indptr, order = offsets_of(rows, s.shape[0])
    return Structure("csr", s.shape, columns[order], indptr), order


def coordinates_of(s: Structure) -> tuple[Array, Array]:
    """Return the row and the column of each stored element, in their order in memory."""
    if s.kind == "coo":
        assert s.rows is not None
        return s.rows, s.indices
    assert s.indptr is not None
    heads = np.repeat(np.arange(len(s.indptr) - 1, dtype=s.indices.dtype), np.diff(s.indptr))
    if s.kind == "csr":
        return heads, s.indices
    if s.kind == "csc":
        return s.indices, heads
    height, width = s.block
    inside = np.indices(s.block).astype(s.indices.dtype).reshape(2, -1)
    rows = (heads[:, None] * height + inside[0]).reshape(-1)
    return rows, (s.indices[:, None] * width + inside[1]).reshape(-1)


@dataclass(frozen=True)
class Sell:
    """Rows in slices, as :func:`tilewright.sparse.programs.spmv_sell` takes them."""

    converted: ConvertedStructure
    starts: Array
    indices: Array
    lengths: Array
    full: Array
    order: Array


def to_sell(csr: Matrix) -> tuple[Sell, Array]:
    """Return a CSR matrix with constant values in SELL format; the rows are sorted by length over the whole matrix."""
    known: tuple[Sell, Array] | None = csr._converted.get("sell")
    if known is None:
        _compile_conversion(csr)
        start = time.perf_counter()
        kept = csr.structure._formats
        if "sell" not in kept:
            kept["sell"] = _sell_of(csr.structure)
        sell: Sell = kept["sell"]
        (values,) = sell.converted.convert_values(csr.values)
        known = csr._converted["sell"] = sell, values.reshape(-1, LANES)
        csr._costs["sell"] = time.perf_counter() - start
    return known


def _compile_conversion(csr: Matrix) -> None:
    """Convert a matrix without rows, so that kernels are there before the conversion is timed."""
    s = csr.structure
    none = np.zeros(0, s.indices.dtype)
    _sell_of(Structure("csr", (0, 0), none, np.zeros(1, none.dtype))).converted.convert_values(csr.values[:0])


def _sell_of(s: Structure) -> Sell:
    m, n = s.shape
    assert s.indptr is not None
    # Conversions of other values read the offsets again, so they must not change with the caller's array.
    indptr = private(s.indptr) if is_writable(s.indptr) else s.indptr
    rules, now = formats.sell(m, n, LANES), time.perf_counter()
    converted = convert_validated(rules, s.shape, (s.indices, s.indices), indptr, now)
    axes = converted.parts[0].axes
    lengths = np.diff(s.indptr)
    longest = int(lengths.max(initial=0))
    order = rows_by_length(s.indptr, np.arange(longest, -1, -1), longest + 1)[1]
    of_lanes = np.zeros(-(-m // LANES) * LANES, s.indices.dtype)
    of_lanes[:m] = lengths[order]
    starts, indices = axes["P"].indptr, axes["L"].indices
    assert starts is not None and indices is not None
    by_slice = of_lanes.reshape(-1, LANES)
    full = np.ascontiguousarray(by_slice[:, -1])
    return Sell(converted, starts, indices.reshape(-1, LANES), by_slice, full, order)
