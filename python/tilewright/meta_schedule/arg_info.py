"""Descriptions of a kernel's arguments: enough to allocate them in another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.meta_schedule.layout_preproc import without_layout_rewrites
from tilewright.support import limits

__all__ = ["ArgInfo", "TensorInfo"]


class ArgInfo:
    """One argument of a kernel."""

    def as_json(self) -> Any:
        """Return the description as lists, texts and numbers."""
        raise NotImplementedError

    @staticmethod
    def from_json(json_obj: Any) -> ArgInfo:
        """Return the description from the value of :meth:`as_json`.

        Raises:
            tilewright.ArgumentError: the value does not have this form.
        """
        kind = json_obj[0] if isinstance(json_obj, list | tuple) and json_obj else None
        if kind != "TENSOR" or len(json_obj) != 3:
            raise ArgumentError.of(
                "arg-info/json",
                f"{json_obj!r} describes no argument",
                'it should be ["TENSOR", dtype, [extent, ...]]',
            )
        return TensorInfo(json_obj[1], json_obj[2])

    @staticmethod
    def from_prim_func(func: ir.PrimFunc) -> list[ArgInfo]:
        """Return a description of each parameter.

        Raises:
            tilewright.ArgumentError: a parameter is a number, or has a size that is not constant.
        """
        infos: list[ArgInfo] = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise ArgumentError.of(
                    "arg-info/scalar",
                    f"the parameter {param.name_hint} is a number, and only tensors are described",
                    "give it a value (f.specialize) before tuning",
                )
            shape = []
            for extent in buffer.shape:
                if not isinstance(extent, ir.IntImm):
                    raise ArgumentError.of(
                        "arg-info/symbolic",
                        f"the size {extent} of the parameter {buffer.name} is not constant",
                        "give it a value (f.specialize) before tuning",
                    )
                shape.append(int(extent.value))
            infos.append(TensorInfo(str(buffer.dtype), shape))
        return infos

    @staticmethod
    def from_entry_func(mod: ir.IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """Return descriptions for the called function: the one marked as the entry, `main`, or the only one.

        Args:
            mod: the module.
            remove_preproc: whether to assume that blocks which change the layout of parameters have run ahead of time:
                such parameters then have the shape that the other blocks read.
        """
        function = entry_function(mod)
        return ArgInfo.from_prim_func(without_layout_rewrites(function) if remove_preproc else function)


class TensorInfo(ArgInfo):
    """A tensor: its type of elements and its shape."""

    def __init__(self, dtype: Any, shape: Sequence[int]) -> None:
        self.dtype = str(dtype)
        self.shape = tuple(int(extent) for extent in shape)

    def as_json(self) -> Any:
        """Return ``["TENSOR", dtype, [extent, ...]]``."""
        return ["TENSOR", self.dtype, list(self.shape)]

    def __str__(self) -> str:
        return f'TensorInfo("{self.dtype}", [{", ".join(map(str, self.shape))}])'

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorInfo) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))


def tensors_in(args_info: Any) -> list[TensorInfo]:
    """Return validated descriptions of a kernel's arguments; any objects with `dtype` and `shape` are accepted.

    Raises:
        tilewright.ArgumentError: the value is not a list of such objects, or a data type or an extent is invalid.
    """
    given = limits.items("args_info", args_info, "TensorInfos")
    return [_tensor_of(f"args_info[{place}]", info) for place, info in enumerate(given)]


def _tensor_of(name: str, info: Any) -> TensorInfo:
    dtype, shape = getattr(info, "dtype", None), getattr(info, "shape", None)
    such = 'such as ms.TensorInfo("float32", [16, 32])'
    if dtype is None or shape is None:
        raise limits.wrong_kind(name, info, "a TensorInfo, with `dtype` and `shape`", such)
    if not _core.is_dtype(str(dtype)):
        raise limits.wrong_kind(f"{name}.dtype", str(dtype), "the name of a data type", such)
    extents = enumerate(limits.items(f"{name}.shape", shape, "extents"))
    return TensorInfo(dtype, [limits.whole(f"{name}.shape[{axis}]", extent, 0) for axis, extent in extents])


def entry_function(mod: ir.IRModule) -> ir.PrimFunc:
    """Return the function that a search tunes.

    Raises:
        tilewright.ArgumentError: there are several functions, and none is marked as the entry or called main.
    """
    functions = {name: f for name, f in mod.functions.items() if isinstance(f, ir.PrimFunc)}
    marked = [f for f in functions.values() if f.attrs.get("tir.is_entry_func")]
    chosen = marked[0] if len(marked) == 1 else functions.get("main")
    if chosen is None and len(functions) == 1:
        chosen = next(iter(functions.values()))
    if chosen is None:
        raise ArgumentError.of(
            "arg-info/entry",
            f"the module has the functions {', '.join(functions) or '(none)'}; which one is called?",
            "call one of them main",
        )
    return chosen


def as_arg_info(info: Any) -> ArgInfo:
    """Return the description; one of the core is converted."""
    return info if isinstance(info, ArgInfo) else TensorInfo(info.dtype, info.shape)
