"""Expressions: nodes by name, operators that Python has no sign for, and intrinsic functions.

A function with a node's name in capitals (T.Add) builds exactly this node; the others (T.min, T.cast) fold constants.
"""

from __future__ import annotations

import inspect as _inspect
import re as _re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.script.core import TAKES_CONDITION as _TAKES_CONDITION
from tilewright.script.core import script as _script
from tilewright.script.report import fail
from tilewright.script.tir import intrinsic_docs as _docs
from tilewright.script.tir.dtypes import check_dtype, no_dtype
from tilewright.script.tir.quotients import ceildiv as ceildiv
from tilewright.script.tir.quotients import floordiv as floordiv
from tilewright.script.tir.quotients import indexdiv as indexdiv
from tilewright.script.tir.quotients import truncdiv as truncdiv

if TYPE_CHECKING:
    from tilewright._core import Expr, ExprLike
    from tilewright.script.tir.dtypes import DTypeLike

floormod = _core.floormod
indexmod = _core.floormod
max_value = _core.max_value
min_value = _core.min_value
Op = _core.Op
GlobalVar = _core.GlobalVar
StringImm = _core.StringImm


_OF_BOOL = ("EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or")


def _operator(name: str) -> Callable[[Any, Any], Any]:
    def make(a: Any, b: Any) -> Any:
        return _script.operator_node(name, a, b)

    make.__name__ = make.__qualname__ = name
    returned = "a bool, or a vector of bools" if name in _OF_BOOL else "of their type"
    make.__doc__ = (
        f"The node {name}(a, b), not folded.\n\nArgs:\n    a, b: numbers or vectors of one type.\n\n"
        f"Returns:\n    The node, {returned}."
    )
    return make


