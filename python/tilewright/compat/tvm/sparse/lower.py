"""tvm.sparse.lower: from iterations to blocks, and from arrays of several dimensions to those of one."""

from __future__ import annotations

import functools
import operator
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.sparse.finish import with_inits, with_sums
from tilewright.compat.tvm.tir.transform.statements import function_pass, require_module
from tilewright.compat.tvm.transform import Pass
from tilewright.support.changed_nodes import with_fields

#: attribute of functions: positions of the parameters that were sparse buffers
ARRAYS = "sparse_arrays"
LEVEL = "sparse_tir_level"


def lower_sparse_iter(mod: Any, check_invalid_binary_search: bool = False) -> Any:
    """Return the module with sparse iterations lowered to blocks over arrays.

    Coordinates that are absent yield the default value, whether or not searches are to be checked, and stores to
    them are skipped. As published, nobody proves that there are none.
    """
    require_module(mod)
    return LowerSparseIter(check_invalid_binary_search)(mod)


def lower_sparse_buffer(mod: Any) -> Any:
    """Return the module in which parameters that were sparse buffers are flattened to one dimension, as published."""
    require_module(mod)
    return LowerSparseBuffer()(mod)


def LowerSparseIter(check_invalid_binary_search: bool = False) -> Pass:
    """Return the pass of :func:`lower_sparse_iter`."""
    return function_pass("LowerSparseIter", _lowered)


def LowerSparseBuffer() -> Pass:
    """Return the pass of :func:`lower_sparse_buffer`."""
    return function_pass("LowerSparseBuffer", _flattened)


def _lowered(func: ir.PrimFunc) -> Any:
    if not func.axes:
        return func
    sparse = [at for at, param in enumerate(func.params) if param in func.buffer_map and func.buffer_map[param].axes]
    names: dict[ir.Buffer, str] = {}
    for axis in func.axes:
        for array, kind in ((axis.indptr, "indptr"), (axis.indices, "indices")):
            if array is not None:
                names.setdefault(array, f"{axis.name}_{kind}")
    lowered: Any
    (lowered,) = _core.lower_sparse_iterations(_core.as_module(func), published=True).functions.values()
    arrays = [*lowered.buffer_map.values(), *lowered.body.block.alloc_buffers]
    buffers = {old: _named(old, names.get(old, old.name)) for old in arrays}
    made: Any = _core.rewrite(lowered, lambda node: buffers.get(node) if isinstance(node, ir.Buffer) else None)
    made = _core.rewrite(_core.rewrite(made, _substitute_unit_axes), fold_integers)
    return made.with_attr({LEVEL: 1, ARRAYS: sparse})


def _substitute_unit_axes(node: Any) -> Any:
    """Return a block with 0 in place of its axes of extent 1, such as the root of DCSR; None for other nodes.

    The axes stay, so that blocks and loops are those that are published. With their variables, one position would have
    two names, `I_indptr[vo]` and `I_indptr[0]`, of which analyses make one only where they know the range of `vo`.
    """
    if not isinstance(node, ir.Block):
        return None
    ranges = {each.var: each.dom for each in node.iter_vars if each.dom is not None}
    zeros: dict[Any, Any] = {
        var: _core.const(0, var.dtype)
        for var, values in ranges.items()
        if isinstance(values.extent, ir.IntImm) and int(values.extent.value) == 1
    }
    if not zeros:
        return None
    return with_fields(
        node,
        reads=[_core.substitute(region, zeros) for region in node.reads],
        writes=[_core.substitute(region, zeros) for region in node.writes],
        init=None if node.init is None else _core.substitute(node.init, zeros),
        body=_core.rewrite(_core.substitute(node.body, zeros), _substitute_unit_axes),
    )


def _named(buffer: ir.Buffer, name: str) -> ir.Buffer:
    return with_fields(buffer, name=name, shape=[_core.rewrite(extent, fold_integers) for extent in buffer.shape])


_OPERATIONS = _core.Add, _core.Sub, _core.Mul, _core.FloorDiv, _core.FloorMod, _core.Min, _core.Max


def fold_integers(node: Any) -> Any:
    """Return the result of an operation on integer constants, such as sizes that specialize() has fixed; None for other
    nodes."""
    if not isinstance(node, _OPERATIONS):
        return None
    leaves: list[Any] = []
    _core.visit(node, lambda each: None if isinstance(each, _OPERATIONS) else leaves.append(each))
    return _core.Analyzer().simplify(node) if all(isinstance(leaf, ir.IntImm) for leaf in leaves) else None


def with_initialization(func: ir.PrimFunc) -> Any:
    """Return a function of lowered iterations with all elements initialized, and its atomic blocks accumulating; other
    functions unchanged."""
    return with_inits(with_sums(func)) if ARRAYS in func.attrs else func


def _flattened(func: ir.PrimFunc) -> Any:
    if ARRAYS not in func.attrs:
        return func
    func = with_initialization(func)
    positions = [int(at) for at in func.attrs[ARRAYS]]
    flat: dict[ir.Buffer, ir.Buffer] = {}
    for at in positions:
        old = func.buffer_map.get(func.params[at]) if at < len(func.params) else None
        if old is not None and len(old.shape) > 1:
            flat[old] = with_fields(old, shape=[_product(old.shape)], name=f"{old.name}_data")

    def changed(node: Any) -> Any:
        if isinstance(node, ir.MatchBufferRegion) and node.source.buffer in flat.values():
            raise TypeError(f"Tilewright flattens no buffer that T.match_buffer views: {node.source.buffer.name}")
        buffer = getattr(node, "buffer", None)
        if not isinstance(node, ir.BufferLoad | ir.BufferStore | ir.BufferRegion) or buffer not in flat:
            return None
        if isinstance(node, ir.BufferLoad):
            return ir.BufferLoad(flat[buffer], [_offset(buffer, node.indices)])
        if isinstance(node, ir.BufferStore):
            return ir.BufferStore(flat[buffer], node.value, [_offset(buffer, node.indices)])
        if all(isinstance(dim.extent, ir.IntImm) and int(dim.extent.value) == 1 for dim in node.region):
            point = _offset(buffer, [dim.min for dim in node.region])
            return ir.BufferRegion(flat[buffer], [ir.Range(point, _core.const(1, point.dtype))])
        extent = flat[buffer].shape[0]
        return ir.BufferRegion(flat[buffer], [ir.Range(_core.const(0, extent.dtype), extent)])

    body: Any = _core.rewrite(func.body, changed)
    buffers = {param: flat.get(buffer, buffer) for param, buffer in func.buffer_map.items()}
    made = ir.PrimFunc(func.params, buffers, func.ret_type, func.attrs, body)
    return made.without_attr(ARRAYS).with_attr(LEVEL, 0)


def _product(extents: Any) -> Any:
    return _core.Analyzer().simplify(functools.reduce(operator.mul, extents))


def _offset(buffer: ir.Buffer, indices: Any) -> Any:
    at = _core.const(0, buffer.shape[0].dtype)
    for extent, index in zip(buffer.shape, indices, strict=True):
        is_one = isinstance(extent, ir.IntImm) and int(extent.value) == 1  # regions name its only element
        at = at * extent + (0 if is_one else index)
    return _core.Analyzer().simplify(at)
