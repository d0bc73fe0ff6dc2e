"""Put statements outside of any block into blocks: primitives schedule blocks, and only kernels access device memory.

    for i, j in T.grid(4, 6):          for i, j in T.grid(4, 6):
        B[i, j] = A[i, j] * 2.0   =>       with T.block("B"):
                                               vi, vj = T.axis.remap("SS", [i, j])
                                               B[vi, vj] = A[vi, vj] * 2.0

Axes change nothing: the block runs in the order of its loops, until a primitive proves that another order gives the
same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of


def with_blocks(function: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function with each statement in a block; return `function` itself if all of them are."""
    realize: Any = function.body if isinstance(function.body, ir.BlockRealize) else None
    if realize is not None and realize.block.iter_vars:
        return function
    body = function.body if realize is None else realize.block.body
    new = _in_blocks(body)
    if new is body:
        return function
    if realize is None:
        root = ir.Block(name_hint="root", body=new)
        realize = ir.BlockRealize([], _core.const(True, "bool"), root)
    else:
        realize = ir.BlockRealize([], realize.predicate, with_fields(realize.block, name_hint="root", body=new))
    return with_fields(function, body=realize)


def _in_blocks(statement: Any) -> Any:
    """Put each outermost statement without blocks into a block."""
    match statement:
        case ir.SeqStmt():
            parts = [_in_blocks(part) for part in statement.seq]
            same = all(new is old for new, old in zip(parts, statement.seq, strict=True))
            return statement if same else _core.seq(parts)
        case ir.AssertStmt() | ir.Allocate() | ir.DeclBuffer() | ir.AttrStmt():
            # Checks and declarations run on the host.
            return _around(statement)
        case ir.LetStmt() if not nodes_of(statement.value, ir.BufferLoad):
            return _around(statement)
    return (
        statement
        if _has_blocks_or_threads(statement) or not nodes_of(statement, ir.BufferStore)
        else _block_of(statement)
    )


def _around(statement: Any) -> Any:
    body = _in_blocks(statement.body)
    return statement if body is statement.body else with_fields(statement, body=body)


def _block_of(statement: Any) -> Any:
    """Make a block inside the outer loops whose variables index every store below them; or inside all loops of a nest
    without such loops, whose steps then have an order that only a proof changes."""
    loops, body = _outer_loops(statement, lambda loop: _identifies(loop.loop_var, loop.body))
    kind = ir.IterType.DATA_PAR
    if not loops:
        nest, inner = _outer_loops(statement, lambda _: True)
        if not nodes_of(inner, ir.For):
            loops, body, kind = nest, inner, ir.IterType.OPAQUE
    axes = [_axis_over(loop, kind) for loop in loops]
    # Primitives split loops that begin at 0.
    values = [loop.loop_var + loop.min for loop in loops]
    inside: Any = _core.substitute(body, {loop.loop_var: axis.var for loop, axis in zip(loops, axes, strict=True)})
    block = ir.Block(axes, name_hint=nodes_of(body, ir.BufferStore)[0].buffer.name, body=inside)
    reads, writes, _ = _core.block_access_region(block)
    new: Any = ir.BlockRealize(values, _core.const(True, "bool"), with_fields(block, reads=reads, writes=writes))
    for loop in reversed(loops):
        new = with_fields(loop, min=_core.const(0, loop.loop_var.dtype), body=new)
    return new


def _outer_loops(statement: Any, is_taken: Callable[[ir.For], bool]) -> tuple[list[ir.For], Any]:
    """Return the outermost plain loops as far as all of them are taken, and the statement inside of them."""
    loops: list[ir.For] = []
    while _is_plain_loop(statement, loops) and is_taken(statement):
        loops.append(statement)
        statement = statement.body
    return loops, statement


def _axis_over(loop: ir.For, kind: ir.IterType) -> ir.IterVar:
    variable = ir.Var(f"v{loop.loop_var.name_hint}", loop.loop_var.dtype)
    return ir.IterVar(ir.Range(loop.min, loop.extent), variable, kind)


def _is_plain_loop(statement: Any, around: list[ir.For]) -> bool:
    if not isinstance(statement, ir.For) or statement.kind != ir.ForKind.SERIAL or statement.annotations:
        return False
    variables = {loop.loop_var for loop in around}
    return not any(variables & set(_core.undefined_vars(bound)) for bound in (statement.min, statement.extent))


def _identifies(variable: ir.Var, body: Any) -> bool:
    """Return whether an index of each store contains the variable, and no index depends on data."""
    indices = [store.indices for store in nodes_of(body, ir.BufferStore)]
    depends_on_data = any(nodes_of(index, ir.BufferLoad) for each in indices for index in each)
    return not depends_on_data and all(
        any(variable in set(_core.undefined_vars(index)) for index in each) for each in indices
    )


def _has_blocks_or_threads(statement: Any) -> bool:
    return bool(nodes_of(statement, ir.Block)) or any(
        loop.thread_binding is not None for loop in nodes_of(statement, ir.For)
    )
