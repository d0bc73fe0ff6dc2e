"""From a Python function to a PrimFunc."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from tilewright import _core
from tilewright.script.core import script as _script
from tilewright.script.dialect import dialect
from tilewright.script.parser import UNKNOWN, Parser
from tilewright.script.rebinding import check_rebinding
from tilewright.script.report import Problem, ScriptProblem, to_error
from tilewright.script.source import BadSyntax, Source, from_function


def captured(func: FunctionType) -> dict[str, Any]:
    """Return the variables of enclosing functions that the function uses."""
    names = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # assigned later than here
            continue
    return names


def enclosing(frame: FrameType | None, code: CodeType | None) -> list[Mapping[str, Any]]:
    """Return the names around the definition that the function does not capture, innermost first: annotations, which
    may be strings, and class bodies use them.

    They are those of the functions in whose text `code` stands, as far as they are running: whatever else is between
    them, such as a decorator of the user's, is no place where the names of the text mean something.
    """
    scopes: list[Mapping[str, Any]] = []
    in_function = False
    while code is not None and frame is not None:
        if _holds(frame.f_code, code):
            code, names = frame.f_code, frame.f_locals
            if names is frame.f_globals:
                break
            is_class = "__qualname__" in names
            if not (is_class and in_function):  # functions do not see the names of a class around them
                scopes.append(names)
            in_function = in_function or not is_class
        frame = frame.f_back
    return scopes


def class_code(frame: FrameType | None, cls: type) -> CodeType | None:
    """Return the code of the body of a class, found in the code of the running functions."""
    while frame is not None:
        waiting = [frame.f_code]
        while waiting:
            code = waiting.pop()
            if (code.co_name, code.co_qualname) == (cls.__name__, cls.__qualname__):
                return code
            waiting += [item for item in code.co_consts if isinstance(item, CodeType)]
        frame = frame.f_back
    return None


def _holds(code: CodeType, inner: CodeType) -> bool:
    """Return whether `inner` is nested in `code`."""
    nested = [item for item in code.co_consts if isinstance(item, CodeType)]
    return builtins.any(item is inner for item in nested) or builtins.any(_holds(item, inner) for item in nested)


def read(func: FunctionType) -> Source:
    """Return the source of the function; a syntax error in it is reported as the user's."""
    try:
        return from_function(func)
    except BadSyntax as error:
        raise to_error([Problem("script/syntax", str(error), "", error.source, error.place)], func.__name__) from None


def parse_function(
    func: FunctionType, frame: FrameType | None, is_private: bool, check_well_formed: bool = True
) -> Any:
    """Parse the text of `func` and return the PrimFunc."""
    source = read(func)
    node = source.tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    parser = Parser(source, dialect("tir"), captured(func), [*enclosing(frame, func.__code__), func.__globals__])
    parser.name = node.name
    return parser.run(lambda: define_function(parser, node, is_private, func.__annotations__), check_well_formed)


def define_function(parser: Parser, node: ast.FunctionDef, is_private: bool, annotations: Mapping[str, Any]) -> None:
    """Build the function in the current builder."""
    parser.mark(node)
    frame = _script.prim_func(is_private)
    opened: list[Any] = []
    with parser.scope(), parser.frames(opened, node):
        frame.__enter__()
        opened.append(frame)
        _script.func_name(node.name)
        _parameters(parser, node, annotations)
        if node.returns is not None:
            with parser.reporting(node.returns):
                _returns(parser, node.returns)
        parser.whole_body(node.body)
        check_rebinding(parser, node.body)


def _parameters(parser: Parser, node: ast.FunctionDef, annotations: Mapping[str, Any]) -> None:
    args = node.args
    for extra in (args.vararg, args.kwarg, *args.kwonlyargs):
        if extra is not None:
            with parser.reporting(extra):
                raise ScriptProblem("script/parameter", f"'{extra.arg}' is not a plain parameter", "", extra)
    defaults = [each for each in (*args.defaults, *args.kw_defaults) if each is not None]
    if defaults:
        with parser.reporting(defaults[0]):
            raise ScriptProblem(
                "script/default-value",
                "parameters of programs have no default values",
                "omit it, and pass the value in each call",
                defaults[0],
            )
    for arg in [*args.posonlyargs, *args.args]:
        parser.at = arg
        try:
            parser.define(arg.arg, _script.arg(arg.arg, parameter(parser, arg, annotations)))
        except RecursionError:
            raise
        except Exception as error:
            parser.report(error, parser.at)
            from tilewright.script.parser import UNKNOWN

            parser.define(arg.arg, UNKNOWN)


#: names in programs of Python's number types
_NUMBERS = {bool: "T.bool", int: "T.int32", float: "T.float32"}


def parameter(parser: Parser, arg: ast.arg, annotations: Mapping[str, Any]) -> Any:
    """Define the variable or buffer that an annotation declares."""
    if arg.annotation is None:
        raise ScriptProblem(
            "script/no-annotation",
            f"type annotation required for function parameters: '{arg.arg}' has none",
            f'for instance {arg.arg}: T.Buffer((16, 16), "float32"), {arg.arg}: T.handle or {arg.arg}: T.int32',
            arg,
        )
    value = annotations.get(arg.arg)
    if value is None or isinstance(value, str):
        value = _postponed(parser, quoted(parser, arg.annotation))
    parser.mark(arg.annotation)
    if callable(value) and not isinstance(value, _core.Node):
        try:
            value = value()
        except TypeError:  # T.Buffer alone, or a class that needs arguments, such as np.ndarray
            raise _wrong_annotation(arg, ast.unparse(arg.annotation), None) from None
    if not isinstance(value, _core.Var | _core.Buffer):
        raise _wrong_annotation(arg, f"a value of type {type(value).__name__}", value)
    if isinstance(value, _core.Var) and not isinstance(arg.annotation, ast.Name) and not _script.is_unnamed(value):
        value = _script.fresh_var(value.type_annotation, value.is_size)  # made by Python, before there was a builder
    return value


