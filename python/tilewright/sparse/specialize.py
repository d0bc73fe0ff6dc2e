"""Indices that follow from formulas: no array of indices is loaded (SparseTIR, section 3.3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.script.tir.index_maps import index_map
from tilewright.support.changed_nodes import with_fields
from tilewright.task.declared_values import DISJOINT, DOMAINS, SIZES


def require_function(func: Any, code: str) -> None:
    """Check that a program is a function.

    Raises:
        tilewright.ArgumentTypeError: It is a module, or something else (`code`).
    """
    if not isinstance(func, ir.PrimFunc):
        message = f"the program is of type {type(func).__name__}"
        raise ArgumentTypeError.of(code, message, 'give a function; of a module, name it: module["main"]')


def specialize_buffer(
    func: ir.PrimFunc, name: str, formula: Callable[..., Any] | ir.IndexMap, inner: Any = None
) -> ir.PrimFunc:
    """Return a program that computes the elements of a buffer by a formula, instead of reading them.

    The buffer is no longer a parameter. With this, banded, strided and butterfly matrices need no index arrays.

    Args:
        func: a program over arrays: iterations are lowered.
        name: name of a parameter's buffer that the program only reads.
        formula: function from the indices of an element to its value, such as ``lambda p: (p * 2,)``. The elements are
            not compared with these values.
        inner: length of the rows that a one-dimensional array stores: the formula then takes the row and the
            position in it, ``lambda i, j: (i + j,)``. Or a function from the index of an element to a list of what the
            formula takes.

    Raises:
        tilewright.ArgumentError: The program has axes, no such parameter, or writes it; the formula takes another
            number of indices ("sparse/specialize").
    """
    require_function(func, "sparse/specialize")
    if func.axes:
        raise _refusal("the program has axes, which refer to their indices", "lower it first: sch.lower_sparse_iter()")
    found = [(param, buffer) for param, buffer in func.buffer_map.items() if buffer.name == name]
    if not found:
        names = ", ".join(buffer.name for buffer in func.buffer_map.values())
        raise _refusal(f"the program has no buffer {name!r} behind a parameter", f"its buffers are {names}")
    (param, buffer), *_ = found
    dimensions = len(buffer.shape)
    if inner is not None and dimensions != 1:
        raise _refusal(f"'{name}' has {dimensions} dimensions", "`inner` is for arrays of one")
    if callable(inner):
        made = formula if isinstance(formula, ir.IndexMap) else index_map(formula)
        dimensions = len(made.initial_indices)
    else:
        dimensions += inner is not None
        made = formula if isinstance(formula, ir.IndexMap) else index_map(formula, ndim=dimensions)
    if len(made.initial_indices) != dimensions or len(made.final_indices) != 1:
        message = f"the formula takes {len(made.initial_indices)} indices and gives {len(made.final_indices)} values"
        raise _refusal(message, f"'{name}' has {dimensions} dimensions: lambda i, ...: (value,)")
    analyzer = _core.Analyzer()

    def value(node: Any) -> Any:
        indices: list[Any] = list(node.indices)
        if callable(inner):
            indices = inner(indices[0])
        elif inner is not None:
            width = _core.cast(indices[0].dtype, inner)
            indices = [analyzer.simplify(part(indices[0], width)) for part in (_core.floordiv, _core.floormod)]
        (result,) = made.final_indices
        given = {old: _core.cast(old.dtype, new) for old, new in zip(made.initial_indices, indices, strict=True)}
        number: Any = _core.substitute(result, given)
        return _core.cast(buffer.dtype, number)

    def changed(node: Any) -> Any:
        if isinstance(node, ir.BufferStore) and node.buffer.same_as(buffer):
            raise _refusal(f"the program writes '{name}'", "only what it reads can follow from a formula")
        if isinstance(node, ir.BufferLoad) and node.buffer.same_as(buffer):
            return value(node)
        if isinstance(node, ir.Block):
            return without(node, buffer)
        return None

    buffers = {handle: each for handle, each in func.buffer_map.items() if not each.same_as(buffer)}
    params = [each for each in func.params if not each.same_as(param)]
    known = {*params, *(extent for each in buffers.values() for extent in each.shape)}
    body: Any = _with_known_sizes(_core.rewrite(func.body, changed), known)
    result = ir.PrimFunc(params, buffers, func.ret_type, func.attrs, body)
    _core.verify(_core.as_module(result), "scheduled")
    return result


def without(block: ir.Block, buffer: ir.Buffer) -> Any:
    """Return the block with the buffer removed from its regions and declarations; None if they do not mention it."""
    annotations = dict(block.annotations.items())
    for key in (DOMAINS, DISJOINT):
        declared = annotations.pop(key, ())
        kept = [
            each
            for each in declared
            if not any(isinstance(part, ir.BufferRegion) and part.buffer.same_as(buffer) for part in each)
        ]
        if kept:
            annotations[key] = kept
    reads = [region for region in block.reads if not region.buffer.same_as(buffer)]
    if len(reads) == len(block.reads) and not _mentions(block, buffer):
        return None
    return with_fields(block, reads=reads, annotations=annotations)


def _with_known_sizes(body: Any, known: set[Any]) -> Any:
    """Return the body of a function without the conditions on sizes of a parameter that is gone."""
    if not isinstance(body, ir.BlockRealize) or SIZES not in body.block.annotations:
        return body
    annotations = dict(body.block.annotations.items())
    kept = [each for each in annotations.pop(SIZES) if {*_core.undefined_vars(each[0])} <= known]
    if kept:
        annotations[SIZES] = kept
    return with_fields(body, block=with_fields(body.block, annotations=annotations))


def _mentions(block: ir.Block, buffer: ir.Buffer) -> bool:
    """Return whether a declaration of the block is about the buffer."""
    return any(
        isinstance(part, ir.BufferRegion) and part.buffer.same_as(buffer)
        for key in (DOMAINS, DISJOINT)
        for each in block.annotations.get(key, ())
        for part in each
    )


def _refusal(message: str, hint: str) -> ArgumentError:
    return ArgumentError.of("sparse/specialize", message, hint)
