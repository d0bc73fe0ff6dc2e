"""Components that were written for TVM's names, and other names of TVM's module ``utils``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.cost_model import create as create_cost_model
from tilewright.meta_schedule import builder, named_functions
from tilewright.meta_schedule.builder import LocalBuilder, remove_build_dir
from tilewright.meta_schedule.runner import LocalRunner, local_runner
from tilewright.meta_schedule.tir_integration import fork_seed, tune_tir_round_robin
from tilewright.meta_schedule.tune_context import normalize_module
from tilewright.support.machine import cpu_count

__all__ = [
    "cpu_count",
    "derived_object",
    "fork_seed",
    "get_global_func_with_default_on_worker",
    "remove_build_dir",
    "shash2hex",
]

Component = TypeVar("Component", bound=type)
shash2hex = "{:016x}".format

#: functions of Tilewright that can be given by these names without being registered
SHIPPED: dict[str, Callable[..., Any]] = {
    **builder.SHIPPED,
    **local_runner.SHIPPED,
    "meta_schedule.builder.get_local_builder": LocalBuilder,
    "meta_schedule.cost_model.create": create_cost_model,
    "meta_schedule.cpu_count": cpu_count,
    "meta_schedule.normalize_mod": normalize_module,
    "meta_schedule.remove_build_dir": remove_build_dir,
    "meta_schedule.runner.get_local_runner": LocalRunner,
    "meta_schedule.tune_tir": tune_tir_round_robin,
    "tvm.meta_schedule.normalize_mod": normalize_module,
    "tvm.meta_schedule.tune_tir": tune_tir_round_robin,
}


def derived_object(cls: Component) -> Component:
    """Make a class that derives from one of the Py classes a component, as TVM's decorator does.

    Such classes are components already; the decorator only makes ``_initialize_with_tune_context`` the ``initialize``
    that a search calls.

    >>> @ms.derived_object
    ... class AsItIs(ms.PyScheduleRule):
    ...     def _initialize_with_tune_context(self, context):
    ...         self.target = context.target
    ...
    ...     def apply(self, sch, block):
    ...         return [sch]

    Args:
        cls: the class, with the methods of its base.
    """
    published = getattr(cls, "_initialize_with_tune_context", None)
    if published is not None and "initialize" not in vars(cls):
        cls.initialize = published  # type: ignore[attr-defined]
    return cls


def get_global_func_with_default_on_worker(name: Any, default: Callable[..., Any] | None) -> Any:
    """Return the function with a name, or the function itself; the default for None."""
    if name is None:
        return default
    return named_functions.need(name, SHIPPED) if isinstance(name, str) else name
