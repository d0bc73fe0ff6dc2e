"""tvm.tir.analysis: facts about programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.tir.estimate_flops import estimate_tir_flops
from tilewright.compat.tvm.tir.verify_gpu_code import inside, verify_gpu_code
from tilewright.compat.tvm.transform import Pass, PassInfo
from tilewright.errors import ScriptError
from tilewright.meta_schedule import find_anchor_block
from tilewright.support.numpy_dtype import numpy_dtype

__all__ = [
    "OOBChecker",
    "assert_pure_function",
    "calculate_allocated_bytes",
    "calculate_workspace_bytes",
    "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal",
    "find_anchor_block",
    "get_block_access_region",
    "get_block_read_write_region",
    "is_pure_function",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_ssa",
    "verify_well_formed",
]


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Return whether two expressions are equal, including their variables."""
    return _core.structural_equal(lhs, rhs)


class IllFormedError(ScriptError, ValueError):
    """A program is not well formed."""


def verify_well_formed(obj: Any, assert_mode: bool = True) -> bool:
    """Return whether a program is well formed; with `assert_mode`, raise an error if it is not.

    Raises:
        tilewright.ScriptError: it is not, which is a ValueError, too.
    """
    try:
        _core.verify(obj)
    except ScriptError as error:
        if not assert_mode:
            return False
        error.__class__ = IllFormedError
        raise
    return True


def undefined_vars(node: Any, defs: Sequence[Any] | None = None) -> list[Any]:
    """Return the variables that are used and not bound, except `defs`."""
    return list(_core.undefined_vars(node, list(defs or ())))


def get_block_access_region(block: Any, buffer_var_map: Mapping[Any, Any]) -> list[list[Any]]:
    """Return the regions that a block reads and writes, and the buffers that it uses by pointer, as a whole."""
    reads, writes, opaque = _core.block_access_region(block)
    whole = []
    for variable in opaque:
        buffer = buffer_var_map[variable]
        whole.append(_core.BufferRegion(buffer, [_core.Range(ir.const(0, n.dtype), n) for n in buffer.shape]))
    return [list(reads), list(writes), whole]


