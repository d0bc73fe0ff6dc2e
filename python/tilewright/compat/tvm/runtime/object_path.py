"""tvm.runtime.ObjectPath: paths to nodes of a program.

Tilewright writes a path as text, ``<root>.buffer_map[1].shape[0]``, and counts the entries of dicts; TVM names them by
their keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tilewright import _core
from tilewright.support.function_names import FunctionName

__all__ = [
    "ArrayIndexPath",
    "AttributeAccessPath",
    "MapValuePath",
    "MissingArrayElementPath",
    "MissingMapEntryPath",
    "ObjectPath",
    "ObjectPathPair",
    "RootPath",
    "UnknownAttributeAccessPath",
]

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['(.*?)'\](?=[.\[]|$)")


class _Nothing:
    """Where a path leads in a program that has nothing there."""


def _at(value: Any, step: ObjectPath) -> Any:
    """Return what one step leads to; the class of nothing where it leads nowhere."""
    key = step.key
    if isinstance(step, AttributeAccessPath):
        return getattr(value, key, _Nothing)
    if isinstance(step, ArrayIndexPath):
        known = isinstance(value, list | tuple) and 0 <= key < len(value)
        return value[key] if known else _Nothing
    if isinstance(step, MapValuePath) and isinstance(value, Mapping):
        found = _entry(value, key)
        return _Nothing if found is None else list(value.values())[found]
    return _Nothing


def _is_function(key: Any) -> bool:
    """Return whether the key is the name of a function in a module."""
    return isinstance(key, FunctionName | _core.GlobalVar)


def _entry(mapping: Mapping[Any, Any], key: Any) -> int | None:
    """Return the position of a key, which nodes are by identity; a name stands for the node that has it."""
    keys = list(mapping)
    for position, there in enumerate(keys):
        if there is key or (hasattr(there, "same_as") and hasattr(key, "same_as") and there.same_as(key)):
            return position
    name = getattr(key, "name_hint", key)
    names = [getattr(there, "name_hint", there) for there in keys]
    return names.index(name) if name in names else None


class ObjectPath:
    """A path, step by step from the root: ``ObjectPath.root().attr("body").array_index(0)``."""

    parent: ObjectPath | None = None
    key: Any = None

    def __init__(self) -> None:
        raise ValueError("an ObjectPath begins at ObjectPath.root()")

    @classmethod
    def _made(cls, parent: ObjectPath | None, key: Any) -> ObjectPath:
        path: ObjectPath = object.__new__(cls)
        path.parent, path.key = parent, key
        return path

    @staticmethod
    def root(root_name: str | None = None) -> ObjectPath:
        """Return the path of the program itself."""
        return RootPath._made(None, root_name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        """Return the path of a field of the node; of an unknown field if `attr_key` is None."""
        return (UnknownAttributeAccessPath if attr_key is None else AttributeAccessPath)._made(self, attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """Return the path of an element of the list."""
        return ArrayIndexPath._made(self, int(index))

    def missing_array_element(self, index: int) -> ObjectPath:
        """Return the path of an element that another list has and this one lacks."""
        return MissingArrayElementPath._made(self, int(index))

    def map_value(self, key: Any) -> ObjectPath:
        """Return the path of the value of the dict under the key."""
        return MapValuePath._made(self, key)

    def missing_map_entry(self) -> ObjectPath:
        """Return the path of an entry that another dict has and this one lacks."""
        return MissingMapEntryPath._made(self, None)

    def _prefixes(self) -> list[ObjectPath]:
        """Return the paths from the root to this one."""
        prefixes: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            prefixes.append(path)
            path = path.parent
        return prefixes[::-1]

    def _suffix(self) -> str:
        raise NotImplementedError

    def _has_same_last_step(self, other: ObjectPath) -> bool:
        if type(self) is not type(other) or isinstance(self, UnknownAttributeAccessPath):
            return False
        here, there = self.key, other.key
        if _is_function(here) and _is_function(there):
            return bool(here.name_hint == there.name_hint)
        return here.same_as(there) if hasattr(here, "same_as") and hasattr(there, "same_as") else bool(here == there)

    def __len__(self) -> int:
        return len(self._prefixes())

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath) or len(self) != len(other):
            return False
        return all(
            left._has_same_last_step(right) for left, right in zip(self._prefixes(), other._prefixes(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return "".join(path._suffix() for path in self._prefixes())

    __repr__ = __str__

    def get_prefix(self, length: int) -> ObjectPath:
        """Return the path of the first `length` places, the root included.

        Raises:
            IndexError: `length` is not from 1 to the length of this path.
        """
        if not 1 <= length <= len(self):
            raise IndexError(f"prefixes of {self} have 1 to {len(self)} places, not {length}")
        return self._prefixes()[length - 1]

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Return whether the other path is this one or below it."""
        return len(self) <= len(other) and self == other.get_prefix(len(self))

    def to_text(self, root: Any) -> str:
        """Return the path in Tilewright's notation for this program. If the program lacks it, return the longest prefix
        that it has."""
        text, at = "<root>", root
        for step in self._prefixes()[1:]:
            around, at = at, _at(at, step)
            if at is _Nothing:
                break
            if isinstance(step, MapValuePath):
                named = all(isinstance(key, str) and not _is_function(key) for key in around)
                text += f"['{step.key}']" if named else f"[{_entry(around, step.key)}]"
            else:
                text += step._suffix()
        return text

    @staticmethod
    def from_text(root: Any, text: str) -> ObjectPath:
        """Return the path for Tilewright's notation in this program."""
        path, at = ObjectPath.root(), root
        for name, index, key in _STEP.findall(text.removeprefix("<root>")):
            if name:
                path = path.attr(name)
            elif key:
                known = isinstance(at, Mapping) and _entry(at, key) is not None
                path = path.map_value(key) if known else path.missing_map_entry()
            elif isinstance(at, Mapping):
                keys = list(at)
                path = path.map_value(keys[int(index)]) if int(index) < len(keys) else path.missing_map_entry()
            else:
                path = path.array_index(int(index))
            at = _at(at, path)
        return path

    def value_in(self, root: Any) -> Any:
        """Return the node of a program at the path; None if there is none."""
        at = root
        for step in self._prefixes()[1:]:
            at = _at(at, step)
        return None if at is _Nothing else at


