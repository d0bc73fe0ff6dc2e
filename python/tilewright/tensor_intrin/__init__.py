"""Instructions on tensors, as data: importing this registers those of known processors by name."""

from __future__ import annotations

from tilewright.tensor_intrin import amx, arm_cpu, cuda, hexagon, rocm, x86
from tilewright.tensor_intrin.table import TensorIntrin

__all__ = ["TensorIntrin", "amx", "arm_cpu", "cuda", "hexagon", "rocm", "x86"]


def make_if_known(name: str) -> None:
    """Register an intrinsic of variable size by its name. The core calls this for names that it does not know."""
    amx.make_if_named(name)
