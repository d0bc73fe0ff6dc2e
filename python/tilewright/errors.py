"""The errors that Tilewright raises. The class says whose mistake it was; `code` names the rule that was broken."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class Error(RuntimeError):
    """Base class of every error that Tilewright raises on purpose.

    Attributes:
        code: the rule, for instance ``"split/P1"``; stable, for programs to look at.
        message: what was observed and which rule it breaks.
        hint: what to do about it; may be empty.
        span: number of the place in the user's text (0 when unknown).
        nodes: the parts of the program that it is about.
    """

    code: str = ""
    message: str = ""
    hint: str = ""
    span: int = 0
    nodes: tuple[Any, ...] = ()

    @classmethod
    def of(cls, code: str, message: str, hint: str = "") -> Self:
        """An error with its parts; the text shows message and hint."""
        error = cls(f"{message}\n  hint: {hint}" if hint else message)
        error.code, error.message, error.hint = code, message, hint
        return error


class ScriptError(Error):
    """The text that the user wrote is not a valid program.

    Attributes:
        errors: every mistake that was found in the text, each an error of its own; this one is among them when it is
            the only one.
    """

    errors: tuple[ScriptError, ...] = ()
    script_traceback: TracebackType | None

    @property
    def place(self) -> tuple[str, int, int, int, int] | None:
        """File, line, column, end line and the column behind the end, counted from 1; None when unknown."""
        if not self.span:
            return None
        from tilewright import _core

        file, line, column, end_line, end_column, _ = _core.span_of(self.span)
        return file, line, column, end_line, end_column

    @property
    def file(self) -> str:
        """The file that the mistake is in, "" when unknown."""
        return self.place[0] if self.place else ""

    @property
    def line(self) -> int:
        """The line of the mistake, counted from 1; 0 when unknown."""
        return self.place[1] if self.place else 0

    @property
    def column(self) -> int:
        """The column of the mistake, counted from 1; 0 when unknown."""
        return self.place[2] if self.place else 0


class ScheduleError(Error):
    """A precondition of a schedule primitive does not hold; the schedule is unchanged."""


class ScheduleValueError(ScheduleError, ValueError):
    """What a step was to work on is not there: a loop or a block that is gone, a function that nobody has named."""


class ArgumentError(Error, ValueError):
    """A function or a kernel was called with the wrong arguments."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a type that is not taken there.

    Attributes:
        called: the name of the function, where no signature of it fits.
    """

    called: str = ""


class HandleError(ArgumentError, IndexError):
    """A handle of a loop, a block or a value that this schedule has not given, or has forgotten."""


class ResourceError(Error):
    """A file, a database, memory, a helper process or a deadline failed."""


class InternalError(Error):
    """A defect of Tilewright."""
