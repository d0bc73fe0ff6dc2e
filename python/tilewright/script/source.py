"""Find the source text of a function, class or script, and parse it to an AST with positions in the user's file."""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import os
import stat
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType
from typing import Any

from tilewright.errors import ScriptError

#: line, column, end line and end column (exclusive), counted from 1. Columns count characters.
Position = tuple[int, int, int, int]


@dataclass(slots=True, eq=False)
class Source:
    """A part of a file that is parsed as one script."""

    file: str
    lines: list[str]  # with their line ends
    first_line: int  # number of lines[0] in the file
    shift: int = 0  # file line = line in the tree + shift
    tree: ast.Module = field(default_factory=lambda: ast.Module([], []))
    ascii: bool = True

    def place(self, node: ast.AST) -> Position:
        """Return the position of the node in the file."""
        line = getattr(node, "lineno", 1 - self.shift) + self.shift
        column = getattr(node, "col_offset", 0)
        end_line = (getattr(node, "end_lineno", None) or line - self.shift) + self.shift
        end_column = getattr(node, "end_col_offset", None) or column + 1
        if not self.ascii:
            column = self.characters(line, column)
            end_column = self.characters(end_line, end_column)
        return line, column + 1, end_line, end_column + 1

    def characters(self, line: int, offset: int) -> int:
        """Convert a column in UTF-8 bytes, as Python's AST counts, to characters."""
        index = line - self.first_line
        if not 0 <= index < len(self.lines):
            return offset
        return len(self.lines[index].encode()[:offset].decode(errors="replace"))

    def line(self, number: int) -> str:
        """Return the text of a line of the file; "" outside of this source."""
        index = number - self.first_line
        return self.lines[index].rstrip("\r\n") if 0 <= index < len(self.lines) else ""


class BadSyntax(Exception):
    """The text is not Python; `place` is the position of the error."""

    def __init__(self, message: str, source: Source, place: Position) -> None:
        super().__init__(message)
        self.source = source
        self.place = place


