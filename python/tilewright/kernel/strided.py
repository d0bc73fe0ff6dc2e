"""Calls with arrays whose strides a kernel does not take: it gets compact copies, and results are copied back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tilewright.kernel.omitted_outputs import Call
from tilewright.task.arguments import aligned


def with_copies(
    call: Call, args: Sequence[Any], written: Sequence[bool]
) -> tuple[list[Any], Callable[[], None]] | None:
    """The arguments with copies for those that are not compact, and what copies results back; None where no copy can
    stand for one: elements of a result that share memory, with one another or with those of another result.

    Args:
        call: of which parameters have no strides of their own.
        args: one for each parameter.
        written: which of them the kernel writes to.
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
    """A compact copy; None of what is compact, or cannot be copied as it is."""
    if _is_of_torch(value):
        return None if value.is_contiguous() or value.requires_grad else value.contiguous()
    view = _view(value)
    return None if view is None or view.flags.c_contiguous else aligned(view)


def _view(value: Any) -> Any:
    """The memory as an array of NumPy; None of what is none, and of arrays with a mask."""
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
    """Whether each step is longer than all elements of the dimensions below."""
    covered = view.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(view.strides, view.shape, strict=True)):
        if extent > 1:
            if step < covered:
                return False
            covered += step * (extent - 1)
    return True
