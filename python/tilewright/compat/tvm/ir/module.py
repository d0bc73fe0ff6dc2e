"""tvm.ir.module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.support.wrong_arguments import explained

__all__ = ["IRModule"]


class IRModule(metaclass=Renamed):
    """A module from functions by name."""

    node = _core.Module

    @staticmethod
    def make(functions: Any = None, attrs: Any = None, global_infos: None = None) -> Any:
        """The module."""
        if global_infos:
            raise TypeError("Tilewright has no global_infos of modules yet")
        named = {getattr(key, "name_hint", key): value for key, value in (functions or {}).items()}
        return _core.Module(named, attrs or {})

    @staticmethod
    def from_expr(expr: _core.PrimFunc, functions: Any = None) -> Any:
        """A module with this function under its global symbol."""
        if functions:
            raise TypeError("Tilewright takes no further functions here yet")
        return _core.as_module(expr)


@explained
def _get_attr(self: _core.Module, attr_key: str) -> Any:
    """The attribute of that name; None where there is none."""
    return self.attrs.get(attr_key)


@explained
def _set_function(self: _core.Module, name: Any, func: Any) -> None:
    """Puts a function into the module: ``mod["main"] = ...``."""
    _core.set_function(self, getattr(name, "name_hint", name), func)


@explained
def _update_func(self: _core.Module, var: Any, func: Any) -> None:
    """Puts a function into the module, in the place of the one of that name."""
    _set_function(self, var, func)


@explained
def _update(self: _core.Module, other: Any) -> None:
    """Puts all functions of another module into this one."""
    functions = other.functions if isinstance(other, _core.Module) else other
    if not isinstance(functions, Mapping):
        raise TypeError(f"other is a module, or functions by name, not a {type(other).__name__}")
    for name, func in dict(functions.items()).items():
        _set_function(self, name, func)


for _name, _method in (
    ("get_attr", _get_attr),
    ("__setitem__", _set_function),
    ("update_func", _update_func),
    ("update", _update),
):
    setattr(_core.Module, _name, _method)
