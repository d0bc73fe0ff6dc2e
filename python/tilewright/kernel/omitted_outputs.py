"""Parameters that a call of a kernel leaves out: those that are only written are allocated and returned."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError, Error
from tilewright.support.numpy_dtype import lanes_of, numpy_dtype
from tilewright.task.arguments import aligned_zeros
from tilewright.task.parameter_names import labels_of, names_of_parameters


@dataclass(frozen=True)
class Call:
    """How a kernel is called.

    Attributes:
        function: its parameters, of a function whose body does not matter.
        outputs: the positions of buffers among the parameters that are only written.
    """

    function: Any
    outputs: frozenset[int]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all parameters: of the buffer, where one is a handle."""
        return names_of_parameters(self.function)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Of all parameters, for messages: names that tell them apart."""
        return labels_of(self.function)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The positions of parameters that are no outputs."""
        return tuple(position for position in range(len(self.names)) if position not in self.outputs)

    @cached_property
    def handles(self) -> tuple[str, ...]:
        """The names of the parameters themselves, also where a buffer has another one."""
        return tuple(str(param.name_hint) for param in self.function.params)

    @cached_property
    def arrays(self) -> dict[int, tuple[Any, np.dtype[Any]]]:
        """The shape and the type of the array for each output; of sizes that are left open, no shape."""
        found = {}
        for position in self.outputs:
            buffer = self.buffer(position)
            known = [int(extent.value) for extent in buffer.shape if isinstance(extent, _core.IntImm)]
            is_open = len(known) < len(buffer.shape)
            shape = None if is_open else [*known, *_lane_extents(buffer)]
            found[position] = (shape, numpy_dtype(lanes_of(buffer.dtype)[0]))
        return found

    def buffer(self, position: int) -> Any:
        """What a parameter holds; None for a number."""
        return self.function.buffer_map.get(self.function.params[position])

    def position(self, name: str) -> int | None:
        """The parameter that a keyword means: by its own name, or that of its handle. None where it means none, or
        one of several."""
        for names in (self.names, self.handles):
            if name in names:
                return names.index(name) if names.count(name) == 1 else None
        return None


def call_of(function: Any) -> Call:
    """Of a kernel whose function is at hand."""
    return Call(function, frozenset(outputs_of(function)))


def calls_text(module: Any, lowered: Any) -> str:
    """What a library notes of its kernels, which :func:`calls_from` reads: by their names there."""
    found = {}
    for key, below in lowered.functions.items():
        if "global_symbol" not in below.attrs or key not in module.functions:
            continue
        call = call_of(module.functions[key])
        bare = call.function.with_body(_core.Evaluate(_core.const(0, "int32")))
        for attribute in bare.attrs:
            bare = bare.without_attr(attribute)
        names = sorted({call.names[position] for position in call.outputs})
        found[str(below.attrs["global_symbol"])] = {
            # Libraries of earlier versions, and these for earlier versions, say it by name.
            **{"outputs": names, "positions": sorted(call.outputs)},
            "function": ir.save_json(bare),
        }
    return json.dumps(found)


def calls_from(text: str) -> dict[str, Call]:
    """By the names of kernels; nothing of a library that does not tell."""
    try:
        known = json.loads(text or "{}").items()
        return {name: _call_from(call) for name, call in known}
    except (ValueError, TypeError, KeyError, AttributeError, Error):
        return {}


def _call_from(noted: Mapping[str, Any]) -> Call:
    function = ir.load_json(noted["function"])
    names = names_of_parameters(function)
    by_name = [position for position, name in enumerate(names) if name in noted["outputs"]]
    return Call(function, frozenset(int(position) for position in noted.get("positions", by_name)))


