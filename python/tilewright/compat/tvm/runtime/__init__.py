"""tvm.runtime: data types, devices, arrays."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime import ndarray
from tilewright.compat.tvm.runtime import ndarray as nd
from tilewright.compat.tvm.runtime.device import Device, cpu, cuda, device
from tilewright.compat.tvm.runtime.ndarray import NDArray, array
from tilewright.compat.tvm.runtime.object_path import ObjectPath
from tilewright.script.tir.dtypes import DType as DataType

__getattr__ = missing("tvm.runtime")

__all__ = ["DataType", "Device", "NDArray", "ObjectPath", "array", "cpu", "cuda", "device", "nd", "ndarray"]
