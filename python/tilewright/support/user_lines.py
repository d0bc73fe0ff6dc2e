"""The user's own lines: which one an error comes from, and how it is shown."""

from __future__ import annotations

import linecache
import sys
import sysconfig
import traceback
from pathlib import Path

from tilewright import _core
from tilewright.errors import ArgumentError, Error, ScheduleError
from tilewright.support.file_names import printable

#: this package, Python's own library, and what is installed beside it
NOT_THE_USERS = (
    Path(__file__).parents[1],
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)


def render_line(file: str, line: int, column: int, end_column: int) -> str:
    """The line with its number, and carets below what is meant; columns count from 1."""
    known = printable(file)
    if known != file:  # the core cannot read it
        _core.register_source(known, "".join(linecache.getlines(file)))
    return _core.render_span(_core.intern_span(known, line, column, line, end_column)).rstrip("\n")


def last_raise(error: BaseException) -> BaseException:
    """The exception, whose traceback begins at the last time that it came to the function that asks.

    Python puts what is new in front of the traceback that an exception has, so that of an object which is raised again
    and again grows without end, and everything that looks at it becomes slower. What stays is also where an exception
    was raised at first that came from another thread.
    """
    at = first = error.__traceback__
    while at is not None and at.tb_next is not None:
        if first is not None and at.tb_next.tb_frame.f_code is first.tb_frame.f_code:
            at.tb_next = None
        at = at.tb_next
    return error


def place_of(error: BaseException) -> str:
    """The innermost line of the user's own that an exception comes from, with carets below what was at work there.

    Empty when its traceback holds none: lines of Tilewright and of installed packages do not count.
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
    """The `stacklevel` of a warning that its caller gives, so that it names the line that called this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(str(NOT_THE_USERS[0])):
        level, frame = level + 1, frame.f_back
    return level


def said_of(error: BaseException) -> str:
    """What was raised, and the innermost line of the user's own that it comes from, where its text does not show that
    already; its hint stays the last line."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:  # of a class that cannot say its text
        said = type(error).__name__
    place = place_of(error)
    if not place or _where(place) in said:
        return said
    before, hint, after = said.partition("\n  hint:")
    return f"{before}\n{place}{hint}{after}"


def _where(place: str) -> str:
    """File and line, as the first line of a place says them."""
    return place.split("\n", 1)[0].rpartition(":")[0]


def with_place(error: Error, within: str = "") -> str:
    """The text of an error, with the user's line that led to it where the text does not show that already.

    Args:
        error: the error to report.
        within: what of the user's it happened in, such as "the space 'tiles'".
    """
    text = str(error)
    place = place_of(error) if isinstance(error, (ScheduleError, ArgumentError)) else ""
    parts = [f"  in {within}" if within else "", place if _where(place) not in text else ""]
    more = "".join(f"\n{part}" for part in parts if part)
    before, hint, after = text.partition("\n  hint:")
    return f"{before}{more}{hint}{after}"