def complete(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """All arguments in the order of the parameters, and those among them that were made here.

    Positional arguments are those of the parameters that are read; where more are given, of all parameters in order.
    None where something else than an output is missing.

    Raises:
        tilewright.ArgumentError: the size of an output does not follow from the arguments.
    """
    values = by_position(call, args, named)
    if not call.outputs or values is None:
        return None
    every = range(len(call.names))
    missing = [position for position in every if position not in values]
    if not missing or not call.outputs.issuperset(missing):
        return None
    made = {}
    for position in missing:
        shape, dtype = call.arrays[position]
        zeros = aligned_zeros(_shape_for(call, position, values) if shape is None else shape, dtype)
        made[position] = as_given(zeros, values.values())
    return [values[position] if position in values else made[position] for position in every], list(made.values())


def missing_inputs(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> list[str]:
    """The parameters that are not outputs, and that a call gives nothing for; none where it cannot be understood."""
    values = by_position(call, args, named)
    return [] if values is None else [call.labels[position] for position in call.inputs if position not in values]


def by_position(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> dict[int, Any] | None:
    """The arguments by the positions of their parameters; None for a name that is unknown, ambiguous or given twice, or
    for too many arguments."""
    values: dict[int, Any] = {}
    for name, value in named.items():
        position = call.position(name)
        if position is None or position in values:
            return None
        values[position] = value
    every = call.inputs if len(args) <= len(call.inputs) else range(len(call.names))
    free = [position for position in every if position not in values]
    return None if len(args) > len(free) else {**values, **dict(zip(free, args, strict=False))}


def as_given(array: Any, arguments: Iterable[Any]) -> Any:
    """The same memory as a tensor of PyTorch, where all that is given and no number is one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return array
    tensors = [value for value in arguments if hasattr(value, "shape") and not isinstance(value, np.generic)]
    if not tensors or not all(isinstance(value, torch.Tensor) for value in tensors):
        return array
    if array.dtype.isbuiltin == 1:
        return torch.from_dlpack(array)
    # What DLPack does not know as NumPy's goes by way of the bytes.
    dtype = getattr(torch, array.dtype.name, None)
    return array if dtype is None else torch.from_dlpack(array.view(f"u{array.itemsize}")).view(dtype)


def outputs_of(function: Any) -> set[int]:
    """The positions of parameters that are only written: what the function reads of them it wrote before."""
    try:
        facts = _core.analyze_workload(function)
    except Error:  # of sizes that are not constant less is known
        return _never_read(function)
    return set(_positions_of(facts, "output"))


def _positions_of(facts: Mapping[str, Any], role: str) -> list[int]:
    """Of the parameters of a role, by what is known of the workload: all of them are arrays then."""
    return [position for position, (_, _, _, other) in enumerate(facts["params"]) if other == role]


def read_and_written(function: Any) -> list[str]:
    """The labels of parameters that are written, and read before."""
    try:
        facts = _core.analyze_workload(function)
    except Error:
        return []
    labels = labels_of(function)
    return [labels[position] for position in _positions_of(facts, "inout")]


def _never_read(function: Any) -> set[int]:
    """The positions of parameters that are written, and read at most by the reductions that begin them."""
    written: set[Any] = set()
    loads: dict[Any, Any] = {}  # a load, or another use that may be one -> its buffer
    own: set[Any] = set()  # loads by the block that writes the first value of their buffer
    by_data = {buffer.data: buffer for buffer in function.buffer_map.values()}

    def collect(node: Any) -> None:
        if isinstance(node, _core.BufferLoad):
            loads[node] = node.buffer
        elif isinstance(node, _core.BufferStore):
            written.add(node.buffer)
        elif isinstance(node, _core.MatchBufferRegion):
            loads[node] = node.source.buffer
        elif isinstance(node, _core.Call):
            loads.update(
                {(node, arg): by_data[arg] for arg in node.args if isinstance(arg, _core.Var) and arg in by_data}
            )
        elif isinstance(node, _core.Block) and node.init is not None:
            begun = {store.buffer for store in _all(node.init, _core.BufferStore)}
            own.update(load for load in _all(node.body, _core.BufferLoad) if load.buffer in begun)

    _core.visit(function.body, collect)
    read = {buffer for load, buffer in loads.items() if load not in own}
    buffers = [function.buffer_map.get(param) for param in function.params]
    return {position for position, b in enumerate(buffers) if b is not None and b in written and b not in read}


def _all(root: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    _core.visit(root, lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def _shape_for(call: Call, position: int, values: Mapping[int, Any]) -> list[int]:
    """Of an output whose sizes are those of the arguments, or numbers among them."""
    sizes = _sizes(call, values)
    buffer, label = call.buffer(position), call.labels[position]
    return [*(_number(extent, sizes, label) for extent in buffer.shape), *_lane_extents(buffer)]


def _lane_extents(buffer: Any) -> list[int]:
    """The dimension that an array has besides, where elements are vectors."""
    _, lanes = lanes_of(buffer.dtype)
    return [lanes] if lanes > 1 else []


def _sizes(call: Call, values: Mapping[int, Any]) -> dict[Any, Any]:
    """What the sizes are, by the shapes of the arguments and by the numbers among them."""
    sizes: dict[Any, Any] = {}
    for position, param in enumerate(call.function.params):
        value = values.get(position)
        buffer = call.buffer(position)
        if value is None:
            continue
        if buffer is None:
            if isinstance(value, int | np.integer):
                sizes[param] = _core.const(int(value), param.dtype)
            continue
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
        for extent, size in zip(buffer.shape, shape, strict=False):
            if isinstance(extent, _core.Var):
                sizes[extent] = _core.const(int(size), extent.dtype)
    return sizes


def _number(extent: Any, sizes: dict[Any, Any], name: str) -> int:
    from tilewright.arith import Analyzer

    known: Any = _core.substitute(extent, sizes)
    value = Analyzer().simplify(known)
    if not isinstance(value, _core.IntImm):
        raise ArgumentError(
            f"the size of {name}, {extent}, does not follow from the other arguments\n  hint: pass an array for {name}"
        )
    return int(value.value)
