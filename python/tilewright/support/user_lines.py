"""Find and render the user's line that caused an error."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import traceback
from pathlib import Path

from tilewright import _core
from tilewright.errors import ArgumentError, Error, ScheduleError
from tilewright.support.file_names import printable

#: folders of this package, Python's standard library, and installed packages
NOT_THE_USERS = (
    Path(__file__).parents[1],
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)


def render_line(file: str, line: int, column: int, end_column: int) -> str:
    """Return the line with its number, and carets under the columns, which are counted from 1."""
    known = printable(file)
    if known != file:  # the core cannot open such a file
        _core.register_source(known, "".join(linecache.getlines(file)))
    return _core.render_span(_core.intern_span(known, line, column, line, end_column)).rstrip("\n")


def last_raise(error: BaseException) -> BaseException:
    """Return the exception with a traceback that begins at its last arrival in the calling function.

    Python prepends to the traceback of an exception each time it is raised, so that the traceback of an object that is
    raised repeatedly grows without limit and becomes slow to process. The location where an exception from another
    thread was first raised is kept.
    """
    at = first = error.__traceback__
    while at is not None and at.tb_next is not None:
        if first is not None and at.tb_next.tb_frame.f_code is first.tb_frame.f_code:
            at.tb_next = None
        at = at.tb_next
    return error


def place_of(error: BaseException) -> str:
    """Return the innermost line of the user's code that an exception comes from, with carets; "" if there is none.

    Lines of Tilewright and of installed packages do not count.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if frame.lineno is None or not path.is_file() or any(path.is_relative_to(folder) for folder in NOT_THE_USERS):
            continue
        text = linecache.getline(frame.filename, frame.lineno).rstrip()
        start, end = frame.colno, frame.end_colno
        if start is None or end is None or frame.end_lineno != frame.lineno:
            start, end = len(text) - len(text.lstrip()), len(text)
        return render_line(frame.filename, frame.lineno, start + 1, end + 1)
    return ""


def users_level() -> int:
    """Return the `stacklevel` with which a warning names the line that called this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(str(NOT_THE_USERS[0])):
        level, frame = level + 1, frame.f_back
    return level


def error_text(error: BaseException) -> str:
    """Return the text of an exception and the innermost line of the user's code that caused it, unless the text shows
    that line already. A hint remains the last line."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # from a class whose __str__ fails
        text = type(error).__name__
    place = place_of(error)
    if not place or _where(place) in text:
        return text
    before, hint, after = text.partition("\n  hint:")
    return f"{before}\n{place}{hint}{after}"


def _where(place: str) -> str:
    """Return file and line from the first line of a rendered location."""
    return place.split("\n", 1)[0].rpartition(":")[0]


def with_place(error: Error, within: str = "") -> str:
    """Return the text of an error, with the user's line that caused it unless the text shows that line already.

    Args:
        error: the error to report.
        within: description of the user's part that it happened in, such as "the space 'tiles'".
    """
    text = str(error)
    place = place_of(error) if isinstance(error, (ScheduleError, ArgumentError)) else ""
    parts = [f"  in {within}" if within else "", place if _where(place) not in text else ""]
    more = "".join(f"\n{part}" for part in parts if part)
    before, hint, after = text.partition("\n  hint:")
    return f"{before}{more}{hint}{after}"
