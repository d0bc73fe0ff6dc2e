"""Distinct names for parameters and open sizes.

A parameter is its position; its name is for people, and several may have the same one. Where arrays are kept by name,
it is the label: the name itself where no other parameter has it, else the name with the position behind it (``A#0``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError


def names_of_parameters(function: Any) -> tuple[str, ...]:
    """The names, in order: those of the buffers, where parameters are handles."""
    buffers = function.buffer_map
    return tuple(str(getattr(buffers.get(param), "name", param.name_hint)) for param in function.params)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Each name, with its position behind it where it is there several times; no two are the same.

    >>> distinct(["A", "B", "A"])
    ('A#0', 'B', 'A#2')
    """
    counts = Counter(names)
    labels = []
    for position, name in enumerate(names):
        label = name if counts[name] == 1 else f"{name}#{position}"
        while label != name and label in counts:
            label += "'"
        labels.append(label)
    return tuple(labels)


def labels_of(function: Any) -> tuple[str, ...]:
    """The label of each parameter, in order."""
    return distinct(names_of_parameters(function))


def scalars_of(function: Any) -> dict[str, Any]:
    """The parameters that are no arrays, by label."""
    labeled = zip(labels_of(function), function.params, strict=True)
    return {label: p for label, p in labeled if p not in function.buffer_map and p.dtype != "handle"}


def extents_of(function: Any) -> dict[str, Any]:
    """The sizes that shapes of parameters leave open, by label: the name where no other size and no scalar has it, else
    the name, the position of the first parameter that has this size, and its dimension (``n#0.1``)."""
    labels: dict[Any, str] = dict(zip(function.params, labels_of(function), strict=True))
    first: dict[Any, str] = {}
    for position, param in enumerate(function.params):
        buffer = function.buffer_map.get(param)
        for dimension, extent in enumerate(() if buffer is None else buffer.shape):
            if isinstance(extent, _core.Var):
                first.setdefault(extent, f"{extent.name}#{position}.{dimension}")
    counts = Counter([*(v.name for v in first if v not in labels), *(v.name for v in scalars_of(function).values())])
    own = {v: v.name if counts[v.name] == 1 else place for v, place in first.items()}
    return {labels.get(v, label): v for v, label in own.items()}


def position_of(function: Any, name: str) -> int | None:
    """The parameter that a name means: of a buffer, or else of the handle that holds one. None where it means none.

    Raises:
        tilewright.ArgumentError: several parameters have the name.
    """
    handles = [param.name_hint for param in function.params]
    for names in (names_of_parameters(function), labels_of(function), handles):
        found = [position for position, other in enumerate(names) if other == name]
        if len(found) > 1:
            raise ambiguous(name, found)
        if found:
            return found[0]
    return None


def ambiguous(name: str, positions: Iterable[int]) -> ArgumentError:
    """The refusal of a name that several parameters have."""
    which = [str(position) for position in positions]
    return ArgumentError.of(
        "arguments/ambiguous",
        f"'{name}' names the parameters {', '.join(which[:-1])} and {which[-1]}, counted from 0",
        f"say which one by its position: inputs={{{which[0]}: ...}}; in a call, pass them in order",
    )


def by_label(function: Any, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return arguments by the labels of parameters, given by names or positions; other keys stay as they are.

    Raises:
        tilewright.ArgumentError: several parameters have a name, one is given twice, or there is no such position.
    """
    labels = labels_of(function)
    found: dict[Any, Any] = {}
    for key, value in given.items():
        if isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(labels):
                raise ArgumentError.of(
                    "arguments/position",
                    f"there is no parameter {key}",
                    f"the {len(labels)} parameters ({', '.join(labels)}) are counted from 0",
                )
            position: int | None = key
        else:
            position = position_of(function, str(key))
        label = str(key) if position is None else labels[position]
        if label in found:
            raise ArgumentError.of("arguments/twice", f"'{label}' is given twice", "give each parameter once")
        found[label] = value
    return found
