"""tvm._ffi.registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import named_functions
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm._ffi.registry")

__all__ = ["get_global_func", "list_global_func_names", "register_func", "remove_global_func"]

list_global_func_names = named_functions.names
remove_global_func = named_functions.remove


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Gives a function a name; a decorator without a function. Alone on a function, its own name."""
    if callable(func_name):
        return named_functions.register(func_name.__name__, func_name, override)
    return named_functions.register(func_name, f, override)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The function of that name; a ValueError, or None if that is allowed, when there is none."""
    return named_functions.find(name) if allow_missing else named_functions.need(name)
