"""tvm.tir.tensor_intrin.cuda: those of Nvidia's GPUs, which files import beside what they use.

Names can be mentioned, and each use of one raises.
"""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__path__: list[str] = []
__getattr__ = absent("tvm.tir.tensor_intrin.cuda")
