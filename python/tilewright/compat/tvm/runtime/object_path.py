"""tvm.runtime.ObjectPath: places in a program.

Tilewright writes a place as text, ``<root>.buffer_map[1].shape[0]``, and counts the entries of dicts; TVM names them by
their keys.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

__all__ = ["ObjectPath", "ObjectPathPair"]

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]")


class ObjectPath(str):
    """A place, step by step from the root."""

    _steps: tuple[tuple[str, Any], ...] = ()

    def _with(self, text: str, kind: str, key: Any) -> ObjectPath:
        path = ObjectPath(str(self) + text)
        path._steps = (*self._steps, (kind, key))
        return path

    @staticmethod
    def root() -> ObjectPath:
        """The program itself."""
        return ObjectPath("<root>")

    def attr(self, attr_key: str) -> ObjectPath:
        """A field of the node."""
        return self._with(f".{attr_key}", "attr", attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """An element of the list."""
        return self._with(f"[{index}]", "index", index)

    def map_value(self, key: Any) -> ObjectPath:
        """The value of the dict under the key."""
        return self._with(f"[{getattr(key, 'name_hint', key)}]", "map", key)

    @property
    def parent(self) -> ObjectPath | None:
        """The place one step nearer to the root; None of the root."""
        if not self._steps:
            return None
        path = ObjectPath.root()
        for kind, key in self._steps[:-1]:
            if kind == "attr":
                path = path.attr(key)
            else:
                path = path.array_index(key) if kind == "index" else path.map_value(key)
        return path

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether the other place is this one or inside of it."""
        return other._steps[: len(self._steps)] == self._steps

    def to_text(self, root: Any) -> str:
        """The place as Tilewright writes it, in this program."""
        text, at = "<root>", root
        for kind, key in self._steps:
            if kind == "attr":
                text, at = f"{text}.{key}", getattr(at, key, None)
            elif kind == "index":
                text, at = f"{text}[{key}]", at[key] if at else None
            elif all(isinstance(k, str) for k in at) and "global_symbol" in at:
                text, at = f"{text}['{key}']", at[key]
            else:
                name = getattr(key, "name_hint", key)
                names = [getattr(k, "name_hint", k) for k in at]
                at = list(at.values())[names.index(name)]
                text = f"{text}[{names.index(name)}]"
        return text

    @staticmethod
    def from_text(root: Any, text: str) -> ObjectPath:
        """The place that Tilewright wrote, in this program."""
        path, at = ObjectPath.root(), root
        for name, index, key in _STEP.findall(text.removeprefix("<root>")):
            if name:
                path, at = path.attr(name), getattr(at, name, None)
            elif key:
                path, at = path.map_value(key), at.get(key) if isinstance(at, dict) else None
            elif isinstance(at, dict):
                entry = list(at.items())[int(index)]
                path, at = path.map_value(entry[0]), entry[1]
            else:
                path = path.array_index(int(index))
                at = at[int(index)] if at and int(index) < len(at) else None
        return path


class ObjectPathPair(NamedTuple):
    """Places that are compared."""

    lhs_path: ObjectPath
    rhs_path: ObjectPath
