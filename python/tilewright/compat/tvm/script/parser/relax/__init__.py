"""tvm.script.parser.relax: as tvm.script.relax."""

from __future__ import annotations

from tilewright.compat.tvm.script.parser.relax import entry

__all__ = ["entry"]
