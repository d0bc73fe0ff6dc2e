"""The namespace I of builders."""

from __future__ import annotations

from typing import Any

from tilewright.script.core import script as _script

module_attrs = _script.module_attrs
decl_function = _script.decl_function
def_function = _script.def_function


def ir_module() -> Any:
    """Open a module; the functions built inside become its functions."""
    return _script.module()
