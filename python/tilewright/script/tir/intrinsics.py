"""Expressions: nodes by name, operators that Python has no sign for, and intrinsic functions.

A function with a node's name in capitals (T.Add) builds exactly this node; the others (T.min, T.cast) fold constants.
"""

from __future__ import annotations

import inspect as _inspect
import re as _re
from collections.abc import Callable, Sequence
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from types import CodeType as _CodeType
from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.script.core import TAKES_CONDITION as _TAKES_CONDITION
from tilewright.script.core import script as _script
from tilewright.script.dialect import dialect as _dialect
from tilewright.script.report import fail
from tilewright.script.tir.dtypes import check_dtype, no_dtype

if TYPE_CHECKING:
    from tilewright._core import Expr, ExprLike
    from tilewright.script.tir.dtypes import DTypeLike

ceildiv = _core.ceildiv
floordiv = _core.floordiv
floormod = _core.floormod
truncdiv = _core.truncdiv
indexdiv = _core.floordiv
indexmod = _core.floormod
max_value = _core.max_value
min_value = _core.min_value
Op = _core.Op
GlobalVar = _core.GlobalVar
StringImm = _core.StringImm


def _operator(name: str) -> Callable[[Any, Any], Any]:
    def make(a: Any, b: Any) -> Any:
        return _script.operator_node(name, a, b)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The node {name}(a, b), not folded."
    return make


