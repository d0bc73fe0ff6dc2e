"""tvm.nd: arrays on devices, and NumPy arrays under the name of NDArray on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime.devices import Device, cpu, cuda, device, opencl
from tilewright.kernel import device as devices
from tilewright.kernel.device import DeviceArray
from tilewright.support.numpy_dtype import numpy_dtype

__getattr__ = missing("tvm.nd")

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack", "opencl"]


class NDArray(np.ndarray[Any, Any]):
    """An array in the memory of the processor."""

    @property
    def device(self) -> Any:
        """Return the processor."""
        return cpu()

    def numpy(self) -> Any:
        """Return a copy as a plain NumPy array."""
        return np.array(self)

    asnumpy = numpy

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copy the elements of an array of the same shape into this array."""
        if np.shape(source_array) != self.shape:
            raise ValueError(
                f"an array of shape {np.shape(source_array)} cannot be copied to one of shape {self.shape}"
            )
        self[...] = source_array
        return self

    def copyto(self, target: Any, mem_scope: str | None = None) -> Any:
        """Copy the elements to another array, or to a new one on a device."""
        _check_scope(mem_scope)
        return array(self, target) if isinstance(target, devices.Device) else target.copyfrom(self)

    def to_dlpack(self) -> Any:
        """Return a view of the array for another library."""
        return self.__dlpack__()


class DeviceArrayAsTVM(DeviceArray):
    """An array in the memory of a device."""

    @property
    def dtype(self) -> Any:
        """Return the type of the elements, as text."""
        return str(super().dtype)

    @property
    def device(self) -> Device:
        """Return the device of the array."""
        return Device(self.device_type, self.device_id)

    def asnumpy(self) -> Any:
        """Return a copy as a NumPy array."""
        return self.numpy()

    def copyto(self, target: Any, mem_scope: str | None = None) -> Any:
        """Copy the elements to another array, or to a new one on a device."""
        _check_scope(mem_scope)
        return array(self, target) if isinstance(target, devices.Device) else super().copyto(target)


def _check(device: devices.Device) -> None:
    if not device.exist:
        raise ValueError(f"Tilewright has no memory on {device} yet")


def _check_scope(mem_scope: str | None) -> None:
    if mem_scope not in (None, "", "global"):
        raise ValueError(f"Tilewright has no arrays in the memory {mem_scope!r} yet")


def from_dlpack(dltensor: Any) -> NDArray:
    """Return a view of an array of the processor, without a copy."""
    if not hasattr(dltensor, "__dlpack__"):
        raise AttributeError("Required attribute __dlpack__ not found")
    return np.from_dlpack(dltensor).view(NDArray)


def array(arr: Any, device: devices.Device | None = None, mem_scope: str | None = None) -> Any:
    """Return a copy of the array."""
    _check_scope(mem_scope)
    if device is None or device.kind == "cpu":
        return np.array(arr).view(NDArray)
    return empty(np.shape(arr), getattr(arr, "dtype", np.asarray(arr).dtype), device).copyfrom(arr)


def empty(
    shape: Any, dtype: Any = "float32", device: devices.Device | None = None, mem_scope: str | None = None
) -> Any:
    """Return an uninitialized array."""
    _check_scope(mem_scope)
    dtype = numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    if device is None or device.kind == "cpu":
        return np.empty(shape, dtype).view(NDArray)
    _check(device)
    extents = [int(extent) for extent in np.atleast_1d(np.asarray(shape, dtype="int64"))]
    return DeviceArrayAsTVM(device.device_type, device.device_id, dtype.name, extents, False)
