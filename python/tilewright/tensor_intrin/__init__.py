"""Instructions on tensors, as data: importing this registers those of known processors by name."""

from __future__ import annotations

from tilewright.tensor_intrin import amx, arm_cpu, cuda, hexagon, rocm, x86
from tilewright.tensor_intrin.table import TensorIntrin

__all__ = ["TensorIntrin", "amx", "arm_cpu", "cuda", "hexagon", "rocm", "x86"]


def make_if_known(name: str) -> None:
    """Registers an intrinsic of which there are as many as sizes; the core asks for a name that it does not know."""
    amx.make_if_named(name)
