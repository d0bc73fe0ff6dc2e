"""Components whose methods call those of a user's Python object, of a class derived from one of TVM's Py classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm.error import TVMError
from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm

__all__ = ["call_derived", "delegates_to", "delegating_class", "initialize", "supported"]


def call_derived(component: Any, method: str, *args: Any) -> Any:
    """Call a method of the user's object behind a component; raise an error if its class does not define it."""
    function = component._methods.get(method)
    if function is None:
        words = "".join(word.capitalize() for word in method.strip("_").split("_"))
        raise TVMError(f"{component._base}'s {words} method not implemented!")
    return function(*(as_tvm(argument) for argument in args))


def initialize(self: Any, context: Any) -> None:
    """Implement TVM's `_initialize_with_tune_context` by `initialize`."""
    self.initialize(context)


def delegating_class(base: Any, *methods: str) -> Any:
    """Return the class of components for a Py class; its methods call those of the user's object."""

    def of(name: str) -> Callable[..., Any]:
        return lambda self, *args: call_derived(self, name, *args)

    made = {name: of(name) for name in methods}
    if (begin := "_initialize_with_tune_context") in made:
        made |= {"initialize": made[begin], begin: initialize}
    return type(f"_Py{base.__name__}", (base,), made)


def delegates_to(component: Any, *fields: str) -> Callable[[Any], Any]:
    """Return the decorator of a Py class, the base of users' classes. It records the component class, or the class
    whose methods the component overrides, and the fields that are copied from the user's object."""

    def decorate(cls: Any) -> Any:
        methods = [name for name, value in vars(cls).items() if inspect.isfunction(value)]
        made = component if component.__name__.startswith("_") else delegating_class(component, *methods)
        cls._tvm_metadata = {"cls": made, "methods": [*methods, "__str__"], "fields": [*fields]}
        return cls

    return decorate


def supported(kind: str, what: str) -> str:
    """Return the kind of target, if TVM has default parts for it."""
    if kind not in ("llvm", "cuda", "cuda-tensorcore", "hexagon"):
        raise ValueError(f"Unsupported kind {kind} for {what} creation.")
    return kind
