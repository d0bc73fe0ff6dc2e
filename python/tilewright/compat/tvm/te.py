"""tvm.te: tensor expressions."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import _core, te
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import structural_equal
from tilewright.compat.tvm.tir import op
from tilewright.script.tir.index_maps import AXIS_SEPARATOR
from tilewright.support.nodes import nodes_of
from tilewright.te import *  # noqa: F403
from tilewright.te import __all__ as _names

abs = op.abs
Operation = te.PlaceholderOp | te.ComputeOp | te.ExternOp
BaseComputeOp = te.ComputeOp

_missing = missing("tvm.te")

__all__ = ["AXIS_SEPARATOR", "BaseComputeOp", "Operation", "extern_primfunc", "tag_scope", *_names]


def create_prim_func(  # type: ignore[no-redef]
    ops: Sequence[Any], index_dtype_override: str | None = None
) -> Any:
    """Return the program that computes tensors; its name is "main"."""
    return te.create_prim_func(ops, index_dtype_override, name="main")


def _elementwise(name: str, function: Callable[[Any, Any], Any], refuse: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator for two tensors of equal shape; for other operands, `refuse` raises its error."""

    def combine(self: Any, other: Any) -> Any:
        if not (isinstance(other, te.Tensor) and structural_equal(list(self.shape), list(other.shape))):
            return refuse(self, other)
        names = [f"ax{d}" for d in range(self.ndim)]
        return compute(self.shape, lambda *i: function(self[i], other[i]), name=name, varargs_names=names)

    return combine


class TensorAsTVM(te.Tensor):
    """A tensor that can be added to, subtracted from, multiplied and divided by one of its shape as a whole."""

    __add__ = _elementwise("T_add", operator.add, te.Tensor.__add__)
    __sub__ = _elementwise("T_subtract", operator.sub, te.Tensor.__sub__)
    __mul__ = _elementwise("T_multiply", operator.mul, te.Tensor.__mul__)
    __truediv__ = _elementwise("T_divide", operator.truediv, te.Tensor.__truediv__)

    @property
    def axis(self) -> Any:
        """Return the axes of a tensor that a formula computes."""
        op: Any = self.op
        return op.axis

    @property
    def value_index(self) -> int:
        """Return the number of the tensor among the results of its operation."""
        outputs = getattr(self.op, "tensors", [self])
        return next(number for number, tensor in enumerate(outputs) if tensor is self)


def as_tvm(made: Any) -> Any:
    """Return tensors as TVM's scripts see them."""
    for tensor in made if isinstance(made, list | tuple) else [made]:
        if type(tensor) is te.Tensor:
            tensor.__class__ = TensorAsTVM
        tensor.op.num_outputs = len(getattr(tensor.op, "tensors", [tensor]))
    return made


def placeholder(*args: Any, **kwargs: Any) -> Any:  # type: ignore[no-redef]
    """Return an input tensor."""
    made = as_tvm(te.placeholder(*args, **kwargs))
    made.op.shape, made.op.dtype = made.shape, made.dtype
    return made


class tag_scope(contextlib.ContextDecorator):
    """Tag of the tensors that are created inside, unless they have one of their own.

    Raises:
        ValueError: the context is opened inside another one.
    """

    current: tag_scope | None = None

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __enter__(self) -> tag_scope:
        if tag_scope.current is not None:
            raise ValueError("nested tag_scope is not allowed for now")
        tag_scope.current = self
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        tag_scope.current = None


def compute(*args: Any, **kwargs: Any) -> Any:  # type: ignore[no-redef]
    """Return a tensor computed by a formula of its elements."""
    made = as_tvm(te.compute(*args, **kwargs))
    if tag_scope.current is not None:
        for tensor in made if isinstance(made, list | tuple) else [made]:
            tensor.op.tag = tensor.op.tag or tag_scope.current.tag
    return made


def extern(  # type: ignore[no-redef]
    shape: Any,
    inputs: Sequence[Any],
    fcompute: Callable[[list[Any], list[Any]], Any],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """Return tensors computed by a statement, in which the inputs have these buffers, or their own."""
    outputs = [out_buffers] if isinstance(out_buffers, _core.Buffer) else out_buffers
    named = [in_buffers] if isinstance(in_buffers, _core.Buffer) else in_buffers
    function = fcompute if named is None else _reading(list(inputs), list(named), fcompute)
    return as_tvm(te.extern(shape, inputs, function, name, dtype, None, outputs, tag, attrs))


def _reading(inputs: list[Any], named: list[Any], fcompute: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a statement in which the tensors' own buffers stand for those with which it is made."""
    if len(inputs) != len(named):
        raise ValueError(f"there are {len(inputs)} inputs, but {len(named)} buffers of inputs")

    def function(ins: list[Any], outs: list[Any]) -> Any:
        buffers = dict(zip(named, ins, strict=True))
        pointers = {buffer.data: own.data for buffer, own in buffers.items()}
        # A buffer whose pointer is another one is another buffer, so the buffers come first.
        body = _core.rewrite(fcompute(named, outs), lambda node: _replaced(node, _core.Buffer, buffers))
        return _core.rewrite(body, lambda node: _replaced(node, _core.Var, pointers))

    return function


def _replaced(node: Any, kind: type, replacements: dict[Any, Any]) -> Any:
    return replacements.get(node) if isinstance(node, kind) else None


def extern_primfunc(input_tensors: Sequence[Any], primfunc: Any, **kwargs: Any) -> Any:
    """Return tensors computed by a function. The buffers that it reads are the input tensors, in the order of its
    parameters. Buffers that are only written are the results; if there are none, the last one that is read and written.

    Raises:
        ValueError: the tensors are not as many as the buffers, or have other shapes.
    """
    buffers = [primfunc.buffer_map[param] for param in primfunc.params]
    loaded, stored = _accessed(primfunc.body)
    read = [buffer for buffer in buffers if buffer in loaded]
    written = [buffer for buffer in buffers if buffer in stored]
    results = [buffer for buffer in written if buffer not in read]
    if not results and written:
        results = written[-1:]
        read.remove(results[0])
    if not read or not results:
        raise ValueError(f"the function {'writes' if read else 'reads'} none of its buffers")
    if len(read) != len(input_tensors):
        raise ValueError(f"the function reads {len(read)} buffers, but there are {len(input_tensors)} tensors")
    for tensor, buffer in zip(input_tensors, read, strict=True):
        if not structural_equal(list(tensor.shape), list(buffer.shape)):
            raise ValueError(f"the tensor {tensor.name} has the shape {tensor.shape}, its buffer {buffer.shape}")
    kwargs.setdefault("dtype", [buffer.dtype for buffer in results])
    shapes = [buffer.shape for buffer in results]
    return extern(
        shapes, input_tensors, lambda ins, outs: primfunc.body, in_buffers=read, out_buffers=results, **kwargs
    )


def _accessed(body: Any) -> tuple[set[Any], set[Any]]:
    """Return the set of buffers that a program loads and the set that it stores."""
    loads, stores = nodes_of(body, _core.BufferLoad), nodes_of(body, _core.BufferStore)
    return {load.buffer for load in loads}, {store.buffer for store in stores}


def __getattr__(name: str) -> object:
    """Return a function of expressions: they are also in this namespace."""
    if name in op.__all__:
        return getattr(op, name)
    return _missing(name)
