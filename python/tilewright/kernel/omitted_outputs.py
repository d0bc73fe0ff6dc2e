"""Parameters that a call of a kernel may omit: optional outputs, which are allocated and returned.

An array is an optional output if the program writes it and reads no element before it has written that element. This is
asked of the program as it was before a schedule changed it, so that no schedule decides how its kernel is called.
"""

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
from tilewright.kernel.device import common_device
from tilewright.support.numpy_dtype import lanes_of, numpy_dtype
from tilewright.task.arguments import aligned_zeros
from tilewright.task.parameter_names import labels_of, names_of_parameters


@dataclass(frozen=True)
class Call:
    """How a kernel is called.

    Attributes:
        function: its parameters, of a function whose body does not matter.
        outputs: the positions of optional parameters.
        reasons: why each parameter may not, in order; empty for those that may, and of an older library.
    """

    function: Any
    outputs: frozenset[int]
    reasons: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters; of a handle, the name of its buffer."""
        return names_of_parameters(self.function)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return a distinct name for each parameter, for messages."""
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


def call_of(function: Any, module: Any) -> Call:
    """Return how the kernel of a function is called; functions that it calls are those of the module."""
    roles = _core.parameter_roles(function, module)
    outputs = frozenset(position for position, (role, _) in enumerate(roles) if role == "output")
    return Call(function, outputs, tuple(_why_needed(role, reader) for role, reader in roles))


def _why_needed(role: str, reader: str) -> str:
    """Return why a parameter may not be omitted, as what is said of it; empty for an optional output."""
    match role:
        case "scalar":
            return "is a number"
        case "input":
            return "is never written"
        case "inout":
            return f"may be read before all of it is written: {reader}"
    return ""


def calls_text(calls: Mapping[str, Call]) -> str:
    """Return what a library stores about its kernels, which :func:`calls_from` reads: by their names there."""
    found = {}
    for kernel, call in calls.items():
        bare = call.function.with_body(_core.Evaluate(_core.const(0, "int32")))
        for attribute in bare.attrs:
            bare = bare.without_attr(attribute)
        names = sorted({call.names[position] for position in call.outputs})
        found[kernel] = {
            # Libraries of earlier versions, and these for earlier versions, say it by name.
            **{"outputs": names, "positions": sorted(call.outputs), "reasons": list(call.reasons)},
            "function": ir.save_json(bare),
        }
    return json.dumps(found)


def calls_from(text: str) -> dict[str, Call]:
    """By the names of kernels; nothing of a library that does not say."""
    try:
        known = json.loads(text or "{}").items()
        return {name: _call_from(call) for name, call in known}
    except (ValueError, TypeError, KeyError, AttributeError, Error):
        return {}


def _call_from(noted: Mapping[str, Any]) -> Call:
    function = ir.load_json(noted["function"])
    names = names_of_parameters(function)
    by_name = [position for position, name in enumerate(names) if name in noted["outputs"]]
    outputs = frozenset(int(position) for position in noted.get("positions", by_name))
    return Call(function, outputs, tuple(map(str, noted.get("reasons", ()))))


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
    device = common_device(values.values())
    made = {}
    for position in missing:
        shape, dtype = call.arrays[position]
        shape = _shape_for(call, position, values) if shape is None else shape
        if device is not None:
            made[position] = device.zeros(shape, dtype)
        else:
            made[position] = as_given(aligned_zeros(shape, dtype), values.values())
    return [values[position] if position in values else made[position] for position in every], list(made.values())


def refuse_missing(call: Call, kernel: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse a call that lacks arguments which are no optional outputs; do nothing where none is missing or the call
    cannot be understood.

    Raises:
        tilewright.ArgumentError: which parameters have no argument, and why each is needed.
    """
    values = by_position(call, args, named)
    missing = [] if values is None else [position for position in call.inputs if position not in values]
    if not missing:
        return
    labels = call.labels
    named_missing = ", ".join(labels[position] for position in missing)
    why = [f"{labels[position]} {call.reasons[position]}" for position in missing if position < len(call.reasons)]
    outputs = ", ".join(labels[position] for position in sorted(call.outputs))
    only = f"only {outputs} can be omitted" if outputs else "no argument can be omitted"
    raise ArgumentError.of(
        "call/count",
        f"{kernel} takes {len(labels)} arguments ({', '.join(labels)}), got none for {named_missing}",
        "; ".join([*why, only]),
    )


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
    """Return an array as a tensor of PyTorch that shares its memory, if all arguments but numbers are tensors of
    PyTorch."""
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


def _shape_for(call: Call, position: int, values: Mapping[int, Any]) -> list[int]:
    """Return the shape of an output whose sizes are those of the arguments, or numbers among them."""
    sizes = _sizes(call, values)
    buffer, label = call.buffer(position), call.labels[position]
    return [*(_number(extent, sizes, label) for extent in buffer.shape), *_lane_extents(buffer)]


def _lane_extents(buffer: Any) -> list[int]:
    """The dimension that an array has besides, where elements are vectors."""
    _, lanes = lanes_of(buffer.dtype)
    return [lanes] if lanes > 1 else []


def _sizes(call: Call, values: Mapping[int, Any]) -> dict[Any, Any]:
    """Return the values of open sizes, from the shapes of arguments and from scalar arguments.

    Raises:
        tilewright.ArgumentError: an argument has another number of dimensions than its parameter.
    """
    sizes: dict[Any, Any] = {}
    for position, param in enumerate(call.function.params):
        if position not in values:
            continue
        value, buffer = values[position], call.buffer(position)
        if buffer is None:
            if isinstance(value, int | np.integer):
                sizes[param] = _core.const(int(value), param.dtype)
            continue
        shape = value.shape if hasattr(value, "shape") else np.shape(value)
        rank = len(buffer.shape) + len(_lane_extents(buffer))
        if len(shape) != rank:
            raise ArgumentError.of(
                "call/argument",
                f"argument {call.labels[position]}: expected an array of {rank} dimensions, got {_shown(value, shape)}",
                "the sizes of omitted outputs follow from its shape",
            )
        for extent, size in zip(buffer.shape, shape, strict=False):
            if isinstance(extent, _core.Var):
                sizes[extent] = _core.const(int(size), extent.dtype)
    return sizes


def _shown(value: Any, shape: Sequence[int]) -> str:
    return f"one of shape {tuple(shape)}" if hasattr(value, "ndim") else repr(value)


def _number(extent: Any, sizes: dict[Any, Any], name: str) -> int:
    from tilewright.arith import Analyzer

    known: Any = _core.substitute(extent, sizes)
    value = Analyzer().simplify(known)
    if not isinstance(value, _core.IntImm):
        raise ArgumentError.of(
            "call/omitted-size",
            f"the size of {name}, {extent}, does not follow from the other arguments",
            f"pass an array for {name}",
        )
    return int(value.value)
