"""tvm.ir.module: modules whose functions are found by GlobalVars too."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import IRModule

__path__: list[str] = []
__getattr__ = missing("tvm.ir.module")

__all__ = ["IRModule"]


class FunctionName(str):
    """The name of a function, which says it as a GlobalVar does."""

    @property
    def name_hint(self) -> str:
        """The name."""
        return str(self)


class Functions(dict[Any, Any]):
    """The functions of a module by their names, or by their GlobalVars."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(getattr(key, "name_hint", key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(getattr(key, "name_hint", key))

    def get(self, key: Any, default: Any = None) -> Any:
        """The function of that name; `default` when there is none."""
        return super().get(getattr(key, "name_hint", key), default)


_functions: Any = _core.Module.functions


def functions(self: _core.Module) -> Functions:
    """The functions of the module."""
    return Functions({FunctionName(name): func for name, func in _functions.__get__(self).items()})


def _get_attr(self: _core.Module, attr_key: str) -> Any:
    """The attribute of that name; None where there is none."""
    return self.attrs.get(attr_key)


def find_functions_as_tvm() -> None:
    """From now on."""
    setattr(_core.Module, "get_attr", _get_attr)  # noqa: B010
    setattr(_core.Module, "functions", property(functions))  # noqa: B010
