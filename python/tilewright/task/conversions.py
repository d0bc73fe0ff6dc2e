"""What steps of a schedule make of the parameters of a function: other layouts, and other formats.

Two programs whose parameters differ are compared on the same data: arguments are converted for the one that has been
scheduled, and its results are converted back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

#: what padding holds of which nothing is said
UNTOLD = 77


class ConvertedArguments(Protocol):
    """The arguments of one call, as the function takes them after a step.

    Attributes:
        arguments: an array or a number for each parameter.
    """

    arguments: list[Any]

    def results_back(self, results: Sequence[Any]) -> list[Any]:
        """Return what the parameters before the step hold, from what those after it hold."""

    def element(self, position: int, point: Point) -> tuple[int, Point] | None:
        """Return where an element of a parameter before the step is after it; None where it is nowhere."""


class Conversion(Protocol):
    """What a step makes of parameters.

    Attributes:
        step: its number in the trace.
        sizes: of the function before the step, which the step depends on.
    """

    step: int
    sizes: Mapping[Any, int]

    def convert(self, arguments: Sequence[Any]) -> ConvertedArguments:
        """Return the arguments after the step.

        Raises:
            tilewright.ArgumentError: the step cannot hold these.
        """

    def fitted(self, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return other arrays for parameters, by position, with fewer elements, which the step can hold; none where
        that is not known."""


#: conversions by the kind of the step: from a schedule up to the step, that with it, and the step's number
Maker = Callable[[Any, Any, int, str], Sequence[Conversion]]
_makers: dict[str, Maker] = {}


def set_conversion(kind: str, maker: Maker) -> None:
    """Install what finds the conversions of steps of a kind. Packages above this one do so, when they are imported."""
    _makers[kind] = maker


def conversions_of(schedule: Schedule, name: str) -> list[Conversion]:
    """Return what the steps of a schedule make of the parameters of a function, in their order.

    Raises:
        tilewright.ArgumentError: the parameters of a step cannot be converted ("schedule/not-verified").
    """
    found: list[Conversion] = []
    for at, step in enumerate(schedule.trace.insts):
        maker = _makers.get(step.kind.name)
        if maker is None:
            continue
        # One goes on from the other: a buffer that the step leaves alone is the same object in both.
        start = schedule.with_trace(prefix(schedule, at))
        found += maker(start, start.with_trace(prefix(schedule, at + 1)), at, name)
    return found


def prefix(schedule: Schedule, count: int) -> Trace:
    """Return the first steps of a schedule, with their decisions."""
    kept = set(schedule.trace.insts[:count])
    decisions = {step: decision for step, decision in schedule.trace.decisions.items() if step in kept}
    return type(schedule.trace)(schedule.trace.insts[:count], decisions)


class _Layout:
    """The layout that a step has given a parameter."""

    def __init__(self, step: int, position: int, index_map: ir.IndexMap, padding: Any) -> None:
        self.step, self.position, self.index_map, self.padding = step, position, index_map, padding
        self.sizes: dict[Any, int] = {}

    def convert(self, arguments: Sequence[Any]) -> _InLayout:
        """Return the arguments with the array in the layout."""
        return _InLayout(self, arguments)

    def fitted(self, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return nothing: a layout holds all arrays."""
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
    """The parameters that have another layout after a step ``transform_layout``."""
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
        yield _Layout(at, position, index_map, UNTOLD if padding is None else padding)


set_conversion("TransformLayout", lambda *args: list(_layouts(*args)))
