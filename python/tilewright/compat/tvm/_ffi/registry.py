"""tvm._ffi.registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright import _core
from tilewright.meta_schedule import named_functions

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]

remove_global_func = named_functions.remove


def _shipped(name: str = "meta_schedule.") -> Mapping[str, Callable[..., Any]]:
    """Functions with names that are not registered: parts of the search, which is imported only for them."""
    if "meta_schedule." not in name:
        return {}
    from tilewright.meta_schedule.derived import SHIPPED

    return SHIPPED


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Gives a function a name; a decorator without a function. Alone on a function, its own name.

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
    """The function of that name; a ValueError, or None if that is allowed, when there is none."""
    return named_functions.find(name, _shipped(name)) if allow_missing else named_functions.need(name, _shipped(name))


def list_global_func_names() -> list[str]:
    """All names."""
    return named_functions.names(_shipped())
