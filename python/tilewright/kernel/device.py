"""Devices: there is the processor."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Device", "cpu", "cuda", "device"]


@dataclass(frozen=True)
class Device:
    """Devices that hold memory."""

    device_type: int
    device_id: int

    @property
    def exist(self) -> bool:
        """Whether it can be used."""
        return self.device_type == 1

    def sync(self) -> None:
        """Waits for what runs there; calls of kernels return when they are done."""

    def __str__(self) -> str:
        return f"{'cpu' if self.device_type == 1 else 'cuda'}({self.device_id})"


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A device that Tilewright cannot use yet: it does not exist, as on a machine without one."""
    return Device(2, dev_id)


def device(dev: str, dev_id: int = 0) -> Device:
    """The device of that kind."""
    kind = dev.split()[0]
    if kind in ("cpu", "llvm", "c"):
        return cpu(dev_id)
    if kind == "cuda":
        return cuda(dev_id)
    raise ValueError(f"Tilewright has no device {dev!r} yet")