def get_block_read_write_region(block: Any, buffer_var_map: Mapping[Any, Any]) -> list[list[Any]]:
    """Return the regions that a block may read and may write; buffers used by pointer are in both."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [reads + opaque, writes + opaque]


def _own_accesses(node: Any) -> list[Any]:
    """Return the buffers that a statement itself accesses, without those of nested statements."""
    found: list[Any] = []
    statements = inside(node)

    def see(part: Any) -> bool:
        if isinstance(part, ir.BufferLoad | ir.BufferStore):
            found.append(part.buffer)
        elif isinstance(part, ir.Var) and part.dtype == "handle":
            found.append(part)
        return not any(part.same_as(child) for child in statements)

    if not isinstance(node, ir.Block | ir.For):
        ir.pre_order_visit(node, see)
    elif isinstance(node, ir.Block):
        found.extend(match.source.buffer for match in node.match_buffers)
    return found


def detect_buffer_access_lca(func: Any) -> dict[Any, Any]:
    """Return, for each accessed buffer, the innermost loop or block that contains all accesses; None if none does."""
    places: dict[Any, list[Any]] = {}
    pointers = {buffer.data: buffer for buffer in func.buffer_map.values()}

    def walk(node: Any, around: list[Any]) -> None:
        if isinstance(node, ir.Block):
            pointers.update({buffer.data: buffer for buffer in node.alloc_buffers})
            pointers.update({match.buffer.data: match.buffer for match in node.match_buffers})
        scope = [*around, node] if isinstance(node, ir.Block | ir.For) else around
        for accessed in _own_accesses(node):
            buffer = pointers.get(accessed) if isinstance(accessed, ir.Var) else accessed
            if buffer is not None:
                places[buffer] = _common(places.get(buffer, scope), scope)
        for part in inside(node):
            walk(part, scope)

    walk(func.body, [])
    return {buffer: scope[-1] if scope else None for buffer, scope in places.items()}


def _common(left: list[Any], right: list[Any]) -> list[Any]:
    count = 0
    while count < min(len(left), len(right)) and left[count].same_as(right[count]):
        count += 1
    return left[:count]


def calculate_workspace_bytes(func: Any, workspace_byte_alignment: int) -> int:
    """Return the peak number of bytes of allocations of constant size."""

    def most(node: Any) -> int:
        own = 0
        if isinstance(node, ir.Allocate):
            count = 1
            for extent in node.extents:
                count *= extent.value if isinstance(extent, ir.IntImm) else 0
            size = count * numpy_dtype(node.dtype).itemsize
            own = -(-size // workspace_byte_alignment) * workspace_byte_alignment
        return own + max((most(part) for part in inside(node)), default=0)

    return most(func.body)


def calculate_allocated_bytes(func_or_mod: Any) -> dict[str, Any]:
    """Return the bytes of constant-size allocations by memory scope; for a module, by function."""
    if isinstance(func_or_mod, ir.Module):
        return {
            str(name): calculate_allocated_bytes(function)
            for name, function in func_or_mod.functions.items()
            if isinstance(function, ir.PrimFunc)
        }
    found: dict[str, int] = {}

    def add(dtype: str, extents: Sequence[Any], scope: str) -> None:
        sizes = [extent.value if isinstance(extent, ir.IntImm) else 0 for extent in extents]
        found[scope] = found.get(scope, 0) + math.prod(sizes) * numpy_dtype(dtype).itemsize

    def see(node: Any) -> None:
        if isinstance(node, ir.Allocate):
            add(node.dtype, node.extents, getattr(node.buffer_var.type_annotation, "storage_scope", "") or "global")
        elif isinstance(node, ir.Block):
            for buffer in node.alloc_buffers:
                add(buffer.dtype, buffer.shape, buffer.scope())

    ir.post_order_visit(func_or_mod.body, see)
    return found


def is_pure_function(func: Any) -> bool:
    """Return whether a function writes only to its own allocations."""
    return not _effect_of(func)


def assert_pure_function(func: Any) -> bool:
    """Return whether a function is pure; raise an error if it is not.

    Raises:
        AssertionError: the function changes memory of its caller, or calls a function with an effect.
    """
    effect = _effect_of(func)
    assert not effect, f"the function is not pure: {effect}"
    return True


def _effect_of(func: Any) -> str:
    """Return a description of a function's effect, or ""."""
    own: set[Any] = set()
    found: list[str] = []

    def see(node: Any) -> bool:
        if isinstance(node, ir.Allocate):
            own.add(node.buffer_var)
        elif isinstance(node, ir.Block):
            own.update(buffer.data for buffer in node.alloc_buffers)
        elif isinstance(node, ir.BufferStore) and node.buffer.data not in own:
            found.append(f"it stores to {node.buffer.name}")
        elif isinstance(node, ir.Call) and getattr(node.op, "name", "") != "tir.ret" and _core.has_effect(node):
            found.append(f"it calls {node.op}")
        return True

    ir.pre_order_visit(func.body, see)
    return found[0] if found else ""


def verify_memory(func: Any) -> bool:
    """Return whether a function for a GPU accesses the memory of its parameters only inside loops bound to threads."""
    target = func.attrs.get("target")
    if target is None or "gpu" not in _core.Target(target).keys:
        return True
    outside = {buffer.data for buffer in func.buffer_map.values()}
    clean = True

    def see(node: Any) -> bool:
        nonlocal clean
        if isinstance(node, ir.For) and node.kind == ir.ForKind.THREAD_BINDING:
            return False
        if isinstance(node, ir.AttrStmt) and node.attr_key == "thread_extent":
            return False
        if isinstance(node, ir.BufferLoad | ir.BufferStore) and node.buffer.data in outside:
            clean = False
        return clean

    ir.pre_order_visit(func.body, see)
    return clean


def verify_ssa(func: Any) -> bool:
    """Return whether each variable is bound once."""
    bound: list[Any] = []

    def see(node: Any) -> None:
        if isinstance(node, ir.For):
            bound.append(node.loop_var)
        elif isinstance(node, ir.LetStmt | ir.Let):
            bound.append(node.var)
        elif isinstance(node, ir.Allocate):
            bound.append(node.buffer_var)

    ir.post_order_visit(func.body, see)
    bound.extend(func.params)
    return len(set(bound)) == len(bound)


def OOBChecker() -> Pass:
    """Return the pass that raises an error if an access is provably out of bounds."""

    def run(mod: Any, context: Any) -> Any:
        _core.verify(mod)
        return mod

    return Pass(run, PassInfo(0, "tir.OOBChecker"))
