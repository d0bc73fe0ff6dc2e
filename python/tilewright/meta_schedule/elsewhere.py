"""Names that TVM has in one module and that lie in several here: they are found from that module, too."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_HERE = "tilewright.meta_schedule"


def elsewhere(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module.

    Args:
        module: its name in this package.
        names: what else is found there: name -> the module of this package that defines it.
    """

    def getattr_(name: str) -> Any:
        if name in names:
            return getattr(importlib.import_module(f"{_HERE}.{names[name]}"), name)
        close = difflib.get_close_matches(name, names, n=1)
        perhaps = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module '{_HERE}.{module}' has no attribute {name!r}{perhaps}", name=name)

    return getattr_


def alias(module: str, where: str) -> ModuleType:
    """A module with what another one has, which is loaded when it is asked for something: "utils" says nothing about
    what it holds, so there is no file of that name here.

    Args:
        module: its name in this package, as TVM has it.
        where: the module of this package that has its names.
    """
    made = ModuleType(f"{_HERE}.{module}", f"What TVM has in its module `{module}`.")

    def getattr_(name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # whoever looks through all modules loads nothing
            raise AttributeError(name)
        return getattr(importlib.import_module(f"{_HERE}.{where}"), name)

    made.__dict__["__getattr__"] = getattr_
    sys.modules[made.__name__] = made
    return made
