"""Tensor expressions: programs written as formulas.

>>> A = te.placeholder((128, 64), name="A")
>>> B = te.placeholder((64, 128), name="B")
>>> k = te.reduce_axis((0, 64), name="k")
>>> C = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
>>> matmul = te.create_prim_func([A, B, C])

Each tensor becomes a loop nest around one block. A reduction (`te.sum` and similar) must be the whole value that a
function passed to :func:`compute` returns. In scripts, ``T.compute`` does the same in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.script import tir as _tir
from tilewright.script.core import script as _script
from tilewright.script.tir import formulas as _formulas
from tilewright.script.tir import frames as _frames
from tilewright.script.tir.formulas import Domain, Formula, Reduction, comm_reducer, max, min, prod, reduce_axis, sum
from tilewright.support.nodes import nodes_of
from tilewright.support.wrong_arguments import explained

if TYPE_CHECKING:
    import numpy as np

    from tilewright._core import ExprLike

__all__ = [
    "ComputeOp",
    "ExternOp",
    "PlaceholderOp",
    "Tensor",
    "all",
    "any",
    "comm_reducer",
    "compute",
    "const",
    "create_prim_func",
    "extern",
    "max",
    "min",
    "placeholder",
    "prod",
    "program_of",
    "reduce_axis",
    "size_var",
    "sum",
    "thread_axis",
    "var",
]

#: values of the column `typing` in the table of intrinsics for functions from numbers to numbers
_OF_NUMBERS = ("kSameFloat", "kSameAny", "kBool", "kInteger")
#: intrinsics of these types that are meaningless in a formula
_NOT_IN_FORMULAS = ("isnullptr", "tvm_thread_invariant", "ignore_loop_partition")
#: functions of expressions, as in scripts: from that table, and others
_FUNCTIONS = (
    *(row[0] for row in _script.intrinsics() if row[3] in _OF_NUMBERS and row[0] not in _NOT_IN_FORMULAS),
    *("abs", "cast", "clz", "div", "floordiv", "floormod", "if_then_else", "indexdiv", "indexmod", "infinity"),
    *("max_value", "min_value", "power", "reinterpret", "truncdiv", "truncmod"),
)
globals().update({_name: getattr(_tir, _name) for _name in _FUNCTIONS})
__all__ += _FUNCTIONS

#: the extents of a tensor, or its only extent
Shape = _core.Expr | int | Sequence[_core.Expr | int]


def all(*conditions: ExprLike) -> _core.Expr:
    """Return whether every condition holds."""
    return _combine("all", _core.logical_and, conditions)


def any(*conditions: ExprLike) -> _core.Expr:
    """Return whether one of the conditions holds."""
    return _combine("any", _core.logical_or, conditions)


def _combine(name: str, function: Callable[..., Any], conditions: Sequence[Any]) -> _core.Expr:
    if not conditions:
        raise ArgumentError.of("te/no-condition", f"te.{name} needs a condition", f"te.{name}(i > 0, i < n)")
    combined: _core.Expr = functools.reduce(function, conditions)
    return combined


#: the tensor of each buffer in expressions, while the tensor is alive
_TENSORS: WeakValueDictionary[Any, Tensor] = WeakValueDictionary()


class Tensor:
    """A tensor of a formula; ``A[i, j]``, or ``A(i, j)``, is an element.

    Attributes:
        buffer: the tensor's buffer in programs.
        op: the operation that computes the tensor.
    """

    def __init__(self, buffer: _core.Buffer, op: PlaceholderOp | ComputeOp | ExternOp) -> None:
        self.buffer = buffer
        self.op = op
        _TENSORS[buffer] = self

    @property
    def shape(self) -> tuple[_core.Expr, ...]:
        """Return the extents."""
        return self.buffer.shape

    @property
    def dtype(self) -> str:
        """Return the data type of the elements."""
        return self.buffer.dtype

    @property
    def name(self) -> str:
        """Return the name of the tensor and its buffer."""
        return self.buffer.name

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.buffer.shape)

    def __getitem__(self, indices: Any) -> Any:
        return self.buffer[indices]

    def __call__(self, *indices: Any) -> Any:
        """Return an element."""
        return self.buffer[indices]

    def _refuse(self, *other: Any) -> Any:
        """Refuse arithmetic on whole tensors."""
        indices = ", ".join("ijklmnop"[: self.ndim])
        raise ArgumentTypeError.of(
            "te/whole-tensor",
            f"the tensor '{self.name}' is computed with element by element, not as a whole",
            f"te.compute({self.name}.shape, lambda {indices}: {self.name}[{indices}] + ...)",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __matmul__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    __iter__ = None  # otherwise Python would evaluate A[0], A[1], ... without end

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, name={self.name})"


class PlaceholderOp:
    """An input tensor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.input_tensors: list[Tensor] = []


