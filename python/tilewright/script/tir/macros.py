"""Macros: parts of scripts that are parsed again wherever they are called."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.script.parser import Parser, active_parser
from tilewright.script.rebinding import check_rebinding
from tilewright.script.report import ScriptProblem
from tilewright.script.source import Source
from tilewright.script.tir.functions import captured, read


class Macro:
    """A function under @T.macro: its text is inserted as a statement where it is called.

    The names in a hygienic macro mean what they mean where it is defined; in another one, where it is called. Either
    way the parameters stand for the arguments.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        node: ast.FunctionDef,
        signature: inspect.Signature,
        names: Mapping[str, Any],
        outer: Sequence[Mapping[str, Any]],
        hygienic: bool,
    ) -> None:
        self.__name__ = name
        self._source = source
        self._node = node
        self._signature = signature
        self._names = names
        self._outer = outer
        self.hygienic = hygienic

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Parse the body at this position."""
        parser = active_parser()
        if parser is None:
            raise ArgumentError.of("script/macro-use", f"the macro '{self.__name__}' is called outside of a script")
        if not isinstance(parser.at, ast.Call) or parser.at is not parser.statement_call:
            raise ScriptProblem(
                "script/macro-use",
                f"Invalid use of T.macro: '{self.__name__}' has no value",
                "call it in a statement of its own",
            )
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ScriptProblem("script/arguments", f"the macro '{self.__name__}': {error}") from None
        bound.apply_defaults()
        base: Mapping[str, Any] = self._names if self.hygienic else parser.names
        outer = self._outer if self.hygienic else parser.outer
        if not self.hygienic and parser.statement is not None:
            parser.expanded.setdefault(parser.statement, []).append(self._node)
        with parser.expansion(self._source, {**base, **bound.arguments}, outer):
            parser.whole_body(self._node.body)
            rebound = dict(parser.rebound)
            check_rebinding(parser, self._node.body)
        if not self.hygienic:
            parser.rebound.update(rebound)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind the instance, so that a macro in a class is called like a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<macro {self.__name__}>"


def macro(func: Any = None, *, hygienic: bool = True) -> Any:
    """Decorate a function as a macro: a part of a script that other scripts expand.

    Args:
        func: the function whose body is the piece.
        hygienic: whether names mean what they mean where the macro is defined (else: where it is called).
    """
    if func is None:
        return _Decorator(hygienic)
    if not isinstance(func, FunctionType):
        raise ArgumentError.of("script/decorator", f"T.macro decorates a function, not a {type(func).__name__}")
    source = read(func)
    node = source.tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return Macro(
        func.__name__, source, node, inspect.signature(func), captured(func), [func.__globals__, _builtins()], hygienic
    )


class _Decorator:
    """@T.macro with arguments."""

    def __init__(self, hygienic: bool) -> None:
        self.hygienic = hygienic

    def __call__(self, func: Any) -> Any:
        return macro(func, hygienic=self.hygienic)


def nested_macro(parser: Parser, node: ast.FunctionDef, decorator: Any) -> Macro:
    """Return a macro defined inside a script; it sees the names around it."""
    bare = ast.parse("def f(): pass").body[0]  # for its signature
    assert isinstance(bare, ast.FunctionDef)
    bare.name, bare.args = node.name, node.args
    namespace = parser.environment()
    exec(compile(ast.Module([bare], []), parser.source.file, "exec"), namespace)
    hygienic = decorator.hygienic if isinstance(decorator, _Decorator) else True
    signature = inspect.signature(namespace[node.name])
    names = dict(parser.names)
    made = Macro(node.name, parser.source, node, signature, names, parser.outer, hygienic)
    names[node.name] = made
    return made


def is_macro_decorator(value: Any) -> bool:
    """Return whether the decorator creates a macro."""
    return value is macro or isinstance(value, _Decorator)


def _builtins() -> dict[str, Any]:
    import builtins

    return vars(builtins)
