"""Where in the user's own Python functions an exception comes from."""

from __future__ import annotations

import linecache
import sysconfig
from collections.abc import Iterator
from types import TracebackType

from tilewright.script.source import Position, Source

#: In the globals of code that the parser itself compiles.
OWN = "__tilewright_run"

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _user_entries(error: BaseException) -> Iterator[TracebackType]:
    """Yield the traceback entries that are in the user's code, outermost first."""
    entry = error.__traceback__
    while entry is not None:
        scope = entry.tb_frame.f_globals
        if not str(scope.get("__name__", "")).startswith("tilewright.") and OWN not in scope:
            yield entry
        entry = entry.tb_next


def place_in_function(error: BaseException, script: Source) -> tuple[Source, Position] | None:
    """Return the innermost position in a function of the user that the script calls; None without such a function."""
    found = None
    for entry in _user_entries(error):
        if not entry.tb_frame.f_code.co_filename.startswith(_LIBRARIES):
            found = entry
    if found is None:
        return None
    code = found.tb_frame.f_code
    lines = linecache.getlines(code.co_filename, found.tb_frame.f_globals)
    source = Source(code.co_filename, lines, 1, ascii=False)
    if not lines and code.co_filename == script.file:
        source = Source(script.file, script.lines, script.first_line, ascii=False)
    line, end_line, column, end_column = list(code.co_positions())[found.tb_lasti // 2]
    if not line or not source.line(line):
        return None
    if column is None or end_column is None or end_line is None:
        text = source.line(line)
        return source, (line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1)
    return source, (line, source.characters(line, column) + 1, end_line, source.characters(end_line, end_column) + 1)


def raised_in(error: BaseException) -> str:
    """Describe in words where an error was raised, also in code whose text is not available."""
    place = ""
    for entry in _user_entries(error):
        code = entry.tb_frame.f_code
        place = f" (raised in {code.co_name}, {code.co_filename}:{entry.tb_lineno})"
    return place