class RootPath(ObjectPath):
    """The program itself."""

    def _suffix(self) -> str:
        return str(self.key or "<root>")


class AttributeAccessPath(ObjectPath):
    """A field of a node."""

    def _suffix(self) -> str:
        return f".{self.key}"


class UnknownAttributeAccessPath(ObjectPath):
    """A field of a node that is not known; it equals no other one."""

    def _suffix(self) -> str:
        return ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """An element of a list."""

    def _suffix(self) -> str:
        return f"[{self.key}]"


class MissingArrayElementPath(ObjectPath):
    """An element that only another list has."""

    def _suffix(self) -> str:
        return f"[<missing element #{self.key}>]"


class MapValuePath(ObjectPath):
    """The value of a dict under a key."""

    def _suffix(self) -> str:
        if _is_function(self.key):
            return f"[I.GlobalVar({json.dumps(self.key.name_hint)})]"
        return f"[{json.dumps(self.key)}]" if isinstance(self.key, str) else f"[{self.key}]"


class MissingMapEntryPath(ObjectPath):
    """An entry that only another dict has."""

    def _suffix(self) -> str:
        return "[<missing entry>]"


class ObjectPathPair(NamedTuple):
    """Paths to two nodes that are compared."""

    lhs_path: ObjectPath
    rhs_path: ObjectPath

    @staticmethod
    def of_text(lhs: Any, rhs: Any, text: str) -> ObjectPathPair:
        """Return the paths of the difference that Tilewright found in two programs. If only one of two lists or dicts
        has an entry, they end there."""
        left, right = (ObjectPath.from_text(root, text) for root in (lhs, rhs))
        here, there = left.value_in(lhs), right.value_in(rhs)
        if isinstance(here, list | tuple) and isinstance(there, list | tuple) and len(here) != len(there):
            return ObjectPathPair(*_length_mismatch(left, right, len(here), len(there)))
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            for key in [key for key in here if _entry(there, key) is None]:
                return ObjectPathPair(left.map_value(key), right.missing_map_entry())
            for key in [key for key in there if _entry(here, key) is None]:
                return ObjectPathPair(left.missing_map_entry(), right.map_value(key))
        return ObjectPathPair(left, right)


def _length_mismatch(left: ObjectPath, right: ObjectPath, here: int, there: int) -> tuple[ObjectPath, ObjectPath]:
    """Return the path of the first element of the longer list, and that of the missing element in the other one."""
    if here > there:
        return left.array_index(there), right.missing_array_element(there)
    return left.missing_array_element(here), right.array_index(here)
