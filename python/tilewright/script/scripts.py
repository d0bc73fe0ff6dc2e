"""Programs from text and from files."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

# The packages say what names mean in scripts. Their modules below may be loaded before that, by another thread.
import tilewright.script.ir
import tilewright.script.tir  # noqa: F401
from tilewright.errors import ArgumentError, ResourceError
from tilewright.script.core import script as _script
from tilewright.script.dialect import dialect
from tilewright.script.expressions import bind_python
from tilewright.script.ir.modules import define_module, ir_module
from tilewright.script.parser import Parser
from tilewright.script.report import Problem, ScriptProblem, to_error
from tilewright.script.source import BadSyntax, Source, from_text, lines_of
from tilewright.script.tir.functions import define_function, parse_function


def from_source(
    source: str | FunctionType | type, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True
) -> Any:
    """Return the program in a text: one function or one module class, after imports and helper functions.

    Args:
        source: the text; or a function or class, which is parsed as if it were decorated.
        extra_vars: what further names mean in the text.
        check_well_formed: whether the program is verified.

    Raises:
        tilewright.ScriptError: the text is not a valid program.
    """
    if isinstance(source, FunctionType):
        if source.__name__ == "<lambda>":
            raise ArgumentError.of("script/source", "a script is a function with a name: write def")
        return parse_function(source, sys._getframe(1), False, check_well_formed)
    if isinstance(source, type):
        return ir_module(check_well_formed=check_well_formed)(source)
    if not isinstance(source, str):
        raise ArgumentError.of("script/source", f"a script is text, not a {type(source).__name__}")
    digest = hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:12]
    return _boundary(source, f"<script {digest}>", extra_vars or {}, check_well_formed)


def from_file(path: str | Path, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True) -> Any:
    """Return the program in a file, read as :func:`from_source` reads text.

    Raises:
        tilewright.ScriptError: the text is not a valid program.
        tilewright.ResourceError: the file cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError.of("script/source", f"path is the path of a file, not {path!r:.80}")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = (
            f"the path is relative to {Path.cwd()}" if isinstance(error, FileNotFoundError) else "name a file to read"
        )
        raise ResourceError.of(
            "script/unreadable", f"the script {path} cannot be read: {error.strerror}", hint
        ) from None
    except UnicodeDecodeError as error:
        raise ResourceError.of(
            "script/unreadable", f"the script {path} cannot be read: {error}", "it has to be text in UTF-8"
        ) from None
    return _boundary(text, str(path), extra_vars or {}, check_well_formed)


def _parse(text: str, file: str, extra_vars: Mapping[str, Any], check_well_formed: bool) -> Any:
    try:
        source = from_text(text, file)
    except BadSyntax as error:
        raise to_error([Problem("script/syntax", str(error), "", error.source, error.place)], "") from None
    names = {name: value() for token in ("tir", "ir") for name, value in dialect(token).names.items()}
    parser = Parser(source, dialect("ir"), {**names, **extra_vars})
    return parser.run(lambda: _Script(parser, text).run(), check_well_formed)


_boundary = _script.Boundary(_parse)


def evaluate(expression: str | ast.expr, names: Mapping[str, Any] | None = None) -> Any:
    """Return the value of an expression, evaluated as inside a program in which `names` are defined.

    Raises:
        tilewright.ScriptError: the expression is not valid, or a name in it is not known.
    """
    text = expression if isinstance(expression, str) else ast.unparse(expression)
    try:
        source = from_text(text, "<expression>")
    except BadSyntax as error:
        raise to_error([Problem("script/syntax", str(error), "", error.source, error.place)], "") from None
    body = source.tree.body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        place = (1, 1, 1, 2)
        raise to_error([Problem("script/expression", "the text is not one expression", "", source, place)], "")
    parser = Parser(source, dialect("tir"), names or {})
    node = body[0].value
    return parser.run(lambda: [parser.eval(node)], check_well_formed=False)[0]


@dataclass
class _Script:
    """The statements of a text: all but the program itself are plain Python."""

    parser: Parser
    text: str
    found: ast.stmt | None = None

    def run(self) -> None:
        parser = self.parser
        for statement in parser.source.tree.body:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            with parser.reporting(statement, *targets):
                parser.at = statement
                self._statement(statement)
        if self.found is None and not parser.problems:
            parser.at = None
            raise ScriptProblem(
                "script/no-program", "the text defines no program", "put @T.prim_func or @I.ir_module above it"
            )

    def _statement(self, node: ast.stmt) -> None:
        parser = self.parser
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Assign):
            value = parser.eval(node.value)
            for target in node.targets:
                bind_python(parser, target, value)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                bind_python(parser, node.target, parser.eval(node.value))
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            decorator = self._decorator(node)
            if decorator is not None:
                self._program(node, decorator)
                return
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
            raise ScriptProblem("script/unsupported", "this statement is outside of a program", "", node)
        self._python(node)

    def _decorator(self, node: ast.FunctionDef | ast.ClassDef) -> Any:
        found = None
        for item in node.decorator_list:
            value = self.parser.eval(item)
            if hasattr(value, "script_dialect"):
                found = value
        return found

    def _program(self, node: ast.FunctionDef | ast.ClassDef, decorator: Any) -> None:
        parser = self.parser
        if self.found is not None:
            raise ScriptProblem(
                "script/second-program",
                f"the text defines a second program, '{node.name}'",
                "put the functions into a class under @I.ir_module",
                node,
            )
        self.found = node
        parser.name = node.name
        parser.check_well_formed &= getattr(decorator, "check_well_formed", True)
        with parser.use_dialect(dialect(decorator.script_dialect)):
            if isinstance(node, ast.ClassDef):
                define_module(parser, node)
            else:
                define = getattr(decorator, "define_function", define_function)
                define(parser, node, bool(getattr(decorator, "private", False)), {})

    def _python(self, node: ast.stmt) -> None:
        """Run the statement as Python; macros find their text through linecache."""
        parser = self.parser
        lines = lines_of(self.text)
        linecache.cache[parser.source.file] = (len(self.text), None, lines, parser.source.file)
        namespace = parser.environment()
        before = dict(namespace)
        exec(compile(ast.Module([node], []), parser.source.file, "exec"), namespace)
        for name, value in namespace.items():
            if name != "__builtins__" and before.get(name, self) is not value:
                parser.define(name, value)


__all__ = ["Source", "from_file", "from_source"]
