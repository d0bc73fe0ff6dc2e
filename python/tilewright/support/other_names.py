"""Modules under other names: those that they had in earlier versions, and those of TVM."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

#: by folder: the modules in it that stood beside the folders until version 0.1. What is imported or was pickled under
#: such a name is the module in the folder
_MOVED = {
    "cli": ["user_script"],
    "database": ["origins", "postgres_store", "record_lines", "records", "workload_lines"],
    "kernel": ["device", "dump", "num_threads", "strided"],
    "report": ["charts", "database_report", "spending", "target_names"],
    "support": [
        *("dtype_names", "early_interrupts", "file_names", "function_names", "limits", "machine", "named_functions"),
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
}


class Loader(importlib.abc.Loader):
    """Gives a module that exists under another name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module itself, not a copy: what one name sees, the other sees too."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Ran already; the import system has put its own spec over the module's."""
        module.__spec__ = self._spec


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules that have moved."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module that has moved from that name; None for all other names."""
        return importlib.machinery.ModuleSpec(fullname, Loader(MOVED[fullname])) if fullname in MOVED else None


def install() -> None:
    """Make the earlier names importable; they are looked for after all others."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())
