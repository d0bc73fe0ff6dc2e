"""Functions with names: builders, runners and rules may name a function of another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.errors import ArgumentError

__all__ = ["find", "names", "need", "register", "remove"]

Function = Callable[..., Any]
_NONE: Mapping[str, Function] = {}

_registered: dict[str, Function] = {}


def register(
    name: str, function: Function | None = None, override: bool = False, shipped: Mapping[str, Function] = _NONE
) -> Any:
    """Register a function under a name in this process; without a function, return a decorator.

    Args:
        name: the name.
        function: the function.
        override: whether to replace a function with the same name.
        shipped: functions that have names without being registered.

    Raises:
        tilewright.ArgumentError: the name is taken, and `override` is False.
    """
    if function is None:
        return lambda decorated: register(name, decorated, override, shipped)
    if not override and find(name, shipped) is not None:
        raise ArgumentError.of(
            "functions/taken", f"there is a function {name!r} already", "pass override=True, or choose another name"
        )
    _registered[name] = function
    return function


def find(name: str, shipped: Mapping[str, Function] = _NONE) -> Function | None:
    """Return the registered or shipped function with a name; None if there is none."""
    return _registered.get(name, shipped.get(name))


def need(name: str, shipped: Mapping[str, Function] = _NONE) -> Function:
    """Return the registered or shipped function with a name.

    Raises:
        tilewright.ArgumentError: there is no function with this name.
    """
    function = find(name, shipped)
    if function is None:
        raise ArgumentError.of(
            "functions/unknown",
            f"there is no function {name!r}",
            "register it in this process: named_functions.register(name, function); for a worker, in `initializer`",
        )
    return function


def names(shipped: Mapping[str, Function] = _NONE) -> list[str]:
    """Return all names, sorted."""
    return sorted({*shipped, *_registered})


def remove(name: str) -> None:
    """Remove a registered function."""
    _registered.pop(name, None)