def parse_text(source: Source, text: str) -> ast.Module:
    """Parse `text`: the text of `source`, or that text below an added `if 1:` line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the user's literals: Python reports them itself
            return ast.parse(text, source.file)
    except SyntaxError as error:
        line = min((error.lineno or 1) + source.shift, source.first_line + len(source.lines))
        column = max(error.offset or 1, 1)
        end_line = max((error.end_lineno or 0) + source.shift, line)
        end_column = error.end_offset or 0
        if end_line == line and end_column <= column:
            end_column = column + 1
        message = error.msg if error.msg.startswith("invalid syntax") else f"invalid syntax: {error.msg}"
        raise BadSyntax(message, source, (line, column, end_line, end_column)) from None
    except (ValueError, UnicodeError) as error:  # null characters, lone surrogates
        raise BadSyntax(f"this is not a Python text: {error}", source, _start(source)) from None
    except (RecursionError, MemoryError):
        raise BadSyntax("the script is nested deeper than Python's parser can take", source, _start(source)) from None


def _start(source: Source) -> Position:
    return source.first_line, 1, source.first_line, 2


def lines_of(text: str) -> list[str]:
    """Return the lines as Python's parser counts them: unlike str.splitlines(), it does not split at form feeds and the
    like."""
    return io.StringIO(text, newline=None).readlines()


def from_text(text: str, file: str) -> Source:
    """Return the source for a whole script passed as text."""
    source = Source(file, lines_of(text), 1)
    source.ascii = text.isascii()
    _parse_indented(source, text)
    return source


def _parse_indented(source: Source, text: str) -> None:
    """Set `source.tree`. Indented text is parsed below an added `if 1:`, which keeps columns and multi-line strings
    unchanged."""
    first = next((line for line in source.lines if line.strip() and not line.lstrip().startswith("#")), "")
    if first[:1] not in (" ", "\t"):
        source.tree = parse_text(source, text)
        return
    source.shift -= 1
    try:
        tree = parse_text(source, "if 1:\n" + text)
    except BadSyntax:
        source.shift += 1
        raise
    assert isinstance(tree.body[0], ast.If)
    tree.body = [*tree.body[0].body, *tree.body[1:]]
    source.tree = tree


def from_function(func: FunctionType) -> Source:
    """Return the `def` statement of a function, with its decorators."""
    code = func.__code__
    source = _from_lines(code.co_filename, code.co_firstlineno, func.__globals__, func.__name__)
    first = source.tree.body[0] if source.tree.body else None
    if (
        not isinstance(first, ast.FunctionDef) or first.name != code.co_name
    ):  # the text has changed since the definition
        raise _no_source(func.__name__)
    return source


def from_class(cls: type, definer: FrameType) -> Source:
    """Return the `class` statement of a class; `definer` is the frame that applies the decorator."""
    file = definer.f_code.co_filename
    line = definer.f_lineno
    if linecache.getline(file, line, definer.f_globals).lstrip().startswith("@"):
        return _from_lines(file, line, definer.f_globals, cls.__name__)
    try:
        _, line = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        raise _no_source(cls.__name__) from None
    module = sys.modules.get(cls.__module__)
    return _from_lines(inspect.getfile(cls), line, vars(module) if module else {}, cls.__name__)


def _no_source(name: str) -> ScriptError:
    return ScriptError.of(
        "script/no-source",
        f"the text of '{name}' cannot be found: it is not in a file or a notebook cell",
        "write it to a file, or pass the text to tw.script.from_source",
    )


def _kept_by_python(file: str, module: dict[str, Any]) -> list[str]:
    """Return the source of a main program that is not a file: ``python -c``, or ``python -`` with redirected input."""
    if module.get("__name__") != "__main__":
        return []
    text = ""
    if file == "<string>" and sys.argv[:1] == ["-c"]:
        text = _text_after_c(sys.orig_argv)
    elif file == "<stdin>":
        try:
            status = os.fstat(0)
            text = os.pread(0, status.st_size, 0).decode() if stat.S_ISREG(status.st_mode) else ""
        except (OSError, UnicodeDecodeError):
            return []
    return lines_of(text)


def _text_after_c(arguments: Sequence[str]) -> str:
    """Return the program text of ``python -Ic 'program' arguments`` from the command line."""
    skip = False
    for number, argument in enumerate(arguments[1:], 2):
        if skip or not argument.startswith("-") or argument.startswith("--"):
            skip = False
            continue
        for place, letter in enumerate(argument[1:], 2):
            if letter == "c":
                return argument[place:] or (arguments[number] if number < len(arguments) else "")
            if letter in "WX":  # the rest, or the next one, is its value
                skip = place == len(argument)
                break
    return ""


def _from_lines(file: str, first: int, module: dict[str, Any], name: str) -> Source:
    linecache.checkcache(file)
    lines = linecache.getlines(file, module) or _kept_by_python(file, module)
    if not 1 <= first <= len(lines):
        raise _no_source(name)
    failure: BadSyntax | None = None
    for end in _possible_ends(lines, first - 1):
        piece = lines[first - 1 : end]
        source = Source(file, piece, first)
        source.ascii = all(map(str.isascii, piece))
        source.shift = first - 1
        try:
            _parse_indented(source, "".join(piece))
        except BadSyntax as error:
            failure = error
            continue
        return source
    assert failure is not None
    raise failure


#: maximum number of candidate ends of a statement, before the end of the file
_MAX_CANDIDATES = 16


def _possible_ends(lines: list[str], first: int) -> list[int]:
    """Return candidate end lines (exclusive) of the statement at `first`, to be tried in order.

    The statement ends before a line with at most its own indentation, but such lines also occur inside brackets and
    strings. A text that is cut off there does not parse, so the first candidate that parses is right.
    """
    indent = _indent(lines[first])
    ends = []
    in_header = True
    for number in range(first + 1, len(lines)):
        line = lines[number]
        text = line.lstrip()
        if not text or text[0] == "#":
            continue
        if _indent(line) > indent:
            in_header = False
        elif in_header and text.startswith(("@", "def ", "class ", "async ")):
            continue
        elif text[0] not in ")]}":
            ends.append(number)
            if len(ends) == _MAX_CANDIDATES:
                break
    ends.append(len(lines))
    return ends


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
