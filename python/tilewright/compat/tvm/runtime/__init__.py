"""tvm.runtime: data types, devices, arrays."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime import module, ndarray
from tilewright.compat.tvm.runtime import ndarray as nd
from tilewright.compat.tvm.runtime.data_type import DataType
from tilewright.compat.tvm.runtime.device import Device, cpu, cuda, device
from tilewright.compat.tvm.runtime.module import Module, load_module
from tilewright.compat.tvm.runtime.ndarray import NDArray, array
from tilewright.compat.tvm.runtime.object_path import ObjectPath

__getattr__ = missing("tvm.runtime")

__all__ = [
    "DataType",
    "Device",
    "Module",
    "NDArray",
    "ObjectPath",
    "array",
    "convert",
    "cpu",
    "cuda",
    "device",
    "load_module",
    "module",
    "nd",
    "ndarray",
]


def convert(value: Any) -> Any:
    """Numbers as constants, also inside of lists and dicts; what else there is stays."""
    if isinstance(value, bool | int | float):
        return _core.const(value)
    if isinstance(value, list | tuple):
        return [convert(item) for item in value]
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return value
