"""Conversions of arguments for schedules that change parameters: layouts and sparse formats.

``sch.verify()`` compares two programs on the same data. If a step changes the layout or format of a parameter, the
arguments are converted for the scheduled program, and its results are converted back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tilewright import ir
from tilewright.errors import ArgumentError
from tilewright.task.index_map import map_array, map_array_back, map_points
from tilewright.task.parameter_names import labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.schedule import Schedule, Trace

    Array = NDArray[Any]

Point = tuple[int, ...]

#: value of padding if the step does not specify one
UNSPECIFIED_PADDING = 77


class ConvertedArguments(Protocol):
    """The arguments of one call, converted for the function after a step.

    Attributes:
        arguments: an array or a number for each parameter.
    """

    arguments: list[Any]

    def results_back(self, results: Sequence[Any]) -> list[Any]:
        """Convert results of the function after the step back to the parameters before it."""

    def element(self, position: int, point: Point) -> tuple[int, Point] | None:
        """Return the parameter and index after the step of an element before it; None if it is not stored."""


class Conversion(Protocol):
    """The change of parameters by a step.

    Attributes:
        step: the number of the step in the trace.
        sizes: values of symbolic sizes of the function before the step that the step fixes.
    """

    step: int
    sizes: Mapping[Any, int]

    def convert(self, arguments: Sequence[Any]) -> ConvertedArguments:
        """Return the arguments after the step.

        Raises:
            tilewright.ArgumentError: the format after the step cannot store the arguments.
        """

    def fitted(self, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return replacement arrays by position of the parameter, reduced to elements that the new format can store.

        Returns an empty dict if the arguments need no reduction, or if this is not known.
        """


#: function that returns the conversions of a kind of step. Its arguments: the schedule before the step, the schedule
#: with the step, the number of the step, and the name of the function
Maker = Callable[[Any, Any, int, str], Sequence[Conversion]]
_makers: dict[str, Maker] = {}


def set_conversion(kind: str, maker: Maker) -> None:
    """Register the conversions for a kind of step. Packages above this one register theirs at import."""
    _makers[kind] = maker


def conversions_of(schedule: Schedule, name: str) -> list[Conversion]:
    """Return the conversions of a function's parameters by the steps of a schedule, in order.

    Raises:
        tilewright.ArgumentError: the parameters of a step cannot be converted ("schedule/not-verified").
    """
    found: list[Conversion] = []
    for at, step in enumerate(schedule.trace.insts):
        maker = _makers.get(step.kind.name)
        if maker is None:
            continue
        # The second schedule extends the first, so unchanged buffers are the same objects in both.
        start = schedule.with_trace(prefix(schedule, at))
        found += maker(start, start.with_trace(prefix(schedule, at + 1)), at, name)
    return found


def prefix(schedule: Schedule, count: int) -> Trace:
    """Return the first steps of a schedule, with their decisions."""
    kept = set(schedule.trace.insts[:count])
    decisions = {step: decision for step, decision in schedule.trace.decisions.items() if step in kept}
    return type(schedule.trace)(schedule.trace.insts[:count], decisions)


@dataclass(eq=False)
class _Layout:
    """A step that changes the layout of one parameter."""

    step: int
    position: int
    index_map: ir.IndexMap
    padding: Any
    sizes: dict[Any, int] = field(default_factory=dict, init=False)

    def convert(self, arguments: Sequence[Any]) -> _InLayout:
        """Return the arguments with the array in the layout."""
        return _InLayout(self, arguments)

    def fitted(self, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return nothing: a layout can store every array."""
        return {}


class _InLayout:
    def __init__(self, layout: _Layout, arguments: Sequence[Any]) -> None:
        self.layout = layout
        before = arguments[layout.position]
        self.shape = before.shape
        self.arguments = list(arguments)
        self.arguments[layout.position] = map_array(layout.index_map, before, layout.padding)

    def results_back(self, results: Sequence[Any]) -> list[Any]:
        back = list(results)
        back[self.layout.position] = map_array_back(self.layout.index_map, results[self.layout.position], self.shape)
        return back

    def element(self, position: int, point: Point) -> tuple[int, Point] | None:
        if position != self.layout.position:
            return position, point
        return position, tuple(int(i) for i in map_points(self.layout.index_map, point))


def _layouts(before: Schedule, after: Schedule, at: int, name: str) -> Iterator[_Layout]:
    """Yield the parameters whose layout a `transform_layout` step changes."""
    step = after.trace.insts[at]
    start, end = before.mod.functions[name], after.mod.functions[name]
    assert isinstance(start, ir.PrimFunc) and isinstance(end, ir.PrimFunc)
    for position, (old, new) in enumerate(zip(start.params, end.params, strict=True)):
        was, now = start.buffer_map.get(old), end.buffer_map.get(new)
        if was is None or now is None or was.same_as(now):
            continue
        index_map, padding = step.inputs[1], step.attrs[2]
        if isinstance(padding, ir.IndexMap):
            raise ArgumentError.of(
                "schedule/not-verified",
                f"the schedule has changed the layout of the parameter {labels_of(start)[position]}, with a function "
                "of its indices as padding",
                "verify before that step",
            )
        yield _Layout(at, position, index_map, UNSPECIFIED_PADDING if padding is None else padding)


set_conversion("TransformLayout", lambda *args: list(_layouts(*args)))
