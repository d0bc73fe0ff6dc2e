"""tvm.target.codegen: what LLVM knows. The numbers of its intrinsics are their names here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.target import Target
from tilewright.script.tir.intrinsics import llvm_lookup_intrinsic_id

__getattr__ = missing("tvm.target.codegen")

__all__ = [
    "llvm_cpu_has_features",
    "llvm_get_cpu_features",
    "llvm_get_intrinsic_name",
    "llvm_get_system_cpu",
    "llvm_get_vector_width",
    "llvm_lookup_intrinsic_id",
    "llvm_version_major",
    "target_has_features",
]


def llvm_get_intrinsic_name(intrin_id: str) -> str:
    """Return the name of an intrinsic."""
    return intrin_id


def llvm_version_major(allow_none: bool = False) -> int:
    """Return LLVM's major version."""
    return int(_core.llvm_version().split(".")[0])


def llvm_get_system_cpu() -> str:
    """Return LLVM's name of this machine's processor."""
    return str(_core.Target("native").cpu)


def _target(target: Any) -> Any:
    return target if isinstance(target, _core.Target) else Target.current(allow_none=True) or _core.Target("native")


def llvm_get_cpu_features(target: Any = None) -> dict[str, str]:
    """Return the instruction sets that code for the target may use."""
    return dict.fromkeys(_target(target).features, "")


def llvm_cpu_has_features(cpu_features: str | Sequence[str], target: Any = None) -> bool:
    """Return whether code for the target may use all of these instruction sets."""
    wanted = [cpu_features] if isinstance(cpu_features, str) else cpu_features
    return set(wanted) <= set(_target(target).features)


target_has_features = llvm_cpu_has_features


def llvm_get_vector_width(target: Any = None) -> int:
    """Return the number of bits of the target's vectors."""
    return int(_target(target).vector_bits)
