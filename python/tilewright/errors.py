"""The errors that Tilewright raises; `code` names the violated rule."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class Error(RuntimeError):
    """Base class of every error that Tilewright raises on purpose.

    Attributes:
        code: the rule, for instance ``"split/P1"``; stable, for use in programs.
        message: what was observed and which rule it violates.
        hint: what to do about it; may be empty.
        span: number of the location in the user's text; 0 if unknown.
        nodes: the nodes of the program (:mod:`tilewright.ir`) that the error is about.
    """

    code: str = ""
    message: str = ""
    hint: str = ""
    span: int = 0
    nodes: tuple[Any, ...] = ()  # nodes of `ir`, which this module may not import

    @classmethod
    def of(cls, code: str, message: str, hint: str = "") -> Self:
        """Return an error with these parts; its text consists of message and hint."""
        error = cls(f"{message}\n  hint: {hint}" if hint else message)
        error.code, error.message, error.hint = code, message, hint
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle locations as such: numbers of spans mean something in this process only, as tracebacks do."""
        state = {name: value for name, value in vars(self).items() if name not in ("span", "script_traceback")}
        return type(self), self.args, {**state, "span": _positions(self.span)}

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        from tilewright import _core

        state = dict(state or {})
        span = 0
        for file, line, column, end_line, end_column in reversed(state.pop("span", ())):
            span = _core.intern_span(file, line, column, end_line, end_column, span)
        vars(self).update(state, span=span)


def _positions(span: int) -> list[tuple[str, int, int, int, int]]:
    """Return the position of a span in the user's texts, and those of the macro calls around it, innermost first."""
    from tilewright import _core

    places = []
    while span:
        *place, span = _core.span_of(span)
        places.append(tuple(place))
    return places


class ScriptError(Error):
    """A script is not a valid program.

    Attributes:
        errors: all errors in the script, each as its own exception; if there is only one, it is this exception.
    """

    errors: tuple[ScriptError, ...] = ()
    script_traceback: TracebackType | None

    @property
    def place(self) -> tuple[str, int, int, int, int] | None:
        """Return file, line, column, end line and the column after the end, counted from 1; None if unknown."""
        if not self.span:
            return None
        from tilewright import _core

        file, line, column, end_line, end_column, _ = _core.span_of(self.span)
        return file, line, column, end_line, end_column

    @property
    def file(self) -> str:
        """Return the file of the error; "" if unknown."""
        return self.place[0] if self.place else ""

    @property
    def line(self) -> int:
        """Return the line of the error, counted from 1; 0 if unknown."""
        return self.place[1] if self.place else 0

    @property
    def column(self) -> int:
        """Return the column of the error, counted from 1; 0 if unknown."""
        return self.place[2] if self.place else 0


class ScheduleError(Error):
    """A precondition of a schedule primitive does not hold; the schedule is unchanged."""


class ScheduleValueError(ScheduleError, ValueError):
    """A schedule step refers to a loop or a block that no longer exists, or to a function that was not named."""


class ArgumentError(Error, ValueError):
    """A function or a kernel was called with the wrong arguments."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has a wrong type.

    Attributes:
        called: name of the function, if no signature of it matches.
    """

    called: str = ""


class HandleError(ArgumentError, IndexError):
    """A handle of a loop, a block or a value that does not belong to this schedule, or is no longer valid."""


class ResourceError(Error):
    """A file, a database, memory, a helper process or a deadline failed."""


class InternalError(Error):
    """A defect of Tilewright."""
