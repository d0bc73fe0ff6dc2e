"""tvm.target: targets with the attributes that TVM gives them."""

from __future__ import annotations

from typing import Any

from tilewright._core import Target
from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.target")

__all__ = ["Target", "TargetKind"]

_KIND = Target.kind


class TargetKind(str):
    """What runs the code: "llvm", ..."""

    @property
    def name(self) -> str:
        """The kind as plain text."""
        return str(self)


def _kind(self: Target) -> TargetKind:
    return TargetKind(_KIND.__get__(self))


def _attrs(self: Target) -> dict[str, Any]:
    """The options that the target is written with, and its number of cores."""
    options: dict[str, Any] = dict(word.lstrip("-").split("=", 1) for word in str(self).split()[1:])
    if "mattr" in options:
        options["mattr"] = options["mattr"].split(",")
    return options | {"num-cores": self.num_cores}


def targets_as_tvm() -> None:
    """From now on targets have TVM's attributes."""
    for name, function in {"kind": _kind, "attrs": _attrs}.items():
        setattr(Target, name, property(function))
