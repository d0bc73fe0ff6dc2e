"""tvm.script: programs as text."""

from __future__ import annotations

from tilewright.compat.tvm.script import highlight, parser, printer, relax, tir
from tilewright.script import from_source, ir, ir_builder, ir_module

parse = from_source

__all__ = ["from_source", "highlight", "ir", "ir_builder", "ir_module", "parse", "parser", "printer", "relax", "tir"]
