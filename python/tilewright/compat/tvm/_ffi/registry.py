"""tvm._ffi.registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright import _core
from tilewright.meta_schedule import named_functions

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]

remove_global_func = named_functions.remove


def _shipped(name: str = "meta_schedule.") -> Mapping[str, Callable[..., Any]]:
    """Return the named functions that exist without registration: those of the search, which is only imported for
    them."""
    if "meta_schedule." not in name:
        return {}
    from tilewright.meta_schedule.derived import SHIPPED

    return SHIPPED


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Register a function under a name. Return a decorator if there is no function; a bare decorator uses the
    function's name.

    A function "meta_schedule.KEY.NAME" is also the rule for blocks that are annotated with schedule_rule=NAME.
    """
    if callable(func_name):
        func_name, f = func_name.__name__, func_name
    if f is None:
        return lambda function: register_func(func_name, function, override)
    named_functions.register(func_name, f, override, _shipped(func_name))
    if func_name.startswith("meta_schedule.") and func_name.count(".") == 2:
        _core.register_custom_rule(func_name, f, replace=True)
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Return the function with this name. If there is none, return None with `allow_missing`, else raise ValueError."""
    return named_functions.find(name, _shipped(name)) if allow_missing else named_functions.need(name, _shipped(name))


def list_global_func_names() -> list[str]:
    """Return all names."""
    return named_functions.names(_shipped())
