"""Distinct names for parameters and symbolic sizes.

A parameter is identified by its position. Its name is for people, and several parameters may have the same one. Arrays
are stored by label: the name if no other parameter has it, otherwise the name followed by the position (``A#0``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError


def names_of_parameters(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters in order; of handles, the names of their buffers."""
    buffers = function.buffer_map
    return tuple(str(getattr(buffers.get(param), "name", param.name_hint)) for param in function.params)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with the position appended to names that occur several times, so that all are distinct.

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
    """Return the label of each parameter, in order."""
    return distinct(names_of_parameters(function))


def scalars_of(function: Any) -> dict[str, Any]:
    """Return the scalar parameters by label."""
    labeled = zip(labels_of(function), function.params, strict=True)
    return {label: p for label, p in labeled if p not in function.buffer_map and p.dtype != "handle"}


def extents_of(function: Any) -> dict[str, Any]:
    """Return the symbolic sizes in shapes of parameters, by label: the name if no other size or scalar has it;
    otherwise the name, the position of the first parameter with this size, and its dimension (``n#0.1``)."""
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
    """Return the position of the parameter with a name, which may be a buffer's name or a handle's; None if there is
    none.

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
    """Return the error for a name that several parameters have."""
    which = [str(position) for position in positions]
    return ArgumentError.of(
        "arguments/ambiguous",
        f"'{name}' names the parameters {', '.join(which[:-1])} and {which[-1]}, counted from 0",
        f"say which one by its position: inputs={{{which[0]}: ...}}; in a call, pass them in order",
    )


def by_label(function: Any, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return arguments by the labels of parameters. In `given`, their keys are names or positions; other keys are kept.

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
