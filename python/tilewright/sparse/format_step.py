"""Conversion of arguments for ``sch.verify()`` of schedules with ``sch.decompose_format``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.sparse.conversion import convert_structure
from tilewright.sparse.decompose import DecomposedProgram, decompose_format
from tilewright.sparse.format_rule import Nonzeros
from tilewright.sparse.templates import rules_of_step
from tilewright.task.conversions import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.schedule import Schedule

    Array = NDArray[Any]


class Elements:
    """Coordinates and positions of the elements of a sparse buffer.

    Attributes:
        coordinates: for each axis, the coordinate of each element.
        at: the flat position of each element in the array of the buffer, in C order.
        parents: for each element, the position along the parent of the last axis.
    """

    def __init__(self, tensor: ir.Buffer, arrays: dict[Any, Array], analyzer: _core.Analyzer) -> None:
        """`arrays`: the arguments by data variable of their buffers; `analyzer` knows the values of all sizes."""
        positions: dict[Any, Array] = {}  # by axis: global positions, over all positions of its parent
        steps: dict[Any, Array] = {}  # by axis: positions relative to the beginning of the parent's segment
        self.parents = np.zeros(1, "int64")
        for axis in tensor.axes:
            size = len(self.parents)
            self.parents = positions.get(axis.parent, np.zeros(size, "int64"))
            if axis.indptr is not None:
                offsets = arrays[axis.indptr.data].astype("int64")
                begins, counts = offsets[self.parents], np.diff(offsets)[self.parents]
            else:
                count = _number(axis.nnz_cols, analyzer)
                begins, counts = self.parents * count, np.full(size, count)
            element = np.repeat(np.arange(size), counts)
            positions, steps = ({a: known[element] for a, known in of.items()} for of in (positions, steps))
            steps[axis] = np.arange(len(element)) - np.repeat(np.cumsum(counts) - counts, counts)
            positions[axis] = begins[element] + steps[axis]
            self.parents = self.parents[element]
        self.coordinates = [
            steps[axis] if axis.indices is None else arrays[axis.indices.data][positions[axis]] for axis in tensor.axes
        ]
        self.at = np.zeros(len(self.parents), "int64")
        for extent, number in zip(arrays[tensor.data].shape, _core.stored_axes(tensor), strict=True):
            axis = tensor.axes[number]
            self.at = self.at * extent + (positions if axis.indptr is not None else steps)[axis]


def _number(size: Any, analyzer: _core.Analyzer) -> int:
    known = analyzer.simplify(size)
    assert isinstance(known, ir.IntImm)
    return int(known.value)


class _FormatStep:
    """A step ``decompose_format`` of a function."""

    def __init__(self, at: int, func: ir.PrimFunc, program: DecomposedProgram, shape: Sequence[int]) -> None:
        self.step, self.func, self.program, self.shape = at, func, program, tuple(shape)
        self.tensor = program.tensor
        self.position = self._positions()[self.tensor.data]
        self.sizes = {
            axis.length: extent
            for axis, extent in zip(self.tensor.axes, self.shape, strict=False)
            if isinstance(axis.length, ir.Var)
        }

    def elements(self, arguments: Sequence[Any]) -> Elements:
        """Return the elements of the tensor for the arguments of a call."""
        analyzer, arrays = _core.Analyzer(), {}
        bound = set()
        for param, value in zip(self.func.params, arguments, strict=True):
            buffer = self.func.buffer_map.get(param)
            pairs = [(param, value)] if buffer is None else list(zip(buffer.shape, np.shape(value), strict=True))
            if buffer is not None:
                arrays[buffer.data] = value
            for variable, number in pairs:
                if isinstance(variable, ir.Var) and isinstance(number, int) and variable not in bound:
                    bound.add(variable)
                    analyzer.bind(variable, _core.const(number, variable.dtype))
        return Elements(self.tensor, arrays, analyzer)

    def convert(self, arguments: Sequence[Any]) -> _InFormat:
        """Convert the arguments of a call to the formats."""
        return _InFormat(self, arguments)

    def fitted(self, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return offsets and indices of the nonzeros that the formats can store."""
        axis = self.tensor.axes[-1]
        if axis.indices is None:
            return {}
        if axis.indptr is None:
            return self._distinct(axis, arguments)
        elements = self.elements(arguments)
        order = np.lexsort(elements.coordinates[::-1])
        coordinates = [along[order] for along in elements.coordinates]
        kept = np.sort(order[_held(self.program, self.shape, coordinates)])
        positions = self._positions()
        at_offsets, at_indices = positions[axis.indptr.data], positions[axis.indices.data]
        offsets = np.zeros_like(arguments[at_offsets])
        np.cumsum(np.bincount(elements.parents[kept], minlength=len(offsets) - 1), out=offsets[1:])
        return {at_offsets: offsets, at_indices: elements.coordinates[-1][kept]}

    def _positions(self) -> dict[Any, int]:
        """Return the positions of parameters that are buffers, by their data."""
        buffers = enumerate(self.func.buffer_map.get(p) for p in self.func.params)
        return {buffer.data: i for i, buffer in buffers if buffer is not None}

    def _distinct(self, axis: Any, arguments: Sequence[Any]) -> dict[int, Array]:
        """Return ascending indices without duplicates for a tensor whose rows have one fixed length."""
        at = self._positions()[axis.indices.data]
        count = np.bincount(self.elements(arguments).parents).max(initial=0)
        if not 0 < count <= self.shape[-1]:
            return {}
        place = np.arange(count, dtype=arguments[at].dtype)
        rows = np.sort(arguments[at].reshape(-1, count), axis=1)
        rows = np.maximum.accumulate(rows - place, axis=1) + place
        rows = np.minimum(rows, place + (self.shape[-1] - count))
        return {at: rows.astype(arguments[at].dtype).reshape(arguments[at].shape)}


