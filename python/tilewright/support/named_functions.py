"""Functions that are called by a name: builders, runners and rules may name a function that another process has."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tilewright.errors import ArgumentError

__all__ = ["find", "names", "register", "remove"]

Function = Callable[..., Any]

#: What is there without being registered: name -> "module:attribute", loaded when it is first asked for.
_SHIPPED = {
    "meta_schedule.builder.default_build": "tilewright.meta_schedule.builder:default_build",
    "meta_schedule.builder.default_export": "tilewright.meta_schedule.builder:default_export",
    "meta_schedule.builder.get_local_builder": "tilewright.meta_schedule.builder:LocalBuilder",
    "meta_schedule.cost_model.create": "tilewright.meta_schedule.cost_model:create",
    "meta_schedule.cpu_count": "tilewright.support.machine:cpu_count",
    "meta_schedule.normalize_mod": "tilewright.meta_schedule.tune_context:normalize_module",
    "meta_schedule.remove_build_dir": "tilewright.meta_schedule.builder:remove_build_dir",
    "meta_schedule.runner.default_alloc_argument": "tilewright.meta_schedule.local_runner:default_alloc_argument",
    "meta_schedule.runner.default_cleanup": "tilewright.meta_schedule.local_runner:default_cleanup",
    "meta_schedule.runner.default_run_evaluator": "tilewright.meta_schedule.local_runner:default_run_evaluator",
    "meta_schedule.runner.get_local_runner": "tilewright.meta_schedule.local_runner:LocalRunner",
    "meta_schedule.tune_tir": "tilewright.meta_schedule.tir_integration:tune_tir_in_turn",
    "tvm.meta_schedule.normalize_mod": "tilewright.meta_schedule.tune_context:normalize_module",
    "tvm.meta_schedule.tune_tir": "tilewright.meta_schedule.tir_integration:tune_tir_in_turn",
}
_registered: dict[str, Function] = {}


def register(name: str, function: Function | None = None, override: bool = False) -> Any:
    """Gives a function a name, in this process; without a function, a decorator that does.

    Raises:
        tilewright.ArgumentError: the name is taken, and `override` was not asked for.
    """
    if function is None:
        return lambda decorated: register(name, decorated, override)
    if not override and find(name) is not None:
        raise ArgumentError.of(
            "functions/taken", f"there is a function {name!r} already", "pass override=True, or choose another name"
        )
    _registered[name] = function
    return function


def find(name: str) -> Function | None:
    """The function of that name, None when there is none."""
    if name in _registered:
        return _registered[name]
    if name not in _SHIPPED:
        return None
    module, _, attribute = _SHIPPED[name].partition(":")
    function: Function = getattr(importlib.import_module(module), attribute)
    return function


def need(name: str) -> Function:
    """The function of that name.

    Raises:
        tilewright.ArgumentError: there is none.
    """
    function = find(name)
    if function is None:
        raise ArgumentError.of(
            "functions/unknown",
            f"there is no function {name!r}",
            "register it in this process: named_functions.register(name, function); for a worker, in `initializer`",
        )
    return function


def names() -> list[str]:
    """All there are, sorted."""
    return sorted({*_SHIPPED, *_registered})


def remove(name: str) -> None:
    """Forgets a registered function."""
    _registered.pop(name, None)
