"""tvm.tir.data_layout: layouts of tensors by name, such as "NCHW16c"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import as_expr
from tilewright.script.tir import intrinsics

__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]

_UNDEFINED = "__undef__"


class Layout:
    """Dimensions by letter: "C" is an axis, "16c" the inner part of it, of that size."""

    def __init__(self, name: str, dtype: str = "int32") -> None:
        self.name = name
        self._axes: list[tuple[str, int | None]] = []
        if name in (_UNDEFINED, ""):
            self.name = _UNDEFINED
            return
        if re.fullmatch(r"(?:[A-Z]|[1-9]\d*[a-z])+", name) is None:
            raise ValueError(
                f"{name!r} is not a layout: an upper-case letter for each axis, a size before a lower-case one"
            )
        for size, letter in re.findall(r"(\d*)([A-Za-z])", name):
            if letter in self:
                raise ValueError(f"{name!r} is not a layout: it has two axes {letter}")
            self._axes.append((letter, int(size) if size else None))
        for letter, _ in self._axes:
            if letter.islower() and letter.upper() not in self:
                raise ValueError(f"{name!r} is not a layout: it has {letter}, a part of an axis that is not there")
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self._axes)

    def __contains__(self, axis: str) -> bool:
        return any(letter == axis for letter, _ in self._axes)

    def __getitem__(self, index: int) -> str:
        if index >= len(self):
            raise IndexError("Layout index out of range")
        return self._axes[index][0]

    @property
    def axes(self) -> list[Any]:
        """Return an iteration variable for each dimension; the extent of an axis of unknown size is a variable."""
        made = []
        for letter, size in self._axes:
            extent: Any = size
            if size is None:
                inner = self.factor_of(letter)
                extent = intrinsics.Var(f"{letter}_shape", self._dtype)
                extent = extent if inner < 0 else _core.floordiv(extent, inner)
            zero, kind = _core.const(0, self._dtype), _core.IterType.DATA_PAR
            made.append(_core.IterVar(_core.Range(zero, extent), intrinsics.Var(letter, self._dtype), kind, ""))
        return made

    def index_of(self, axis: str) -> int:
        """Return the dimension of an axis; -1 if there is none."""
        return next((i for i, (letter, _) in enumerate(self._axes) if letter == axis), -1)

    def factor_of(self, axis: str) -> int:
        """Return the size of the inner part of an axis, given by either letter; -1 if it has none."""
        return next((size for letter, size in self._axes if letter == axis.lower() and size is not None), -1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Layout({self.name})"


@dataclass(eq=False)
class BijectiveLayout:
    """How indices and shapes in one layout become those in another one of the same axes."""

    src_layout: Layout
    dst_layout: Layout

    def forward_index(self, index: Sequence[Any]) -> list[Any]:
        """Return the index in the second layout."""
        return _index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[Any]:
        """Return the index in the first layout."""
        return _index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """Return the shape in the second layout."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """Return the shape in the first layout."""
        return _shape(self.dst_layout, self.src_layout, shape)

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}->{self.dst_layout.name})"


def _whole_axes(source: Layout, values: Sequence[Any]) -> dict[str, Any]:
    """Return the index along each axis, including its inner part."""
    if len(values) != len(source):
        raise ValueError(f"{source.name} has {len(source)} dimensions, not {len(values)}")
    given = {letter: as_expr(value, "int32") for (letter, _), value in zip(source._axes, values, strict=True)}
    whole = {}
    for letter, value in given.items():
        if letter.isupper():
            inner = given.get(letter.lower())
            whole[letter] = value if inner is None else value * source.factor_of(letter) + inner
    return whole


def _index(source: Layout, target: Layout, values: Sequence[Any]) -> list[Any]:
    analyzer, whole, made = _core.Analyzer(), _whole_axes(source, values), []
    for letter, size in target._axes:
        value, factor = whole[letter.upper()], target.factor_of(letter)
        if size is not None:
            value = _core.floormod(value, size)
        elif factor > 0:
            value = _core.floordiv(value, factor)
        made.append(analyzer.simplify(value))
    return made


def _shape(source: Layout, target: Layout, values: Sequence[Any]) -> list[Any]:
    if len(values) != len(source):
        raise ValueError(f"{source.name} has {len(source)} dimensions, not {len(values)}")
    analyzer, made = _core.Analyzer(), []
    for letter, size in target._axes:
        if size is not None:
            made.append(_core.const(size, "int32"))
            continue
        extent = as_expr(values[source.index_of(letter)], "int32")
        inner, factor = source.factor_of(letter), target.factor_of(letter)
        extent = extent if inner < 0 else extent * inner
        made.append(analyzer.simplify(extent if factor < 0 else _core.ceildiv(extent, factor)))
    return made


def layout(layout_str: str, dtype: str = "int32") -> Layout:
    """Return the layout with this name."""
    return Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """Return the conversion between two layouts; None if they have different axes."""
    source, target = (item if isinstance(item, Layout) else Layout(item) for item in (src_layout, dst_layout))
    axes = [{letter for letter, size in item._axes if size is None} for item in (source, target)]
    if not axes[0] or axes[0] != axes[1]:
        return None
    return BijectiveLayout(source, target)
