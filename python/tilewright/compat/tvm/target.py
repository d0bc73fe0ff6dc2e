"""tvm.target: targets with the attributes that TVM gives them."""

from __future__ import annotations

import json
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
    """The options of the target, those included that follow from its processor."""
    return {name: value for name, value in json.loads(self.json()).items() if name != "kind"}


def targets_as_tvm() -> None:
    """From now on targets have TVM's attributes."""
    for name, function in {"kind": _kind, "attrs": _attrs}.items():
        setattr(Target, name, property(function))