class ComputeOp:
    """The operation of tensors that are computed by a formula.

    Attributes:
        axis: one axis for each dimension.
        reduce_axis: axes of the reduction.
        body: the values, or the reduction.
        tensors: the computed tensors.
    """

    def __init__(self, name: str, tag: str, attrs: dict[str, Any], formula: Formula) -> None:
        self.name = name
        self.tag = tag
        self.attrs = attrs
        self.formula = formula
        self.input_tensors = _tensors_in(formula.expressions())
        self.tensors: list[Tensor] = []

    @property
    def axis(self) -> tuple[_core.IterVar, ...]:
        """Return the axes of the tensors."""
        return self.formula.axes

    @property
    def reduce_axis(self) -> tuple[_core.IterVar, ...]:
        """Return the axes of the reduction."""
        return self.formula.body.axes if isinstance(self.formula.body, Reduction) else ()

    @property
    def body(self) -> Reduction | tuple[_core.Expr, ...]:
        """Return the computed values, or the reduction."""
        return self.formula.body

    def output(self, index: int) -> Tensor:
        """Return a computed tensor."""
        return self.tensors[index]


class ExternOp:
    """The operation of tensors that are computed by a statement."""

    def __init__(self, name: str, tag: str, attrs: dict[str, Any], inputs: list[Tensor], body: _core.Stmt) -> None:
        self.name = name
        self.tag = tag
        self.attrs = attrs
        self.input_tensors = inputs
        self.body = body
        self.tensors: list[Tensor] = []

    def output(self, index: int) -> Tensor:
        """Return a computed tensor."""
        return self.tensors[index]


def _tensors_in(expressions: Sequence[_core.Expr]) -> list[Tensor]:
    """Return the tensors that expressions read, without duplicates, in the order of their first use."""
    found: dict[Tensor, None] = {}

    def look(node: _core.Node) -> None:
        if isinstance(node, _core.BufferLoad):
            tensor = _TENSORS.get(node.buffer)
            if tensor is None:
                raise ArgumentError.of(
                    "te/no-tensor",
                    f"the formula reads '{node.buffer.name}', which is not a tensor of te",
                    f"{node.buffer.name} = te.placeholder(shape, dtype) declares an input",
                )
            found[tensor] = None

    for expression in expressions:
        _core.Evaluate(expression)  # the constructor refuses expressions that are too large to visit
        _core.visit(expression, look)
    return list(found)


def var(name: str = "tindex", dtype: str = "int32") -> _core.Var:
    """Return a variable, for instance an extent."""
    return _core.Var(name, _formulas.as_dtype(dtype))


def size_var(name: str = "size", dtype: str = "int32") -> _core.Var:
    """Return a variable that is at least 0."""
    return _core.Var(name, _formulas.as_dtype(dtype), True)


@explained
def const(value: float | np.generic, dtype: str = "int32") -> _core.Expr:
    """Return a constant.

    Raises:
        tilewright.ArgumentError: the value is not a number, or does not fit the data type.
    """
    if not isinstance(value, int | float) and not hasattr(value, "item"):
        raise ArgumentTypeError.of(
            "te/constant", f"a constant is a number, not a {type(value).__name__}", 'te.const(1.5, "float32")'
        )
    return _formulas.constant(value, _formulas.as_dtype(dtype))


