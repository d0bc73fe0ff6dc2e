"""tvm.Device: devices, which print as TVM prints them."""

from __future__ import annotations

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.kernel import device as devices

__all__ = ["Device", "cpu", "cuda", "device", "opencl"]


class Device(devices.Device):
    """A device, or the processor."""

    def __str__(self) -> str:
        return f"{self.kind}({self.device_id})"

    __repr__ = __str__

    @property
    def device_name(self) -> str | None:
        """Return the driver's name of the device."""
        listed = {"opencl": _core.opencl_devices, "cuda": _core.cuda_devices}.get(self.kind, list)()
        return listed[self.device_id].split("\n")[0] if self.device_id < len(listed) else None


def _seen(found: devices.Device) -> Device:
    return Device(found.device_type, found.device_id)


def cpu(dev_id: int = 0) -> Device:
    """Return the processor."""
    return _seen(devices.cpu(dev_id))


def cuda(dev_id: int = 0) -> Device:
    """Return a CUDA device."""
    return _seen(devices.cuda(dev_id))


def opencl(dev_id: int = 0) -> Device:
    """Return an OpenCL device."""
    return _seen(devices.opencl(dev_id))


def device(dev: str | int, dev_id: int = 0) -> Device:
    """Return the device of a kind: by its name, that of a target, or the number of the kind in DLPack."""
    if not isinstance(dev_id, int):
        raise ValueError(f"Invalid device id: {dev_id}")
    kinds = {devices.device(kind).device_type: kind for kind in ("cpu", "cuda", "opencl")}
    try:
        return _seen(devices.device(kinds.get(dev, str(dev)) if isinstance(dev, int) else dev, dev_id))
    except ArgumentError:
        raise ValueError(f"Tilewright has no device {dev!r} yet") from None
