"""The namespace I of builders."""

from __future__ import annotations

from typing import Any

from tilewright import _core

module_attrs = _core._script.module_attrs
decl_function = _core._script.decl_function
def_function = _core._script.def_function


def ir_module() -> Any:
    """A module; the functions built inside become its functions."""
    return _core._script.module()
