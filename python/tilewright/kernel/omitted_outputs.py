"""Parameters that a call of a kernel may omit: optional outputs, which are allocated and returned.

An array is an optional output if the program writes it and reads no element before it has written that element. The
unscheduled program decides this, so that the calling convention does not depend on the schedule.
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
from tilewright.errors import ArgumentError, Error, ResourceError
from tilewright.kernel.device import common_device
from tilewright.support import limits
from tilewright.support.json_text import parse_json
from tilewright.support.numpy_dtype import lanes_of, numpy_dtype
from tilewright.task.arguments import aligned_zeros
from tilewright.task.parameter_names import labels_of, names_of_parameters


@dataclass(frozen=True)
class CallSignature:
    """The call signature of a kernel.

    Attributes:
        function: a PrimFunc with the kernel's parameters; its body is unused.
        outputs: positions of the optional parameters.
        reasons: for each parameter, why it is required; "" for optional ones. Empty for libraries of older versions.
    """

    function: ir.PrimFunc
    outputs: frozenset[int]
    reasons: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of all parameters; for a handle, the name of its buffer."""
        return names_of_parameters(self.function)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return a distinct name for each parameter, for messages."""
        return labels_of(self.function)

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Return the positions of the parameters that are not optional outputs."""
        return tuple(position for position in range(len(self.names)) if position not in self.outputs)

    @cached_property
    def handles(self) -> tuple[str, ...]:
        """Return the names of the handles, which can differ from those of their buffers."""
        return tuple(str(param.name_hint) for param in self.function.params)

    @cached_property
    def arrays(self) -> dict[int, tuple[list[int] | None, np.dtype[Any]]]:
        """Return shape and data type of the array for each output; the shape is None if a size is symbolic."""
        found: dict[int, tuple[list[int] | None, np.dtype[Any]]] = {}
        for position in self.outputs:
            buffer = self.function.buffer_map[self.function.params[position]]
            known = [int(extent.value) for extent in buffer.shape if isinstance(extent, _core.IntImm)]
            is_open = len(known) < len(buffer.shape)
            shape = None if is_open else [*known, *_lane_extents(buffer)]
            found[position] = (shape, numpy_dtype(lanes_of(buffer.dtype)[0]))
        return found

    def buffer(self, position: int) -> ir.Buffer | None:
        """Return the buffer of a parameter; None for a scalar."""
        return self.function.buffer_map.get(self.function.params[position])

    def position(self, name: str) -> int | None:
        """Return the position of the parameter that a keyword names, by its own name or its handle's; None if there is
        no such parameter, or several."""
        for names in (self.names, self.handles):
            if name in names:
                return names.index(name) if names.count(name) == 1 else None
        return None


def call_of(function: ir.PrimFunc, module: ir.Module) -> CallSignature:
    """Return the call signature of a function's kernel; `module` has the functions that it calls."""
    roles = _core.parameter_roles(function, module)
    outputs = frozenset(position for position, (role, _) in enumerate(roles) if role == "output")
    return CallSignature(function, outputs, tuple(_why_needed(role, reader) for role, reader in roles))


def _why_needed(role: str, reader: str) -> str:
    """Return why a parameter may not be omitted, as a predicate ("is never written"); "" for an optional output."""
    match role:
        case "scalar":
            return "is a number"
        case "input":
            return "is never written"
        case "inout":
            return f"may be read before all of it is written: {reader}"
    return ""


def signatures_to_json(calls: Mapping[str, CallSignature]) -> str:
    """Return the JSON text with the call signatures that a library stores; :func:`signatures_from_json` parses it."""
    found = {}
    for kernel, call in calls.items():
        bare = call.function.with_body(_core.Evaluate(_core.const(0, "int32")))
        for attribute in bare.attrs:
            bare = bare.without_attr(attribute)
        names = sorted({call.names[position] for position in call.outputs})
        found[kernel] = {
            # `outputs` (names) is for versions before `positions`.
            **{"outputs": names, "positions": sorted(call.outputs), "reasons": list(call.reasons)},
            "function": ir.save_json(bare),
        }
    return json.dumps(found)


def signatures_from_json(text: str) -> dict[str, CallSignature]:
    """Return the call signatures by kernel name; empty for a library without them."""
    try:
        known = parse_json(text or "{}").items()
        return {name: _call_from(call) for name, call in known}
    except (ValueError, TypeError, KeyError, AttributeError, Error):
        return {}


def _call_from(noted: Mapping[str, Any]) -> CallSignature:
    function = ir.load_json(noted["function"])
    if not isinstance(function, ir.PrimFunc):
        raise TypeError("not a PrimFunc")
    names = names_of_parameters(function)
    by_name = [position for position, name in enumerate(names) if name in noted["outputs"]]
    outputs = frozenset(int(position) for position in noted.get("positions", by_name))
    return CallSignature(function, outputs, tuple(map(str, noted.get("reasons", ()))))