def thread_axis(dom: Domain | str | None = None, tag: str = "", name: str = "") -> _core.IterVar:
    """Return an axis of threads, for instance ``"threadIdx.x"``; the tag may also be the only argument."""
    if isinstance(dom, str):
        return thread_axis(None, dom, name)
    if not tag:
        raise ArgumentError.of(
            "te/thread-axis", "te.thread_axis needs the tag of the axis", 'te.thread_axis((0, 32), "threadIdx.x")'
        )
    domain = None if dom is None else _frames._range(tuple(dom) if isinstance(dom, list) else dom)
    dtype = "int32" if domain is None else domain.extent.dtype
    return _core.IterVar(domain, _core.Var(name or tag, dtype), _core.IterType.THREAD_INDEX, tag)


@explained
def placeholder(shape: Shape, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """Return an input tensor; float32 by default."""
    buffer = _core.decl_buffer(_formulas.as_shape(shape), _formulas.as_dtype(dtype or "float32"), name)
    return Tensor(buffer, PlaceholderOp(name))


@explained
def compute(
    shape: Shape,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: dict[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Return a tensor whose elements are computed by a function of the indices; a tuple of values gives a tuple of
    tensors.

    Args:
        shape: the extents.
        fcompute: indices -> value, tuple of values, or a reduction.
        name: name of the tensor and of its block.
        tag: a note, kept as ``op.tag``.
        attrs: annotations of the block; ``layout_free_placeholders`` lists inputs whose layout may be changed.
        varargs_names: names for the indices of a function that takes ``*indices``.

    Raises:
        tilewright.ArgumentError: the function takes another number of indices, or uses a value that is not a tensor.
    """
    extents = _formulas.as_shape(shape)
    formula = _formulas.formula(extents, fcompute, varargs_names)
    op = ComputeOp(name, tag, dict(attrs or {}), formula)
    op.tensors = _outputs(op, [(extents, value.dtype) for value in formula.values])
    return op.tensors[0] if len(op.tensors) == 1 else tuple(op.tensors)


def _outputs(op: Any, specs: Sequence[tuple[list[Any], str]]) -> list[Tensor]:
    names = [op.name] if len(specs) == 1 else [f"{op.name}_v{i}" for i in range(len(specs))]
    return [
        Tensor(_core.decl_buffer(shape, dtype, name), op) for (shape, dtype), name in zip(specs, names, strict=True)
    ]


@explained
def extern(
    shape: Shape | Sequence[Shape],
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Any], list[Any]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Sequence[Any] | None = None,
    out_buffers: Sequence[Any] | None = None,
    tag: str = "",
    attrs: dict[str, Any] | None = None,
) -> Any:
    """Return tensors that are computed by a statement, for instance by a call of a library.

    Args:
        shape: the extents of the output, or a list of them.
        inputs: the tensors that are read.
        fcompute: (buffers of the inputs, buffers of the outputs) -> a statement or a call.
        name: name of the block and of the tensors.
        dtype: data types of the outputs; by default that of the inputs if these have only one.
        in_buffers: buffers for the inputs, must be None: the tensors' own are used.
        out_buffers: buffers for the outputs, instead of new ones.
        tag: a note, kept as ``op.tag``.
        attrs: annotations of the block.

    Raises:
        tilewright.ArgumentError: the data type is ambiguous, or the function does not return a statement.
    """
    if isinstance(inputs, Tensor) or not isinstance(inputs, Sequence) or not callable(fcompute):
        raise ArgumentTypeError.of(
            "te/extern",
            "te.extern takes a shape, a list of tensors, and a function that returns a statement",
            "te.extern((n,), [A], lambda ins, outs: T.call_packed(...))",
        )
    if in_buffers is not None:
        raise ArgumentError.of(
            "te/extern",
            "te.extern has no in_buffers: it reads the inputs through their own buffers",
            "omit in_buffers; the first argument of the function is the list of the inputs' buffers",
        )
    several = shape if isinstance(shape, list | tuple) and shape and isinstance(shape[0], list | tuple) else [shape]
    shapes = [_formulas.as_shape(item) for item in several]
    if dtype is None:
        types = {tensor.dtype for tensor in inputs}
        if len(types) != 1:
            raise ArgumentError.of(
                "te/extern",
                f"te.extern cannot infer the type of its output from inputs of {len(types)} types",
                'pass it: te.extern(..., dtype="float32")',
            )
        dtype = types.pop()
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    op = ExternOp(name, tag, dict(attrs or {}), list(inputs), _core.Evaluate(0))
    if out_buffers is not None:
        op.tensors = [Tensor(buffer, op) for buffer in out_buffers]
    else:
        op.tensors = _outputs(op, list(zip(shapes, dtypes, strict=True)))
    body = fcompute([tensor.buffer for tensor in inputs], [tensor.buffer for tensor in op.tensors])
    if isinstance(body, _core.Expr):
        body = _core.Evaluate(body)
    if not isinstance(body, _core.Stmt):
        raise ArgumentError.of(
            "te/extern",
            f"the function of te.extern returns a {type(body).__name__} instead of a statement or a call",
            "return T.call_packed(...), or the statement of an IRBuilder",
        )
    op.body = body
    return op.tensors[0] if len(op.tensors) == 1 else op.tensors


@explained
def program_of(tensors: Tensor | Sequence[Any]) -> _core.PrimFunc:
    """Return the program that computes tensors.

    Args:
        tensors: the list of all parameters, in order; or one tensor, whose inputs become the parameters before it, in
            the order of their first use.

    Raises:
        tilewright.ArgumentError: an input is missing among the parameters, a parameter is not a tensor, or the only
            tensor is an input.
    """
    if not isinstance(tensors, Tensor):
        return create_prim_func(list(tensors))
    if isinstance(tensors.op, PlaceholderOp):
        raise ArgumentError.of(
            "te/parameters", f"'{tensors.name}' is an input: nothing computes it", "pass a tensor of te.compute"
        )
    inputs: list[Tensor] = []
    seen: list[Tensor] = []
    stack = [tensors]
    while stack:
        tensor = stack.pop()
        if tensor in seen:
            continue
        seen.append(tensor)
        if isinstance(tensor.op, PlaceholderOp):
            inputs.append(tensor)
        else:
            stack += reversed(tensor.op.input_tensors)
    return create_prim_func([*inputs, tensors])


def __dir__() -> list[str]:
    return sorted(__all__)


@explained
def create_prim_func(
    ops: Sequence[Any], index_dtype_override: str | None = None, *, name: str | None = None
) -> _core.PrimFunc:
    """Return the program that computes tensors.

    Args:
        ops: the parameters: tensors, inputs and outputs, and variables.
        index_dtype_override: must be None: create shapes with the data type that indices should have.
        name: name of the function; by default that of the last computed tensor among the parameters.

    Raises:
        tilewright.ArgumentError: an input is missing among the parameters, or a parameter is not a tensor.
    """
    if index_dtype_override is not None:
        raise ArgumentError.of(
            "te/index-dtype",
            "te.create_prim_func has no index_dtype_override",
            'give the shapes in the type of the indices: te.var("n", "int64")',
        )
    if isinstance(ops, Tensor | _core.Node) or not isinstance(ops, Sequence):
        what = f"the tensor '{ops.name}' alone" if isinstance(ops, Tensor) else f"a value of type {type(ops).__name__}"
        raise ArgumentError.of(
            "te/parameters",
            f"te.create_prim_func takes the list of the program's parameters, not {what}",
            "te.create_prim_func([A, B, C]), inputs and outputs",
        )
    tensors = [item for item in ops if isinstance(item, Tensor)]
    order = _producers_first(tensors)
    _check_variables(order, ops)
    with _script.IRBuilder() as builder, _script.prim_func():
        _script.func_name(_function_name(tensors) if name is None else name)
        _script.func_attr({"tir.noalias": True, **_layout_free(order, tensors)})
        for item in ops:
            if isinstance(item, Tensor):
                _script.match_existing(f"var_{item.name}", item.buffer)
            elif isinstance(item, _core.Var):
                _script.arg(item.name_hint, item)
            else:
                raise ArgumentError.of(
                    "te/parameters",
                    f"a parameter of a program is a tensor or a variable, not {type(item).__name__}",
                    "te.create_prim_func([A, B, C]), inputs and outputs",
                )
        used: dict[str, int] = {}
        for op in order:
            for tensor in op.tensors:
                if tensor not in tensors:
                    _script.alloc_existing(tensor.buffer)
            _emit(op, _fresh(op.name, used))
    return _core.renew_defs(builder.get())  # type: ignore[return-value]


def _check_variables(order: Sequence[ComputeOp | ExternOp], params: Sequence[Any]) -> None:
    """Refuse variables that are not an index of the formula, a size of a tensor, or a parameter."""
    known = {item for item in params if isinstance(item, _core.Var)}
    for tensor in (item for item in params if isinstance(item, Tensor)):
        for extent in tensor.shape:
            known.update(nodes_of(extent, _core.Var))
    for op in order:
        if isinstance(op, ComputeOp):
            own = known | {axis.var for axis in (*op.axis, *op.reduce_axis)}
            for expression in op.formula.expressions():
                _core.visit(expression, functools.partial(_check_variable, op.name, own))


def _check_variable(formula: str, known: set[_core.Var], node: _core.Node) -> None:
    if isinstance(node, _core.Let):
        known.add(node.var)
    elif isinstance(node, _core.Var) and node.dtype != "handle" and node not in known:
        name = node.name_hint
        raise ArgumentError.of(
            "te/undefined",
            f"'{name}' in the formula of '{formula}' is neither an index of it nor a size nor a parameter",
            f"reduce over it, te.sum(..., axis={name}), or pass it to create_prim_func",
        )


def _function_name(tensors: Sequence[Tensor]) -> str:
    computed = [tensor.op.name for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]
    return computed[-1] if computed else "main"


def _fresh(name: str, used: dict[str, int]) -> str:
    """Return the name, with a number appended if another block already has it."""
    count = used.get(name, 0)
    used[name] = count + 1
    return name if count == 0 else _fresh(f"{name}_{count}", used)


def _emit(op: ComputeOp | ExternOp, name: str) -> None:
    buffers = [tensor.buffer for tensor in op.tensors]
    attrs = {key: value for key, value in op.attrs.items() if key != "layout_free_placeholders"}
    if isinstance(op, ComputeOp):
        one = len(buffers) == 1 or isinstance(op.body, Reduction)
        names = [name] * len(buffers) if one else [f"{name}.v{i}" for i in range(len(buffers))]
        _formulas.emit(op.formula, names, buffers, attrs)
        return
    with _script.block(name):
        _script.reads([tensor.buffer for tensor in op.input_tensors])
        _script.writes(buffers)
        if attrs:
            _script.block_attr(attrs)
        _script.add(op.body)


def _layout_free(order: Sequence[ComputeOp | ExternOp], params: list[Tensor]) -> dict[str, Any]:
    """Return the attribute with the positions of the parameters whose layout may be changed."""
    free = {tensor for op in order for tensor in op.attrs.get("layout_free_placeholders", ())}
    positions = [position for position, tensor in enumerate(params) if tensor in free]
    return {"layout_free_buffers": positions} if positions else {}


def _producers_first(outputs: Sequence[Tensor]) -> list[ComputeOp | ExternOp]:
    """Return all operations that the tensors need, producers first; refuse inputs that are not parameters."""
    order: list[ComputeOp | ExternOp] = []
    done: set[int] = set()
    stack: list[tuple[Tensor, bool]] = [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, ready = stack.pop()
        op = tensor.op
        if isinstance(op, PlaceholderOp):
            if tensor not in outputs:
                raise ArgumentError.of(
                    "te/parameters",
                    f"the input '{tensor.name}' is not among the parameters of the program",
                    f"te.create_prim_func([{tensor.name}, ...])",
                )
            continue
        if ready:
            order.append(op)
            continue
        if id(op) in done:
            continue
        done.add(id(op))
        stack.append((tensor, True))
        stack.extend((producer, False) for producer in reversed(op.input_tensors))
    return order
