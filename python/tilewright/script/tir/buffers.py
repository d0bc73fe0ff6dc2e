"""T.Buffer: a buffer in an annotation, or a buffer that is declared nowhere."""

from __future__ import annotations

import warnings
from typing import Any

from tilewright import _core
from tilewright.script.core import script as _script
from tilewright.script.tir.dtypes import check_dtype, handle


class _BufferNamespace:
    """T.Buffer(shape, dtype, ...), and the older spelling T.Buffer[shape, dtype]."""

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str = "global",
        align: int = 0,
        offset_factor: int = 0,
        buffer_type: str = "",
        axis_separators: Any = None,
        name: str = "buffer",
    ) -> Any:
        """Return a buffer; `shape` may also be a buffer, to get another one like it.

        Args:
            shape: the extents, expressions too; or a buffer.
            dtype: data type of an element.
            data: the pointer to its memory; by default a new variable.
            strides: elements between neighbors of each dimension; omitted, the buffer is contiguous.
            elem_offset: elements in front of the first one.
            scope: memory scope: global, local, shared, ...
            align: bytes of which the address of the first element is a multiple.
            offset_factor: elements of which elem_offset is a multiple.
            buffer_type: "default", or "auto_broadcast".
            axis_separators: dimensions before which flat ones begin.
            name: where no script names it.
        """
        if isinstance(shape, _core.Buffer):
            return like(shape)
        check_dtype(dtype)
        layout = (data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
        return _script.buffer(shape, str(dtype), *layout, name)

    def __getitem__(self, key: Any) -> Any:
        warnings.warn("T.Buffer[...] is an old spelling of T.Buffer(...)", DeprecationWarning, stacklevel=2)
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], str):
            return self(*key)
        return self(key)

    def __repr__(self) -> str:
        return "T.Buffer"


Buffer = _BufferNamespace()


def like(buffer: Any) -> Any:
    """Return a new buffer of the same shape, type and layout."""
    return _script.buffer(
        buffer.shape,
        buffer.dtype,
        strides=list(buffer.strides),
        elem_offset=buffer.elem_offset,
        scope=buffer.scope(),
        align=buffer.data_alignment,
        offset_factor=buffer.offset_factor if buffer.offset_factor > 1 else 0,
        axis_separators=list(buffer.axis_separators),
    )


class _Ptr:
    """The older spelling of a typed handle: T.Ptr[T.float32]."""

    def __call__(self, dtype: Any, storage_scope: str = "global") -> Any:
        return handle(str(dtype), storage_scope)

    def __getitem__(self, key: Any) -> Any:
        warnings.warn("T.Ptr[...] is an old spelling of T.handle(...)", DeprecationWarning, stacklevel=2)
        return self(*key) if isinstance(key, tuple) else self(key)


Ptr = _Ptr()


def buffer_var(dtype: Any, storage_scope: str = "global") -> Any:
    """Return a new pointer variable.

    Args:
        dtype: the type of the elements it points to.
        storage_scope: the memory it points to, such as "global".

    Returns:
        The variable, of type handle.
    """
    return handle(str(dtype), storage_scope)


def declare(shape: Any, dtype: str = "float32", *, name: str = "buffer", **layout: Any) -> Any:
    """Return a buffer with a name of its own; `layout` as for T.Buffer."""
    return _script.buffer(shape, dtype, name=name, **layout)
