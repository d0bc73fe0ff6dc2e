"""Compute cache keys for functions of users, so that equal functions share cached results."""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import Any

#: immutable types, which are compared by value; other objects may change
PLAIN = frozenset((int, str, float, bool, type(None)))


def made_of(function: Any) -> Any:
    """Return a key of a function: its code, and the values of its globals, closure and defaults. Functions with equal
    keys compute the same. A function that refers to other values than numbers and texts is its own key."""
    if not isinstance(function, FunctionType):  # methods and other callables may depend on what they are bound to
        return function
    code, globals_of = function.__code__, function.__globals__
    used = tuple([name for name in _names_in(code) if name in globals_of])
    keywords = function.__kwdefaults__ or {}
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += [globals_of[name] for name in used]
    values += [*keywords.values(), *(function.__defaults__ or ())]
    types = tuple(map(type, values))
    if not PLAIN.issuperset(types) and not all(isinstance(value, int | str | float | None) for value in values):
        return function
    return code, used, (*keywords,), types, tuple(values)


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in the code of a function, and of those in it."""
    names = {*code.co_names}.union(*(_names_in(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
    return tuple(sorted(names))
