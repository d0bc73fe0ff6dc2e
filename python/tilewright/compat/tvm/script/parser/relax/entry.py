"""tvm.script.parser.relax.entry: as tvm.script.relax."""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__getattr__ = absent("tvm.script.parser.relax.entry")
