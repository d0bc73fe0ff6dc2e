"""Convert errors raised while a script is parsed to a ScriptError that shows the line of the script."""

from __future__ import annotations

import ast
import difflib
import linecache
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, TracebackType

from tilewright import _core
from tilewright.errors import ScriptError
from tilewright.script.source import Position, Source
from tilewright.support.file_names import printable

#: Later errors of a script usually follow from the first ones.
MAX_PROBLEMS = 20


@dataclass(slots=True)
class Problem:
    """One thing that is wrong, and where."""

    code: str
    message: str
    hint: str
    source: Source
    place: Position
    trail: tuple[tuple[Source, Position], ...] = ()  # the calls of macros that led there, innermost first
    span: int = 0  # where it was found in the program; more precise than place and trail


class ScriptProblem(Exception):
    """Raised inside the parser; `node` is where, None means the node at work."""

    def __init__(self, code: str, message: str, hint: str = "", node: ast.AST | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.node = node


def fail(code: str, message: str, hint: str = "") -> ScriptError:
    """Return an error, which the parser gives a position, or which callers in plain Python raise."""
    error = ScriptError(f"[{code}] {message}" + (f"\n  hint: {hint}" if hint else ""))
    error.code, error.message, error.hint = code, message, hint
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known names that resemble `name`; "" if there is none."""
    names = [k for k in known if isinstance(k, str)]
    # "inf" for "infinity", which is too long to be close.
    longer = [k for k in sorted(names, key=len) if len(name) >= 3 and k.startswith(name)]
    close = list(dict.fromkeys([*longer[:1], *difflib.get_close_matches(name, names, n=3, cutoff=0.6)]))[:3]
    if not close:
        return ""
    quoted = [f"'{k}'" for k in close]
    return "did you mean " + (" or ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]) + "?"


def span_of(source: Source, place: Position, trail: tuple[tuple[Source, Position], ...] = ()) -> int:
    """Return the position as a span of the core, whose parents are the calls in `trail`."""
    parent = span_of(*trail[0], trail[1:]) if trail else 0
    return _core.intern_span(printable(source.file), *place, parent)


#: Called with each error before it is raised, for tools that collect them.
observer: Callable[[ScriptError], None] | None = None


def to_error(problems: list[Problem], name: str) -> ScriptError:
    """Return one error for all problems, with a traceback that ends at the line of the first one."""
    parts = [_one_error(problem) for problem in problems]
    if len(parts) == 1:
        error = parts[0]
    else:
        heading = f"{len(parts)} errors in '{name}'" if name else f"{len(parts)} errors"
        error = ScriptError("\n\n".join([heading, *map(str, parts)]))
        first = parts[0]
        error.code, error.message, error.hint, error.span = first.code, first.message, first.hint, first.span
        error.errors = tuple(parts)
    assert error.place is not None
    file, *place = error.place
    error.script_traceback = _traceback(file, (place[0], place[1], place[2], place[3]), name or "<script>")
    if observer is not None:
        observer(error)
    return error


def _one_error(problem: Problem) -> ScriptError:
    _show_source(problem.source)
    for source, _ in problem.trail:
        _show_source(source)
    span = problem.span or span_of(problem.source, problem.place, problem.trail)
    text = f"[{problem.code}] {problem.message}\n{_core.render_span(span)}"
    if problem.hint:
        text += f"\n  hint: {problem.hint}"
    error = ScriptError(text)
    error.code, error.message, error.hint, error.span = problem.code, problem.message, problem.hint, span
    error.errors = (error,)
    return error


def _show_source(source: Source) -> None:
    """Register the source text with the core, unless it is a file that the core can read itself."""
    name = printable(source.file)
    if name == source.file and os.path.exists(name):
        return
    lines = linecache.getlines(source.file)
    if not lines:
        lines = [*["\n"] * (source.first_line - 1), *source.lines]
    _core.register_source(name, "".join(lines).encode(errors="replace").decode())


def _traceback(file: str, place: Position, name: str) -> TracebackType | None:
    """Return a traceback whose only entry is the line of the script, so that Python, pytest and editors show it."""
    line, column, end_line, end_column = place
    end_line = max(line, end_line)
    statement = ast.Raise(exc=ast.Name("error", ast.Load()), cause=None)
    for node in ast.walk(statement):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno, node.end_lineno = line, end_line
            node.col_offset = column - 1
            node.end_col_offset = end_column - 1 if end_line > line else max(end_column - 1, column)
    try:
        code: CodeType = compile(ast.Module([statement], []), file, "exec").replace(co_name=name, co_qualname=name)
        exec(code, {"error": ScriptError("")})
    except ScriptError as error:
        traceback = error.__traceback__
        return traceback.tb_next if traceback else None
    except (ValueError, SyntaxError):  # a file name that Python refuses
        return None
    return None
