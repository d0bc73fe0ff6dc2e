"""tvm.meta_schedule.utils: components as plain Python classes, and what tests use beside them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule import tune_context  # noqa: F401  (registers the subclass)
from tilewright.meta_schedule.derived import (
    cpu_count,
    fork_seed,
    get_global_func_with_default_on_worker,
    remove_build_dir,
    shash2hex,
)

__getattr__ = missing("tvm.meta_schedule.utils")

__all__ = [
    "cpu_count",
    "derived_object",
    "fork_seed",
    "get_global_func_with_default_on_worker",
    "remove_build_dir",
    "shash2hex",
]


def default_text(self: Any) -> str:
    """Return the text that TVM prints for a component: the name of its class and its address."""
    return f"meta_schedule.{type(self).__name__}({hex(id(self))})"


def derived_object(cls: type) -> Any:
    """Return the component class for a class that derives from one of TVM's Py classes (PyScheduleRule, PyMutator,
    ...).

    The base declares in ``_tvm_metadata`` which component it is ("cls"), which methods that calls, and which fields
    it takes. The component holds the user's object as ``_inst`` and forwards attributes to it; the object knows the
    component as ``_outer()``.
    """
    if hasattr(cls, "_type") and cls._type == "TVMDerivedObject":
        raise TypeError(f"Inheritance from a decorated object `{cls.__name__}` is not allowed: inherit from its _cls")
    bases = [parent for parent in cls.__mro__ if "_tvm_metadata" in vars(parent)]
    if not bases:
        raise TypeError(f"{cls.__name__} derives from none of the Py classes of tvm.meta_schedule")
    base: Any = bases[0]
    metadata: dict[str, Any] = base._tvm_metadata
    component: Any = metadata["cls"]

    class Derived(component):  # type: ignore[misc]
        _cls = cls
        _type = "TVMDerivedObject"
        _base = base.__name__

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            inst = cls(*args, **kwargs)
            object.__setattr__(self, "_inst", inst)
            object.__setattr__(self, "_methods", _overridden(inst, base, metadata["methods"]))
            super().__init__(*(getattr(inst, field) for field in metadata.get("fields", ())))
            inst._outer = weakref.ref(self)

        def __init_subclass__(cls, **kwargs: Any) -> None:
            raise TypeError(
                f"Inheritance from a decorated object `{cls.__name__}` is not allowed: inherit from its _cls"
            )

        def __getattr__(self, name: str) -> Any:
            if name == "_inst":
                raise AttributeError(name)
            return getattr(self._inst, name)

        def __setattr__(self, name: str, value: Any) -> None:
            of_component = hasattr(component, name)
            if of_component:
                object.__setattr__(self, name, value)
            if not of_component or name in metadata.get("fields", ()):
                setattr(self._inst, name, value)

        def __str__(self) -> str:
            return str(self._methods["__str__"]()) if self._methods.get("__str__") else default_text(self)

    functools.update_wrapper(Derived, cls, updated=())
    for name, value in vars(cls).items():
        if isinstance(value, classmethod | staticmethod):
            setattr(Derived, name, value)
    return Derived


def _overridden(inst: Any, base: type, names: list[str]) -> dict[str, Callable[..., Any] | None]:
    """Return the methods of the object by name; None for those that it inherits from the base."""
    return {
        name: None if getattr(type(inst), name, None) is getattr(base, name, None) else getattr(inst, name)
        for name in names
    }
