"""The errors that Tilewright raises. The class says whose mistake it was; `code` names the rule that was broken."""

from __future__ import annotations


class Error(Exception):
    """Base class of every error that Tilewright raises on purpose.

    Attributes:
        code: the rule, for instance ``"split/P1"``; stable, for programs to look at.
        message: what was observed and which rule it breaks.
        hint: what to do about it; may be empty.
        span: number of the place in the user's text (0 when unknown).
    """

    code: str = ""
    message: str = ""
    hint: str = ""
    span: int = 0


class ScriptError(Error):
    """The text that the user wrote is not a valid program."""


class ScheduleError(Error):
    """A precondition of a schedule primitive does not hold; the schedule is unchanged."""


class ArgumentError(Error, ValueError):
    """A function or a kernel was called with the wrong arguments."""


class ResourceError(Error):
    """A file, a database, memory, a helper process or a deadline failed."""


class InternalError(Error):
    """A defect of Tilewright."""
