"""Handle failing heuristics: a failure is a defect of Tilewright, and the program runs unscheduled."""

from __future__ import annotations

import os
import traceback

from tilewright import _core
from tilewright.errors import Error, ScriptError

#: environment variable with which failures are raised, as in the tests
RAISE = "TILEWRIGHT_RAISE_HEURISTIC_FAILURES"


def raise_in_tests(error: BaseException) -> None:
    """Raise an error again if the environment variable is set.

    Args:
        error: the error that a heuristic raised, other than the refusal of an optional step.
    """
    if os.environ.get(RAISE, "") not in ("", "0"):
        raise error


def raise_where_refused(program: _core.Module, error: Exception) -> None:
    """Raise the error of a program that is refused with any schedule, which is no failure of a heuristic.

    Args:
        program: the program that a heuristic was to schedule.
        error: the error that the heuristic raised instead.
    """
    try:
        _core.verify(program)
    except Error as refusal:
        raise (error if isinstance(error, ScriptError) else refusal) from None


def description(error: BaseException) -> str:
    """Return the error and its location in one line: "KeyError: w0 (contraction.py:12)"."""
    lines = str(error).splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' + lines[0] if lines else ''}{place}"
