"""A heuristic that fails is a defect of Tilewright; the program runs all the same, unscheduled."""

from __future__ import annotations

import os
import traceback

from tilewright import _core
from tilewright.errors import Error, ScriptError

#: the variable of the environment with which failures are raised, as the tests ask for
RAISE = "TILEWRIGHT_RAISE_HEURISTIC_FAILURES"


def raise_in_tests(error: BaseException) -> None:
    """Raise a failure again where the environment asks for it.

    Args:
        error: what a heuristic raised, other than the refusal of a step that it can do without.
    """
    if os.environ.get(RAISE, "") not in ("", "0"):
        raise error


def raise_where_refused(program: _core.Module, error: Exception) -> None:
    """Raise what is wrong with a program that is refused however it is scheduled: that is no failure of heuristics.

    Args:
        program: what a heuristic was to schedule.
        error: what it raised instead.
    """
    try:
        _core.verify(program)
    except Error as refusal:
        raise (error if isinstance(error, ScriptError) else refusal) from None


def description(error: BaseException) -> str:
    """Return what failed, and where, as one line: "KeyError: w0 (contraction.py:12)"."""
    lines = str(error).splitlines()
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' + lines[0] if lines else ''}{place}"
