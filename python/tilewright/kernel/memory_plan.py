"""Memory plan of a device's kernels, derived from the lowered program: shared memory, registers, and barriers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tilewright import _core, ir
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.tables import Table

__all__ = ["KernelMemory", "PlacedBuffer", "memory_of_kernels", "memory_text"]


@dataclass(frozen=True)
class PlacedBuffer:
    """A buffer inside a kernel.

    Attributes:
        elements: number of elements; None if it depends on sizes.
        offset: offset in bytes of a buffer within shared memory; None for a thread's own memory.
    """

    name: str
    scope: str
    dtype: str
    elements: int | None
    offset: int | None = None

    @property
    def bytes(self) -> int | None:
        """Return the size of all elements in bytes."""
        return None if self.elements is None else self.elements * numpy_dtype(self.dtype).itemsize


@dataclass
class KernelMemory:
    """A kernel with the number of threads per block, its barriers, and its buffers in program order.

    Attributes:
        shared_bytes: bytes of shared memory per block; None if they depend on sizes.
    """

    kernel: str
    threads: int = 1
    barriers: int = 0
    shared_bytes: int | None = 0
    buffers: list[PlacedBuffer] = field(default_factory=list)


def memory_of_kernels(lowered: ir.Module) -> list[KernelMemory]:
    """Return the memory plan of each kernel of a lowered module."""
    return [
        KernelMemory(**sizes, buffers=_buffers_of(lowered.functions[sizes["kernel"]]))
        for sizes in _core.kernel_sizes(lowered)
    ]


def memory_text(lowered: ir.Module) -> str:
    """Return a table for each kernel, with the memory of its buffers and which buffers share bytes."""
    return "\n\n".join(str(_table(kernel)) for kernel in memory_of_kernels(lowered))


def _table(kernel: KernelMemory) -> Table:
    many = "an open number of" if kernel.shared_bytes is None else f"{kernel.shared_bytes}"
    waits = f"{kernel.barriers} barrier{'' if kernel.barriers == 1 else 's'}"
    title = f"{kernel.kernel}: blocks of {kernel.threads} threads, {many} bytes of shared memory, {waits}"
    rows = [
        (each.name, each.scope, f"{_count(each.elements)} {each.dtype}", _count(each.bytes), *_location(each, kernel))
        for each in kernel.buffers
    ]
    return Table(title, ("buffer", "scope", "elements", "bytes", "begins at", "shares bytes with"), tuple(rows))


def _location(buffer: PlacedBuffer, kernel: KernelMemory) -> tuple[str, str]:
    if buffer.offset is None:
        return ("each thread", "")
    others = {each.name: None for each in kernel.buffers if each is not buffer and _overlap(buffer, each)}
    return (str(buffer.offset), ", ".join(others))


def _overlap(a: PlacedBuffer, b: PlacedBuffer) -> bool:
    if a.offset is None or b.offset is None or a.bytes is None or b.bytes is None:
        return False
    return a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)


def _buffers_of(function: Any) -> list[PlacedBuffer]:
    buffers: list[PlacedBuffer] = []
    views: list[Any] = []
    addresses: list[tuple[Any, int]] = []

    def look(node: object) -> None:
        if isinstance(node, ir.Allocate):
            pointer: Any = node.buffer_var
            scope, elements = str(pointer.type_annotation.storage_scope), _product(node.extents)
            if not scope.startswith("shared"):
                buffers.append(PlacedBuffer(str(pointer.name), scope or "global", str(node.dtype), elements))
        elif isinstance(node, ir.DeclBuffer):
            views.append(node.buffer)
        elif isinstance(node, ir.LetStmt) and (at := _address(node.value)) is not None:
            addresses.append((node.var, at))

    _core.visit(function.body, look)
    for pointer, at in addresses:
        view = next((view for view in views if view.data.same_as(pointer)), None)
        if view is not None:
            elements = _product(view.shape)
            buffers.append(PlacedBuffer(str(pointer.name), str(view.scope()), str(view.dtype), elements, at))
    return [*dict.fromkeys(buffers)]  # a loop that was split has its buffers in each part


def _address(value: Any) -> int | None:
    """Return the offset in the arena that an address expression has; None for other expressions."""
    if not isinstance(value, ir.Call) or getattr(value.op, "name", "") != "tir.address_of":
        return None
    first = value.args[0]
    return _constant(first.indices[0]) if isinstance(first, ir.BufferLoad) else None


def _product(extents: Any) -> int | None:
    counts = [_constant(extent) for extent in extents]
    known = [count for count in counts if count is not None]
    return math.prod(known) if len(known) == len(counts) else None


def _constant(value: Any) -> int | None:
    return int(value.value) if isinstance(value, ir.IntImm) else None
