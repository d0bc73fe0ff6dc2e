"""The functions of a module by name, which is said by a string or by a GlobalVar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FunctionName(str):
    """The name of a function, which says it as a GlobalVar does."""

    __slots__ = ()

    @property
    def name_hint(self) -> str:
        """The name."""
        return str(self)


class Functions(dict[Any, Any]):
    """The functions of a module by their names, or by their GlobalVars."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        super().__init__((FunctionName(name), function) for name, function in functions.items())

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(getattr(key, "name_hint", key))

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(getattr(key, "name_hint", key))

    def get(self, key: Any, default: Any = None) -> Any:
        """The function of that name; `default` when there is none."""
        return super().get(getattr(key, "name_hint", key), default)

    def __reduce__(self) -> tuple[Any, ...]:
        return Functions, (dict(self),)
