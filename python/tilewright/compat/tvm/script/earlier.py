"""Spellings of scripts until TVM 0.9, on which SparseTIR's implementation stands: variables and buffers by calls, and
elements by pointers."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.script import tir
from tilewright.script.core import script as _script
from tilewright.script.report import fail


def var(dtype: Any) -> Any:
    """Return a new variable: ``n = T.var("int32")``."""
    return getattr(tir, str(dtype))()


def buffer_decl(
    shape: Any, dtype: str = "float32", data: Any = None, strides: Any = None, *layout: Any, **more: Any
) -> Any:
    """Return a buffer that is declared nowhere: ``A = T.buffer_decl((16,), "float32", data=p)``; see
    :class:`T.Buffer`."""
    return tir.Buffer(shape, dtype, data, strides, *layout, **more)


def preflattened_buffer(
    postflattened: Any, shape: Any, dtype: str = "float32", data: Any = None, *layout: Any, **more: Any
) -> None:
    """Declare the shape that the argument of a parameter has, whose elements the function accesses by a flat buffer."""
    pointer = postflattened.data if data is None else data
    more = {**more, "name": f"{postflattened.name}_preflatten"}
    _script.replace_parameter(postflattened, tir.Buffer(shape, dtype, pointer, *layout, **more))


def load(dtype: Any, var: Any, index: Any, predicate: Any = None) -> Any:
    """Return the element behind a pointer: ``T.load("float32", A.data, i)``."""
    value = tir.BufferLoad(_buffer(var), [index])
    if value.dtype != str(dtype):
        hint = "name the type of the elements; an index of several lanes loads as many"
        raise fail("builder/dtype", f"T.load of {dtype}, where the pointer and the index give {value.dtype}", hint)
    return value if _always(predicate) else tir.if_then_else(predicate, value, tir.Cast(str(dtype), 0))


def store(var: Any, index: Any, value: Any, predicate: Any = True) -> None:
    """Set the element behind a pointer: ``T.store(A.data, i, value)``."""
    if _always(predicate):
        tir.buffer_store(_buffer(var), value, [index])
        return
    with tir.If(predicate), tir.Then():
        tir.buffer_store(_buffer(var), value, [index])


def range(begin: Any, end: Any) -> Any:
    """Return the range from `begin` (inclusive) to `end` (exclusive).

    Scripts use it in ``T.iter_var(v, T.range(0, 8), "ThreadIndex", "threadIdx.x")``.
    """
    return ir.Range(begin, end - begin)


def _buffer(pointer: Any) -> Any:
    return pointer if isinstance(pointer, _core.Buffer) else _script.buffer_at(pointer)


def _always(predicate: Any) -> bool:
    """Return whether a predicate holds: that of all lanes, too."""
    if isinstance(predicate, _core.Broadcast):
        predicate = predicate.value
    return predicate is None or predicate is True or (isinstance(predicate, _core.IntImm) and bool(predicate.value))
