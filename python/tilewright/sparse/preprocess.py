"""Split the part of a sparse program that depends only on its structure into its own function (SparseTIR, section 3.2).

Statements at the top of a function whose blocks or iterations are annotated ``preprocess`` (copies into a format,
positions that are searched for) may run once for many calls. Buffers in which they keep results become parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.sparse.specialize import require_function, without
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of
from tilewright.task.declared_values import DISJOINT, DOMAINS

KEY = "preprocess"


def extract_preprocess(func: ir.PrimFunc) -> ir.PrimFunc:
    """Return a function of the statements that are annotated ``preprocess``, and of nothing else.

    Args:
        func: a program over axes, or one that is lowered. It stays as it is.

    Returns:
        The function, whose parameters are followed by one for each buffer in which the statements leave results for
        others: ``NAME_ptr``.

    Raises:
        tilewright.ArgumentError: One of them reads or writes what others write ("sparse/preprocess").
    """
    return _part(func, is_preprocess=True)


def remove_preprocess(func: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function without the statements that are annotated ``preprocess``.

    Its parameters are those of :func:`extract_preprocess`, which runs first, for the same arguments.
    """
    return _part(func, is_preprocess=False)


def remove_unused_arguments(func: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function without parameters that it does not use; others keep their order.

    A buffer that is not accessed is kept where it defines a size that is used, by its shape. What is declared of others
    is dropped with them.
    """
    require_function(func, "sparse/preprocess")
    func = _without_declarations_of_unused(func)
    used = {*_core.undefined_vars(func.body)}
    bodies: list[Any] = [func.body]
    for axis in func.axes:
        ends = (axis.length, axis.nnz, axis.nnz_cols)
        bodies += [each for each in (*ends, axis.indptr, axis.indices) if each is not None]
    touched = {buffer for body in bodies for buffer in _buffers(body)}
    touched |= {buffer for axis in func.axes for buffer in (axis.indptr, axis.indices) if buffer is not None}
    for end in bodies[1:]:
        used |= {*_core.undefined_vars(end)} if isinstance(end, _core.Expr) else set()
    kept = {param: buffer for param, buffer in func.buffer_map.items() if buffer in touched or buffer.data in used}
    sizes, known = used.copy(), {*func.params}
    for buffer in kept.values():
        sizes |= _sizes(buffer)
        known |= _defined(buffer)
    for param, buffer in func.buffer_map.items():
        # Sizes that are known from the shape of an unused buffer only.
        if param not in kept and (sizes - known) & _defined(buffer):
            kept[param] = buffer
            sizes |= _sizes(buffer)
            known |= _defined(buffer)
    buffers = {param: buffer for param, buffer in func.buffer_map.items() if param in kept}
    params = [p for p in func.params if p in buffers or (p not in func.buffer_map and p in sizes)]
    return ir.PrimFunc(params, buffers, func.ret_type, func.attrs, func.body, func.axes)


def _without_declarations_of_unused(func: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function without buffer declarations (T.assume_*) about parameters that no statement accesses."""
    realize: Any = func.body if isinstance(func.body, ir.BlockRealize) and not func.body.block.iter_vars else None
    if realize is None:
        return func
    root = realize.block
    plain = {key: value for key, value in root.annotations.items() if key not in (DOMAINS, DISJOINT)}
    touched = _buffers(with_fields(root, annotations=plain))
    for region, *parts in root.annotations.get(DOMAINS, ()):
        if region.buffer in touched:  # with the offsets of its segments
            touched |= {part.buffer for part in parts if isinstance(part, ir.BufferRegion)}
    for buffer in func.buffer_map.values():
        if buffer not in touched:
            root = without(root, buffer) or root
    if root is realize.block:
        return func
    body = ir.BlockRealize(realize.iter_values, realize.predicate, root)
    return ir.PrimFunc(func.params, func.buffer_map, func.ret_type, func.attrs, body, func.axes)


def _sizes(buffer: ir.Buffer) -> set[Any]:
    layout = [*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset])]
    return {variable for each in layout if isinstance(each, _core.Expr) for variable in _core.undefined_vars(each)}


def _defined(buffer: ir.Buffer) -> set[Any]:
    return {extent for extent in buffer.shape if isinstance(extent, ir.Var)}


def _part(func: ir.PrimFunc, *, is_preprocess: bool) -> ir.PrimFunc:
    require_function(func, "sparse/preprocess")
    realize: Any = func.body if isinstance(func.body, ir.BlockRealize) and not func.body.block.iter_vars else None
    root = None if realize is None else realize.block
    body = func.body if root is None else root.body
    statements = list(body.seq) if isinstance(body, ir.SeqStmt) else [body]
    first = [statement for statement in statements if _is_annotated(statement)]
    others = [statement for statement in statements if not _is_annotated(statement)]
    _check_apart(first, others)
    own = [] if root is None else list(root.alloc_buffers)
    shared = [buffer for buffer in own if buffer in _written(first)]
    handles = {ir.Var(f"{buffer.name}_ptr", "handle"): buffer for buffer in shared}
    kept: list[Any] = (first if is_preprocess else others) or [ir.Evaluate(0)]
    new: Any = kept[0] if len(kept) == 1 else _core.seq(kept)
    if root is not None:
        touched = _buffers(new)
        written = _written(kept)
        block = with_fields(
            root,
            body=new,
            alloc_buffers=[buffer for buffer in own if buffer not in shared and buffer in touched],
            reads=[region for region in root.reads if region.buffer in touched],
            writes=[region for region in root.writes if region.buffer in written],
        )
        new = ir.BlockRealize(realize.iter_values, realize.predicate, block)
    params, buffers = [*func.params, *handles], {**func.buffer_map, **handles}
    return ir.PrimFunc(params, buffers, func.ret_type, func.attrs, new, func.axes)


def _is_annotated(statement: Any) -> bool:
    return any(KEY in node.annotations for node in nodes_of(statement, ir.Block, ir.SparseIteration))


def _buffers(statement: Any) -> set[ir.Buffer]:
    """Return the buffers that a statement reads or writes."""
    return {node.buffer for node in nodes_of(statement, ir.BufferLoad, ir.BufferStore, ir.BufferRegion)}


def _written(statements: Sequence[Any]) -> set[ir.Buffer]:
    return {store.buffer for statement in statements for store in nodes_of(statement, ir.BufferStore)}


def _check_apart(first: Sequence[Any], others: Sequence[Any]) -> None:
    later = _written(others)
    for statement in first:
        for buffer in sorted(_buffers(statement), key=lambda each: each.name):
            if buffer in later:
                message = f"a statement that is annotated 'preprocess' accesses '{buffer.name}', which others write"
                hint = "annotate what depends on the structure alone"
                raise ArgumentError.of("sparse/preprocess", message, hint)