def _postponed(parser: Parser, annotation: ast.expr) -> Any:
    """Evaluate an annotation that Python has not evaluated."""
    try:
        return parser.eval(annotation)
    except ScriptProblem as problem:
        if problem.code == "script/unknown-name" and not problem.hint:
            problem.hint = (
                "an annotation that is a string does not keep the names of functions around that have returned; "
                "the body does: A = T.match_buffer(a, shape)"
            )
        raise


def _wrong_annotation(arg: ast.arg, what: str, value: Any) -> ScriptProblem:
    number = next((dtype for kind, dtype in _NUMBERS.items() if isinstance(value, kind)), "")
    hint = f'an array has its shape and type, {arg.arg}: T.Buffer((16, 16), "float32"); a number is {arg.arg}: T.int32'
    message = f"{what} as the annotation of '{arg.arg}'"
    return ScriptProblem("script/annotation", message, f"{arg.arg}: {number}" if number else hint, arg.annotation)


def quoted(parser: Parser, node: ast.expr) -> ast.expr:
    """Return an annotation that is a string as the expression inside it."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return node
    try:
        inner = ast.parse(node.value.strip(), mode="eval").body
    except SyntaxError as error:
        raise ScriptProblem("script/syntax", f"invalid syntax in an annotation: {error.msg}", "", node) from None
    for child in ast.walk(inner):
        ast.copy_location(child, node)
    return inner


def _returns(parser: Parser, node: ast.expr) -> None:
    value = parser.eval(quoted(parser, node))
    parser.mark(node)
    if value is None:
        return
    if callable(value) and not isinstance(value, _core.Node):
        value = value()
    if isinstance(value, _core.Var):
        value = value.type_annotation
    if not isinstance(value, _core.Type):
        raise ScriptProblem("script/annotation", f"a value of type {type(value).__name__} as the type of the result")
    _script.func_ret(value)


def _in_module_class(frame: FrameType) -> bool:
    """Return whether the frame is the body of a class under @I.ir_module.

    Python runs the decorator last, and has no record of it before: it is visible only in the text of the class.
    """
    if "__qualname__" not in frame.f_locals or frame.f_code.co_name == "<module>":
        return False
    file, first = frame.f_code.co_filename, frame.f_code.co_firstlineno
    lines = linecache.getlines(file, frame.f_globals)
    if not 1 <= first <= len(lines):
        return False
    head = []
    for line in lines[first - 1 :]:
        head.append(line.strip())
        if head[-1].startswith("class ") or len(head) > 64:
            break
    if len(head) == 1:
        return False
    definer = frame.f_back
    try:
        decorators = ast.parse("\n".join(head[:-1]) + "\nclass C: pass").body[0].decorator_list  # type: ignore[attr-defined]
    except SyntaxError:
        return False
    return any(_is_ir_module(d.func if isinstance(d, ast.Call) else d, definer) for d in decorators)


def _is_ir_module(node: ast.expr, definer: FrameType | None) -> bool:
    path = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or definer is None:
        return False
    value = definer.f_locals.get(node.id, definer.f_globals.get(node.id, UNKNOWN))
    for name in reversed(path):
        value = getattr(value, name, UNKNOWN)
    return getattr(value, "script_dialect", None) == "ir"


def _prim_func(
    func: FunctionType | None = None, private: bool = False, check_well_formed: bool = True, s_tir: bool = False
) -> Any:
    frame = sys._getframe(1)
    return decorate(func, private, check_well_formed, frame)


def decorate(func: Any, private: bool, check_well_formed: bool, frame: FrameType) -> Any:
    """Return what `T.prim_func` makes of a function, or the decorator where there is none yet.

    Args:
        func: the function, or None.
        private: see `T.prim_func`.
        check_well_formed: see `T.prim_func`.
        frame: where the decorator stands.
    """
    if func is None:

        def decorator(func: FunctionType) -> Any:
            return decorate(func, private, check_well_formed, sys._getframe(1))

        boundary = _script.Boundary(decorator)
        boundary.script_dialect = "tir"
        boundary.private = private
        boundary.check_well_formed = check_well_formed
        return boundary
    if not isinstance(func, FunctionType):
        from tilewright.errors import ArgumentError

        raise ArgumentError.of("script/decorator", f"T.prim_func decorates a function, not a {type(func).__name__}")
    if _in_module_class(frame):
        return func
    return parse_function(func, frame, private, check_well_formed)


_prim_func.__name__ = _prim_func.__qualname__ = "prim_func"
prim_func: Callable[..., Any] = _script.Boundary(_prim_func)
vars(prim_func)["__doc__"] = """The program that the text of a function is; ``private=True`` keeps it out of exports.

``check_well_formed=False`` takes what the verifier would refuse.
"""
vars(prim_func)["__signature__"] = inspect.signature(_prim_func)
vars(prim_func)["script_dialect"] = "tir"