def _held(program: DecomposedProgram, shape: tuple[int, ...], coordinates: Sequence[Array]) -> Array:
    """Return the nonzeros without duplicates that exactly one rule takes and whose keys are within its axes."""
    is_new = np.ones(len(coordinates[0]), bool)
    is_new[1:] = np.any([along[1:] != along[:-1] for along in coordinates], axis=0)
    for extent, along in zip(shape, coordinates, strict=True):
        is_new &= along < extent
    kept = np.flatnonzero(is_new)
    while True:
        here = [along[kept].astype("int64") for along in coordinates]
        nonzeros = Nonzeros(shape, here, np.arange(len(kept)), int(np.prod(shape[:-1], dtype="int64")))
        times, fits = np.zeros(len(kept), "int64"), np.ones(len(kept), bool)
        for rule in program.rules:
            taken = rule.taken(nonzeros)
            times[taken.position] += 1
            for axis, entry in zip(rule.axes, rule.entries(taken), strict=True):
                key = np.broadcast_to(entry[0] if isinstance(entry, tuple) else entry, taken.position.shape)
                wrong = (key < 0) | ((key >= axis.extent) if axis.kind == "dense" else False)
                fits[taken.position[wrong]] = False
        fits &= times == 1
        if fits.all():
            return kept
        kept = kept[fits]


class _InFormat:
    """The arguments of a call, converted to the formats.

    Attributes:
        arguments: an array or a number for each parameter.
        converted: the structure in the formats.
        elements_at: the positions of the parameters that hold the elements.
    """

    def __init__(self, step: _FormatStep, arguments: Sequence[Any]) -> None:
        self._step, self._tensor = step, arguments[step.position]
        elements = step.elements(arguments)
        order = np.lexsort(elements.coordinates[::-1])
        self._at = elements.at[order]
        dtype = step.tensor.axes[-1].idtype
        coordinates = [along[order].astype(dtype) for along in elements.coordinates]
        self.converted = convert_structure(step.program.rules, step.shape, coordinates)
        stored = self.converted.convert_values(self._tensor.reshape(-1)[self._at])
        self.elements_at = step.program.positions_of_elements()
        kept = [value for i, value in enumerate(arguments) if i != step.position]
        self.arguments = kept + step.program.arguments(self.converted, stored)

    def results_back(self, results: Sequence[Any]) -> list[Any]:
        """Convert results back: gather the elements of the tensor from all formats."""
        step = self._step
        stored = [results[at].reshape(-1) for at in step.program.positions_of_elements()]
        tensor = self._tensor.copy()
        tensor.reshape(-1)[self._at] = self.converted.values_back(stored)
        back = list(results[: len(step.func.params) - 1])
        return [*back[: step.position], tensor, *back[step.position :]]

    def element(self, position: int, point: Point) -> tuple[int, Point] | None:
        """Return the parameter and the index of an element in its format."""
        step = self._step
        if position != step.position:
            return position - (position > step.position), point
        nonzero = np.flatnonzero(self._at == np.ravel_multi_index(point, self._tensor.shape))
        for at, part in zip(step.program.positions_of_elements(), self.converted.parts, strict=True):
            slot = np.flatnonzero(np.isin(part.source, nonzero))
            if len(slot):
                there = np.unravel_index(slot[0], self.arguments[at].shape)
                return at, tuple(int(i) for i in there)
        return None


def _formats(before: Schedule, after: Schedule, at: int, name: str) -> Iterator[_FormatStep]:
    """Yield the step if it applies to the function."""
    step = after.trace.insts[at]
    if step.attrs[3] != name:
        return
    func = before.mod.functions[name]
    assert isinstance(func, ir.PrimFunc)
    rules, parameters = rules_of_step(after, step)
    program = decompose_format(func, str(step.attrs[0]), rules)
    yield _FormatStep(at, func, program, parameters[: len(program.tensor.axes)])


def conversions_of_step(before: Schedule, after: Schedule, at: int, name: str) -> list[_FormatStep]:
    """Return the conversions of a function's parameters by a step ``decompose_format``."""
    return list(_formats(before, after, at, name))
