"""The namespace I of scripts: modules and what they hold.

>>> from tilewright.script import ir as I
"""

from __future__ import annotations

import sys as _sys

from tilewright import _core
from tilewright.ir import load_json
from tilewright.script.dialect import dialect as _dialect
from tilewright.script.ir.modules import (
    dummy_global_info,
    ir_module,
    module_attrs,
    module_get_attr,
    module_get_attrs,
    module_global_infos,
    module_set_attr,
)
from tilewright.script.tir.frames import Range

GlobalVar = _core.GlobalVar

_dialect("ir").names["I"] = lambda: _sys.modules[__name__]

__all__ = [
    "GlobalVar",
    "Range",
    "dummy_global_info",
    "ir_module",
    "load_json",
    "module_attrs",
    "module_get_attr",
    "module_get_attrs",
    "module_global_infos",
    "module_set_attr",
]
