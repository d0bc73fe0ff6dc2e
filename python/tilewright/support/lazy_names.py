"""Load names of a package when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def lazy(package: str, names: Mapping[str, str], modules: Collection[str] | None = None) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: name of the package.
        names: public name -> the module in the package that defines it.
        modules: modules of the package that are loaded as attributes; None for all of them.
    """

    def getattr_(name: str) -> Any:
        if name in names:
            value = getattr(importlib.import_module(f"{package}.{names[name]}"), name)
        else:
            known = _modules_of(package) if modules is None else modules
            if name not in known:
                raise _UnknownName(package, name, [*names, *known])
            value = importlib.import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return getattr_


def _modules_of(package: str) -> set[str]:
    return {module.name for module in pkgutil.iter_modules(sys.modules[package].__path__)}


class _UnknownName(AttributeError):
    """Suggests the closest name, which takes a millisecond, only when it is printed: hasattr() discards the error."""

    def __str__(self) -> str:
        import difflib

        package, name, known = self.args
        close = difflib.get_close_matches(name, [attribute for attribute in known if "." not in attribute], n=1)
        perhaps = f"; did you mean {close[0]!r}?" if close else ""
        return f"module {package!r} has no attribute {name!r}{perhaps}"
