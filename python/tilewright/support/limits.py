"""Validate numbers and other arguments before a search begins, with errors that name the argument."""

from __future__ import annotations

import difflib
import itertools
import math
import numbers
import operator
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tilewright.errors import ArgumentError, ArgumentTypeError

__all__ = ["closest", "index_of", "items", "kind", "of_kind", "positive", "seed", "whole", "wrong_kind"]

T = TypeVar("T")

#: the largest number that records can store
MOST = 2**63 - 1
#: maximum number of candidates, results and similar items in a list
MOST_ITEMS = 1_000_000


def whole(name: str, value: Any, least: int, why: str = "", *, most: int = MOST) -> int:
    """Return the argument as an integer.

    Args:
        name: name of the parameter.
        value: the argument.
        least: minimum.
        why: reason of the minimum, as a clause.
        most: maximum.

    Raises:
        tilewright.ArgumentError: the value is not an integer, or out of bounds.
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


def index_of(value: Any) -> int | None:
    """Return the value of an integer, also of NumPy's, or of an array of integers without dimensions; None for other
    values."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def positive(name: str, value: Any, no_limit: str = "None") -> float | None:
    """Return the argument as a positive number, or None for no limit.

    Args:
        name: name of the parameter.
        value: the argument.
        no_limit: how callers express that there is no limit; "" for command-line options, which are omitted.

    Raises:
        tilewright.ArgumentError: the value is not a positive number.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        message = f"{name} is {value!r}; it is a number, or {no_limit} for no limit"
        raise ArgumentTypeError.of("arguments/number", message, f"such as {name}=10.0")
    if not float(value) > 0:
        message = f"{name} is {value}; it is a number above 0, or {no_limit} for no limit"
        raise ArgumentError.of("arguments/number", message, "omit it where there is no limit")
    return float(value)


def seed(value: Any, *, most: int = MOST) -> int:
    """Return the argument as a seed.

    Raises:
        tilewright.ArgumentError: the value is not an integer, or out of bounds.
    """
    return whole("seed", value, 0, f"it is at least 0 and at most {most}", most=most)


def kind(name: str, value: Any, kinds: Any, what: str, hint: str = "") -> None:
    """Refuse values that are not instances of one of the classes.

    Raises:
        tilewright.ArgumentError: the value has another class; `what` describes what is expected.
    """
    if not isinstance(value, kinds):
        raise wrong_kind(name, value, what, hint)


def wrong_kind(name: str, value: Any, what: str, hint: str = "") -> ArgumentTypeError:
    """Return the error for an argument of a wrong type; `what` describes what is expected."""
    return ArgumentTypeError.of("arguments/kind", f"{name} is {value!r:.80}; it is {what}", hint)


def items(name: str, given: Any, what: str) -> list[Any]:
    """Return the items of an iterable as a list, with a limit on their number; its length is not trusted.

    Args:
        name: name of the parameter.
        given: the argument.
        what: description of the items, in the plural.

    Raises:
        tilewright.ArgumentError: the argument is not iterable, or has too many items.
    """
    try:
        each = None if isinstance(given, str | bytes) else iter(given)
    except TypeError:
        each = None
    if each is None:
        raise wrong_kind(name, given, f"a list of {what}")
    found = [item for item in itertools.islice(each, MOST_ITEMS + 1)]  # noqa: C416 (list() would call __len__)
    if len(found) > MOST_ITEMS:
        raise wrong_kind(name, given, f"a list of {what}, and this has more than {MOST_ITEMS}")
    return found


def of_kind(what: str, kind: Any, kinds: Mapping[str, T], code: str) -> T:
    """Return the entry of a table for a kind.

    Args:
        what: description of the entries, such as "builder".
        kind: the requested kind.
        kinds: the table.
        code: code of the error.

    Raises:
        tilewright.ArgumentError: the table has no such kind.
    """
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    known = ", ".join(f'"{name}"' for name in kinds)
    raise ArgumentError.of(code, f"there is no {what} of the kind {kind!r:.80}", f"there is {known}")


def closest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint for an unknown name: similar known names, or all known names if none is similar.

    Args:
        name: the unknown name.
        known: the known names.
        otherwise: text that lists the known names, if not the names themselves.
    """
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"it has {otherwise or ', '.join(names) or 'none'}"
