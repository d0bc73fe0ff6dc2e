"""Earlier names of modules, which may also be those of TVM, and of names in modules."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # importing it takes longer than all else in this package at start
    from importlib.abc import Loader as AnyLoader

#: by folder: modules that were outside of folders until version 0.1. An import or a pickle with such a name refers to
#: the module in the folder
_MOVED = {
    "cli": ["user_script"],
    "database": ["origins", "postgres_store", "record_lines", "records", "workload_lines"],
    "kernel": ["device", "dump", "num_threads", "strided"],
    "report": ["charts", "database_report", "target_names"],
    "support": [
        *("dtype_names", "early_interrupts", "file_names", "function_names", "limits", "machine"),
        *("notes", "numpy_dtype", "target_context", "user_lines", "wrong_arguments"),
    ],
    "task": ["arguments", "index_map", "parameter_names", "reference", "specialize", "verification"],
}

#: earlier name of a module -> its name
MOVED = {
    **{f"tilewright.{name}": f"tilewright.{folder}.{name}" for folder, names in _MOVED.items() for name in names},
    "tilewright.build_flags": "tilewright.kernel.compiler_flags",
    "tilewright.database_damage": "tilewright.database.damage",
    "tilewright.database_upkeep": "tilewright.database.upkeep",
    "tilewright.left_out": "tilewright.kernel.omitted_outputs",
    "tilewright.report_page": "tilewright.report.page",
    "tilewright.spending": "tilewright.report.profiler",
    "tilewright.report.spending": "tilewright.report.profiler",
    "tilewright.meta_schedule.database_kinds": "tilewright.meta_schedule.database.kinds",
    **{
        f"tilewright.meta_schedule.{name}": f"tilewright.meta_schedule.database.{name}"
        for name in (
            *("json_database", "memory_database", "postgres_database", "record_rows", "schedule_fn_database"),
            *("session_store", "sqlite_database", "union_database"),
        )
    },
    **{
        f"tilewright.meta_schedule.{name}": f"tilewright.meta_schedule.runner.{name}"
        for name in ("local_runner", "rpc")
    },
    **{
        f"tilewright.heuristics.cpu.{name}": f"tilewright.heuristics.{name}"
        for name in (
            *("block_info", "channel_groups", "failures", "inlining", "loops", "nested_schedule", "pattern"),
            "sampling",
        )
    },
    "tilewright.named_functions": "tilewright.meta_schedule.named_functions",
    "tilewright.meta_schedule.cost_model": "tilewright.cost_model",
    "tilewright.meta_schedule.feature_extractor": "tilewright.cost_model.feature_extractor",
    # TVM's name, which does not describe the module.
    "tilewright.meta_schedule.utils": "tilewright.meta_schedule.derived",
}

#: module or class -> earlier name in it -> its name
RENAMED = {
    "tilewright.database.upkeep": {"change": "merge_and_prune"},
    "tilewright.support.notes.Note": {"asked": "is_requested"},
    "tilewright.timing": {
        "InTurn": "InterleavedTimes",
        "company": "contention_label",
        "shared": "contention_remark",
        "time_in_turn": "time_interleaved",
    },
    "tilewright.timing.KernelCalls": {"spend": "seconds_of"},
    "tilewright.search.formats.FormatChoice": {"why": "failure"},
    "tilewright.search.modules.ModuleResult": {"left_out": "untuned"},
}


def renamed(owner: str, name: str) -> str:
    """Return the present name for an earlier name, with a deprecation warning.

    Args:
        owner: the module or the class, a key of :data:`RENAMED`.
        name: the earlier name.

    Raises:
        AttributeError: there was no such name.
    """
    from tilewright.support.user_lines import users_level  # loads the core, which importing the package does not

    present = RENAMED[owner].get(name)
    if present is None:
        raise AttributeError(f"{owner} has no attribute '{name}'")
    warnings.warn(f"{owner}.{name} is now called {present}", DeprecationWarning, stacklevel=users_level())
    return present


class Loader:
    """Load a module that exists under another name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module itself, not a copy, so that both names share its state."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import system has replaced; the module is already initialized."""
        module.__spec__ = self._spec


def alias_spec(fullname: str, name: str) -> importlib.machinery.ModuleSpec:
    """Return the spec that loads the module `name` under the name `fullname`."""
    return importlib.machinery.ModuleSpec(fullname, cast("AnyLoader", Loader(name)))


class Finder:
    """Find modules that have moved, alone or with their folder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the module that had this name; None for all other names."""
        if not fullname.startswith("tilewright."):
            return None
        folder = fullname
        while folder and folder not in MOVED:
            folder = folder.rpartition(".")[0]
        if not folder:
            return None
        return alias_spec(fullname, MOVED[folder] + fullname.removeprefix(folder))


def install() -> None:
    """Make the earlier names importable. The finder comes first, because Python would also find files of a moved folder
    under its earlier name and load them twice."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