_OPERATOR_NAMES = (
    *("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
    *_OF_BOOL,
)
OPERATORS = {name: _operator(name) for name in _OPERATOR_NAMES}


def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """Return the remainder of a division that rounds towards zero: the node Mod, not folded.

    Args:
        a, b: integers, or floats, of one type.

    Returns:
        The remainder, with the sign of `a`.
    """
    made: Expr = _script.operator_node("Mod", a, b)
    return made


def Not(a: Any) -> Any:
    """Return the node Not(a), not folded.

    Args:
        a: a bool, or a vector of bools.

    Returns:
        The node, of the type of `a`.
    """
    return _core.Not(a)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """Return one of two values, both of which may be evaluated.

    Args:
        condition: a bool; a vector chooses lane by lane.
        true_value: the value where the condition holds.
        false_value: the value elsewhere.

    Returns:
        The node, of the type of the values.
    """
    return _script.select_node(condition, true_value, false_value)


def Cast(dtype: Any, value: Any) -> Any:
    """Return the node Cast(dtype, value), not folded; a number that float32 cannot hold becomes a constant of the type.

    Args:
        dtype: the type of the result.
        value: a number or a vector.

    Returns:
        The node, of type `dtype`.
    """
    check_dtype(dtype)
    return _script.cast_node(dtype, value)


def cast(value: ExprLike, dtype: DTypeLike) -> Expr:
    """Convert the value to another type; constants are converted immediately.

    Args:
        value: a number or a vector.
        dtype: the type of the result.

    Returns:
        An expression of type `dtype`.
    """
    check_dtype(dtype)
    return _core.cast(str(dtype), value)


def Ramp(base: Any, stride: Any, lanes: Any) -> Any:
    """Return the vector base, base + stride, ..., of `lanes` elements.

    Args:
        base: the first element, an integer.
        stride: the difference between neighbors.
        lanes: the number of elements.

    Returns:
        A vector of the type of `base`.
    """
    return _script.ramp(base, stride, lanes)


def Broadcast(value: Any, lanes: Any) -> Any:
    """Return a vector with the same value in all `lanes`.

    Args:
        value: the element.
        lanes: the number of elements.

    Returns:
        A vector of the type of `value`.
    """
    return _script.broadcast(value, lanes)


ramp, broadcast = Ramp, Broadcast


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> Any:
    """Return the elements at `indices` of the concatenated vectors.

    Args:
        vectors: vectors or numbers of one type.
        indices: positions in all of them, one after the other, as numbers.

    Returns:
        A vector of as many elements as there are indices; of one index, a number.
    """
    return _core.Shuffle(list(vectors), list(indices))


def BufferLoad(buffer: Any, indices: Sequence[Any], predicate: Any = None) -> Any:
    """Return a load from a buffer.

    Args:
        buffer: what is read.
        indices: one for each dimension; the last one may be a vector.
        predicate: a vector of bools: the lanes that are read.

    Returns:
        An expression of the type of the elements.
    """
    return _script.load(buffer, list(indices), predicate)


def BufferRegion(buffer: Any, region: Sequence[Any]) -> Any:
    """Return a region of a buffer.

    Args:
        buffer: the buffer.
        region: a Range for each dimension.

    Returns:
        The region, for T.reads, T.writes and T.match_buffer.
    """
    return _core.BufferRegion(buffer, list(region))


def buffer_store(buffer: Any, value: Any, indices: Any, predicate: Any = None) -> None:
    """Store a value to a buffer: a statement, as ``buffer[indices] = value``.

    Args:
        buffer: what is written.
        value: a value of the elements' data type.
        indices: one for each dimension; the last one may be a vector.
        predicate: a vector of bools: the lanes that are written.
    """
    _script.buffer_store(buffer, value, tuple(indices) if isinstance(indices, list) else indices, predicate)


def Call(dtype: Any, op: Any, args: Sequence[Any]) -> Any:
    """Return a call of an operator (a node or its name) or of a function of the module.

    Args:
        dtype: the type of the result.
        op: an operator as a node, or its name, or a GlobalVar.
        args: the arguments.

    Returns:
        An expression of type `dtype`.
    """
    if isinstance(op, str):
        return _script.call(dtype, op if op.startswith("tir.") else f"tir.{op}", list(args))
    return _core.Call(dtype, op, list(args))


def call_intrin(dtype: Any, func_name: Any, *args: Any) -> Any:
    """Return a call, of type `dtype`, of the operator with the full name `func_name`, such as "tir.exp".

    Args:
        dtype: the type of the result.
        func_name: the operator, as a node or by its full name.
        *args: the arguments.

    Returns:
        An expression of type `dtype`.
    """
    name = func_name.name if isinstance(func_name, _core.Op) else func_name
    return _script.call(dtype, name, list(args))


def Var(name: str, dtype: Any) -> Any:
    """Return a variable with this name and this dtype or pointer type.

    Args:
        name: what it is called where the program is printed.
        dtype: its type, such as "int32", or a PointerType.

    Returns:
        The variable.
    """
    return _core.Var(name, _type(dtype))


def SizeVar(name: str, dtype: Any = "int32") -> Any:
    """Return a variable with this name that is at least 0.

    Args:
        name: what it is called where the program is printed.
        dtype: an integer type.

    Returns:
        The variable.
    """
    return _core.Var(name, _type(dtype), True)


def _type(dtype: Any) -> Any:
    from tilewright.script.tir.dtypes import DType

    if isinstance(dtype, _core.Type):
        return dtype
    return _core.PrimType(dtype.dtype if isinstance(dtype, DType) else dtype)


def IntImm(dtype: Any, value: int) -> Any:
    """Return an integer constant.

    Args:
        dtype: an integer type, or "bool".
        value: a number that the type holds.

    Returns:
        The node.
    """
    return _core.IntImm(dtype, value)


def FloatImm(dtype: Any, value: float) -> Any:
    """Return a floating-point constant.

    Args:
        dtype: a floating-point type.
        value: a number, which is rounded to the type.

    Returns:
        The node.
    """
    return _core.FloatImm(dtype, value)


def Tuple(*fields: Any) -> Any:
    """Return the tuple type of several values.

    Args:
        *fields: types, or values whose types are meant.

    Returns:
        The TupleType.
    """
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
    """Return an iteration variable.

    Args:
        var: a variable, or its name.
        dom: a Range or (begin, end); None where it has none.
        iter_type: the kind, such as "DataPar" or "CommReduce".
        thread_tag: tag of an axis of threads, such as "threadIdx.x".

    Returns:
        The IterVar.
    """
    if isinstance(var, str):
        var = Var(var, "int32")
    if iter_type not in _ITER_TYPES:
        raise fail("script/iter-type", f"'{iter_type}' is not a kind of iteration", "one of " + ", ".join(_ITER_TYPES))
    if isinstance(dom, list | tuple):
        dom = _script.range_between(*dom)
    return _core.IterVar(dom, var, _core.IterType(_ITER_TYPES[iter_type]), thread_tag)


def IterVar(dom: Any, var: Any, iter_type: int, thread_tag: str = "") -> Any:
    """Return an iteration variable; its kind is a number.

    Args:
        dom: a Range; None where it has none.
        var: a variable, or its name.
        iter_type: the number of the kind: 0 data parallel, 1 threads, 2 reduction, 3 ordered, 4 opaque.
        thread_tag: tag of an axis of threads, such as "threadIdx.x".

    Returns:
        The IterVar.
    """
    return _core.IterVar(dom, Var(var, "int32") if isinstance(var, str) else var, _core.IterType(iter_type), thread_tag)


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> Any:
    """Return a reducer from a function of two values (or of two times as many, for a tuple) and the identity.

    Args:
        combiner: two values -> their combination; for tuples of n, 2 n values -> n.
        identity: what changes nothing, for each value.

    Returns:
        The CommReducer.
    """
    count = len(identity)
    values = [i if isinstance(i, _core.Expr) else _core.const(i, None) for i in identity]
    lhs = [_core.Var(f"x{i}" if count > 1 else "x", _type(v.dtype)) for i, v in enumerate(values)]
    rhs = [_core.Var(f"y{i}" if count > 1 else "y", _type(v.dtype)) for i, v in enumerate(values)]
    result = combiner(*lhs, *rhs)
    results = list(result) if isinstance(result, list | tuple) else [result]
    return _core.CommReducer(lhs, rhs, results, values)


def CommReducer(lhs: Sequence[Any], rhs: Sequence[Any], result: Sequence[Any], identity_element: Sequence[Any]) -> Any:
    """Return a reducer: result(lhs, rhs) with its identity.

    Args:
        lhs, rhs: variables for the two values, or tuples of values, that are combined.
        result: their combination, in these variables.
        identity_element: what changes nothing, for each value.

    Returns:
        The node.
    """
    return _core.CommReducer(list(lhs), list(rhs), list(result), list(identity_element))


def infinity(dtype: DTypeLike) -> Expr:
    """Return the positive infinity of a floating-point type.

    Args:
        dtype: a floating-point type.

    Returns:
        A constant of that type.
    """
    return _core.FloatImm(str(dtype), float("inf"))


def min(a: ExprLike, b: ExprLike) -> Expr:
    """Return the smaller value."""
    return _core.min(a, b)


def max(a: ExprLike, b: ExprLike) -> Expr:
    """Return the larger value."""
    return _core.max(a, b)


def abs(x: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """Return the absolute value.

    Args:
        x: a number or a vector.
        dtype: the type of the result, where it differs from that of `x`.

    Returns:
        An expression of the type of `x`.
    """
    return _of_type("fabs", [x], dtype)


def _of_type(name: str, args: list[Any], dtype: DTypeLike | None) -> Expr:
    """Return the intrinsic. Scripts may state its result type, as they must for calls of their own functions."""
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
    """Return one of two values; only that one is evaluated.

    Args:
        cond: a bool.
        t: the value where it holds.
        f: the value elsewhere, of the same type.
        dtype: the type of the result, where it differs from that of the values.

    Returns:
        An expression of the type of the values.
    """
    chosen = _of_type("if_then_else", [cond, t, f], None)
    return chosen if dtype is None else _core.cast(str(dtype), chosen)


def power(x: ExprLike, y: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """Return `x` to the power of `y`.

    Args:
        x: the base: a float, or a vector of floats.
        y: the exponent, of the same type.
        dtype: the type of the result, where it differs.

    Returns:
        An expression of the type of `x`.
    """
    return _of_type("pow", [x, y], dtype)


def clz(x: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
    """Return the number of leading zero bits.

    Args:
        x: an integer, or a vector of integers.
        dtype: not needed: the result is of type int32.

    Returns:
        An int32, or a vector of them; of 0 the number of bits of the type.
    """
    lanes = _re.sub(r"^[a-z]+\d*", "", x.dtype) if isinstance(x, _core.Expr) else ""
    return _call(f"int32{lanes}", "clz", [x])


def reinterpret(*args: ExprLike | DTypeLike, dtype: DTypeLike | None = None) -> Expr:
    """Reinterpret the bits of the value as another type of the same size: ``T.reinterpret("int32", x)``, or with
    ``dtype=``.

    Args:
        *args: the type of the result, then the value; only the value where `dtype` is given.
        dtype: the type of the result.

    Returns:
        An expression of that type.
    """
    if len(args) != (2 if dtype is None else 1):
        raise fail("script/arguments", "T.reinterpret takes a type and a value", 'T.reinterpret("int32", x)')
    kind: Any = args[0] if dtype is None else dtype
    value = args[-1]
    if isinstance(value, _core.Expr) and value.dtype == str(kind):
        return value
    return _call(kind, "reinterpret", [value])


def address_of(x: Any, *, dtype: Any = None) -> Any:
    """Return the address of an element; for a buffer, the address of its first element.

    Args:
        x: an element ``A[i, j]``, or a buffer.
        dtype: not needed: the result is of type handle.

    Returns:
        A pointer, as an expression of type handle.
    """
    if isinstance(x, _core.Buffer):
        x = _script.load(x, [0] * len(x.shape), None)
    return _of_type("address_of", [x], dtype)


def div(a: ExprLike, b: ExprLike) -> Expr | float:
    """Return the quotient; of integers, rounded towards zero.

    Args:
        a, b: numbers or vectors of one type.

    Returns:
        The quotient, of their type.
    """
    return _core.truncdiv(a, b) if isinstance(a, _core.Expr) and "int" in a.dtype else a / b


def undef(dtype: DTypeLike = "int32") -> Expr:
    """Return an unspecified value.

    Args:
        dtype: the type of the result.

    Returns:
        An expression of that type.
    """
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

    if arity == 3:  # for help(): the core reports a wrong number of arguments better

        def ternary(x: ExprLike, y: ExprLike, z: ExprLike, *, dtype: DTypeLike | None = None) -> Expr:
            return many(x, y, z, dtype=dtype)

        vars(many)["__signature__"] = _inspect.signature(ternary)
    return many


def _check_result_type(name: str, dtype: Any, others: Sequence[Any], example: str) -> None:
    """Check a call that takes the type of its result among its arguments, which are easily confused."""
    how = f"its arguments are {example}"
    if isinstance(dtype, _core.Expr | _core.Buffer | _core.BufferRegion):
        raise fail("script/arguments", f"T.{name} needs the type of its result, not a {type(dtype).__name__}", how)
    if isinstance(dtype, str) and dtype and not _core.is_dtype(dtype):
        swapped = any(isinstance(other, str) and _core.is_dtype(other) for other in others)
        raise no_dtype(dtype, how, is_near=not swapped)


def _with_dtype(name: str, place: int) -> Callable[..., Any]:
    """Return the intrinsic whose first or last argument (0, -1) is its result type."""
    example = f'T.{name}(..., "float32")' if place else f'T.{name}("float32", ...)'
    if "extern" in name and not place:
        example = f'T.{name}("float32", "name", ...)'

    def call(*args: Any, dtype: Any = None) -> Any:
        given = list(args)
        if dtype is None:
            if not given:
                raise fail("script/arguments", f"T.{name} needs the type of its result", example)
            dtype = given.pop(place)
        _check_result_type(name, dtype, given, example)
        return _call(dtype if place else dtype or "void", name, given)

    return call


def _table() -> dict[str, Callable[..., Any]]:
    """Return a function for each row of the core's table of intrinsics."""
    functions = {}
    for name, arity, place, typing, result, _ in _script.intrinsics():
        if place == 3:
            continue
        function = _plain(name, arity) if place == 0 else _with_dtype(name, 0 if place == 1 else -1)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = _docs.doc_of(name, arity, typing, result)
        functions[name] = function
    return functions


INTRINSICS = _table()
_TAKES_CONDITION.update(map(id, (if_then_else, Select, INTRINSICS["likely"])))


def print(*args: Any) -> Any:
    """Print the values, separated by blanks, on one line when the program runs.

    Args:
        *args: numbers, vectors and strings.

    Returns:
        A call: the statement is ``T.evaluate(T.print(...))``, or the call alone on a line.
    """
    for arg in args:
        if isinstance(arg, _core.Buffer | _core.BufferRegion):
            name = arg.name if isinstance(arg, _core.Buffer) else arg.buffer.name
            raise fail("script/print", f"T.print takes values, not the buffer '{name}'", f"for instance {name}[0:4]")
    return _script.intrinsic("print", list(args))


def type_annotation(dtype: Any) -> Any:
    """Return a type as an argument of a call.

    Args:
        dtype: the type.

    Returns:
        A call of that type, which has no value.
    """
    return _script.call(dtype, "tir.type_annotation", [])


def ret(value: Any) -> Any:
    """Return the value from the function.

    Args:
        value: a value of the function's return type.

    Returns:
        A call: the statement is ``T.evaluate(T.ret(...))``.
    """
    if not isinstance(value, _core.Expr | int | float):
        what = f"the buffer '{value.name}'" if isinstance(value, _core.Buffer) else f"a {type(value).__name__}"
        raise fail("script/return", f"a program returns a number, not {what}", "write results to buffers")
    return _script.intrinsic("ret", [value])


def vscale(*, dtype: Any = None) -> Any:
    """Return the number of times that the machine's vectors are longer than their minimum.

    Args:
        dtype: not needed: the result is of type int32.

    Returns:
        An expression of type int32.
    """
    return _script.intrinsic("vscale", [])


def get_active_lane_mask(dtype: Any, base: Any, limit: Any) -> Any:
    """Return a vector of bool: whether base + lane is below the limit.

    Args:
        dtype: the type of the mask, such as "boolx4".
        base: the number of the first lane.
        limit: the number behind the last lane that is active.

    Returns:
        The mask, of type `dtype`.
    """
    return _script.call(dtype, "tir.get_active_lane_mask", [base, limit])


def get_vscale_expr(dtype: Any, min_size: int = 128) -> Any:
    """Return the number of elements of a scalable vector register.

    Args:
        dtype: the type of an element.
        min_size: the least number of bits of a register.

    Returns:
        The number, as an expression of ``T.vscale()``.
    """
    bits = _core.const(0, dtype).dtype
    size = int("".join(c for c in bits if c.isdigit()) or 32)
    return min_size // size * vscale()


def tvm_call_packed(*args: Any, dtype: Any = None) -> Any:
    """Call a function by name, with arguments of any type.

    Args:
        *args: the name, then the arguments.
        dtype: the type of the result; int32 by default.

    Returns:
        An expression of that type.
    """
    return _of_type("call_packed", list(args), dtype)


def tvm_call_cpacked(*args: Any, dtype: Any = None) -> Any:
    """Call a C function with packed arguments.

    Args:
        *args: the name, then the arguments.
        dtype: the type of the result; int32 by default.

    Returns:
        An expression of that type.
    """
    return _of_type("call_cpacked", list(args), dtype)


def call_packed_lowered(*args: Any, dtype: Any = None) -> Any:
    """Call a function by name, with its arguments on the stack: ``T.tvm_call_packed_lowered``.

    Args:
        *args: as of that function.
        dtype: the type of the result.

    Returns:
        An expression of type `dtype`.
    """
    return _of_type("tvm_call_packed_lowered", list(args), dtype)


def call_cpacked_lowered(*args: Any, dtype: Any = None) -> Any:
    """Call a C function, with its arguments on the stack: ``T.tvm_call_cpacked_lowered``.

    Args:
        *args: as of that function.
        dtype: the type of the result.

    Returns:
        An expression of type `dtype`.
    """
    return _of_type("tvm_call_cpacked_lowered", list(args), dtype)


def llvm_lookup_intrinsic_id(name: str) -> Any:
    """Return the name of an LLVM intrinsic as the argument of a call.

    Args:
        name: its name, such as "llvm.x86.avx2.psad.bw".

    Returns:
        The name.
    """
    return _core.StringImm(name)


def target(config: Any, host: Any = None) -> Any:
    """Return a target as the value of an attribute.

    Args:
        config: the target as text, or as a dictionary.
        host: the target of the code around, as text or as a dictionary.

    Returns:
        The target.
    """
    if host is None:
        return config
    return {**({"kind": config} if isinstance(config, str) else config), "host": host}
