"""Modules from classes: @I.ir_module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType, FunctionType
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.script.core import script as _script
from tilewright.script.dialect import dialect, register
from tilewright.script.expressions import bind_python
from tilewright.script.parser import Parser
from tilewright.script.report import Problem, ScriptProblem, did_you_mean, to_error
from tilewright.script.source import BadSyntax, Source, from_class
from tilewright.script.tir.functions import captured, class_code, define_function, enclosing, quoted


class FunctionNames:
    """The namespace of a module class inside its own body. Attributes are the module's functions, also before their
    definition."""

    def __init__(self, name: str, functions: Mapping[str, Any]) -> None:
        # A function may be named like any attribute, so lookups go through __getattribute__.
        object.__setattr__(self, "_parts", (name, functions))

    def __getattribute__(self, name: str) -> Any:
        module, functions = object.__getattribute__(self, "_parts")
        if name in functions:
            return functions[name]
        if name.startswith("__"):  # attributes that Python reads of every object
            return object.__getattribute__(self, name)
        raise ScriptProblem(
            "script/unknown-function",
            f"module '{module}' has no function '{name}'",
            did_you_mean(name, functions),
        )


#: attribute of a module with the argument of module_global_infos
GLOBAL_INFOS = "global_infos"


def module_attrs(attrs: dict[str, Any]) -> None:
    """Set the attributes of the module."""
    # Python also runs the body of the class, before the decorator parses its text: then there is no builder.
    if _script.IRBuilder.is_in_scope():
        _script.module_attrs(attrs)


def module_get_attrs() -> dict[str, Any]:
    """Return the attributes set so far; {} while Python runs the class body."""
    return dict(_script.module_attributes()) if _script.IRBuilder.is_in_scope() else {}


def module_get_attr(attr_key: str) -> Any:
    """Return one attribute of the module; None if unset."""
    return module_get_attrs().get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Set one attribute of the module.

    Args:
        attr_key: its name.
        attr_value: its value.
        allow_overwrite: whether it may replace a value given before.
    """
    if _script.IRBuilder.is_in_scope():
        _script.module_attr({attr_key: attr_value}, allow_overwrite)


def module_global_infos(global_infos: dict[str, list[Any]]) -> None:
    """Declare data that the functions of the module share: lists of descriptions, each a dict.

    Nothing in tensor programs refers to them; they are kept, printed and compared as the attribute ``global_infos``.
    """
    module_set_attr(GLOBAL_INFOS, global_infos)


def dummy_global_info() -> dict[str, Any]:
    """Return a placeholder global info, TVM's DummyGlobalInfo."""
    return {"kind": "dummy"}


def parse_module(
    source: Source, names: Mapping[str, Any], outer: Sequence[Mapping[str, Any]], check_well_formed: bool = True
) -> Any:
    """Parse the class in `source` and return its module."""
    node = source.tree.body[-1]
    assert isinstance(node, ast.ClassDef)
    parser = Parser(source, dialect("ir"), names, outer)
    parser.name = node.name
    return parser.run(lambda: define_module(parser, node), check_well_formed)


def define_module(parser: Parser, node: ast.ClassDef) -> None:
    """Build the module in the current builder."""
    parser.mark(node)
    frame = _script.module()
    functions: dict[str, Any] = {}
    names = FunctionNames(node.name, functions)
    opened: list[Any] = []
    with parser.scope(), parser.frames(opened, node):
        frame.__enter__()
        opened.append(frame)
        parser.define(node.name, names)
        parser.define("cls", names)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                with parser.reporting(statement):
                    _declare(parser, statement, functions)
        parser.body(node.body)


