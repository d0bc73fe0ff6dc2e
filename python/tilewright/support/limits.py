"""Numbers and other things that a search is asked for, looked at before it begins: a wrong one is refused at once, by
its name."""

from __future__ import annotations

import difflib
import itertools
import math
import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tilewright.errors import ArgumentError, ArgumentTypeError

__all__ = ["closest", "items", "kind", "of_kind", "positive", "seed", "whole", "wrong_kind"]

T = TypeVar("T")

#: the largest number that records hold
MOST = 2**63 - 1
#: candidates, results and the like in one list
MOST_ITEMS = 1_000_000


def whole(name: str, value: Any, least: int, why: str = "", *, most: int = MOST) -> int:
    """A whole number.

    Args:
        name: of the parameter.
        value: the argument.
        least: the smallest that makes sense; `why` says why.
        why: a clause.
        most: the largest.

    Raises:
        tilewright.ArgumentError: it is no whole number, or out of bounds.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        hint = f"write {name}={max(round(value), least)}" if _is_number(value) else ""
        raise ArgumentTypeError.of(
            "arguments/number", f"{name} is {value!r}; it is a whole number, at least {least}", hint
        ) from None
    if not least <= number <= most:
        too_much = f"it is at most {most}"
        what = (why or f"it is at least {least}") if number < least else too_much
        nearest = least if number < least else most
        raise ArgumentError.of("arguments/number", f"{name} is {number}; {what}", f"such as {name}={nearest}")
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def positive(name: str, value: Any, no_limit: str = "None") -> float | None:
    """A number above 0, or None for no limit.

    Args:
        name: of the parameter.
        value: the argument.
        no_limit: how it is said that there is none; options of commands are omitted.

    Raises:
        tilewright.ArgumentError: it is something else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        said = f"{name} is {value!r}; it is a number, or {no_limit} for no limit"
        raise ArgumentTypeError.of("arguments/number", said, f"such as {name}=10.0")
    if not float(value) > 0:
        said = f"{name} is {value}; it is a number above 0, or {no_limit} for no limit"
        raise ArgumentError.of("arguments/number", said, "omit it where there is no limit")
    return float(value)


def seed(value: Any, *, most: int = MOST) -> int:
    """What candidates follow from.

    Raises:
        tilewright.ArgumentError: it is no whole number, or out of bounds.
    """
    return whole("seed", value, 0, f"it is at least 0 and at most {most}", most=most)


def kind(name: str, value: Any, kinds: Any, what: str, hint: str = "") -> None:
    """Refuses what is of none of these classes.

    Raises:
        tilewright.ArgumentError: it is not; `what` says what it should be.
    """
    if not isinstance(value, kinds):
        raise wrong_kind(name, value, what, hint)


def wrong_kind(name: str, value: Any, what: str, hint: str = "") -> ArgumentTypeError:
    """What is said of a parameter that was given something else than `what` says."""
    return ArgumentTypeError.of("arguments/kind", f"{name} is {value!r:.80}; it is {what}", hint)


def items(name: str, given: Any, what: str) -> list[Any]:
    """The items of a list or of something like it, which need not be as long as it says: what counts is what comes.

    Args:
        name: of the parameter.
        given: the argument.
        what: the items are, in the plural.

    Raises:
        tilewright.ArgumentError: it is no such thing, or has no end.
    """
    try:
        each = None if isinstance(given, str | bytes) else iter(given)
    except TypeError:
        each = None
    if each is None:
        raise wrong_kind(name, given, f"a list of {what}")
    found = [item for item in itertools.islice(each, MOST_ITEMS + 1)]  # noqa: C416 (list() asks for the length)
    if len(found) > MOST_ITEMS:
        raise wrong_kind(name, given, f"a list of {what}, and this has more than {MOST_ITEMS}")
    return found


def of_kind(what: str, kind: Any, kinds: Mapping[str, T], code: str) -> T:
    """What a table has under the name of a kind.

    Args:
        what: what it has, such as "builder".
        kind: the name that was given.
        kinds: the table.
        code: of the error.

    Raises:
        tilewright.ArgumentError: it has nothing of that name.
    """
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    known = ", ".join(f'"{name}"' for name in kinds)
    raise ArgumentError.of(code, f"there is no {what} of the kind {kind!r:.80}", f"there is {known}")


def closest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """What was perhaps meant by a name that is not known; all that is known where nothing is like it.

    Args:
        name: what was written.
        known: what could have been written.
        otherwise: how the known ones are listed, where not by their names.
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"it has {otherwise or ', '.join(names) or 'none'}"
