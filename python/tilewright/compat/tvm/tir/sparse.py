"""tvm.tir.sparse of SparseTIR's implementation: axes, sparse buffers, and variables of sparse iterations."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.alias import Renamed, missing, no_span

__all__ = [
    "Axis",
    "AxisKind",
    "SpIterVar",
    "SparseBuffer",
    "dense_fixed_axis",
    "dense_variable_axis",
    "sparse_fixed_axis",
    "sparse_variable_axis",
]


class AxisKind(Enum):
    """Whether coordinates are stored, and whether each position of the parent has equally many."""

    DenseFixed = 0
    DenseVariable = 1
    SparseFixed = 2
    SparseVariable = 3


class Axis(metaclass=Renamed):
    """A level of the structure of sparse buffers."""

    node = _core.Axis

    @staticmethod
    def make(
        name: str,
        parent: Any,
        length: Any,
        nnz: Any,
        nnz_cols: Any,
        indptr: Any,
        indices: Any,
        idtype: str,
        sorted: bool,
    ) -> Any:
        """The axis. Arrays of structure are buffers, or variables, which stand for buffers of their names."""
        begins = _array(indptr, None if parent is None else parent.nnz + 1, idtype)
        return _core.Axis(name, parent, length, nnz, nnz_cols, begins, _array(indices, nnz, idtype), idtype, sorted)


class SparseBuffer(metaclass=Renamed):
    """A buffer over axes."""

    node = _core.Buffer

    @staticmethod
    def make(
        data: Any,
        axes: Any,
        dtype: str,
        name: str,
        extra_storage: Any = None,
        default_value: Any = None,
        span: None = None,
    ) -> Any:
        """The buffer, whose elements are those of the axes."""
        no_span(span)
        if extra_storage is not None and int(extra_storage) != 0:
            raise TypeError("Tilewright has no extra_storage of sparse buffers: offsets are those of axes")
        chosen = [axes[at] for at in _core.stored_axes(_core.Buffer(data, dtype, [1], name=name, axes=list(axes)))]
        shape = [axis.nnz if axis.indptr is not None else axis.nnz_cols for axis in chosen]
        more = {} if default_value is None else {"default_value": default_value}
        return _core.Buffer(data, dtype, shape, name=name, axes=list(axes), **more)


class SpIterVar(metaclass=Renamed):
    """A variable of a sparse iteration."""

    node = _core.SpIterVar

    @staticmethod
    def make(var: Any, is_reduction: bool, axis: Any) -> Any:
        """The variable, which runs over the coordinates of an axis."""
        kind = ir.IterType.COMM_REDUCE if is_reduction else ir.IterType.DATA_PAR
        return _core.SpIterVar(var, kind, axis)


def dense_fixed_axis(name: str, length: Any, idtype: str) -> Any:
    """An ordinary dimension."""
    return Axis.make(name, None, length, length, length, None, None, idtype, True)


def dense_variable_axis(name: str, parent: Any, length: Any, nnz: Any, indptr: Any, idtype: str) -> Any:
    """Ragged rows."""
    return Axis.make(name, parent, length, nnz, None, indptr, None, idtype, True)


def sparse_fixed_axis(
    name: str,
    parent: Any,
    length: Any,
    nnz_cols: Any,
    indices: Any,
    idtype: str,
    sorted: bool = True,
) -> Any:
    """As many coordinates below each position of the parent, as in ELL."""
    return Axis.make(name, parent, length, parent.nnz * nnz_cols, nnz_cols, None, indices, idtype, sorted)


def sparse_variable_axis(
    name: str,
    parent: Any,
    length: Any,
    nnz: Any,
    indptr: Any,
    indices: Any,
    idtype: str,
    sorted: bool = True,
) -> Any:
    """Compressed rows, as in CSR."""
    return Axis.make(name, parent, length, nnz, None, indptr, indices, idtype, sorted)


def _array(given: Any, extent: Any, dtype: str) -> Any:
    if given is None or isinstance(given, _core.Buffer):
        return given
    return _core.decl_buffer([extent], dtype, name=given.name)


_INSTEAD = {
    "FusedAxis": "sch.sparse_fuse, or T.fuse in the axes of an iteration",
    "AttachedAxis": "T.attach in the axes of an iteration",
    "FlattenedAxis": "T.flatten",
}


def __getattr__(name: str) -> Any:
    if name in _INSTEAD:
        raise AttributeError(f"Tilewright has no tvm.tir.sparse.{name}: write {_INSTEAD[name]}")
    return missing("tvm.tir.sparse")(name)
