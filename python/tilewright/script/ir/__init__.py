"""The namespace I of scripts: modules and what they hold.

>>> from tilewright.script import ir as I
"""

from __future__ import annotations

from tilewright import _core
from tilewright.ir import load_json
from tilewright.script.dialect import dialect as _dialect
from tilewright.script.ir.modules import ir_module, module_attrs
from tilewright.script.tir.frames import Range

GlobalVar = _core.GlobalVar

_dialect("ir").names["I"] = lambda: __import__("tilewright.script.ir", fromlist=["I"])

__all__ = ["GlobalVar", "Range", "ir_module", "load_json", "module_attrs"]
