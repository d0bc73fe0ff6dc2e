"""tvm.script.parser.relax: as tvm.script.relax."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.script.parser.relax import entry

__getattr__ = missing("tvm.script.parser.relax")

__all__ = ["entry"]
