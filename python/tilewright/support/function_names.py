"""The functions of a module by name; keys are strings or GlobalVars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FunctionName(str):
    """The name of a function with the attribute `name_hint` of a GlobalVar."""

    __slots__ = ()

    @property
    def name_hint(self) -> str:
        """Return the name."""
        return str(self)


class Functions(dict[Any, Any]):
    """The functions of a module by their names or GlobalVars."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        super().__init__((FunctionName(name), function) for name, function in functions.items())

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(getattr(key, "name_hint", key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(getattr(key, "name_hint", key))

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the function with a name; `default` if there is none."""
        return super().get(getattr(key, "name_hint", key), default)

    def __reduce__(self) -> tuple[Any, ...]:
        return Functions, (dict(self),)
