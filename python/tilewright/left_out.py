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
from tilewright.arguments import aligned_zeros
from tilewright.errors import ArgumentError, Error
from tilewright.numpy_dtype import lanes_of, numpy_dtype


@dataclass(frozen=True)
class Call:
    """How a kernel is called.

    Attributes:
        function: its parameters, of a function whose body does not matter.
        outputs: the names of buffers among the parameters that are only written.
    """

    function: Any
    outputs: frozenset[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all parameters: of the buffer, where one is a handle."""
        buffers = self.function.buffer_map
        return tuple(getattr(buffers.get(param), "name", param.name_hint) for param in self.function.params)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of parameters that are no outputs."""
        return tuple(name for name in self.names if name not in self.outputs)

    @cached_property
    def buffer_names(self) -> dict[str, str]:
        """The names of buffers by those of the handles that are other ones."""
        known = {param.name_hint: buffer.name for param, buffer in self.function.buffer_map.items()}
        return {handle: name for handle, name in known.items() if handle not in self.names}

    @cached_property
    def arrays(self) -> dict[str, tuple[Any, np.dtype[Any]]]:
        """The shape and the type of the array for each output; of sizes that are left open, no shape."""
        found = {}
        for buffer in self.function.buffer_map.values():
            if buffer.name in self.outputs:
                known = [int(extent.value) for extent in buffer.shape if isinstance(extent, _core.IntImm)]
                is_open = len(known) < len(buffer.shape)
                shape = None if is_open else [*known, *_lane_extents(buffer)]
                found[buffer.name] = (shape, numpy_dtype(lanes_of(buffer.dtype)[0]))
        return found


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
        found[str(below.attrs["global_symbol"])] = {"outputs": sorted(call.outputs), "function": ir.save_json(bare)}
    return json.dumps(found)


def calls_from(text: str) -> dict[str, Call]:
    """By the names of kernels; nothing of a library that does not tell."""
    try:
        known = json.loads(text or "{}").items()
        return {name: Call(ir.load_json(call["function"]), frozenset(call["outputs"])) for name, call in known}
    except (ValueError, TypeError, KeyError, AttributeError, Error):
        return {}


def complete(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """All arguments in the order of the parameters, and those among them that were made here.

    Positional arguments are those of the parameters that are read; where more are given, of all parameters in order.
    None where something else than an output is missing.

    Raises:
        tilewright.ArgumentError: the size of an output does not follow from the arguments.
    """
    values = _by_name(call, args, named)
    if not call.outputs or values is None:
        return None
    missing = [name for name in call.names if name not in values]
    if not missing or not call.outputs.issuperset(missing):
        return None
    made = {}
    for name in missing:
        shape, dtype = call.arrays[name]
        zeros = aligned_zeros(_shape_for(call, name, values) if shape is None else shape, dtype)
        made[name] = as_given(zeros, values.values())
    return [values[name] if name in values else made[name] for name in call.names], list(made.values())


def missing_inputs(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> list[str]:
    """The parameters that are not outputs, and that a call gives nothing for; none where it cannot be understood."""
    values = _by_name(call, args, named)
    return [] if values is None else [name for name in call.inputs if name not in values]


def _by_name(call: Call, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments by the names of their parameters; None for an unknown name, or too many arguments."""
    free = call.inputs if len(args) <= len(call.inputs) else call.names
    if named:
        free = tuple(name for name in free if name not in named)
        if any(name not in call.names for name in named):
            return None
    return None if len(args) > len(free) else {**named, **dict(zip(free, args, strict=False))}


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


def named_by_buffer(call: Call, named: Mapping[str, Any]) -> dict[str, Any]:
    """The named arguments under the names of the buffers, where some are those of the parameters that hold them."""
    if not named or not call.buffer_names:
        return dict(named)
    found = {call.buffer_names.get(name, name): value for name, value in named.items()}
    return found if len(found) == len(named) else dict(named)


def outputs_of(function: Any) -> set[str]:
    """The buffers among the parameters that are only written: what the function reads of them it wrote before."""
    try:
        facts = _core.analyze_workload(function)
    except Error:  # of sizes that are not constant less is known
        return _never_read(function)
    return {name for name, _, _, role in facts["params"] if role == "output"}


def read_and_written(function: Any) -> list[str]:
    """The buffers among the parameters that are written, and read before."""
    try:
        facts = _core.analyze_workload(function)
    except Error:
        return []
    return [name for name, _, _, role in facts["params"] if role == "inout"]


def _never_read(function: Any) -> set[str]:
    """The buffers among the parameters that are written, and read at most by the reductions that begin them."""
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
    return {b.name for b in function.buffer_map.values() if b in written and b not in read}


def _all(root: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    _core.visit(root, lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def _shape_for(call: Call, name: str, values: Mapping[str, Any]) -> list[int]:
    """Of an output whose sizes are those of the arguments, or numbers among them."""
    sizes = _sizes(call, values)
    buffer = next(buffer for buffer in call.function.buffer_map.values() if buffer.name == name)
    return [*(_number(extent, sizes, name) for extent in buffer.shape), *_lane_extents(buffer)]


def _lane_extents(buffer: Any) -> list[int]:
    """The dimension that an array has besides, where elements are vectors."""
    _, lanes = lanes_of(buffer.dtype)
    return [lanes] if lanes > 1 else []


def _sizes(call: Call, values: Mapping[str, Any]) -> dict[Any, Any]:
    """What the sizes are, by the shapes of the arguments and by the numbers among them."""
    sizes: dict[Any, Any] = {}
    for param, name in zip(call.function.params, call.names, strict=True):
        value = values.get(name)
        buffer = call.function.buffer_map.get(param)
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
