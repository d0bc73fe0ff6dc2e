"""The statements of the dialect `tir`."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import math
from typing import Any

import numpy as np

from tilewright import _core
from tilewright.script.core import script as _script
from tilewright.script.dialect import dialect, register
from tilewright.script.expressions import bind_python, condition, index, items_of, operand, unpack
from tilewright.script.parser import UNKNOWN, Parser
from tilewright.script.report import ScriptProblem
from tilewright.script.tir.intrinsics import ret
from tilewright.script.tir.macros import is_macro_decorator, nested_macro
from tilewright.script.tir.values import MetaVar

Expr = _core.Expr
Frame = _script.Frame
Var = _core.Var
Buffer = _core.Buffer
_NAMED = (_core.Var, _core.Buffer, _core.Axis)
_MAX_HOST_ITERATIONS = 1_000_000


def _name(text: str, value: Any) -> Any:
    """Name a variable, buffer or axis of this script after the name that it is bound to."""
    if isinstance(value, _NAMED):
        _script.IRBuilder.name(text, value)
    return value


def bind(parser: Parser, target: Any, value: Any, *, let: bool) -> None:
    """Bind names to a value; with `let`, expressions become variables of the program."""
    if isinstance(value, MetaVar):
        bind_python(parser, target, value.value)
    elif target.__class__ is ast.Name:
        name = target.id
        if let and isinstance(value, _NAMED) and _script.is_unnamed(value):
            _check_redefinition(parser, name, value)
        parser.define(name, _let(parser, name, value) if let else _bound(name, value))
    elif isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, Var) and (len(target.elts) == 1 or _is_starred(target)):
            value = [value]  # `vi, = T.axis.remap("S", [i])`, `i, *rest = ...`
        for item, part in unpack(target, value):
            bind(parser, item, part, let=let)
    else:
        raise ScriptProblem("script/target", f"a value cannot be bound to '{ast.unparse(target)}'", "", target)


def _is_starred(target: ast.Tuple | ast.List) -> bool:
    return any(isinstance(item, ast.Starred) for item in target.elts)


def _check_redefinition(parser: Parser, name: str, value: Any) -> None:
    """Raise an error if two buffers or two axes of one block have the same name, which is almost certainly a mistake.

    Variables that `T.int32()` makes may share a name: each binding of a let expression needs one of its own.
    """
    if isinstance(value, Var) and not _script.is_axis(value):
        return
    if parser.is_own(name) and isinstance(parser.names[name], _NAMED):
        raise ScriptProblem("script/redefined", f"'{name}' is defined already in this block", "choose another name")


def _collection(kind: type, items: list[Any]) -> list[Any] | tuple[Any, ...]:
    """Return the items as a list or tuple like `kind`. A named tuple keeps its names; a kind such as torch.Size, which
    holds only numbers, becomes a plain tuple."""
    if hasattr(kind, "_make"):
        made: tuple[Any, ...] = kind._make(items)
        return made
    return items if issubclass(kind, list) else tuple(items)


def _bound(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return _collection(type(value), [_bound(f"{name}_{i}", item) for i, item in enumerate(value)])
    return _name(name, value)


def _let(parser: Parser, name: str, value: Any) -> Any:
    """Bind `name = value`: values with their own storage get the name, other expressions are computed there."""
    if isinstance(value, Frame):
        return _bound(name, value.open())
    if isinstance(value, list | tuple):
        return _collection(type(value), [_let(parser, f"{name}_{i}", item) for i, item in enumerate(value)])
    if isinstance(value, Buffer | _core.Axis) or (isinstance(value, Var) and not _is_bound(parser, value)):
        return _name(name, value)
    if isinstance(value, _core.IterVar):
        _name(name, value.var)
        return value
    if isinstance(value, Expr | int | float) or (hasattr(value, "__dlpack_device__") is False and _is_number(value)):
        if isinstance(value, _core.Op | _core.GlobalVar | _core.CommReducer):
            return value
        return value if _has_more_digits(value) else _name(name, _script.let(value).open())
    return value


def _has_more_digits(value: Any) -> bool:
    """Return whether a number does not fit into its default type. A variable would lose digits that an operand of
    another type keeps, so the name stays bound to the number."""
    if isinstance(value, bool) or value.__class__ not in (int, float):
        return False
    if isinstance(value, int):
        return not -(1 << 31) <= value < 1 << 31
    return math.isfinite(value) and float(np.float64(value).astype(np.float32)) != value


def _is_bound(parser: Parser, value: Var) -> bool:
    """Return whether a name of the script is bound to the variable already; then another name gets its own variable."""
    return builtins.any(known is value for known in parser.names.values())


def _is_number(value: Any) -> bool:
    return hasattr(value, "dtype") and getattr(value, "ndim", None) == 0


@register("tir", "For")
def _visit_for(parser: Parser, node: ast.For) -> None:
    if node.orelse:
        raise ScriptProblem("script/unsupported", "a loop with 'else' is not part of scripts", "", node.orelse[0])
    kept: dict[str, Any] = {}
    with parser.scope("loop"):
        frame: Any = None
        with parser.reporting(node.iter, node.target):
            iterated = _loop_frame(parser, node)
            frame = iterated if isinstance(iterated, Frame) else _host_items(iterated, node)
        if frame is None:
            _skip(parser, node.body)
        elif isinstance(frame, Frame):
            opened: list[Any] = []
            with parser.frames(opened, node.iter):
                value = frame.__enter__()
                opened.append(frame)
                with parser.reporting(node.target, node.target):
                    parser.mark(node.target)
                    bind(parser, node.target, value, let=False)
                parser.body(node.body)
        else:
            _host_loop(parser, node, frame)
            kept = parser.own_names_known_outside()
    for name, value in kept.items():
        parser.define(name, value)


def _loop_frame(parser: Parser, node: ast.For) -> Any:
    call = node.iter
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
        frame = parser.eval(call)
        parser.mark(call)
        return frame
    function = parser.eval(call.func)
    args = items_of(parser, call.args, operand)
    parser.mark(call)
    if function is not builtins.range:
        return function(*args)
    if len(args) > 2 or call.keywords:
        raise ScriptProblem(
            "script/range-step", "a range with a step", "loop over the number of steps and multiply in the body"
        )
    return _script.serial(*args)


def _host_items(value: Any, node: ast.For) -> list[Any]:
    """Return the items of a Python collection; the parser repeats the loop body for each."""
    if isinstance(value, MetaVar):
        value = value.value
    if isinstance(value, Expr | Buffer | str | None) or not hasattr(value, "__iter__"):
        raise ScriptProblem(
            "script/for-iterator",
            f"a loop over {_describe(value)}",
            "use range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid, or a Python list to "
            "repeat the body",
            node.iter,
        )
    items = []
    for item in value:
        items.append(item)
        if len(items) > _MAX_HOST_ITERATIONS:
            raise ScriptProblem("script/host-loop", "a loop over a Python collection without end", "", node.iter)
    return items


def _describe(value: Any) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def _host_loop(parser: Parser, node: ast.For, items: list[Any]) -> None:
    """Parse the body once for each item. As in Python, rebinding an outer name outlasts the iteration."""
    parser.repeated.add(node)
    for item in items:
        kept: dict[str, Any] = {}
        with parser.scope(), parser.reporting(node.target, node.target):
            bind_python(parser, node.target, item)
            parser.body(node.body)
            kept = parser.own_names_known_outside()
        for name, value in kept.items():
            parser.define(name, value)


def _skip(parser: Parser, body: list[ast.stmt]) -> None:
    """Parse the body of a failed statement only to find further mistakes."""
    opened = [_script.discard()]
    opened[0].__enter__()
    with parser.frames(opened, body[0]):
        parser.body(body)


@register("tir", "While")
def _visit_while(parser: Parser, node: ast.While) -> None:
    if node.orelse:
        raise ScriptProblem("script/unsupported", "a loop with 'else' is not part of scripts", "", node.orelse[0])
    frame: Any = None
    with parser.scope():
        with parser.reporting(node.test):
            test = condition(parser, node.test)
            parser.mark(node.test)
            frame = _script.while_(test)
        _in_frame(parser, frame or _script.discard(), node.body, node.test, "loop")


def _in_frame(parser: Parser, frame: Any, body: list[ast.stmt], node: ast.AST, kind: str) -> None:
    opened: list[Any] = []
    with parser.frames(opened, node), parser.scope(kind):
        frame.__enter__()
        opened.append(frame)
        parser.body(body)


@register("tir", "If")
def _visit_if(parser: Parser, node: ast.If) -> None:
    frame: Any = None
    with parser.reporting(node.test):
        test = condition(parser, node.test)
        if not isinstance(test, Expr):
            if not isinstance(test, bool | int | None) and type(test).__name__ not in ("bool_", "bool"):
                raise ScriptProblem(
                    "script/condition",
                    f"the condition is {_describe(test)}",
                    "a condition is an expression of the program, or a Python bool to choose while parsing",
                    node.test,
                )
            parser.chosen.setdefault(node, set()).add(bool(test))
            parser.body(node.body if test else node.orelse)
            return
        parser.mark(node.test)
        frame = _script.if_(test)
    if frame is None:
        _skip(parser, node.body)
        if node.orelse:
            _skip(parser, node.orelse)
        return
    opened: list[Any] = []
    with parser.frames(opened, node.test):
        frame.__enter__()
        opened.append(frame)
        _in_frame(parser, _script.then_(), node.body, node.test, "branch")
        if node.orelse:
            _in_frame(parser, _script.else_(), node.orelse, node.test, "branch")


@register("tir", "With")
def _visit_with(parser: Parser, node: ast.With) -> None:
    opened: list[Any] = []
    unknown = parser.unknown_scopes
    with parser.scope("block"), parser.frames(opened, node.items[0].context_expr):
        token = None
        for item in node.items:
            frame: Any = None
            with parser.reporting(item.context_expr, item.optional_vars):
                frame = parser.eval(item.context_expr)
                parser.mark(item.context_expr)
                if not hasattr(frame, "__enter__") or not hasattr(frame, "__exit__"):
                    what = _describe(frame)
                    frame = None
                    raise ScriptProblem(
                        "script/with", f"'with' needs a scope, not {what}", 'for instance T.block("name") or T.init()'
                    )
                value = frame.__enter__()
                opened.append(frame)
                token = getattr(frame, "script_dialect", token)
                if item.optional_vars is not None:
                    parser.at = item.optional_vars
                    if value is None and isinstance(frame, Frame):
                        raise ScriptProblem("script/with", f"{frame.kind} defines nothing that could be named")
                    bind(parser, item.optional_vars, value, let=False)
            if frame is None or (not opened or opened[-1] is not frame):
                opened.append(_script.discard())
                opened[-1].__enter__()
                parser.unknown_scopes += 1
        try:
            if token is None:
                parser.body(node.body)
            else:
                with parser.use_dialect(dialect(token)):
                    parser.body(node.body)
        finally:
            parser.unknown_scopes = unknown


@register("tir", "Assign")
def _visit_assign(parser: Parser, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        raise ScriptProblem(
            "script/chained-assignment",
            "consequential assignments like 'a = b = c' are not supported",
            "write two statements",
        )
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        value = operand(parser, node.value)
        _store(parser, node, target, value)
        return
    value = operand(parser, node.value)
    parser.mark(node)
    if isinstance(target, ast.Name):
        _check_copy(parser, target.id, value)
    bind(parser, target, value, let=True)


def _check_copy(parser: Parser, name: str, value: Any) -> None:
    """Raise an error for `y = x` of two buffers: it copies nothing, and would make y another name of x."""
    known = parser.find(name)
    if not isinstance(known, Buffer) or known is value or not parser.is_own(name):
        return
    if isinstance(value, Buffer) and not _script.is_unnamed(value):
        raise ScriptProblem(
            "script/redefined",
            f"'{name}' is a buffer already, and would be another name of '{value.name}': nothing is copied",
            f"store the elements in loops: {_element(name, known)} = {_element(value.name, value)}",
        )


def _element(name: str, buffer: Buffer) -> str:
    return f"{name}[{', '.join('ijklmn'[: len(buffer.shape)])}]"


def _store(
    parser: Parser, node: ast.stmt, target: ast.Subscript, value: Any, *, op: ast.operator | None = None
) -> None:
    buffer: Any = parser.eval(target.value)
    key = index(parser, target.slice, vectors=True)
    parser.mark(target)
    if not isinstance(buffer, Buffer):
        if isinstance(buffer, Expr | _core.Node | None):
            raise ScriptProblem("script/store", f"{_describe(buffer)} cannot be assigned to by index", "", target)
        raise ScriptProblem(
            "script/store",
            f"an element of a Python {type(buffer).__name__} is assigned while the program is parsed",
            "only elements of buffers can be assigned",
            target,
        )
    if op is not None:
        loaded = buffer[key]
        right = operand(parser, node.value)  # type: ignore[attr-defined]
        parser.mark(node)
        value = _apply(op, loaded, right)
    parser.mark(node)
    if value is None:
        raise ScriptProblem("script/store", f"nothing (None) is stored to '{buffer.name}'", "", node)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 and "float" not in buffer.dtype:
        raise ScriptProblem("script/constant-size", "this constant does not fit into 64 bits", "write a float", node)
    _script.buffer_store(buffer, value, key)


def _apply(op: ast.operator, left: Any, right: Any) -> Any:
    from tilewright.script.expressions import _BINARY

    return _BINARY[op.__class__](left, right)


@register("tir", "AugAssign")
def _visit_aug_assign(parser: Parser, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Subscript):
        _store(parser, node, target, None, op=node.op)
        return
    if not isinstance(target, ast.Name):
        raise ScriptProblem("script/target", f"a value cannot be bound to '{ast.unparse(target)}'", "", target)
    parser.at = target
    left = parser.lookup(target.id)
    right = operand(parser, node.value)
    parser.mark(node)
    bind(parser, target, _apply(node.op, left, right), let=True)


@register("tir", "AnnAssign")
def _visit_ann_assign(parser: Parser, node: ast.AnnAssign) -> None:
    if not isinstance(node.target, ast.Name):
        raise ScriptProblem("script/target", "only a name can be annotated", "", node.target)
    variable = parser.eval(node.annotation)
    parser.mark(node.annotation)
    if callable(variable) and not isinstance(variable, Expr):
        variable = variable()
    if not isinstance(variable, Var):
        raise ScriptProblem(
            "script/annotation",
            f"{_describe(variable)} as the type of a variable",
            "for instance T.int32",
            node.annotation,
        )
    if node.value is None:
        parser.define(node.target.id, _name(node.target.id, variable))
        return
    value = operand(parser, node.value)
    parser.mark(node)
    if isinstance(value, MetaVar):
        value = value.value
    _name(node.target.id, variable)
    parser.define(node.target.id, _script.let(value, variable).open())


@register("tir", "Expr")
def _visit_expr(parser: Parser, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return
    parser.statement_call = node.value
    value = parser.eval(node.value)
    parser.mark(node)
    statement(parser, value)


def statement(parser: Parser, value: Any) -> None:
    """Run an expression that is a statement."""
    if value is None or isinstance(value, str):
        return
    if isinstance(value, Frame):
        value.open()
    elif isinstance(value, _core.Stmt):
        _script.add(value)
    elif isinstance(value, Expr | bool | int):
        _script.evaluate(value)
    elif isinstance(value, list | tuple):
        for item in value:
            statement(parser, item)
    elif value is not Ellipsis:
        raise ScriptProblem(
            "script/statement", f"{_describe(value)} stands alone: it has no effect", "assign it, or remove it"
        )


@register("tir", "Assert")
def _visit_assert(parser: Parser, node: ast.Assert) -> None:
    test = condition(parser, node.test)
    message = operand(parser, node.msg) if node.msg else ""
    parser.mark(node)
    if isinstance(message, _core.StringImm):
        message = message.value
    if not isinstance(message, str):
        raise ScriptProblem("script/assert", "the message of an assertion is a string", "", node.msg)
    _script.assert_(test, message).open()


@register("tir", "Return")
def _visit_return(parser: Parser, node: ast.Return) -> None:
    if node.value is None:
        raise ScriptProblem(
            "script/unsupported",
            "a program continues to its end: there is no 'return' in the middle of it",
            "put what follows under the opposite condition",
            node,
        )
    value = operand(parser, node.value)
    parser.mark(node)
    _script.evaluate(ret(value))


@register("tir", "Pass")
def _visit_pass(parser: Parser, node: ast.Pass) -> None:
    pass


@register("tir", "FunctionDef")
def _visit_function_def(parser: Parser, node: ast.FunctionDef) -> None:
    """Define a macro, or a Python function for use while parsing, which sees the names known here."""
    for item in node.decorator_list:
        decorator = parser.eval(item)
        if is_macro_decorator(decorator):
            parser.define(node.name, nested_macro(parser, node, decorator))
            return
        if hasattr(decorator, "script_dialect"):
            raise ScriptProblem(
                "script/nested-function",
                f"the program '{node.name}' is defined inside of another one",
                "put both into a class under @I.ir_module",
                node,
            )
    namespace = parser.environment()
    placed = ast.increment_lineno(copy.deepcopy(node), parser.source.shift)  # tracebacks show the lines of the file
    exec(compile(ast.Module([placed], []), parser.source.file, "exec"), namespace)
    function, known = namespace[node.name], parser.names

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        """Call the function with the names as they are now: one may be bound again, or later than the definition."""
        namespace.update({name: value for name, value in known.items() if value is not UNKNOWN})
        return function(*args, **kwargs)

    parser.define(node.name, call)
