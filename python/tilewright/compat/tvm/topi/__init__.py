"""tvm.topi: operators as formulas. Other names can be mentioned, since files import them beside what they use; each use
of one raises."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.alias import absent
from tilewright.compat.tvm.topi import elementwise, nn, reduction, shapes
from tilewright.compat.tvm.topi.elementwise import *  # noqa: F403
from tilewright.compat.tvm.topi.reduction import *  # noqa: F403
from tilewright.compat.tvm.topi.shapes import *  # noqa: F403

__getattr__ = absent("tvm.topi")

__all__ = ["matmul", "nn", *elementwise.__all__, *reduction.__all__, *shapes.__all__]


def matmul(a: Any, b: Any, transp_a: bool = False, transp_b: bool = False) -> Any:
    """Return the matrix product."""
    return nn.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)