def _declare(parser: Parser, node: ast.FunctionDef, functions: dict[str, Any]) -> None:
    result = None
    if node.returns is not None:
        try:
            result = parser.eval(quoted(parser, node.returns))
            if callable(result) and not isinstance(result, _core.Node):
                result = result()
            result = getattr(result, "type_annotation", result)
        except (ScriptProblem, AttributeError, TypeError):
            result = None  # reported where the function is defined
    parser.mark(node)
    functions[node.name] = _script.decl_function(node.name, result if isinstance(result, _core.Type) else None)


@register("ir", "FunctionDef")
def visit_function(parser: Parser, node: ast.FunctionDef) -> None:
    """Define a function of the module, in the dialect of its decorator."""
    decorator = None
    for item in node.decorator_list:
        value = parser.eval(item)
        decorator = value if hasattr(value, "script_dialect") else decorator
    if decorator is None:
        raise ScriptProblem(
            "script/no-decorator",
            f"'{node.name}' is not decorated",
            "put @T.prim_func above it, or define it outside of the module",
            node,
        )
    parser.check_well_formed &= getattr(decorator, "check_well_formed", True)
    with parser.use_dialect(dialect(decorator.script_dialect)):
        define = getattr(decorator, "define_function", define_function)
        define(parser, node, bool(getattr(decorator, "private", False)), {})


@register("ir", "Expr")
def visit_expr(parser: Parser, node: ast.Expr) -> None:
    """Evaluate a call such as I.module_attrs for its side effect."""
    if not isinstance(node.value, ast.Constant):
        parser.eval(node.value)


@register("ir", "Assign")
def visit_assign(parser: Parser, node: ast.Assign) -> None:
    """Bind a Python value that the module's functions can use."""
    value = parser.eval(node.value)
    for target in node.targets:
        bind_python(parser, target, value)


@register("ir", "AnnAssign")
def visit_ann_assign(parser: Parser, node: ast.AnnAssign) -> None:
    """Bind a Python value that the module's functions can use."""
    if node.value is not None:
        bind_python(parser, node.target, parser.eval(node.value))


@register("ir", "Pass")
def visit_pass(parser: Parser, node: ast.Pass) -> None:
    """Accept `pass`; it adds nothing."""


def _ir_module(cls: type | None = None, *, check_well_formed: bool = True) -> Any:
    """Return the module of the functions of a class with the decorator ``@I.ir_module``; the class becomes an
    :class:`IRModule`.

    Args:
        cls: class whose body has functions under ``@T.prim_func``, and calls of ``I.module_attrs``.
        check_well_formed: refuse a module that is not well formed.

    Raises:
        tilewright.ScriptError: a function is not what a script may be; the text shows the line.
        tilewright.ArgumentError: the argument is not a class.
    """
    if cls is None:
        decorator = _script.Boundary(lambda cls: _decorate(cls, sys._getframe(1), check_well_formed))
        decorator.script_dialect = "ir"
        decorator.check_well_formed = check_well_formed
        return decorator
    return _decorate(cls, sys._getframe(1), check_well_formed)


def _decorate(cls: Any, frame: FrameType, check_well_formed: bool) -> Any:
    if not isinstance(cls, type):
        raise ArgumentError.of("script/decorator", f"I.ir_module decorates a class, not a {type(cls).__name__}")
    try:
        source = from_class(cls, frame)
    except BadSyntax as error:
        raise to_error([Problem("script/syntax", str(error), "", error.source, error.place)], cls.__name__) from None
    names: dict[str, Any] = {}
    functions = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
    for function in functions:
        names.update(captured(function))
    names.pop(cls.__name__, None)
    around = functions[0].__globals__ if functions else frame.f_globals
    module = parse_module(source, names, [*enclosing(frame, class_code(frame, cls)), around], check_well_formed)
    module.__name__ = cls.__name__
    return module


_ir_module.__name__ = _ir_module.__qualname__ = "ir_module"
ir_module: Callable[..., Any] = _script.Boundary(_ir_module)
ir_module.script_dialect = "ir"  # type: ignore[attr-defined]
ir_module.__doc__ = _ir_module.__doc__
