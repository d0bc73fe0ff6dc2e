"""Check that the kernels of a lowered function stay within the limits of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.runtime.data_type import DataType

_LIMITS = (
    *("max_local_memory_per_block", "max_shared_memory_per_block", "max_threads_per_block", "max_thread_x"),
    *("max_thread_y", "max_thread_z", "max_vthread", "max_vector_bytes", "max_kernels"),
)
_THREADS = {
    "threadIdx.x": "max_thread_x",
    "threadIdx.y": "max_thread_y",
    "threadIdx.z": "max_thread_z",
    "vthread": "max_vthread",
}


def _constant(extent: Any) -> int:
    if not isinstance(extent, ir.IntImm):
        raise ValueError(f"the number of threads {extent} is not a constant")
    return int(extent.value)


def inside(node: Any) -> list[Any]:
    """Return the statements directly inside a statement."""
    if isinstance(node, ir.SeqStmt):
        return list(node.seq)
    parts = (getattr(node, name, None) for name in ("init", "body", "then_case", "else_case", "block"))
    return [part for part in parts if isinstance(part, _core.Stmt)]


class _Kernels:
    """Measures of the kernels of a function; ``fits`` is False once something exceeds its limit."""

    def __init__(self, limits: Mapping[str, Any]) -> None:
        self.limits = {name: int(limit) for name, limit in limits.items()}
        self.fits = True
        self.kernels = 0
        self.around: list[str] = []
        self.memory: dict[str, int] = {}
        self.threads: dict[str, int] = {}

    def require(self, name: str, value: int) -> None:
        if value > self.limits.get(name, value):
            self.fits = False

    def statement(self, node: Any) -> None:
        axis = self._axis(node)
        if axis is not None and not self.around:
            self.memory, self.threads = {}, {}
            self.kernels += 1
        if axis is not None:
            self._bind(*axis)
            self.around.append(axis[0])
        self._vectors(node)
        for part in inside(node):
            self.statement(part)
        if isinstance(node, ir.Allocate):
            self._allocate(node)
        if axis is not None:
            self.around.pop()
            if not self.around:
                self._close()

    def _axis(self, node: Any) -> tuple[str, int] | None:
        """Return the thread axis that a statement launches, and how many threads."""
        if isinstance(node, ir.AttrStmt) and node.attr_key in ("thread_extent", "virtual_thread"):
            thread: Any = node.node
            return thread.thread_tag or thread.var.name, _constant(node.value)
        if isinstance(node, ir.For) and node.thread_binding is not None:
            return node.thread_binding.thread_tag, _constant(node.extent)
        return None

    def _bind(self, tag: str, extent: int) -> None:
        name = "vthread" if tag.startswith("vthread") else tag
        if name not in _THREADS:
            return
        if name not in self.threads:
            self.threads[name] = extent
            self.require(_THREADS[name], extent)
        elif name != "vthread" and self.threads[name] != extent:
            self.fits = False

    def _allocate(self, node: Any) -> None:
        count = 1
        for extent in node.extents:
            count *= extent.value if isinstance(extent, ir.IntImm) else 0
        scope = (getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global").split(".")[0]
        self.memory[scope] = self.memory.get(scope, 0) + count * DataType(node.dtype).itemsize()
        self._vector(node.dtype)

    def _close(self) -> None:
        threads = 1
        for extent in self.threads.values():
            threads *= extent
        self.require("max_threads_per_block", threads)
        self.require("max_local_memory_per_block", self.memory.get("local", 0))
        self.require("max_shared_memory_per_block", self.memory.get("shared", 0))
        self.require("max_kernels", self.kernels)

    def _vector(self, dtype: str) -> None:
        if DataType(dtype).lanes > 1:
            self.require("max_vector_bytes", DataType(dtype).itemsize())

    def _vectors(self, node: Any) -> None:
        """Check vectors in the expressions of a statement, without those of nested statements."""
        if "max_vector_bytes" not in self.limits:
            return
        statements = inside(node)

        def see(part: Any) -> bool:
            if isinstance(part, ir.Cast | ir.BufferLoad):
                self._vector(part.dtype)
            elif isinstance(part, ir.BufferStore):
                self._vector(part.value.dtype)
            return not any(part.same_as(each) for each in statements)

        _core.pre_order_visit(node, see)


def verify_gpu_code(func: Any, constraints: Mapping[str, Any]) -> bool:
    """Return whether the kernels of a lowered function observe limits by name, such as "max_threads_per_block".

    Raises:
        ValueError: there is no limit of that name.
    """
    for name in constraints:
        if name not in _LIMITS:
            raise ValueError(f"Invalid check item: {name}")
    kernels = _Kernels(constraints)
    kernels.statement(func.body)
    return kernels.fits
