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
        """Return the module."""
        if global_infos:
            raise TypeError("Tilewright has no global_infos of modules yet")
        named = {getattr(key, "name_hint", key): value for key, value in (functions or {}).items()}
        return _core.Module(named, attrs or {})

    @staticmethod
    def from_expr(expr: _core.PrimFunc, functions: Any = None) -> Any:
        """Return a module with this function under its global symbol."""
        if functions:
            raise TypeError("Tilewright takes no further functions here yet")
        return _core.as_module(expr)


@explained
def _get_attr(self: _core.Module, attr_key: str) -> Any:
    """Return the attribute with this name; None if there is none."""
    return self.attrs.get(attr_key)


@explained
def _set_function(self: _core.Module, name: Any, func: Any) -> None:
    """Set a function of the module: ``mod["main"] = ...``."""
    _core.set_function(self, getattr(name, "name_hint", name), func)


@explained
def _update_func(self: _core.Module, var: Any, func: Any) -> None:
    """Set a function of the module, replacing the one with that name."""
    _set_function(self, var, func)


@explained
def _update(self: _core.Module, other: Any) -> None:
    """Set all functions of another module in this one."""
    functions = other.functions if isinstance(other, _core.Module) else other
    if not isinstance(functions, Mapping):
        raise TypeError(f"other is a module, or functions by name, not a {type(other).__name__}")
    for name, func in dict(functions.items()).items():
        _set_function(self, name, func)


@explained
def _del_function(self: _core.Module, name: Any) -> None:
    """Remove a function from the module: ``del mod["main"]``."""
    name = getattr(name, "name_hint", name)
    self.get_global_var(name)
    _core.set_function(self, name, None)


@explained
def _clone(self: _core.Module) -> _core.Module:
    """Return a module with the same functions and attributes, which can be changed independently."""
    return _core.Module(dict(self.functions.items()), self.attrs)


@explained
def _functions_items(self: _core.Module) -> list[tuple[Any, Any]]:
    """Return variables and functions, in the order of their names."""
    return [(self.get_global_var(str(name)), func) for name, func in sorted(self.functions.items())]


@explained
def _with_attrs(self: Any, attr_map: Mapping[str, Any]) -> Any:
    """Return a copy with these additional attributes."""
    return self.with_attr(dict(attr_map))


@explained
def _replace_global_vars(self: _core.Module, replacements: Mapping[Any, Any]) -> _core.Module:
    """Return a module with renamed functions; calls of them are renamed, too."""
    names = {getattr(old, "name_hint", old): getattr(new, "name_hint", new) for old, new in replacements.items()}
    variables = {name: _core.GlobalVar(name) for name in names.values()}
    for old in names:
        self.get_global_var(old)

    def renamed(node: Any) -> Any:
        return (
            variables[names[node.name_hint]] if isinstance(node, _core.GlobalVar) and node.name_hint in names else None
        )

    functions: dict[str, Any] = {}
    for name, func in self.functions.items():
        new = names.get(str(name), str(name))
        if new in functions:
            raise ValueError(f"two functions would have the name {new!r}")
        functions[new] = _core.rewrite(func, renamed)
    return _core.Module(functions, self.attrs)


setattr(_core.PrimFunc, "with_attrs", _with_attrs)  # noqa: B010

for _name, _method in (
    ("get_attr", _get_attr),
    ("__delitem__", _del_function),
    ("clone", _clone),
    ("functions_items", _functions_items),
    ("replace_global_vars", _replace_global_vars),
    ("with_attrs", _with_attrs),
    ("__setitem__", _set_function),
    ("update_func", _update_func),
    ("update", _update),
):
    setattr(_core.Module, _name, _method)
