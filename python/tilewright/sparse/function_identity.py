"""Identifies functions of users by what they compute, so that results for one are kept for others that are equal."""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import Any

#: types whose values are compared by what they are; other objects may change
PLAIN = frozenset((int, str, float, bool, type(None)))


def made_of(function: Any) -> Any:
    """Return the code of a function, and the values that it refers to: equal for functions that compute the same. A
    function with other values than numbers and texts is returned itself."""
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
