"""tvm.nd: NumPy arrays under the name of NDArray."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compat.tvm.alias import missing
from tilewright.kernel.device import Device, cpu

__getattr__ = missing("tvm.nd")

__all__ = ["NDArray", "array", "empty"]


class NDArray(np.ndarray[Any, Any]):
    """An array in the memory of the processor."""

    @property
    def device(self) -> Any:
        """The processor."""
        return cpu()

    def numpy(self) -> Any:
        """A copy as a plain NumPy array."""
        return np.array(self)

    asnumpy = numpy

    def copyfrom(self, source_array: Any) -> NDArray:
        """Takes over the elements of an array of the same shape."""
        if np.shape(source_array) != self.shape:
            raise ValueError(
                f"an array of shape {np.shape(source_array)} cannot be copied to one of shape {self.shape}"
            )
        self[...] = source_array
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """The elements in another array, or in a new one on a device."""
        return array(self, target) if isinstance(target, Device) else target.copyfrom(self)


def _check(device: Device | None) -> None:
    if device is not None and not device.exist:
        raise ValueError(f"Tilewright has no memory on {device} yet")


def array(arr: Any, device: Device | None = None) -> NDArray:
    """A copy of the array."""
    _check(device)
    return np.array(arr).view(NDArray)


def empty(shape: Any, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """An array whose elements are not set."""
    _check(device)
    return np.empty(shape, dtype).view(NDArray)