_OPERATOR_NAMES = (
    *("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
    *("EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"),
)
OPERATORS = {name: _operator(name) for name in _OPERATOR_NAMES}


def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """The remainder of a division that rounds towards zero: the node Mod, not folded."""
    made: Expr = _script.operator_node("Mod", a, b)
    return made


def Not(a: Any) -> Any:
    """The node Not(a), not folded."""
    return _core.Not(a)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """One of two values, both of which may be evaluated."""
    return _script.select_node(condition, true_value, false_value)


def Cast(dtype: Any, value: Any) -> Any:
    """The node Cast(dtype, value), not folded; a number that float32 does not hold becomes a constant of the type."""
    check_dtype(dtype)
    return _script.cast_node(dtype, value)


def cast(value: ExprLike, dtype: DTypeLike) -> Expr:
    """The value as another type; constants are converted right away."""
    check_dtype(dtype)
    return _core.cast(str(dtype), value)


def Ramp(base: Any, stride: Any, lanes: Any) -> Any:
    """The vector base, base + stride, ..., of `lanes` elements."""
    return _script.ramp(base, stride, lanes)


def Broadcast(value: Any, lanes: Any) -> Any:
    """A vector with the same value in all `lanes`."""
    return _script.broadcast(value, lanes)


ramp, broadcast = Ramp, Broadcast


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Any:
    """The elements at `indices` of the vectors taken together."""
    return _core.Shuffle(list(vectors), list(indices))


def BufferLoad(buffer: Any, indices: Sequence[Any], predicate: Any = None) -> Any:
    """A load from a buffer."""
    return _script.load(buffer, list(indices), predicate)


def BufferRegion(buffer: Any, region: Sequence[Any]) -> Any:
    """A part of a buffer."""
    return _core.BufferRegion(buffer, list(region))


def buffer_store(buffer: Any, value: Any, indices: Any, predicate: Any = None) -> None:
    """Stores the value."""
    _script.buffer_store(buffer, value, tuple(indices) if isinstance(indices, list) else indices, predicate)


def Call(dtype: Any, op: Any, args: Sequence[Any]) -> Any:
    """A call of an operator (a node or its name) or of a function of the module."""
    if isinstance(op, str):
        return _script.call(dtype, op if op.startswith("tir.") else f"tir.{op}", list(args))
    return _core.Call(dtype, op, list(args))


def call_intrin(dtype: Any, func_name: Any, *args: Any) -> Any:
    """A call of the operator `func_name`, given by its full name ("tir.exp"), that gives a `dtype`."""
    name = func_name.name if isinstance(func_name, _core.Op) else func_name
    return _script.call(dtype, name, list(args))


def Var(name: str, dtype: Any) -> Any:
    """A variable with this name; a dtype, or a type of a pointer."""
    return _core.Var(name, _type(dtype))


def SizeVar(name: str, dtype: Any = "int32") -> Any:
    """A variable with this name that is at least 0."""
    return _core.Var(name, _type(dtype), True)


def _type(dtype: Any) -> Any:
    from tilewright.script.tir.dtypes import DType

    if isinstance(dtype, _core.Type):
        return dtype
    return _core.PrimType(dtype.dtype if isinstance(dtype, DType) else dtype)


def IntImm(dtype: Any, value: int) -> Any:
    """An integer constant."""
    return _core.IntImm(dtype, value)


def FloatImm(dtype: Any, value: float) -> Any:
    """A floating-point constant."""
    return _core.FloatImm(dtype, value)


def Tuple(*fields: Any) -> Any:
    """The type of several values."""
    types = []
    for field in fields:
        value = field() if callable(field) and not isinstance(field, _core.Node) else field
        types.append(value.type_annotation if isinstance(value, _core.Var) else value)
    return _core.TupleType(types)


_ITER_TYPES = {
    "DataPar": 0,
    "ThreadIndex": 1,
    "CommReduce": 2,
    "Ordered": 3,
    "Opaque": 4,
    "DimInfo": 4,
    "Unrolled": 5,
    "Vectorized": 6,
    "Parallelized": 7,
    "Tensorized": 8,
}


def iter_var(var: Any, dom: Any, iter_type: str, thread_tag: str = "") -> Any:
    """An iteration variable; `dom` may be None."""
    if isinstance(var, str):
        var = Var(var, "int32")
    if iter_type not in _ITER_TYPES:
        raise fail("script/iter-type", f"'{iter_type}' is no kind of iteration", "one of " + ", ".join(_ITER_TYPES))
    if isinstance(dom, list | tuple):
        dom = _script.range_between(*dom)
    return _core.IterVar(dom, var, _core.IterType(_ITER_TYPES[iter_type]), thread_tag)


def IterVar(dom: Any, var: Any, iter_type: int, thread_tag: str = "") -> Any:
    """An iteration variable by the number of its kind."""
    return _core.IterVar(dom, Var(var, "int32") if isinstance(var, str) else var, _core.IterType(iter_type), thread_tag)


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> Any:
    """A reducer from a function of two values (or of two times as many, for a tuple) and the identity."""
    count = len(identity)
    values = [i if isinstance(i, _core.Expr) else _core.const(i, None) for i in identity]
    lhs = [_core.Var(f"x{i}" if count > 1 else "x", _type(v.dtype)) for i, v in enumerate(values)]
    rhs = [_core.Var(f"y{i}" if count > 1 else "y", _type(v.dtype)) for i, v in enumerate(values)]
    result = combiner(*lhs, *rhs)
    results = list(result) if isinstance(result, list | tuple) else [result]
    return _core.CommReducer(lhs, rhs, results, values)


def CommReducer(lhs: Sequence[Any], rhs: Sequence[Any], result: Sequence[Any], identity_element: Sequence[Any]) -> Any:
    """A reducer: result(lhs, rhs) with its identity."""
    return _core.CommReducer(list(lhs), list(rhs), list(result), list(identity_element))


class AxisSeparator:
    """Stands among the new indices of a map where the axes behind it are laid out on their own."""

    def __repr__(self) -> str:
        return "T.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()


def _index_variables(mapping: Callable[..., Any], ndim: int | None, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """Variables for the parameters of a function of indices, those that are passed by name apart."""
    import inspect

    if not callable(mapping):
        said = f"an index map is made of a function of indices, not of a {type(mapping).__name__}"
        raise fail("script/index-map", said, "such as lambda i, j: (j, i)")
    kinds = inspect.Parameter
    parameters = list(inspect.signature(mapping).parameters.values())
    fixed = sum(p.kind is not kinds.VAR_POSITIONAL for p in parameters)
    if any(p.kind is kinds.VAR_KEYWORD for p in parameters):
        raise fail(
            "script/index-map", "a function of indices takes them one by one", "name each index, or use *indices"
        )
    if fixed < len(parameters) and ndim is None:
        raise fail(
            "script/index-map", "the number of indices of an index map must be fixed", "name each index, or say ndim"
        )
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for p in parameters:
        if p.kind is kinds.VAR_POSITIONAL:
            names = [f"{p.name}{n}" for n in range((ndim or 0) - fixed)]
            positional += [_core.Var(name, _core.PrimType(dtype)) for name in names]
        elif p.kind is kinds.KEYWORD_ONLY:
            named[p.name] = _core.Var(p.name, _core.PrimType(dtype))
        else:
            positional.append(_core.Var(p.name, _core.PrimType(dtype)))
    return positional, named


def _names_in(code: _CodeType) -> _Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, _CodeType):
            yield from _names_in(inner)


def _with_names(mapping: Callable[..., Any], sizes: _Mapping[str, Any]) -> Callable[..., Any]:
    """The function, which finds `T` and these sizes where it names what is defined nowhere."""
    if not isinstance(mapping, _FunctionType):
        return mapping
    known, code = mapping.__globals__, mapping.__code__
    missing = {name for name in _names_in(code) if name not in known and (name in sizes or name == "T")}
    if not missing:
        return mapping
    namespace = _dialect("tir").names["T"]()
    found = {name: sizes.get(name, namespace) for name in missing}
    made = _FunctionType(code, {**known, **found}, mapping.__name__, mapping.__defaults__, mapping.__closure__)
    made.__kwdefaults__ = mapping.__kwdefaults__
    return made


def index_map_with_separators(
    mapping: Callable[..., Any],
    *,
    ndim: int | None = None,
    inverse_index_map: Any = None,
    index_dtype: str = "int32",
    ranges: bool = False,
    sizes: _Mapping[str, Any] | None = None,
) -> tuple[Any, list[int]]:
    """The map of indices that a function says, and where it gives AXIS_SEPARATOR among them.

    Args:
        mapping: a function of indices that gives new ones: one, or several.
        ndim: the number of indices, for functions that take any.
        inverse_index_map: the way back, as a map or a function.
        index_dtype: the type of the indices.
        ranges: the function gives ranges, each as a pair of a start and an end, or one index alone.
        sizes: what the function may name without that anything around it defines it: printed traces do.
    """
    mapping = _with_names(mapping, sizes or {})
    positional, named = _index_variables(mapping, ndim, index_dtype)
    result = mapping(*positional, **named)
    final: list[Any] = []
    separators: list[int] = []
    items = list(result) if isinstance(result, list | tuple) else [result]
    pairs = ranges and any(isinstance(item, list | tuple) for item in items)
    for item in items:
        if item is AXIS_SEPARATOR:
            separators.append(len(final))
            continue
        values = list(item) if ranges and isinstance(item, list | tuple) else [item, item + 1] if pairs else [item]
        for value in values:
            if not isinstance(value, _core.Expr | int) and not hasattr(value, "__index__"):
                from tilewright.errors import ArgumentError

                raise ArgumentError(f"a function of indices gives a '{type(value).__name__}': it gives expressions")
        final += values
    if callable(inverse_index_map) and not isinstance(inverse_index_map, _core.Node):
        count = len(final)
        inverse_index_map = index_map(inverse_index_map, ndim=count, index_dtype=index_dtype)
    return _core.IndexMap([*positional, *named.values()], final, inverse_index_map), separators


def index_map(
    mapping: Callable[..., Any], *, ndim: int | None = None, inverse_index_map: Any = None, index_dtype: str = "int32"
) -> Any:
    """The map of indices, of type `index_dtype`, that a function of them says."""
    made, separators = index_map_with_separators(
        mapping, ndim=ndim, inverse_index_map=inverse_index_map, index_dtype=index_dtype
    )
    if separators:
        raise fail("script/index-map", "an axis separator in a map that is of indices alone", "leave it out")
    return made


def infinity(dtype: DTypeLike) -> Expr:
    """The positive infinity of a floating-point type."""
    return _core.FloatImm(str(dtype), float("inf"))


def min(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller value."""
    return _core.min(a, b)


def max(a: ExprLike, b: ExprLike) -> Expr:
    """The larger value."""
    return _core.max(a, b)


def abs(x: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """The absolute value."""
    return _of_type("fabs", [x], dtype)


def _of_type(name: str, args: list[Any], dtype: DTypeLike | None) -> Expr:
    """The intrinsic; scripts may say the type of its result, as they have to for calls of their own functions."""
    for arg in args:
        if not isinstance(arg, _core.Expr | _core.IterVar | int | float | str | None) and not hasattr(arg, "item"):
            hint = "index it: A[i, j]" if hasattr(arg, "shape") else ""
            raise fail("script/arguments", f"T.{name} takes expressions, not a {type(arg).__name__}", hint)
    call: Expr = _script.intrinsic(name, args)
    return call if dtype is None or call.dtype == str(dtype) else _call(dtype, name, args)


def _call(dtype: DTypeLike, name: str, args: list[Any]) -> Expr:
    made: Expr = _script.call(dtype, f"tir.{name}", args)
    return made


def if_then_else(cond: ExprLike, t: ExprLike, f: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """One of two values, of which only this one is evaluated."""
    chosen = _of_type("if_then_else", [cond, t, f], None)
    return chosen if dtype is None else _core.cast(str(dtype), chosen)


def power(x: ExprLike, y: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """`x` to the power of `y`."""
    return _of_type("pow", [x, y], dtype)


def clz(x: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """The number of leading zero bits."""
    lanes = _re.sub(r"^[a-z]+\d*", "", x.dtype) if isinstance(x, _core.Expr) else ""
    return _call(f"int32{lanes}", "clz", [x])


def reinterpret(*args: ExprLike | DTypeLike, dtype: DTypeLike | None = None) -> Expr:
    """The bits of the value as another type of the same size: ``T.reinterpret("int32", x)``, or with ``dtype=``."""
    if len(args) != (2 if dtype is None else 1):
        raise fail("script/arguments", "T.reinterpret takes a type and a value", 'T.reinterpret("int32", x)')
    kind: Any = args[0] if dtype is None else dtype
    value = args[-1]
    if isinstance(value, _core.Expr) and value.dtype == str(kind):
        return value
    return _call(kind, "reinterpret", [value])


def address_of(x: Any, *, dtype: Any = None) -> Any:
    """The address of an element; of a buffer, that of its first element."""
    if isinstance(x, _core.Buffer):
        x = _script.load(x, [0] * len(x.shape), None)
    return _of_type("address_of", [x], dtype)


def div(a: ExprLike, b: ExprLike) -> Expr | float:
    """Division; of integers it rounds towards zero."""
    return _core.truncdiv(a, b) if isinstance(a, _core.Expr) and "int" in a.dtype else a / b


def undef(dtype: DTypeLike = "int32") -> Expr:
    """A value that does not matter."""
    return _call(dtype, "undef", [])


def _plain(name: str, arity: int) -> Callable[..., Any]:
    if arity == 1:

        def unary(x: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
            return _of_type(name, [x], dtype)

        return unary
    if arity == 2:

        def binary(x: ExprLike, y: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
            return _of_type(name, [x, y], dtype)

        return binary

    def many(*args: ExprLike, dtype: DTypeLike | None = None) -> Expr:
        return _of_type(name, list(args), dtype)

    if arity == 3:  # what help() shows: the core says more about a wrong number of arguments

        def ternary(x: ExprLike, y: ExprLike, z: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
            return many(x, y, z, dtype=dtype)

        vars(many)["__signature__"] = _inspect.signature(ternary)
    return many


def _check_result_type(name: str, dtype: Any, others: Sequence[Any], example: str) -> None:
    """Of a call that is given the type of its result among its arguments, which are easily taken for one another."""
    how = f"its arguments are {example}"
    if isinstance(dtype, _core.Expr | _core.Buffer | _core.BufferRegion):
        raise fail("script/arguments", f"T.{name} needs the type of its result, not a {type(dtype).__name__}", how)
    if isinstance(dtype, str) and dtype and not _core.is_dtype(dtype):
        swapped = any(isinstance(other, str) and _core.is_dtype(other) for other in others)
        raise no_dtype(dtype, how, is_near=not swapped)


def _dtype_first(name: str) -> Callable[..., Any]:
    example = f'T.{name}("float32", ...)' if "extern" not in name else f'T.{name}("float32", "name", ...)'

    def call(*args: Any, dtype: Any = None) -> Any:
        if dtype is None:
            if not args:
                raise fail("script/arguments", f"T.{name} needs the type of its result", example)
            dtype, args = args[0], args[1:]
        _check_result_type(name, dtype, args, example)
        return _call(dtype or "void", name, list(args))

    return call


def _dtype_last(name: str) -> Callable[..., Any]:
    example = f'T.{name}(..., "float32")'

    def call(*args: Any, dtype: Any = None) -> Any:
        if dtype is None:
            if not args:
                raise fail("script/arguments", f"T.{name} needs the type of its result", example)
            dtype, args = args[-1], args[:-1]
        _check_result_type(name, dtype, args, example)
        return _call(dtype, name, list(args))

    return call


def _table() -> dict[str, Callable[..., Any]]:
    """A function for each row of the core's table of intrinsics."""
    functions = {}
    for name, arity, place in _script.intrinsics():
        if place == 3:
            continue
        function = _plain(name, arity) if place == 0 else _dtype_first(name) if place == 1 else _dtype_last(name)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"The intrinsic `tir.{name}`."
        functions[name] = function
    return functions


INTRINSICS = _table()
_TAKES_CONDITION.update(map(id, (if_then_else, Select, INTRINSICS["likely"])))


def print(*args: Any) -> Any:
    """Prints the values, between blanks, on a line of their own when the program runs."""
    for arg in args:
        if isinstance(arg, _core.Buffer | _core.BufferRegion):
            name = arg.name if isinstance(arg, _core.Buffer) else arg.buffer.name
            raise fail("script/print", f"T.print takes values, not the buffer '{name}'", f"for instance {name}[0:4]")
    return _script.intrinsic("print", list(args))


def type_annotation(dtype: Any) -> Any:
    """A type as an argument of a call."""
    return _script.call(dtype, "tir.type_annotation", [])


def ret(value: Any) -> Any:
    """Returns the value from the function."""
    if not isinstance(value, _core.Expr | int | float):
        what = f"the buffer '{value.name}'" if isinstance(value, _core.Buffer) else f"a {type(value).__name__}"
        raise fail("script/return", f"a program returns a number, not {what}", "write results to buffers")
    return _script.intrinsic("ret", [value])


def vscale(*, dtype: Any = None) -> Any:
    """The factor by which vectors of the machine are longer than their minimum."""
    return _script.intrinsic("vscale", [])


def get_active_lane_mask(dtype: Any, base: Any, limit: Any) -> Any:
    """A vector of bool: whether base + lane is below the limit."""
    return _script.call(dtype, "tir.get_active_lane_mask", [base, limit])


def get_vscale_expr(dtype: Any, min_size: int = 128) -> Any:
    """The number of elements of a scalable vector register."""
    bits = _core.const(0, dtype).dtype
    size = int("".join(c for c in bits if c.isdigit()) or 32)
    return min_size // size * vscale()


def tvm_call_packed(*args: Any, dtype: Any = None) -> Any:
    """A call of a function by name, with arguments of any type."""
    return _of_type("call_packed", list(args), dtype)


def tvm_call_cpacked(*args: Any, dtype: Any = None) -> Any:
    """A call of a C function with packed arguments."""
    return _of_type("call_cpacked", list(args), dtype)


def call_packed_lowered(*args: Any, dtype: Any = None) -> Any:
    """A call of a function by name, its arguments on the stack: ``T.tvm_call_packed_lowered``."""
    return _of_type("tvm_call_packed_lowered", list(args), dtype)


def call_cpacked_lowered(*args: Any, dtype: Any = None) -> Any:
    """A call of a C function, its arguments on the stack: ``T.tvm_call_cpacked_lowered``."""
    return _of_type("tvm_call_cpacked_lowered", list(args), dtype)


def llvm_lookup_intrinsic_id(name: str) -> Any:
    """What names an intrinsic of LLVM in a call: its name."""
    return _core.StringImm(name)


def target(config: Any, host: Any = None) -> Any:
    """A target as the value of an attribute."""
    if host is None:
        return config
    return {**({"kind": config} if isinstance(config, str) else config), "host": host}
