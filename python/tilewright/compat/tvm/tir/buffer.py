"""tvm.tir.buffer."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any

from tilewright import _core
from tilewright._core import Buffer
from tilewright.compat.tvm.alias import no_span
from tilewright.script.tir import buffers

__all__ = ["Buffer", "decl_buffer"]


def decl_buffer(
    shape: Any,
    dtype: Any = None,
    name: str = "buffer",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
    span: Any = None,
) -> Any:
    """Return a buffer."""
    no_span(span)
    return buffers.declare(
        shape,
        "float32" if dtype is None else str(dtype),
        name=name,
        data=data,
        strides=strides,
        elem_offset=elem_offset,
        scope=scope or "global",
        align=0 if data_alignment == -1 else data_alignment,
        offset_factor=offset_factor,
        buffer_type=buffer_type,
        axis_separators=axis_separators,
    )


def get_flattened_buffer(self: Buffer) -> Any:
    """Return a buffer of the same memory with one dimension for each group of dimensions between axis separators."""
    ends = [*(int(position) for position in self.axis_separators), len(self.shape)]
    groups, first = [], 0
    for end in ends:
        groups.append(self.shape[first:end])
        first = end
    one = _core.const(1, self.shape[0].dtype) if self.shape else 1
    shape = [reduce(mul, group, one) for group in groups]
    separators = list(range(1, len(shape)))
    return decl_buffer(
        shape, self.dtype, self.name, self.data, None, self.elem_offset, self.scope(), axis_separators=separators
    )


setattr(Buffer, "get_flattened_buffer", get_flattened_buffer)  # noqa: B010
#: What access_ptr() takes for a mask, as bits.
setattr(Buffer, "READ", 1)  # noqa: B010
setattr(Buffer, "WRITE", 2)  # noqa: B010
