"""tvm.script: programs as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from tilewright import script
from tilewright.compat.tvm.script import highlight, parser, printer, relax, tir
from tilewright.script import ir, ir_builder, ir_module
from tilewright.script.tir.functions import parse_function


def from_source(source: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True) -> Any:
    """Parse a program: a text, in which T has TVM's spellings, a function, or a class."""
    if isinstance(source, FunctionType) and source.__name__ != "<lambda>":
        return parse_function(source, sys._getframe(1), False, check_well_formed)
    names = {"T": tir, "tvm": sys.modules[__name__.rpartition(".")[0]]} if isinstance(source, str) else {}
    return script.from_source(source, {**names, **(extra_vars or {})}, check_well_formed)


parse = from_source

__all__ = ["from_source", "highlight", "ir", "ir_builder", "ir_module", "parse", "parser", "printer", "relax", "tir"]
