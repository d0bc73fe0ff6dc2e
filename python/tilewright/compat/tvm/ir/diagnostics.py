"""tvm.ir.diagnostics: the mistakes in a script as objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ScriptError
from tilewright.script import report

__all__ = ["Diagnostic", "DiagnosticContext", "Span", "override_renderer"]


@dataclass(frozen=True)
class Span:
    """A place in a text; lines and columns count from 1."""

    source_name: str
    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True)
class Diagnostic:
    """One mistake."""

    level: str
    message: str
    span: Span


@dataclass(frozen=True)
class DiagnosticContext:
    """The argument of a renderer: TVM reports the first error of a script."""

    diagnostics: list[Diagnostic]


def _context(error: ScriptError) -> DiagnosticContext:
    first = error.errors[0] if error.errors else error
    file, line, column, end_line, end_column = first.place or ("", 0, 0, 0, 0)
    return DiagnosticContext([Diagnostic("error", first.message, Span(file, line, end_line, column, end_column))])


def override_renderer(render_func: Callable[[Any], None] | None) -> None:
    """Set a function that is called with the errors of each invalid script before they are raised; None resets it."""
    report.observer = None if render_func is None else lambda error: render_func(_context(error))
