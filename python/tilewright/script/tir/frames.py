"""Statements that open a scope, and those inside: functions, loops, branches, blocks, allocations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import _core
from tilewright.script.core import TAKES_CONDITION as _TAKES_CONDITION
from tilewright.script.core import script as _script
from tilewright.script.report import fail
from tilewright.script.tir.dtypes import DTYPES as _DTYPES

parallel = _script.parallel
vectorized = _script.vectorized
unroll = _script.unroll
block = _script.block
init = _script.init
where = _script.where
block_attr = _script.block_attr
func_attr = _script.func_attr
func_name = _script.func_name
arg = _script.arg
evaluate = _script.evaluate
While = _script.while_
If = _script.if_
Then = _script.then_
Else = _script.else_
Assert = _script.assert_
env_thread = _script.env_thread
launch_thread = _script.launch_thread
alloc_buffer = _script.alloc_buffer
decl_buffer = _script.decl_buffer
allocate = _script.allocate


def func_ret(ret_type: Any) -> None:
    """Set the return type of the function: T.int32, or a type as a node.

    Args:
        ret_type: the type.
    """
    if callable(ret_type) and not isinstance(ret_type, _core.Node):
        ret_type = ret_type()
    _script.func_ret(ret_type.type_annotation if isinstance(ret_type, _core.Var) else ret_type)


def prefetch(buffer: Any, bounds: Any = None) -> None:
    """Prefetch a region into the cache, with one hint for each line of 64 bytes.

    Args:
        buffer: the buffer, or a region of it (``T.prefetch(A[i, 0:64])``).
        bounds: the ranges of the region, one for each dimension.
    """
    _script.prefetch(buffer if bounds is None else _core.BufferRegion(buffer, list(bounds)))


def assume_buffer_domain(
    buffer: Any, domain: Sequence[Any], *, order: str = "", segments: Any = None, longest: Any = None
) -> None:
    """Declare that every value of a buffer is in a range. Analyses believe it, and the interpreter checks it.

    The declaration holds for the whole block (for a function outside of blocks: for all of it), which must not write
    the buffer.

    Args:
        buffer: a buffer of integers.
        domain: the least value, and the end: one more than the greatest.
        order: ``"nondecreasing"`` or ``"increasing"`` if the values of a buffer of one dimension follow one another so;
            ``"distinct"`` if none occurs twice, in any order; ``"offsets"`` if they do not descend, from the least
            value of the domain to the greatest.
        segments: a buffer; the order holds from position ``segments[s]`` to before ``segments[s + 1]`` only. Or the
            length of each segment, if all have the same length.
        longest: maximum number of elements of a segment, if the values are offsets of segments, in the order
            ``"nondecreasing"`` or ``"offsets"``.
    """
    if isinstance(domain, str) or not isinstance(domain, Sequence) or len(domain) != 2:
        raise fail(
            "script/arguments", f"the domain is {domain!r}", "it has two ends: T.assume_buffer_domain(indices, [0, n])"
        )
    _script.assume_buffer_domain(buffer, domain[0], domain[1], order, segments, longest)


def assume_disjoint(*buffers: Any) -> None:
    """Declare that no value of one of these buffers is a value of another one, as of lists that divide rows among them.

    Analyses believe it, and the interpreter checks it, as those of :func:`assume_buffer_domain`.

    Args:
        buffers: at least two, of integers and one dimension. The same block declares the domain of each.
    """
    _script.assume_disjoint(list(buffers))


def serial(start: Any, stop: Any = None, *, annotations: dict[str, Any] | None = None) -> Any:
    """Open a loop from `start` (default 0) to `stop`, exclusive.

    Args:
        start, stop: the range; with one argument, it is the end.
        annotations: annotations of the loop, by name.

    Returns:
        What a ``for`` statement iterates over.
    """
    return _script.serial(start, stop, annotations)


def thread_binding(
    start: Any, stop: Any = None, thread: str | None = None, *, annotations: dict[str, Any] | None = None
) -> Any:
    """Open a loop whose iterations are the threads of an axis: ``T.thread_binding(32, thread="threadIdx.x")``.

    Args:
        start, stop: the range; with one argument, it is the end, and begins at 0.
        thread: the axis, such as "threadIdx.x"; it may stand in place of `stop`.
        annotations: annotations of the loop, by name.

    Returns:
        What a ``for`` statement iterates over.
    """
    if thread is None:
        if not isinstance(stop, str):
            raise fail("script/thread", "T.thread_binding needs a thread axis", 'add thread="threadIdx.x"')
        stop, thread = None, stop
    if stop is None:
        start, stop = 0, start
        if isinstance(stop, _core.Expr):
            start = _core.const(0, stop.dtype)
    return _script.thread_binding(start, stop, thread, annotations or {})


def grid(*extents: Any) -> Any:
    """Open a nest of serial loops, the first one outermost; also over the items of lists, as in ``T.grid(A.shape)``.

    Args:
        *extents: the numbers of iterations, or lists of them.

    Returns:
        What a ``for`` statement iterates over, with a variable for each loop.
    """
    flat: list[Any] = []
    for extent in extents:
        if isinstance(extent, list | tuple):
            flat.extend(extent)
        else:
            flat.append(extent)
    if any(extent is None for extent in flat):
        raise fail("builder/loop", "an extent of T.grid is None")
    return _script.grid(flat)


def _regions(what: str, regions: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for region in regions:
        if isinstance(region, list | tuple):
            flat.extend(_regions(what, region))
        elif isinstance(region, _core.Node):
            flat.append(region)
        else:
            raise fail(
                "script/region", f"T.{what} takes regions of buffers, not {type(region).__name__}", "write A[i, j]"
            )
    return flat


def reads(*regions: Any) -> None:
    """Declare the regions that the block reads; by default they are computed from its body.

    Args:
        *regions: elements and slices of buffers, ``A[i, 0:4]``, or lists of them.
    """
    _script.reads(_regions("reads", regions))


def writes(*regions: Any) -> None:
    """Declare the regions that the block writes; by default they are computed from its body.

    Args:
        *regions: elements and slices of buffers, ``A[i, 0:4]``, or lists of them.
    """
    _script.writes(_regions("writes", regions))


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> Any:
    """Return the buffer behind a parameter, or a view of a region inside a block.

    Args:
        param: the parameter, of type T.handle; or the region, A[0:16, j:j + 4].
        shape: the extents, expressions too; of a region, by default its own.
        dtype: data type of an element; by default that of the region, or float32.
        data: the pointer to its memory; by default a new variable.
        strides: elements between neighbors of each dimension; omitted, the buffer is contiguous.
        elem_offset: elements in front of the first one.
        scope: memory scope: global, local, shared, ...
        align: bytes of which the address of the first element is a multiple.
        offset_factor: elements of which elem_offset is a multiple.
        buffer_type: "default", or "auto_broadcast".
        axis_separators: dimensions before which flat ones begin.
    """
    if dtype is None:
        source = getattr(param, "buffer", param)
        dtype = source.dtype if isinstance(source, _core.Buffer) else "float32"
    layout = (data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    return _script.match_buffer(param, shape, dtype, *layout)


def allocate_const(data: Any, dtype: Any, extents: Any, annotations: dict[str, Any] | None = None) -> Any:
    """Return a constant array that lives as long as the scope; `data` is an array or nested lists.

    Args:
        data: the elements, in the order of the memory.
        dtype: their type.
        extents: the shape.
        annotations: annotations of the statement, by name.

    Returns:
        A scope for ``with``, which gives the pointer.
    """
    return _script.allocate_const(tensor_data(data, dtype), dtype, extents, annotations)


def tensor_data(data: Any, dtype: Any = None) -> Any:
    """Convert an array to a node."""
    if isinstance(data, _core.TensorData):
        return data
    name = str(dtype) if dtype is not None else None
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"):
        import ml_dtypes

        array = np.ascontiguousarray(data, dtype=getattr(ml_dtypes, name))
    else:
        array = np.ascontiguousarray(data, dtype=name)
    return _script.tensor_data(str(array.dtype), list(array.shape), array.tobytes())


def realize(buffer_slice: Any, storage_scope: str | None = None, condition: Any = True) -> Any:
    """Allocate memory for a region of a buffer; an enclosing attribute sets the memory scope.

    Args:
        buffer_slice: the region, ``A[0:16, 0:16]``.
        storage_scope: such as "global" or "shared".
        condition: where the memory is needed.

    Returns:
        A scope: a statement, or for ``with``.
    """
    return _script.realize(buffer_slice, storage_scope, condition)


def attr(node: Any, attr_key: str, value: Any) -> Any:
    """Set an attribute of a node for the statements inside.

    Args:
        node: what the attribute is about.
        attr_key: its name.
        value: its value.

    Returns:
        A scope: a statement, or for ``with``.
    """
    return _script.attr(node, attr_key, value)


def LetStmt(value: Any, type_annotation: Any = None, *, var: Any = None) -> Any:
    """Bind a variable (`var`, or a new one) to a value.

    Args:
        value: what is bound.
        type_annotation: the type of a fresh variable; by default that of the value.
        var: the variable, where it exists.

    Returns:
        The scope of the variable, for ``with``, which gives the variable.
    """
    if var is None and type_annotation is not None:
        annotated = type_annotation() if callable(type_annotation) else type_annotation
        var = annotated if isinstance(annotated, _core.Var) else _script.fresh_var(annotated)
    return _script.let(value, var)


def let(var: Any, value: Any, body: Any = None) -> Any:
    """Return the expression ``let var = value in body``, or without body a scope.

    Args:
        var: the variable that is bound.
        value: what is bound.
        body: the expression in which it stands for the value; None for a scope.

    Returns:
        An expression of the type of `body`, or a scope.
    """
    return _script.let(value, var) if body is None else _core.Let(var, _as_type_of(var, value), body)


def _as_type_of(var: Any, value: Any) -> Any:
    """Convert a number to the type of the variable that it is bound to."""
    dtype = _DTYPES.get(var.dtype) if isinstance(var, _core.Var) else None
    is_number = value.__class__ is int or (value.__class__ is float and dtype is not None and "float" in dtype.dtype)
    return dtype(value) if dtype is not None and is_number else value


def Let(expr: Any, where: dict[Any, Any]) -> Any:
    """Return the expression with the variables of `where` bound, the first one innermost.

    Args:
        expr: the expression.
        where: values by the variables that stand for them.

    Returns:
        An expression of the type of `expr`.
    """
    for var, value in where.items():
        expr = _core.Let(var, _as_type_of(var, value), expr)
    return expr


def func_gen(name: str) -> str:
    """Return the name unchanged; kept for scripts that use it.

    Args:
        name: any.

    Returns:
        The name.
    """
    return name


def _range(dom: Any) -> Any:
    """Return the domain of an axis that is given as an extent, (begin, end), or a Range."""
    if isinstance(dom, _core.Range):
        return dom
    if isinstance(dom, list | tuple):
        if len(dom) != 2:
            raise fail("script/axis-domain", f"the domain of an axis has {len(dom)} bounds", "write (begin, end)")
        return _script.range_between(dom[0], dom[1])
    if isinstance(dom, slice):
        return _script.range_between(dom.start or 0, dom.stop)
    if isinstance(dom, int):
        return _script.range_between(0, dom)  # 64 bits where it takes them
    zero = _core.const(0, dom.dtype) if isinstance(dom, _core.Expr) else 0
    return _core.Range(zero, dom)


def Range(begin: Any, end: Any) -> Any:
    """Return the range of integers from `begin` to `end`, exclusive.

    Args:
        begin, end: integers, or expressions of them.

    Returns:
        The Range, such as of ``T.iter_var``.
    """
    return _script.range_between(begin, end)


_AXES = {
    name: int(kind)
    for name, kind in {
        "spatial": _core.IterType.DATA_PAR,
        "reduce": _core.IterType.COMM_REDUCE,
        "scan": _core.IterType.ORDERED,
        "opaque": _core.IterType.OPAQUE,
    }.items()
}


def _axis(name: str, doc: str) -> Callable[..., Any]:
    kind = _AXES[name]

    def make(dom: Any, binding: Any = None, dtype: str = "int32") -> Any:
        return _script.axis(kind, _range(dom), binding, dtype)

    make.__name__, make.__doc__ = name, doc
    return make


class axis:
    """The axes of a block."""

    spatial = S = staticmethod(_axis("spatial", "An axis whose iterations are independent of each other."))
    reduce = R = staticmethod(_axis("reduce", "An axis over which the block reduces."))
    scan = staticmethod(_axis("scan", "An axis whose iterations run in order."))
    opaque = staticmethod(
        _axis("opaque", "An axis whose iterations may need what earlier ones have done: they stay in their order.")
    )

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
        """Define block axes over the whole domains of loop variables, one letter each: S or R. A single axis is not a
        tuple."""
        axes = _script.remap(kinds, list(bindings))
        return axes[0] if len(axes) == 1 else tuple(axes)


_TAKES_CONDITION.update(map(id, (where, If, While, Assert)))
for _function in (reads, writes, match_buffer, realize, prefetch):
    vars(_function)["takes_regions"] = True  # their slices are regions, those of other arguments vectors
