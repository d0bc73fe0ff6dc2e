"""How the names of TVM find their way to Tilewright: an import hook, and classes under another signature."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from tilewright import _core
from tilewright.support.other_names import alias_spec

PACKAGE = "tilewright.compat.tvm"

#: Modules of TVM whose names all stand in the package around them here.
IN_THEIR_PACKAGE = {
    "tvm.arith": ("analyzer", "bound", "int_set", "int_solver", "iter_affine_map", "pattern"),
    "tvm.ir": ("attrs", "container", "expr", "function", "op", "type"),
    "tvm.runtime": ("container", "device", "object", "script_printer"),
    "tvm.target": ("tag", "target"),
    "tvm.te": ("operation", "tag", "tensor"),
    "tvm.testing": ("utils",),
    "tvm.driver": ("build_module",),
    "tvm.tir": ("generic",),
    "tvm.tir.analysis": ("analysis",),
    "tvm.tir.transform": ("transform",),
    "tvm.tir.schedule": ("trace",),
    "tvm.meta_schedule.builder": ("builder", "local_builder"),
    "tvm.meta_schedule.cost_model": ("cost_model",),
    "tvm.meta_schedule.database": (
        *("database", "json_database", "memory_database", "ordered_union_database", "schedule_fn_database"),
        "union_database",
    ),
    "tvm.meta_schedule.feature_extractor": ("feature_extractor", "per_store_feature", "random_feature_extractor"),
    "tvm.meta_schedule.measure_callback": (
        *("add_to_database", "measure_callback", "remove_build_artifact", "update_cost_model"),
    ),
    "tvm.meta_schedule.mutator": (
        *("mutate_compute_location", "mutate_parallel", "mutate_thread_binding", "mutate_tile_size", "mutate_unroll"),
        "mutator",
    ),
    "tvm.meta_schedule.postproc": (
        *("disallow_async_strided_mem_copy", "disallow_dynamic_loop", "postproc", "rewrite_cooperative_fetch"),
        *("rewrite_layout", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block", "rewrite_tensorize"),
        *("rewrite_unbound_block", "verify_gpu_code", "verify_vtcm_limit"),
    ),
    "tvm.meta_schedule.runner": ("config", "runner"),
    "tvm.meta_schedule.schedule_rule": (
        *("add_rfactor", "apply_custom_rule", "auto_bind", "auto_inline", "cross_thread_reduction"),
        *("multi_level_tiling", "parallel_vectorize_unroll", "random_compute_location", "schedule_rule"),
    ),
    "tvm.meta_schedule.search_strategy": ("evolutionary_search", "replay_func", "replay_trace", "search_strategy"),
    "tvm.meta_schedule.space_generator": (
        *("post_order_apply", "schedule_fn", "space_generator", "space_generator_union"),
    ),
    "tvm.meta_schedule.task_scheduler": ("gradient_based", "round_robin", "task_scheduler"),
}

#: Modules of TVM that are modules of Tilewright as they stand.
SAME = {
    **{
        f"{package}.{module}": f"tilewright.compat.{package}"
        for package, modules in IN_THEIR_PACKAGE.items()
        for module in modules
    },
    **{
        f"tvm.tir.{module}": f"tilewright.{module}"
        for module in (
            *("tensor_intrin.arm_cpu", "tensor_intrin.dot_product_common", "tensor_intrin.hexagon"),
            "tensor_intrin.x86",
        )
    },
    "tvm.ir.transform": "tilewright.compat.tvm.transform",
    "tvm.tir.schedule.transform": "tilewright.auto_tensorize",
    "tvm.instrument": "tilewright.compat.tvm.ir.instrument",
    "tvm.contrib.utils": "tilewright.compat.tvm.contrib.temporary_directories",
    "tvm.script.ir": "tilewright.script.ir",
    "tvm.script.parser.ir": "tilewright.script.ir",
    "tvm.script.parser.tir": "tilewright.compat.tvm.script.tir",
    "tvm.script.parser.core.entry": "tilewright.compat.tvm.script",
    "tvm.script.parser.core.utils": "tilewright.compat.tvm.script.parser.core.captures",
    "tvm.meta_schedule.post_opt": "tilewright.meta_schedule.post_optimization",
    "tvm.meta_schedule.runner.utils": "tilewright.compat.tvm.meta_schedule.runner.user_functions",
    "tvm.meta_schedule.utils": "tilewright.compat.tvm.meta_schedule.derived",
    **{
        f"tvm.meta_schedule.{module}": f"tilewright.meta_schedule.{module}"
        for module in (
            *("arg_info", "extracted_task", "logging", "post_optimization", "profiler", "trace_apply"),
            *("cost_model.mlp_model", "cost_model.random_model"),
        )
    },
    "tvm.script.ir_builder": "tilewright.script.ir_builder",
    "tvm.target.codegen": "tilewright.compat.tvm.target_codegen",
    "tvm.script.ir_builder.base": "tilewright.compat.tvm.script.builder_base",
    "tvm.script.ir_builder.ir": "tilewright.script.ir_builder.ir",
    **{f"tvm.script.ir_builder.tir{module}": "tilewright.script.ir_builder.tir" for module in ("", ".frame", ".ir")},
    "tvm.script.parser.ir.entry": "tilewright.script.ir",
    "tvm.script.parser.tir.entry": "tilewright.compat.tvm.script.tir",
}


class FileLoader(importlib.machinery.SourceFileLoader):
    """Loader of a module that stands for one of TVM: it may contain modules of ``SAME``, and refuses other names."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the file, which may define its own ``__path__`` and ``__getattr__``."""
        vars(module).setdefault("__path__", [])
        vars(module)["__getattr__"] = missing(module.__name__.removeprefix("tilewright.compat."))
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finder of ``tvm`` and its modules; the error for a missing one names it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the module behind an alias; None for other names."""
        if fullname.startswith(PACKAGE + "."):
            fullname = fullname.removeprefix("tilewright.compat.")
            if fullname not in SAME:
                spec = importlib.machinery.PathFinder.find_spec(f"tilewright.compat.{fullname}", path)
                if spec is None or spec.origin is None:
                    raise missing_module(fullname)
                spec.loader = FileLoader(spec.name, spec.origin)
                return spec
            return alias_spec(f"tilewright.compat.{fullname}", SAME[fullname])
        if fullname != "tvm" and not fullname.startswith("tvm."):
            return None
        name = SAME.get(fullname, f"tilewright.compat.{fullname}")
        if not _exists(name):
            raise missing_module(fullname)
        return alias_spec(fullname, name)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    parent, _, leaf = name.rpartition(".")
    path = getattr(importlib.import_module(parent), "__path__", None)
    return bool(path) and importlib.machinery.PathFinder.find_spec(f"{parent}.{leaf}", path) is not None


def missing_module(name: str) -> ModuleNotFoundError:
    """Return the error for a name that cannot be imported."""
    return ModuleNotFoundError(f"Tilewright has no {name} yet", name=name)


def missing(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of the module that stands for `module`; it finds the modules of ``SAME`` below
    that."""

    def getattr_(name: str) -> Any:
        if f"{module}.{name}" in SAME:
            return importlib.import_module(SAME[f"{module}.{name}"])
        raise AttributeError(f"Tilewright has no {module}.{name} yet", name=name)

    return getattr_


