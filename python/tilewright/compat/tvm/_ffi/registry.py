"""tvm._ffi.registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.support import named_functions

__path__: list[str] = []
__getattr__ = missing("tvm._ffi.registry")

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]

list_global_func_names = named_functions.names
remove_global_func = named_functions.remove


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Gives a function a name; a decorator without a function. Alone on a function, its own name.

    A function "meta_schedule.KEY.NAME" is also the rule for blocks that are annotated with schedule_rule=NAME.
    """
    if callable(func_name):
        func_name, f = func_name.__name__, func_name
    if f is None:
        return lambda function: register_func(func_name, function, override)
    named_functions.register(func_name, f, override)
    if func_name.startswith("meta_schedule.") and func_name.count(".") == 2:
        _core.register_custom_rule(func_name, f, replace=True)
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The function of that name; a ValueError, or None if that is allowed, when there is none."""
    return named_functions.find(name) if allow_missing else named_functions.need(name)
