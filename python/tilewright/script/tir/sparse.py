"""T.sp: axes, sparse buffers and iterations over them (SparseTIR, section 3.1).

>>> @T.prim_func
... def spmv(a: T.handle, x: T.Buffer((64,)), y: T.Buffer((32,)), indptr: T.handle, indices: T.handle, nnz: T.int32):
...     I = T.sp.dense_fixed(32)
...     J = T.sp.compressed_varied(I, (64, nnz), (indptr, indices))
...     A = T.sp.match_buffer(a, (I, J), "float32")
...     with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
...         with T.init():
...             y[i] = T.float32(0)
...         y[i] += A[i, j] * x[j]
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tilewright import _core
from tilewright.script.core import script as _script
from tilewright.script.report import fail
from tilewright.script.tir.dtypes import DTYPES

Axis = _core.Axis


def _axes(what: str, axes: Any) -> list[Any]:
    """Return the axes of a buffer as a list.

    Raises:
        tilewright.ScriptError: They are no list of axes ("builder/axis").
    """
    if isinstance(axes, tuple | list) and all(isinstance(axis, Axis) for axis in axes):
        return list(axes)
    given = type(axes).__name__ if not isinstance(axes, tuple | list) else "a list with what is no axis"
    raise fail("builder/axis", f"T.sp.{what} takes a list of axes, and not {given}", "write (I, J); one axis is (I,)")


def _default(dtype: Any, value: Any) -> Any:
    """Return the default value, a number in the type of the elements, which has to hold it."""
    known = DTYPES.get(str(dtype))
    return known(value) if known is not None and value.__class__ is int and "int" in str(dtype) else value


def _sizes(what: str, sizes: Any) -> tuple[Any, Any]:
    if isinstance(sizes, tuple | list) and len(sizes) == 2:
        return sizes[0], sizes[1]
    raise fail("builder/axis", f"T.sp.{what} takes two sizes", "the length of the axis and its number of positions")


def _axis(what: str, axis: Any) -> Axis:
    """Return the axis.

    Raises:
        tilewright.ScriptError: It is no axis ("builder/axis").
    """
    if isinstance(axis, Axis):
        return axis
    hint = "the axis above comes first: J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))"
    raise fail("builder/axis", f"T.sp.{what} takes an axis, and not {type(axis).__name__}", hint)


def _index_type(what: str, idtype: Any) -> Any:
    """Return the type of coordinates.

    Raises:
        tilewright.ScriptError: It is neither int32 nor int64 ("builder/axis").
    """
    if isinstance(idtype, str) and idtype not in ("int32", "int64"):
        hint = 'coordinates are int32 or int64; convert other arrays: indices.astype("int32")'
        raise fail("builder/axis", f"T.sp.{what}: idtype is {idtype!r}", hint)
    return idtype


def dense_fixed(length: Any, idtype: str = "int32") -> Axis:
    """Return a root axis with the coordinates 0 to `length` - 1: an ordinary dimension."""
    made: Axis = _script.dense_fixed_axis(length, _index_type("dense_fixed", idtype))
    return made


def dense_varied(parent: Axis, sizes: Any, indptr: Any, idtype: str = "int32") -> Axis:
    """Return a ragged dimension: position p of the parent has ``indptr[p + 1] - indptr[p]`` coordinates, from 0.

    Args:
        parent: the axis above.
        sizes: ``(length, nnz)``, an upper bound of the coordinates, and the number of positions in all.
        indptr: a parameter of type T.handle, or a buffer of the number of the parent's positions and one more.
        idtype: data type of coordinates.
    """
    length, nnz = _sizes("dense_varied", sizes)
    made: Axis = _script.axis_below(
        _axis("dense_varied", parent), length, nnz, None, indptr, None, _index_type("dense_varied", idtype), True
    )
    return made


def compressed_fixed(parent: Axis, sizes: Any, indices: Any, idtype: str = "int32", sorted: bool = True) -> Axis:
    """Return an axis with equally many coordinates below each position of the parent, as in ELL: those in `indices`.

    Args:
        parent: the axis above.
        sizes: ``(length, nnz_cols)``, an upper bound of the coordinates, and how many each position of the parent has.
        indices: a parameter of type T.handle, or a buffer: the coordinates, position by position of the parent.
        idtype: data type of coordinates.
        sorted: whether coordinates below one position ascend.
    """
    length, nnz_cols = _sizes("compressed_fixed", sizes)
    idtype, parent = _index_type("compressed_fixed", idtype), _axis("compressed_fixed", parent)
    made: Axis = _script.axis_below(parent, length, None, nnz_cols, None, indices, idtype, sorted)
    return made


def compressed_varied(parent: Axis, sizes: Any, structure: Any, idtype: str = "int32", sorted: bool = True) -> Axis:
    """Return an axis with coordinates as in CSR: position p of the parent has those in ``indices[indptr[p]:indptr[p +
    1]]``.

    Args:
        parent: the axis above.
        sizes: ``(length, nnz)``, an upper bound of the coordinates, and the number of positions in all.
        structure: ``(indptr, indices)``, parameters of type T.handle, or buffers.
        idtype: data type of coordinates.
        sorted: whether coordinates below one position ascend.
    """
    length, nnz = _sizes("compressed_varied", sizes)
    if not isinstance(structure, tuple | list) or len(structure) != 2:
        raise fail("builder/axis", "T.sp.compressed_varied takes indptr and indices", "write (indptr, indices)")
    idtype, parent = _index_type("compressed_varied", idtype), _axis("compressed_varied", parent)
    made: Axis = _script.axis_below(parent, length, nnz, None, structure[0], structure[1], idtype, sorted)
    return made


def attach(axis: Axis, parent: Axis) -> Axis:
    """Return the positions of `axis` below those coordinates that an iteration over `parent` takes: a row of a matrix
    that a coordinate of another one selects."""
    made: Axis = _script.attached_axis(_axis("attach", axis), _axis("attach", parent))
    return made


def flatten(axes: Sequence[Axis], nnz: Any = None, offsets: Sequence[Any] = (), idtype: str = "int32") -> Axis:
    """Return a root axis whose coordinates are 0, 1, 2, ... for the elements that a buffer over `axes` stores, in the
    order of its memory: arrays of elements without their coordinates.

    Args:
        axes: parents before their children.
        nnz: how many elements there are, as follows from the axes.
        offsets: structure of the axes, which need not be named once more.
        idtype: data type of coordinates.

    Raises:
        tilewright.ScriptError: `nnz` or `offsets` are not those of the axes ("builder/axis").
    """
    if isinstance(axes, Axis) or not all(isinstance(axis, Axis) for axis in axes):
        raise fail("builder/axis", "T.sp.flatten takes a list of axes", "write T.sp.flatten([I, J])")
    given = list(offsets) if isinstance(offsets, tuple | list) else [offsets]
    made: Axis = _script.flattened_axis(list(axes), None, given, _index_type("flatten", idtype))
    if nnz is not None and not _core.Analyzer().can_prove_equal(_core.cast(made.idtype, nnz), made.length):
        message = f"T.sp.flatten with {nnz} elements, where its axes have {made.length}"
        raise fail("builder/axis", message, "the number follows from the axes: leave it out")
    return made


class _Fused(tuple):  # type: ignore[type-arg]
    """Axes that an iteration runs through in one loop."""


def fuse(*axes: Axis) -> _Fused:
    """Fuse axes: an iteration runs through them in one loop, over the positions of the last one."""
    return _Fused(axes)


def match_buffer(
    param: Any, axes: Sequence[Axis], dtype: str = "float32", extra_storage: Any = None, default_value: Any = None
) -> Any:
    """Return the elements of a sparse buffer behind a parameter.

    The argument is an array with one dimension for each chain of axes that ends in a variable one, whose extent is the
    number of its positions, and one for each other axis: CSR has the shape (nnz,), BSR (number of blocks, b, b).

    Args:
        param: the parameter, of type T.handle.
        axes: parents before their children.
        dtype: data type of an element.
        extra_storage: elements of the first dimension behind the last one.
        default_value: value of coordinates that the buffer does not store; by default 0.
    """
    if isinstance(extra_storage, int) and extra_storage < 0:
        raise fail("builder/axis", f"extra_storage is {extra_storage}", "it is a number of elements, 0 or more")
    default = _default(dtype, default_value)
    return _script.match_sparse_buffer(param, _axes("match_buffer", axes), dtype, extra_storage, default)


def alloc_buffer(
    axes: Sequence[Axis],
    dtype: str = "float32",
    scope: str = "global",
    default_value: Any = None,
    extra_storage: int = 0,
) -> Any:
    """Allocate a sparse buffer inside the function.

    Args:
        axes: parents before their children.
        dtype: data type of an element.
        scope: memory scope: global, local, ...
        default_value: value of coordinates that the buffer does not store; by default 0.
        extra_storage: 0.
    """
    if extra_storage:
        raise fail("builder/axis", "an allocated buffer with extra storage", "leave extra_storage out")
    default = _default(dtype, default_value)
    return _script.alloc_sparse_buffer(_axes("alloc_buffer", axes), dtype, scope, default)


def iteration(axes: Sequence[Any], kinds: str, name: str) -> Any:
    """Open an iteration over all coordinates of the axes: ``with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:``.

    Args:
        axes: the first one outermost, parents before their children; or groups of them, ``T.sp.fuse(I, J)``.
        kinds: one letter for each axis: S is spatial, R a reduction, before which T.init() runs.
        name: for schedules and messages.
    """
    flat: list[Axis] = []
    fused: list[bool] = []
    for item in axes:
        group = item if isinstance(item, _Fused) else (item,)
        for number, axis in enumerate(group):
            if not isinstance(axis, Axis):
                raise fail(
                    "builder/axis", f"T.sp.iteration over what is not an axis: {type(axis).__name__}", "list axes"
                )
            flat.append(axis)
            fused.append(number > 0)
    return _script.sparse_iteration(flat, fused, kinds, name)


def iteration_attr(attrs: dict[str, Any]) -> None:
    """Set annotations of the iteration by name."""
    _script.sparse_iteration_attr(attrs)


sp = SimpleNamespace(
    Axis=Axis,
    alloc_buffer=alloc_buffer,
    attach=attach,
    compressed_fixed=compressed_fixed,
    compressed_varied=compressed_varied,
    dense_fixed=dense_fixed,
    dense_varied=dense_varied,
    flatten=flatten,
    fuse=fuse,
    iteration=iteration,
    iteration_attr=iteration_attr,
    match_buffer=match_buffer,
)

# The spellings of SparseTIR's own implementation.
dense_variable = dense_varied
sparse_fixed = compressed_fixed
sparse_variable = compressed_varied
match_sparse_buffer = match_buffer
alloc_sparse_buffer = alloc_buffer
iter = sp_iter = iteration
iter_attr = sp_iter_attr = iteration_attr
