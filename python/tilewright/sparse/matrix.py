"""Sparse matrices: a validated structure with values, and the formats that it has been converted to."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.sparse.structure import Structure, is_writable, private, read_only

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: data types of values
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Conversion:
    """The costs of converting the structure and the values of a matrix.

    Attributes:
        format: what to, such as ``"csr"``.
        seconds: how long it took.
        spmvs: how many products of the matrix in CSR with a vector take as long.
    """

    format: str
    seconds: float
    spmvs: float

    def __str__(self) -> str:
        return f"to {self.format} in {1e3 * self.seconds:.2f} ms, as long as {self.spmvs:.1f} SpMVs"


@dataclass(eq=False)
class Matrix:
    """A sparse matrix: ``values[p]`` belongs to the nonzero at position ``p`` of its structure.

    The values may share memory with the caller. Products use the values at the time of the call; only the structure of
    converted copies is cached, unless the values are constant.

    Attributes:
        structure: where the nonzeros are.
        values: float32 or float64, of shape (nnz,); of shape (blocks, height, width) for ``"bsr"``. The attribute is a
            view that cannot be written through.
    """

    structure: Structure
    values: Array
    #: whether the values cannot change: the matrix owns their memory, or it is read-only
    _is_constant: bool = field(default=False, init=False, repr=False)
    #: the formats that operators have converted it to, and the seconds that each has cost
    _converted: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _costs: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    #: products with vectors in CSR: how many there were, and how long one takes, 0 where none was timed
    _products: int = field(default=0, init=False, repr=False)
    _spmv_seconds: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        values, structure = self.values, self.structure
        if not isinstance(values, np.ndarray):
            raise ArgumentTypeError.of("sparse/values", f"values are {type(values).__name__}", "give a NumPy array")
        if str(values.dtype) not in DTYPES:
            hint = f"values are {' or '.join(DTYPES)}: array.astype('float32')"
            raise ArgumentError.of("sparse/values", f"values of {values.dtype}", hint)
        blocks = structure.block if structure.kind == "bsr" else ()
        if values.shape != (len(structure.indices), *blocks) or not values.flags.c_contiguous:
            wanted = (len(structure.indices), *blocks)
            hint = f"a structure of {len(structure.indices)} indices has contiguous values of shape {wanted}"
            raise ArgumentError.of("sparse/values", f"values of shape {values.shape}", hint)
        self._is_constant = not is_writable(values)
        self.values = read_only(values)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled and copied: without conversions, whose arrays share memory with one another."""
        return {"structure": self.structure, "values": self.values, "_is_constant": self._is_constant}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.structure, self.values = state["structure"], read_only(state["values"])
        self._is_constant = state["_is_constant"]
        self._converted, self._costs, self._products, self._spmv_seconds = {}, {}, 0, 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Return rows and columns."""
        return self.structure.shape

    @property
    def nnz(self) -> int:
        """Return the number of stored elements."""
        return self.structure.nnz

    @functools.cached_property
    def dtype(self) -> str:
        """Return the type of the values, ``"float32"`` or ``"float64"``."""
        return str(self.values.dtype)

    def with_values(self, values: Array, *, copy: bool = False) -> Matrix:
        """Return a matrix of the same structure with other values; what the structure was converted to is kept.

        Args:
            values: new values, with the shape and order of the present ones.
            copy: take a copy. Otherwise products see later changes of the array.
        """
        return Matrix(self.structure, _values(values, copy))

    def __repr__(self) -> str:
        return f"<Matrix of {self.dtype}, {self.structure!r}>"

    def to_scipy(self) -> Any:
        """Return the matrix of SciPy of the same kind over the same arrays.

        Raises:
            tilewright.ArgumentError: SciPy is not installed.
        """
        scipy = _scipy()
        s = self.structure
        if s.kind == "coo":
            return scipy.coo_array((self.values, (s.rows, s.indices)), shape=s.shape)
        make = {"csr": scipy.csr_array, "csc": scipy.csc_array, "bsr": scipy.bsr_array}[s.kind]
        return make((self.values, s.indices, s.indptr), shape=s.shape)

    def to_torch(self) -> Any:
        """Return a sparse tensor of PyTorch of the same kind, over copies of the arrays.

        Raises:
            tilewright.ArgumentError: PyTorch is not installed.
        """
        try:
            import torch
        except ImportError:
            raise ArgumentError.of("sparse/import", "PyTorch is not installed", "pip install torch") from None
        s = self.structure
        arrays: Any = [None if array is None else torch.tensor(array) for array in (s.rows, s.indptr, s.indices)]
        rows, indptr, indices = arrays
        values = torch.tensor(self.values)
        if s.kind == "coo":
            return torch.sparse_coo_tensor(torch.stack([rows, indices]), values, s.shape)
        layout = getattr(torch, f"sparse_{s.kind}")
        return torch.sparse_compressed_tensor(indptr, indices, values, s.shape, layout=layout)


def _values(given: Any, copy: bool) -> Any:
    """Return the array itself if it is contiguous and `copy` is false, else a copy owned by the matrix."""
    if not isinstance(given, np.ndarray) or (given.flags.c_contiguous and not copy):
        return given
    return private(given)


def _scipy() -> Any:
    try:
        import scipy.sparse  # type: ignore[import-untyped]
    except ImportError:
        raise ArgumentError.of("sparse/import", "SciPy is not installed", "pip install scipy") from None
    return scipy.sparse


def from_scipy(matrix: Any, *, sorted: bool | None = None, unique: bool | None = None, copy: bool = False) -> Matrix:
    """Take a matrix of SciPy over, without a copy where its arrays are contiguous.

    Products see later changes of ``matrix.data``. The structure is validated now, and must not change in place.

    Args:
        matrix: in CSR, CSC, BSR or COO, of float32 or float64.
        sorted: True demands that the indices of each row ascend; None observes it.
        unique: True demands that no nonzero occurs twice; None observes it where indices are sorted.
        copy: take copies of all arrays: later changes of the matrix of SciPy have no effect, and :func:`spmv` may
            convert the matrix to SELL by itself.

    Raises:
        tilewright.ArgumentError: It has another format or type, or its arrays are damaged.
    """
    scipy = _scipy()
    kind = getattr(matrix, "format", None) if scipy.issparse(matrix) else None
    if kind not in ("csr", "csc", "bsr", "coo"):
        given = f"a matrix in {kind}" if kind else f"a value of type {type(matrix).__name__}"
        raise ArgumentTypeError.of("sparse/kind", given, "convert it to CSR first: scipy.sparse.csr_array(matrix)")
    if len(matrix.shape) != 2:
        hint = "reshape it to one row: matrix.reshape(1, -1)"
        raise ArgumentError.of("sparse/shape", f"an array of {len(matrix.shape)} dimensions", hint)
    facts = (sorted, unique)
    if kind == "coo":
        return _pairs(matrix.shape, (matrix.row, matrix.col, matrix.data), facts, copy)
    block = matrix.blocksize if kind == "bsr" else (1, 1)
    return _compressed(kind, matrix.shape, (matrix.indptr, matrix.indices, matrix.data), block, facts, copy)


def _pairs(shape: Any, arrays: tuple[Any, Any, Any], facts: tuple[bool | None, bool | None], copy: bool) -> Matrix:
    rows, columns, data = (_values(each, copy) for each in arrays)
    structure = Structure("coo", (int(shape[0]), int(shape[1])), columns, None, rows, (1, 1), *facts)
    return Matrix(structure, data)


def _compressed(
    kind: Any,
    shape: Any,
    arrays: tuple[Any, Any, Any],
    block: Any,
    facts: tuple[bool | None, bool | None],
    copy: bool,
) -> Matrix:
    """Return the compressed matrix without the elements behind the last offset, which SciPy allows."""
    indptr, indices, data = (_values(each, copy) for each in arrays)
    used = int(indptr[-1]) if len(indptr) else 0
    if 0 <= used <= min(len(indices), len(data)):
        indices, data = indices[:used], data[:used]
    structure = Structure(kind, (int(shape[0]), int(shape[1])), indices, indptr, None, block, *facts)
    return Matrix(structure, data)


def from_torch(tensor: Any, *, sorted: bool | None = None, unique: bool | None = None, copy: bool = False) -> Matrix:
    """Take a sparse tensor of PyTorch over, in memory of the CPU, without a copy.

    Products see later changes of the tensor's values. The structure is validated now, and must not change in place.

    Args:
        tensor: tensor of layout sparse_csr, sparse_csc, sparse_bsr or sparse_coo, with float32 or float64 values.
        sorted: True demands that the indices of each row ascend; None observes it.
        unique: True demands that no nonzero occurs twice; None observes it where indices are sorted.
        copy: see :func:`from_scipy`.

    Raises:
        tilewright.ArgumentError: It has another layout, type or device, records gradients, or its arrays are damaged.
    """
    layout = str(getattr(tensor, "layout", "")).removeprefix("torch.sparse_")
    if layout not in ("csr", "csc", "bsr", "coo"):
        hint = "convert it first: tensor.to_sparse_csr()"
        raise ArgumentTypeError.of("sparse/kind", f"a value of type {type(tensor).__name__}", hint)
    if tensor.device.type != "cpu":
        raise ArgumentError.of("sparse/device", f"a tensor on {tensor.device}", "move it: tensor.cpu()")
    if tensor.dim() != 2:
        raise ArgumentError.of("sparse/shape", f"a tensor of {tensor.dim()} dimensions", "a matrix has two")
    if tensor.requires_grad:
        message = "the tensor records gradients, and products record none"
        raise ArgumentError.of("sparse/gradient", message, "pass tensor.detach()")
    if tensor.dense_dim():
        message = f"a tensor of {tensor.sparse_dim()} sparse and {tensor.dense_dim()} dense dimensions"
        raise ArgumentError.of("sparse/shape", message, "make both sparse: tensor.to_dense().to_sparse()")
    if (dtype := str(tensor.dtype).removeprefix("torch.")) not in DTYPES:
        hint = f"values are {' or '.join(DTYPES)}: tensor.to(torch.float32)"
        raise ArgumentError.of("sparse/values", f"values of {dtype}", hint)
    facts = (sorted, unique)
    tensor = tensor.detach()
    if layout == "coo":
        rows, columns = (each.numpy() for each in tensor._indices())
        return _pairs(tensor.shape, (rows, columns, tensor._values().numpy()), facts, copy)
    by_columns = layout == "csc"
    indptr = tensor.ccol_indices() if by_columns else tensor.crow_indices()
    indices = tensor.row_indices() if by_columns else tensor.col_indices()
    values = tensor.values()
    block = tuple(values.shape[1:]) if layout == "bsr" else (1, 1)
    arrays = (indptr.numpy(), indices.numpy(), values.numpy())
    return _compressed(layout, tensor.shape, arrays, block, facts, copy)
