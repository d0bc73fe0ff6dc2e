"""tvm.tir.sparse of SparseTIR's implementation: axes, sparse buffers, and variables of sparse iterations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.alias import Renamed, missing, no_span
from tilewright.support.changed_nodes import with_fields

__all__ = [
    "AttachedAxis",
    "Axis",
    "AxisKind",
    "FlattenedAxis",
    "FusedAxis",
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
        """Return the axis. Structure arrays are buffers, or variables, which stand for buffers of their names."""
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
        """Return the buffer, whose elements are those of the axes."""
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
        """Return the variable, which runs over the coordinates of an axis."""
        kind = ir.IterType.COMM_REDUCE if is_reduction else ir.IterType.DATA_PAR
        if isinstance(axis, FusedAxis):
            return _core.SpIterVar(var, kind, axis.group[axis.index], axis.index > 0)
        return _core.SpIterVar(var, kind, axis)


@dataclass(frozen=True, eq=False)
class FusedAxis:
    """One of several axes that an iteration runs through in one loop. Variables of an iteration know that themselves:
    this is what :class:`SpIterVar` is made from.

    Attributes:
        group: the axes.
        index: position of the argument.
    """

    group: Sequence[Any]
    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < len(self.group):
            raise ValueError(f"axis {self.index} of a group of {len(self.group)}")

    @property
    def name(self) -> str:
        """Return the name, spelled as in SparseTIR."""
        return f"fused_{''.join(axis.name for axis in self.group)}_{self.group[self.index].name}"

    @property
    def length(self) -> Any:
        """Return the number of iterations: all positions for the last axis of the group, one for the others."""
        last = self.group[-1]
        return last.nnz if self.index + 1 == len(self.group) else _core.const(1, last.idtype)

    @property
    def idtype(self) -> str:
        """Return the type of coordinates."""
        return str(self.group[0].idtype)

    nnz = nnz_cols = length


def AttachedAxis(base: Any, new_parent: Any) -> Any:
    """Return the positions of an axis below the coordinates of another one, as T.attach."""
    return with_fields(base, name=f"{base.name}_attach_{new_parent.name}", parent=new_parent, attached=base)


def FlattenedAxis(name: str, axes: Any, nnz: Any, offsets: Any, idtype: str) -> Any:
    """Return the elements of a buffer over axes, by their numbers, as T.flatten. Offsets are those of the axes."""
    length = _core.cast(idtype, nnz)
    return _core.Axis(name, None, length, length, length, idtype=idtype, flattened=list(axes))


def dense_fixed_axis(name: str, length: Any, idtype: str) -> Any:
    """Return an ordinary dimension."""
    return Axis.make(name, None, length, length, length, None, None, idtype, True)


def dense_variable_axis(name: str, parent: Any, length: Any, nnz: Any, indptr: Any, idtype: str) -> Any:
    """Return a ragged dimension."""
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
    """Return an axis with equally many coordinates below each position of the parent, as in ELL."""
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
    """Return an axis of compressed rows, as in CSR."""
    return Axis.make(name, parent, length, nnz, None, indptr, indices, idtype, sorted)


def _array(given: Any, extent: Any, dtype: str) -> Any:
    if given is None or isinstance(given, _core.Buffer):
        return given
    return _core.decl_buffer([extent], dtype, name=given.name)


__getattr__ = missing("tvm.tir.sparse")
