"""Call kernels with arrays whose strides they do not support, by compact copies; results are copied back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tilewright.kernel.omitted_outputs import CallSignature
from tilewright.task.arguments import aligned


def with_copies(
    call: CallSignature, args: Sequence[Any], written: Sequence[bool]
) -> tuple[list[Any], Callable[[], None]] | None:
    """Return the arguments with copies for those that are not compact, and a function that copies results back. Return
    None if copies cannot replace the arguments: elements of a result share memory with each other or with another
    result.

    Args:
        call: call signature; parameters without declared strides need compact arrays.
        args: one argument for each parameter.
        written: for each parameter, whether the kernel writes to it.
    """
    values, back = list(args), []
    for position, value in enumerate(args):
        buffer = call.buffer(position)
        if buffer is None or len(buffer.strides) or (made := _compact(value)) is None:
            continue
        if written[position]:
            view = _view(value)
            if view is None or not view.flags.writeable or not _is_apart(view):
                return None
            back.append((value, made))
        values[position] = made
    views = [_view(value) for value, is_written in zip(args, written, strict=True) if is_written]
    if any(a is None or b is None or np.shares_memory(a, b) for a, b in combinations(views, 2)):
        return None
    if all(value is given for value, given in zip(values, args, strict=True)):
        return None

    def copy_back() -> None:
        for value, made in back:
            if _is_of_torch(value):
                value.copy_(made)
            else:
                np.asarray(value)[...] = made

    return values, copy_back


def _is_of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _compact(value: Any) -> Any:
    """Return a compact copy; None if the value is compact or cannot be copied."""
    if _is_of_torch(value):
        return None if value.is_contiguous() or value.requires_grad else value.contiguous()
    view = _view(value)
    return None if view is None or view.flags.c_contiguous else aligned(view)


def _view(value: Any) -> Any:
    """Return the memory as a NumPy array; None for other values and for masked arrays."""
    if _is_of_torch(value):
        if value.device.type != "cpu":
            return None
        size = value.element_size()
        facts = {"data": (value.data_ptr(), False), "shape": tuple(value.shape), "typestr": f"|V{size}", "version": 3}
        facts["strides"] = tuple(stride * size for stride in value.stride())
        return np.asarray(type("Memory", (), {"__array_interface__": facts})())
    if isinstance(value, np.ma.MaskedArray):
        return None
    try:
        return np.asarray(memoryview(value) if not isinstance(value, np.ndarray) else value)
    except (TypeError, ValueError):
        return None


def _is_apart(view: Any) -> bool:
    """Return whether no two elements of the view share a byte.

    Dimensions are visited in the order of their strides. Each stride has to span the elements of all earlier ones.
    """
    covered = view.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(view.strides, view.shape, strict=True)):
        if extent > 1:
            if step < covered:
                return False
            covered += step * (extent - 1)
    return True
