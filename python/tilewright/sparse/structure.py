"""Where the nonzeros of a sparse matrix are: arrays from outside, which are validated once, when an object is made."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.support.limits import index_of
from tilewright.task.arguments import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: how nonzeros are found: by rows, by columns, by rows of dense blocks, or one by one
Kind = Literal["csr", "csc", "bsr", "coo"]
KINDS = ("csr", "csc", "bsr", "coo")
#: the arrays of a structure
_ARRAYS = ("indices", "indptr", "rows")


@dataclass(frozen=True, eq=False)
class Structure:
    """The structure of a sparse matrix. Making one validates its arrays, in parallel; kernels trust it.

    Damaged arrays are refused with the first position that breaks a rule. They are not copied: the attributes are
    views that cannot be written through, and changes of the memory itself are not noticed.

    Attributes:
        kind: ``"csr"``, ``"csc"``, ``"bsr"`` or ``"coo"``.
        shape: rows and columns of the matrix.
        indices: the column of each nonzero; its row for ``"csc"``, the column of blocks for ``"bsr"``.
        indptr: nonzeros of row ``i`` are at ``indptr[i]`` to before ``indptr[i + 1]``; of column ``i`` for ``"csc"``,
            blocks of a row of blocks for ``"bsr"``. None for ``"coo"``.
        rows: the row of each nonzero for ``"coo"``, else None.
        block: height and width of the blocks of ``"bsr"``, else (1, 1).
        sorted: whether indices ascend in each row, for ``"coo"`` row after row. True demands it; what is None is
            observed.
        unique: whether no nonzero occurs twice. True demands it; None is observed where indices are sorted, and stays
            None where they are not.
        validation_seconds: what validation has cost.

    Raises:
        tilewright.ArgumentError: The arrays are damaged, or break a rule that is demanded.
    """

    kind: Kind
    shape: tuple[int, int]
    indices: Array
    indptr: Array | None = None
    rows: Array | None = None
    block: tuple[int, int] = (1, 1)
    sorted: bool | None = None
    unique: bool | None = None
    validation_seconds: float = field(default=0.0, init=False)
    #: conversions by operators, with the source of each stored element
    _formats: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        start = time.perf_counter()
        _validate(self)
        object.__setattr__(self, "validation_seconds", time.perf_counter() - start)
        for name in _ARRAYS:
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(array))

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled and copied: without conversions."""
        return {**self.__dict__, "_formats": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _ARRAYS:
            if (array := state[name]) is not None:
                self.__dict__[name] = read_only(array)

    @property
    def nnz(self) -> int:
        """Return the number of stored elements, zeros among them."""
        return len(self.indices) * self.block[0] * self.block[1]

    @functools.cached_property
    def index_dtype(self) -> str:
        """Return ``"int32"`` or ``"int64"``."""
        return str(self.indices.dtype)

    def __repr__(self) -> str:
        blocks = f", blocks of {self.block[0]} x {self.block[1]}" if self.kind == "bsr" else ""
        size = f"{self.shape[0]} x {self.shape[1]}, {self.nnz} nonzeros{blocks}"
        facts = [name for name, holds in (("sorted", self.sorted), ("unique", self.unique)) if holds]
        ms = f"validated in {1e3 * self.validation_seconds:.2f} ms"
        return f"<Structure {self.kind}: {', '.join([size, self.index_dtype, *facts, ms])}>"


@functools.cache
def name_of(dtype: Any) -> str:
    """Return the name of a data type of NumPy, which takes NumPy some microseconds."""
    return str(dtype)


@functools.cache
def largest(dtype: Any) -> int:
    """Return the largest integer of a type."""
    return int(np.iinfo(dtype).max)


def read_only(array: Array) -> Array:
    """Return a view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def is_writable(array: Array) -> bool:
    """Return whether somebody may write to the memory of an array, through this array or one that it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return True
        base = base.base
    return base is not None and not isinstance(base, bytes)


def private(array: Array) -> Array:
    """Return a copy that nobody can write to."""
    copy = aligned(array)
    base: Any = copy
    while isinstance(base, np.ndarray):
        base.flags.writeable = False
        base = base.base
    return copy


def _refuse(rule: str, message: str, hint: str) -> ArgumentError:
    return ArgumentError.of(rule, message, hint)


def _validate(s: Structure) -> None:
    if s.kind not in KINDS:
        raise _refuse("sparse/kind", f"a structure of kind {s.kind!r}", f"there are {', '.join(map(repr, KINDS))}")
    _check_shape(s)
    named = {"indptr": s.indptr, "indices": s.indices, "rows": s.rows}
    wanted = {"rows", "indices"} if s.kind == "coo" else {"indptr", "indices"}
    for name, array in named.items():
        if (array is not None) != (name in wanted):
            given = "has no" if array is None else "has an array"
            raise _refuse(
                "sparse/arrays", f"a structure of kind {s.kind!r} {given} {name!r}", f"it has {sorted(wanted)}"
            )
        if array is not None:
            _check_array(name, array)
    if len({str(array.dtype) for array in named.values() if array is not None}) > 1:
        types = ", ".join(f"{name} is {array.dtype}" for name, array in named.items() if array is not None)
        raise _refuse("sparse/index-type", types, "arrays of a structure have one type: convert one by array.astype()")
    check_offset_type(len(s.indices), s.indices.dtype)
    if s.kind == "coo":
        _validate_pairs(s)
    else:
        _validate_compressed(s)


def _check_shape(s: Structure) -> None:
    for name in ("shape", "block"):
        given: Any = getattr(s, name)
        numbers = [index_of(each) for each in given] if isinstance(given, tuple | list) else []
        if len(numbers) != 2 or any(each is None or isinstance(each, bool) for each in (*numbers, *given)):
            raise ArgumentTypeError.of(f"sparse/{name}", f"{name} is {given!r:.80}", "it is a pair of whole numbers")
        object.__setattr__(s, name, tuple(numbers))
    if any(extent < 0 for extent in s.shape):
        raise _refuse(
            "sparse/shape", f"a matrix of shape {s.shape}", "a matrix has rows and columns, of which 0 is the least"
        )
    if s.kind != "bsr" and s.block != (1, 1):
        raise _refuse("sparse/block", f"blocks of {s.block} for kind {s.kind!r}", "only 'bsr' has blocks")
    if any(size < 1 or extent % size for extent, size in zip(s.shape, s.block, strict=True)):
        raise _refuse(
            "sparse/block", f"blocks of {s.block} in a matrix of {s.shape}", "blocks divide the matrix evenly"
        )


def _check_array(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        raise ArgumentTypeError.of("sparse/arrays", f"{name} is {array!r:.80}", "it is a NumPy array of one dimension")
    if array.dtype not in (np.dtype("int32"), np.dtype("int64")):
        raise _refuse(
            "sparse/index-type", f"{name} is of {array.dtype}", "structure is int32 or int64: array.astype('int64')"
        )
    if not array.flags.c_contiguous:
        raise _refuse("sparse/arrays", f"{name} is not contiguous", "use numpy.ascontiguousarray")


def check_offset_type(count: int, dtype: Any) -> None:
    """Refuse offsets of a type that cannot count to `count`.

    Raises:
        tilewright.ArgumentError: They overflow.
    """
    if count > np.iinfo(dtype).max:
        raise _refuse("sparse/index-type", f"{count} nonzeros with offsets of {np.dtype(dtype)}", "use int64")


def _validate_compressed(s: Structure) -> None:
    assert s.indptr is not None
    by_rows = s.kind != "csc"
    heads, ends = (extent // size for extent, size in zip(s.shape, s.block, strict=True))
    if not by_rows:
        heads, ends = ends, heads
    _check_offsets(s.indptr, heads, len(s.indices), "rows" if by_rows else "columns")
    _record_facts(s, _faults("indices", s.indices, ends, s.indptr), s.indptr, ends)


def _check_offsets(indptr: Array, heads: int, nnz: int, what: str) -> None:
    hint = f"indptr counts the nonzeros before each of the {what}: it ascends from 0 to their number"
    if len(indptr) != heads + 1:
        raise _refuse("sparse/indptr", f"indptr has {len(indptr)} entries for {heads} {what}; it has {heads + 1}", hint)
    outside, descent, _ = _core.examine_values(indptr, 0, nnz + 1)
    if outside >= 0:
        raise _refuse("sparse/indptr", f"indptr[{outside}] is {indptr[outside]}, which is not in 0 to {nnz}", hint)
    if descent >= 0:
        less = f"indptr[{descent}] is {indptr[descent]}, less than indptr[{descent - 1}], {indptr[descent - 1]}"
        raise _refuse("sparse/indptr", less, hint)
    for position, value in ((0, 0), (heads, nnz)):
        if indptr[position] != value:
            raise _refuse("sparse/indptr", f"indptr[{position}] is {indptr[position]}, not {value}", hint)


def _faults(name: str, values: Array, end: int, segments: Array | None = None) -> tuple[int, int]:
    """Return the first positions that descend and that repeat, among values that are all in range."""
    outside, descent, repeat = _core.examine_values(values, 0, end, segments)
    if outside >= 0:
        message = f"{name}[{outside}] is {values[outside]}, which is not in 0 to before {end}"
        raise _refuse(
            "sparse/index", message, "indices must be below the numbers of rows and columns in the shape of the matrix"
        )
    return descent, repeat


def _record_facts(s: Structure, faults: tuple[int, int], segments: Array, end: int, descent_of_rows: int = -1) -> None:
    """Refuse what breaks a demand; what nobody demands is observed."""
    descent, repeat = faults
    unsorted = descent if descent_of_rows < 0 else descent_of_rows
    line = {"csc": "column", "bsr": "row of blocks"}.get(s.kind, "row")
    if s.sorted and unsorted >= 0:
        message = f"position {unsorted} is before position {unsorted - 1}"
        if descent_of_rows < 0:
            message = (
                f"indices[{unsorted}] is {s.indices[unsorted]}, behind {s.indices[unsorted - 1]} in the same {line}"
            )
        raise _refuse("sparse/sorted", message, f"sort the indices of each {line}, or do not declare them sorted")
    if s.unique and (repeat >= 0 or unsorted >= 0) and descent_of_rows < 0:
        position = _core.find_duplicate(s.indices, end, segments)
        if position >= 0:
            message = f"indices[{position}] is {s.indices[position]}, which the same {line} holds earlier"
            raise _refuse("sparse/duplicate", message, "add duplicates up, as SciPy's sum_duplicates does")
    is_sorted = unsorted < 0
    if s.sorted is None:
        object.__setattr__(s, "sorted", is_sorted)
    if s.unique is None and is_sorted:
        object.__setattr__(s, "unique", repeat < 0)


def _validate_pairs(s: Structure) -> None:
    assert s.rows is not None
    m, n = s.shape
    if len(s.rows) != len(s.indices):
        message = f"{len(s.rows)} rows and {len(s.indices)} indices"
        raise _refuse("sparse/arrays", message, "each nonzero has a row and an index")
    descent_of_rows, _ = _faults("rows", s.rows, m)
    _faults("indices", s.indices, n)
    indptr, order = offsets_of(s.rows, m)
    if descent_of_rows < 0:
        _record_facts(s, _faults("indices", s.indices, n, indptr), indptr, n)
        return
    _record_facts(s, (-1, -1), indptr, n, descent_of_rows)
    if s.unique and (position := _core.find_duplicate(s.indices[order], n, indptr)) >= 0:
        at = int(order[position])
        message = f"row {s.rows[at]}, column {s.indices[at]} at position {at} has occurred before"
        raise _refuse("sparse/duplicate", message, "add duplicates up, as SciPy's sum_duplicates does")


def offsets_of(keys: Array, count: int) -> tuple[Array, Array]:
    """Sort positions by keys in [0, count), stably.

    Returns:
        Offsets (count + 1 of them), and the positions in the order of their keys.
    """
    indptr, order = np.empty(count + 1, keys.dtype), np.empty(len(keys), keys.dtype)
    _core.sort_by_key(keys, indptr, order)
    return indptr, order
