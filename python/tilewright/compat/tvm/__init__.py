"""TVM's names for what Tilewright has, as of v0.20, so that existing scripts run unchanged.

Three ways to start it::

    import tilewright.compat.tvm          # then: import tvm, from tvm.script import tir as T, ...
    python -m tilewright.compat.tvm script.py
    pytest -p tilewright.compat.tvm tests/test_something.py

Importing this module makes ``import tvm`` mean Tilewright in this process; where the real package has been imported
before, it refuses. A name that Tilewright does not have raises and says so. There is no logic here: what a name does
is done elsewhere in Tilewright.
"""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.alias import install, missing

install()

from tilewright.compat.tvm import (  # noqa: E402
    _ffi,
    arith,
    error,
    ir,
    meta_schedule,
    runtime,
    script,
    target,
    te,
    testing,
    tir,
    topi,
    transform,
)
from tilewright.compat.tvm._ffi.registry import get_global_func, register_func  # noqa: E402
from tilewright.compat.tvm.driver import build, compile, lower  # noqa: E402
from tilewright.compat.tvm.error import TVMError  # noqa: E402
from tilewright.compat.tvm.ir import IRModule  # noqa: E402
from tilewright.compat.tvm.ir.base import Proofs  # noqa: E402
from tilewright.compat.tvm.ir.module import find_functions_as_tvm  # noqa: E402
from tilewright.compat.tvm.printing import print_as_tvm  # noqa: E402
from tilewright.compat.tvm.runtime import DataType, convert, cpu, cuda, device, nd  # noqa: E402
from tilewright.compat.tvm.runtime.module import kernels_as_modules  # noqa: E402
from tilewright.compat.tvm.target import targets_as_tvm  # noqa: E402
from tilewright.compat.tvm.te import tensors_as_tvm  # noqa: E402
from tilewright.compat.tvm.testing import pytest_generate_tests  # noqa: E402
from tilewright.compat.tvm.testing.targets import fixtures  # noqa: E402
from tilewright.compat.tvm.tir.buffer import flatten_as_tvm, read_strides_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.function import specialize_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.index_map import map_arrays_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.schedule.errors import translate_errors  # noqa: E402
from tilewright.compat.tvm.tir.schedule.reorder import reorder_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.schedule.rfactor import rfactor_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.schedule.split import split_as_tvm  # noqa: E402
from tilewright.compat.tvm.tir.schedule.vectorize import vectorize_as_tvm  # noqa: E402

__version__ = "0.20.0"
__getattr__ = missing("tvm")

__all__ = [
    "DataType",
    "IRModule",
    "TVMError",
    "_ffi",
    "arith",
    "build",
    "compile",
    "convert",
    "cpu",
    "cuda",
    "device",
    "error",
    "get_global_func",
    "ir",
    "lower",
    "meta_schedule",
    "nd",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "register_func",
    "runtime",
    "script",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
]


def pytest_configure(config: Any) -> None:
    """Hook of pytest: gives tests their target and its device."""
    config.pluginmanager.register(fixtures(), "tilewright.compat.tvm.testing.targets")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Hook of pytest: says how many comparisons needed proofs."""
    if Proofs.report():
        terminalreporter.write_line(Proofs.report())


find_functions_as_tvm()
print_as_tvm()
kernels_as_modules()
targets_as_tvm()
tensors_as_tvm()
reorder_as_tvm()
rfactor_as_tvm()
split_as_tvm()
vectorize_as_tvm()
translate_errors()
map_arrays_as_tvm()
flatten_as_tvm()
specialize_as_tvm()
read_strides_as_tvm()
