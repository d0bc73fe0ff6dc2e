"""The base dialect: expressions mean what they mean in Python, on values that may be nodes of a program.

Unlike in Python, `and`, `or`, `not`, chained comparisons and `x if c else y` also work on expressions of the program.
Python's `and` and `or` give one of their operands, so as values they take operands that are bool; in conditions, where
only the truth of the result counts, they take any.
A slice with both bounds that is used as a value (an operand, an argument, the right side of an assignment) is a vector;
elsewhere it is a region.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, cast

from tilewright import _core
from tilewright.script.core import TAKES_CONDITION
from tilewright.script.core import script as _script
from tilewright.script.dialect import register
from tilewright.script.parser import Parser
from tilewright.script.report import ScriptProblem

Expr = _core.Expr
Buffer = _core.Buffer

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
#: The node of a comparison, and the one with swapped operands.
_SIDES: dict[type, tuple[Any, Any]] = {
    ast.Eq: (_core.EQ, _core.EQ),
    ast.NotEq: (_core.NE, _core.NE),
    ast.Lt: (_core.LT, _core.GT),
    ast.LtE: (_core.LE, _core.GE),
    ast.Gt: (_core.GT, _core.LT),
    ast.GtE: (_core.GE, _core.LE),
}
_MAX_BITS = 1 << 16
#: Names of parameters whose arguments are conditions.
_CONDITIONS = frozenset(["cond", "condition", "predicate"])


def spread(value: Any) -> Any:
    """Return the values of `*value`: a single variable stands for itself, so that programs of any rank look alike."""
    return [value] if isinstance(value, _core.Var) else value


def operand(parser: Parser, node: ast.AST) -> Any:
    """Evaluate an operand; slices with both bounds become vectors."""
    kind = node.__class__
    if kind is ast.Subscript:
        return _subscript(parser, node, vectors=True)
    if kind is ast.List or kind is ast.Tuple:
        items = items_of(parser, node.elts, operand)  # type: ignore[attr-defined]
        return items if kind is ast.List else tuple(items)
    return parser.table[node.__class__](parser, node)


@register("python", "Constant")
def _constant(parser: Parser, node: ast.Constant) -> Any:
    return node.value


@register("python", "Name")
def _name(parser: Parser, node: ast.Name) -> Any:
    parser.at = node
    return parser.lookup(node.id)


@register("python", "Attribute")
def _attribute(parser: Parser, node: ast.Attribute) -> Any:
    value = parser.eval(node.value)
    parser.at = node
    return getattr(value, node.attr)


@register("python", "BinOp")
def _bin_op(parser: Parser, node: Any) -> Any:
    chain = []  # a + b + c + ... leans to the left and may be long: no recursion along it
    while node.__class__ is ast.BinOp:
        chain.append(node)
        node = node.left
    value = operand(parser, node)
    while chain:
        node = chain.pop()
        right = operand(parser, node.right)
        parser.mark(node)
        if isinstance(value, int | str | list | tuple | bytes):
            _check_size(node.op, value, right)
        value = _BINARY[node.op.__class__](value, right)
    return value


def _check_size(op: ast.operator, left: Any, right: Any) -> None:
    """Raise an error for an operation on constants whose result would fill the memory."""
    if not isinstance(right, int):
        return
    if isinstance(left, int):
        bits = left.bit_length()
        grows = (isinstance(op, ast.Pow) and bits * right > _MAX_BITS) or (
            isinstance(op, ast.LShift) and right > _MAX_BITS
        )
    else:
        grows = isinstance(op, ast.Mult) and len(left) * right > _MAX_BITS * 64
    if grows:
        raise ScriptProblem("script/constant-size", "this constant is too large")


@register("python", "UnaryOp")
def _unary_op(parser: Parser, node: ast.UnaryOp) -> Any:
    op = node.op.__class__
    value = (condition if op is ast.Not else operand)(parser, node.operand)
    parser.mark(node)
    if op is ast.Not:
        return _core.logical_not(value) if isinstance(value, Expr) else not value
    if op is ast.USub:
        return -value
    if op is ast.UAdd:
        return +value
    return ~value


def condition(parser: Parser, node: ast.AST) -> Any:
    """Read a condition: only its truth counts, so `and` and `or` take any operands."""
    if node.__class__ is ast.BoolOp:
        return _combined(parser, node, condition)
    if node.__class__ is ast.IfExp:
        return _chosen(parser, node, condition)
    return operand(parser, node)


@register("python", "BoolOp")
def _bool_op(parser: Parser, node: ast.BoolOp) -> Any:
    return _combined(parser, node, operand)


def _combined(parser: Parser, node: Any, value_of: Callable[[Parser, Any], Any]) -> Any:
    is_and = node.op.__class__ is ast.And
    at = node.values[0]
    value = value_of(parser, at)
    for item in node.values[1:]:
        if not isinstance(value, Expr) and bool(value) is not is_and:
            return value
        right = value_of(parser, item)
        parser.mark(node)
        if not isinstance(value, Expr):
            value, at = right, item  # as in Python: it decides nothing
            continue
        if value_of is operand:
            _check_truth(is_and, value, at)
            _check_truth(is_and, right, item)
        value, at = logic(is_and, value, right), node
    return value


def _check_truth(is_and: bool, value: Any, node: ast.expr) -> None:
    """Raise an error unless an operand of `and` or `or` is bool: Python returns the operand itself, the program would
    compute its truth value."""
    if isinstance(value, Expr):
        is_truth, what = value.dtype.startswith("bool"), value.dtype
    else:
        is_truth, what = type(value).__name__ in ("bool", "bool_"), f"a Python {type(value).__name__}"
    if not is_truth:
        name, text = "and" if is_and else "or", ast.unparse(node)
        raise ScriptProblem(
            "script/truth-value",
            f"'{name}' gives one of its operands, and '{text}' is {what}: as a value, both have to be bool",
            f"compare it: {text} != 0" if isinstance(value, Expr) else "choose: T.if_then_else(condition, one, other)",
            node,
        )


def logic(is_and: bool, a: Any, b: Any) -> Any:
    """Return `a and b` or `a or b`; on vectors lane by lane."""
    if any(isinstance(item, Expr) and "x" in item.dtype for item in (a, b)):
        truths = [item != 0 if isinstance(item, Expr) and "bool" not in item.dtype else item for item in (a, b)]
        return _script.intrinsic("bitwise_and" if is_and else "bitwise_or", truths)
    return (_core.logical_and if is_and else _core.logical_or)(a, b)


@register("python", "Compare")
def _compare(parser: Parser, node: ast.Compare) -> Any:
    left = operand(parser, node.left)
    result: Any = True
    for op, item in zip(node.ops, node.comparators, strict=True):
        right = operand(parser, item)
        parser.mark(node)
        if op.__class__ in (ast.In, ast.NotIn) and isinstance(left, Expr):
            _check_membership(left, right, node)
        one = _in_source_order(op.__class__, left, _COMPARE[op.__class__](left, right))
        if result is True:
            result = one
        elif isinstance(result, Expr) or (result and isinstance(one, Expr)):
            result = logic(True, result, one)
        else:
            result = result and one
        left = right
    return result


def _in_source_order(op: type, left: Any, made: Any) -> Any:
    """Return the comparison with its operands in source order: Python turns 2 <= i into i >= 2 if 2 is a Python
    number."""
    written, swapped = _SIDES.get(op, (None, None))
    if written is None or swapped is None or isinstance(left, Expr) or not isinstance(made, swapped):
        return made
    return written(made.b, made.a)


def _check_membership(left: Expr, right: Any, node: ast.Compare) -> None:
    """Raise an error for `expression in collection`: Python would compare identities of nodes, so a list of numbers
    never contains an expression."""
    if isinstance(right, list | tuple | set | range) and not any(isinstance(item, _core.Node) for item in right):
        raise ScriptProblem(
            "script/membership",
            "whether an expression of the program is in a Python collection is not known while parsing",
            f"compare: {left} == 1 or {left} == 2",
            node,
        )


@register("python", "IfExp")
def _if_exp(parser: Parser, node: ast.IfExp) -> Any:
    return _chosen(parser, node, operand)


def _chosen(parser: Parser, node: Any, value_of: Callable[[Parser, Any], Any]) -> Any:
    test = condition(parser, node.test)
    if not isinstance(test, Expr):
        return value_of(parser, node.body if test else node.orelse)
    yes, no = value_of(parser, node.body), value_of(parser, node.orelse)
    parser.mark(node)
    return _core.if_then_else(_script.as_condition(test), yes, no)


@register("python", "Call")
def _call(parser: Parser, node: ast.Call) -> Any:
    func = parser.eval(node.func)
    value_of = parser.eval if getattr(func, "takes_regions", False) else None
    takes_condition = id(func) in TAKES_CONDITION
    args: list[Any] = []
    for arg in cast(list[Any], node.args):
        if arg.__class__ is ast.Starred:
            items = spread(parser.eval(arg.value))
            parser.at = arg
            args.extend(items)
        else:
            is_condition = takes_condition and not args
            args.append(value_of(arg) if value_of else (condition if is_condition else operand)(parser, arg))
    if not node.keywords:
        parser.mark(node)
        if func is builtins.any or func is builtins.all or func is builtins.bool:
            _check_known(func.__name__, args)
        return func(*args)
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        is_condition = takes_condition and keyword.arg in _CONDITIONS
        value = value_of(keyword.value) if value_of else (condition if is_condition else operand)(parser, keyword.value)
        if keyword.arg is None:
            keywords.update(value)
        else:
            keywords[keyword.arg] = value
    parser.mark(node)
    return func(*args, **keywords)


def _check_known(name: str, args: list[Any]) -> None:
    """Refuse Python's functions of truth for conditions of the program: `i == j` is true for Python if both are the
    same object."""
    if name != "bool" and args and not isinstance(args[0], Expr):
        args[0] = list(args[0])
    conditions = args if name == "bool" else args[0] if args else []
    if any(isinstance(item, Expr) and not isinstance(item, _core.IntImm | _core.FloatImm) for item in conditions):
        raise ScriptProblem("ir/truth", "an expression of the program has no truth value while it is being built")


@register("python", "Subscript")
def _subscript_region(parser: Parser, node: ast.Subscript) -> Any:
    return _subscript(parser, node, vectors=False)


def _subscript(parser: Parser, node: Any, vectors: bool) -> Any:
    value = parser.eval(node.value)
    key = index(parser, node.slice, vectors)
    parser.mark(node)
    return value[key]


def index(parser: Parser, node: ast.expr, vectors: bool) -> Any:
    """Return the indices in brackets; with `vectors`, slices with both bounds get the step 1."""
    kind = node.__class__
    if kind is ast.Tuple:
        items: list[Any] = []
        for item in node.elts:  # type: ignore[attr-defined]
            if item.__class__ is ast.Starred:
                items.extend(spread(parser.eval(item.value)))
            else:
                items.append(index(parser, item, vectors))
        return tuple(items)
    if kind is not ast.Slice:
        return operand(parser, node)
    lower, upper, step = node.lower, node.upper, node.step  # type: ignore[attr-defined]
    start = None if lower is None else operand(parser, lower)
    stop = None if upper is None else operand(parser, upper)
    if step is not None:
        return slice(start, stop, operand(parser, step))
    return slice(start, stop, 1 if vectors and start is not None and stop is not None else None)


@register("python", "Slice")
def _slice(parser: Parser, node: ast.Slice) -> Any:
    return index(parser, node, vectors=False)


def items_of(parser: Parser, nodes: list[Any], value_of: Callable[[Parser, Any], Any] | None = None) -> list[Any]:
    """Return the values of the nodes, those of `*values` one by one."""
    items: list[Any] = []
    for node in nodes:
        if node.__class__ is ast.Starred:
            items.extend(spread(parser.eval(node.value)))
        else:
            items.append(value_of(parser, node) if value_of else parser.eval(node))
    return items


@register("python", "Tuple")
def _tuple(parser: Parser, node: ast.Tuple) -> Any:
    return tuple(items_of(parser, node.elts))


@register("python", "List")
def _list(parser: Parser, node: ast.List) -> Any:
    return items_of(parser, node.elts)


@register("python", "Set")
def _set(parser: Parser, node: ast.Set) -> Any:
    return set(items_of(parser, node.elts))


@register("python", "Dict")
def _dict(parser: Parser, node: ast.Dict) -> Any:
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result.update(parser.eval(value))
        else:
            result[parser.eval(key)] = parser.eval(value)
    return result


@register("python", "JoinedStr")
def _joined_str(parser: Parser, node: ast.JoinedStr) -> str:
    return "".join(str(parser.eval(part)) for part in node.values)


@register("python", "FormattedValue")
def _formatted_value(parser: Parser, node: ast.FormattedValue) -> str:
    value = parser.eval(node.value)
    convert: Any = {ord("s"): str, ord("r"): repr, ord("a"): ascii}.get(node.conversion)
    if convert:
        value = convert(value)
    parser.at = node.value
    return format(value, parser.eval(node.format_spec) if node.format_spec else "")


@register("python", "Lambda")
def _lambda(parser: Parser, node: ast.Lambda) -> Any:
    """Return a function with the signature of the lambda, whose body the parser evaluates, so that operators mean what
    they mean in a script."""
    captured, source, outer, trail = dict(parser.names), parser.source, parser.outer, parser.trail
    known = parser.names  # as it is when the function is called: a name may be bound again, or later

    def run(arguments: dict[str, Any]) -> Any:
        is_here = parser.source is source
        with parser.moved_to(source, {**captured, **known, **arguments}, outer, trail):
            try:
                return operand(parser, node.body)
            except Exception as error:
                if is_here and not hasattr(error, "script_node"):
                    error.script_node = parser.at  # type: ignore[attr-defined]
                raise

    call = ast.Call(ast.Name("__tilewright_run", ast.Load()), [ast.Call(ast.Name("locals", ast.Load()), [], [])], [])
    function = ast.Expression(ast.Lambda(node.args, call))
    ast.fix_missing_locations(function)
    code: CodeType = compile(function, source.file, "eval")
    return eval(code, {**parser.environment(), "__tilewright_run": run})


def _each(parser: Parser, generators: list[ast.comprehension], add: Callable[[], object], at: int = 0) -> None:
    """Call `add` with the names of a comprehension bound to each of their values."""
    if at == len(generators):
        add()
        return
    generator = generators[at]
    if generator.is_async:
        raise ScriptProblem("script/unsupported", "an asynchronous comprehension is not part of scripts")
    items = parser.eval(generator.iter)
    parser.at = generator.iter
    for item in items:
        bind_python(parser, generator.target, item)
        if all(_holds(parser, test) for test in generator.ifs):
            _each(parser, generators, add, at + 1)


def _holds(parser: Parser, node: ast.expr) -> bool:
    """Return whether a condition of a comprehension holds. For `i == j`, Python only checks whether both are the same
    object."""
    test = condition(parser, node)
    parser.at = node
    if isinstance(test, Expr) and not isinstance(test, _core.IntImm | _core.FloatImm):
        raise ScriptProblem(
            "script/condition",
            "whether the condition of a comprehension holds is not known while parsing",
            f"choose a value for each item instead: value if {ast.unparse(node)} else 0",
            node,
        )
    return bool(test)


def bind_python(parser: Parser, target: ast.AST, value: Any) -> None:
    """Bind Python values to names as Python does."""
    if isinstance(target, ast.Name):
        parser.define(target.id, value)
        return
    if isinstance(target, ast.Tuple | ast.List):
        for item, part in unpack(target, value):
            bind_python(parser, item, part)
        return
    raise ScriptProblem("script/target", f"a value cannot be bound to '{ast.unparse(target)}'", "", target)


def unpack(target: ast.Tuple | ast.List, value: Any) -> Iterator[tuple[ast.expr, Any]]:
    """Yield pairs of targets and values; a starred target gets a list."""
    names = "1 name" if len(target.elts) == 1 else f"{len(target.elts)} names"
    try:
        values = list(value)
    except TypeError:
        raise ScriptProblem("script/unpack", f"one value is unpacked into {names}", "", target) from None
    stars = [i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
    fixed = len(target.elts) - len(stars)
    if len(values) < fixed or (not stars and len(values) > fixed):
        what = "1 value is" if len(values) == 1 else f"{len(values)} values are"
        raise ScriptProblem("script/unpack", f"{what} unpacked into {names}", "", target)
    if not stars:
        yield from zip(target.elts, values, strict=True)
        return
    first, rest = stars[0], len(values) - fixed
    yield from zip(target.elts[:first], values[:first], strict=True)
    starred = target.elts[first]
    assert isinstance(starred, ast.Starred)
    yield starred.value, values[first : first + rest]
    yield from zip(target.elts[first + 1 :], values[first + rest :], strict=True)


@register("python", "ListComp")
def _list_comp(parser: Parser, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    values: list[Any] = []
    with parser.own_names():
        _each(parser, node.generators, lambda: values.append(parser.eval(node.elt)))
    return values


@register("python", "GeneratorExp")
def _generator(parser: Parser, node: ast.GeneratorExp) -> Any:
    return iter(_list_comp(parser, node))


@register("python", "SetComp")
def _set_comp(parser: Parser, node: ast.SetComp) -> Any:
    return set(_list_comp(parser, node))


@register("python", "DictComp")
def _dict_comp(parser: Parser, node: ast.DictComp) -> Any:
    items: list[tuple[Any, Any]] = []
    with parser.own_names():
        _each(parser, node.generators, lambda: items.append((parser.eval(node.key), parser.eval(node.value))))
    return dict(items)