class Absent:
    """Placeholder for a name that a module imports or mentions, but that Tilewright does not have.

    It has its name; every use of it raises.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name.rpartition(".")[2]
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Tilewright has no {self._name} yet", name=name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error: Tilewright has no such function."""
        raise AttributeError(f"Tilewright has no {self._name} yet", name=self.__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        return Absent, (self._name,)

    def __repr__(self) -> str:
        return f"<Tilewright has no {self._name} yet>"


def absent(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a missing module that scripts import without need."""

    def getattr_(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"Tilewright has no {module}.{name} yet", name=name)
        return Absent(f"{module}.{name}")

    return getattr_


def install() -> None:
    """Make ``import tvm`` import Tilewright.

    Raises:
        ImportError: the real package is imported already; mixing both would end in confusion.
    """
    known = sys.modules.get("tvm")
    if known is not None and known is not sys.modules[PACKAGE]:
        where = getattr(known, "__file__", None) or "unknown place"
        raise ImportError(
            f"another package 'tvm' is imported (from {where}); import {PACKAGE} before it, or use one of the two"
        )
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    sys.modules["tvm"] = sys.modules[PACKAGE]


class Renamed(type):
    """The metaclass of a class that stands for another one under TVM's signature.

    Calling it calls its ``make``; its instances are those of ``node``.
    """

    node: Any
    make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an object of the underlying class."""
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.node)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.node)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.node, name)


def as_expr(value: Any, dtype: str | None = None) -> Any:
    """Return an expression, a number as a constant of this type."""
    return value if isinstance(value, _core.Expr) else _core.const(value, dtype)


def no_span(span: Any) -> None:
    """Raise an error for a span argument: spans come from the text of scripts."""
    if span is not None:
        raise TypeError("Tilewright takes no span here yet")
