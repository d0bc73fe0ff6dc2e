"""tvm.meta_schedule.utils: components as plain Python classes, and what tests use beside them."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.error import TVMError
from tilewright.compat.tvm.meta_schedule import tune_context  # noqa: F401  (says how contexts are seen)
from tilewright.compat.tvm.meta_schedule.seen import seen
from tilewright.meta_schedule.derived import (
    cpu_count,
    fork_seed,
    get_global_func_with_default_on_worker,
    remove_build_dir,
    shash2hex,
)

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.utils")

__all__ = [
    "asking",
    "asks",
    "call_derived",
    "cpu_count",
    "default_text",
    "derived_object",
    "fork_seed",
    "get_global_func_with_default_on_worker",
    "initialize",
    "remove_build_dir",
    "shash2hex",
    "supported",
]


def call_derived(component: Any, method: str, *args: Any) -> Any:
    """Calls a method of the user's object behind a component; raises where its class does not define it."""
    function = component._methods.get(method)
    if function is None:
        words = "".join(word.capitalize() for word in method.strip("_").split("_"))
        raise TVMError(f"{component._base}'s {words} method not implemented!")
    return function(*(seen(argument) for argument in args))


def initialize(self: Any, context: Any) -> None:
    """What TVM calls `_initialize_with_tune_context`."""
    self.initialize(context)


def asking(base: Any, *methods: str) -> Any:
    """The class of components behind a Py class: methods that ask those of the user's object."""

    def of(name: str) -> Callable[..., Any]:
        return lambda self, *args: call_derived(self, name, *args)

    made = {name: of(name) for name in methods}
    if (begin := "_initialize_with_tune_context") in made:
        made |= {"initialize": made[begin], begin: initialize}
    return type(f"_Py{base.__name__}", (base,), made)


def asks(component: Any, *fields: str) -> Callable[[Any], Any]:
    """The decorator of a Py class, the base of the user's: the component that stands for it, or the class whose methods
    it defines; and what that takes of the user's object."""

    def decorate(cls: Any) -> Any:
        methods = [name for name, value in vars(cls).items() if inspect.isfunction(value)]
        made = component if component.__name__.startswith("_") else asking(component, *methods)
        cls._tvm_metadata = {"cls": made, "methods": [*methods, "__str__"], "fields": [*fields]}
        return cls

    return decorate


def supported(kind: str, what: str) -> str:
    """The kind of target, if TVM has default parts of it."""
    if kind not in ("llvm", "cuda", "cuda-tensorcore", "hexagon"):
        raise ValueError(f"Unsupported kind {kind} for {what} creation.")
    return kind


def default_text(self: Any) -> str:
    """How a component is written whose class does not say: "meta_schedule.NAME(0xADDRESS)"."""
    return f"meta_schedule.{type(self).__name__}({hex(id(self))})"


def derived_object(cls: type) -> Any:
    """Makes a component of a class that derives from one of TVM's Py classes (PyScheduleRule, PyMutator, ...).

    The base says by ``_tvm_metadata`` which component it stands for ("cls"), which methods that calls, and which fields
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
    """The methods of the object by name; None for those that it has from the base."""
    return {
        name: None if getattr(type(inst), name, None) is getattr(base, name, None) else getattr(inst, name)
        for name in names
    }
