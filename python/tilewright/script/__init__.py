"""TVMScript: tensor programs as Python-syntax text.

>>> from tilewright.script import tir as T, ir as I
>>> program = from_source(text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.script import ir, ir_builder, tir
    from tilewright.script.ir import ir_module
    from tilewright.script.scripts import evaluate, from_file, from_source

_MODULES = {"tir", "ir", "ir_builder"}
_NAMES = {"from_source": "scripts", "from_file": "scripts", "evaluate": "scripts", "ir_module": "ir"}

__all__ = ["evaluate", "from_file", "from_source", "ir", "ir_builder", "ir_module", "tir"]

__getattr__ = lazy(__name__, _NAMES, _MODULES)