def complete(call: CallSignature, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """Return all arguments in the order of the parameters, and the newly allocated ones among them.

    Positional arguments are those of the required parameters, or, if there are more, of all parameters in order. Return
    None if no output is omitted, or if an argument other than an output is missing.

    Raises:
        tilewright.ArgumentError: the size of an output does not follow from the arguments.
        tilewright.ResourceError: there is no memory for an output.
    """
    values = by_position(call, args, named)
    if not call.outputs or values is None:
        return None
    every = range(len(call.names))
    missing = [position for position in every if position not in values]
    if not missing or not call.outputs.issuperset(missing):
        return None
    arrays = [value for position, value in values.items() if call.buffer(position) is not None]
    device = common_device(arrays)
    made = {}
    for position in missing:
        shape, dtype = call.arrays[position]
        shape = _shape_for(call, position, values) if shape is None else shape
        if device is not None:
            made[position] = device.zeros(shape, dtype)
        else:
            made[position] = as_tensor_like(_zeros(shape, dtype, call.labels[position]), arrays)
    return [values[position] if position in values else made[position] for position in every], list(made.values())


def _zeros(shape: Sequence[int], dtype: np.dtype[Any], label: str) -> np.ndarray[Any, Any]:
    try:
        return aligned_zeros(shape, dtype)
    except (MemoryError, ValueError):  # ValueError: NumPy cannot even count its bytes
        what = f"there is no memory for the omitted {label} of type {dtype} and shape {tuple(shape)}"
        raise ResourceError.of("call/memory", what, "call the kernel for smaller sizes") from None


def refuse_missing(call: CallSignature, kernel: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse a call without an argument for a required parameter; do nothing if none is missing or the arguments cannot
    be assigned to parameters.

    Raises:
        tilewright.ArgumentError: required parameters have no argument; the message gives the reason for each.
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


def by_position(call: CallSignature, args: Sequence[Any], named: Mapping[str, Any]) -> dict[int, Any] | None:
    """Return the arguments by the positions of their parameters; None if a name is unknown, ambiguous or given twice,
    or if there are too many arguments."""
    values: dict[int, Any] = {}
    for name, value in named.items():
        position = call.position(name)
        if position is None or position in values:
            return None
        values[position] = value
    every = call.inputs if len(args) <= len(call.inputs) else range(len(call.names))
    free = [position for position in every if position not in values]
    return None if len(args) > len(free) else {**values, **dict(zip(free, args, strict=False))}


def as_tensor_like(array: np.ndarray[Any, Any], arguments: Iterable[Any]) -> Any:
    """Return an array as a PyTorch tensor that shares its memory if all arguments except numbers are PyTorch
    tensors."""
    torch = sys.modules.get("torch")
    if torch is None:
        return array
    tensors = [value for value in arguments if hasattr(value, "shape") and not isinstance(value, np.generic)]
    if not tensors or not all(isinstance(value, torch.Tensor) for value in tensors):
        return array
    if array.dtype.isbuiltin == 1:
        return torch.from_dlpack(array)
    # Convert data types that NumPy's DLPack export does not support through their bytes.
    dtype = getattr(torch, array.dtype.name, None)
    return array if dtype is None else torch.from_dlpack(array.view(f"u{array.itemsize}")).view(dtype)


def _shape_for(call: CallSignature, position: int, values: Mapping[int, Any]) -> list[int]:
    """Return the shape of an output, with the sizes that the arguments determine."""
    sizes = _sizes(call, values)
    buffer, label = call.function.buffer_map[call.function.params[position]], call.labels[position]
    shape = [*(_number(extent, sizes, label) for extent in buffer.shape), *_lane_extents(buffer)]
    if min(shape, default=0) < 0:
        what = f"the omitted {label} would have the shape {tuple(shape)}, by the sizes of the other arguments"
        raise ArgumentError.of("call/omitted-size", what, "no extent is negative: pass other sizes")
    return shape


def _lane_extents(buffer: ir.Buffer) -> list[int]:
    """Return the additional dimension of an array whose elements are vectors."""
    _, lanes = lanes_of(buffer.dtype)
    return [lanes] if lanes > 1 else []


def _sizes(call: CallSignature, values: Mapping[int, Any]) -> dict[ir.Var, ir.Expr]:
    """Return the values of symbolic sizes, from the shapes of arguments and from scalar arguments.

    Raises:
        tilewright.ArgumentError: an argument has another number of dimensions than its parameter.
    """
    sizes: dict[ir.Var, ir.Expr] = {}
    for position, param in enumerate(call.function.params):
        if position not in values:
            continue
        value, buffer = values[position], call.buffer(position)
        if buffer is None:
            if (number := limits.index_of(value)) is not None:
                sizes[param] = _core.const(number, param.dtype)
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


def _number(extent: ir.Expr, sizes: dict[ir.Var, ir.Expr], name: str) -> int:
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
