"""tvm.runtime: data types, devices, arrays."""

from __future__ import annotations

import enum
from typing import Any

from tilewright import _core
from tilewright._core import Node as Object
from tilewright._core import const
from tilewright.compat.tvm.runtime import module, ndarray
from tilewright.compat.tvm.runtime import ndarray as nd
from tilewright.compat.tvm.runtime.data_type import DataType
from tilewright.compat.tvm.runtime.devices import Device, cpu, cuda, device, opencl
from tilewright.compat.tvm.runtime.module import Module, load_module
from tilewright.compat.tvm.runtime.ndarray import NDArray, array
from tilewright.compat.tvm.runtime.object_path import ObjectPath, ObjectPathPair

String = str
ShapeTuple: Any = tuple

__all__ = [
    "DataType",
    "DataTypeCode",
    "Device",
    "Module",
    "NDArray",
    "Object",
    "ObjectPath",
    "ObjectPathPair",
    "ShapeTuple",
    "String",
    "array",
    "const",
    "convert",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "load_module",
    "module",
    "nd",
    "ndarray",
    "num_threads",
    "opencl",
]


class DataTypeCode(enum.IntEnum):
    """Codes of the kinds of data types, as in DLPack."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4


def num_threads() -> int:
    """Return the number of threads that kernels run on."""
    return _core.get_num_threads()


def enabled(target: str) -> bool:
    """Return whether code for the target can be compiled and run on this machine."""
    kind = target.split()[0]
    return kind in ("cpu", "llvm") or (kind in ("opencl", "cuda") and device(kind).exist)


def convert(value: Any) -> Any:
    """Convert numbers to constants, also inside lists and dicts; other values are unchanged."""
    if isinstance(value, bool | int | float):
        return _core.const(value)
    if isinstance(value, list | tuple):
        return [convert(item) for item in value]
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return value
