"""tvm.script.parser."""

from __future__ import annotations

from tilewright.compat.tvm.script import tir
from tilewright.compat.tvm.script.parser import core, relax
from tilewright.script import from_source as parse
from tilewright.script import ir, ir_module

__all__ = ["core", "ir", "ir_module", "parse", "relax", "tir"]
