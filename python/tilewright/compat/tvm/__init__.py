"""TVM's names for what Tilewright has, as of v0.20, so that existing scripts run unchanged.

Three ways to start it::

    import tilewright.compat.tvm          # then: import tvm, from tvm.script import tir as T, ...
    python -m tilewright.compat.tvm script.py
    pytest -p tilewright.compat.tvm my_script.py

Importing this module makes ``import tvm`` mean Tilewright in this process; where the real package has been imported
before, it refuses. Nothing else changes: what Tilewright's own users see stays as it is, but that nodes have further
attributes. The other two ways run scripts of TVM, so programs and traces are printed in its words.
A name that Tilewright does not have raises an error that names it. There is no logic here: a name refers to what is
implemented elsewhere in Tilewright.
"""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.alias import install, missing

install()

from tilewright.compat.tvm import (  # noqa: E402
    _ffi,
    arith,
    contrib,
    error,
    ir,
    meta_schedule,
    runtime,
    script,
    sparse,
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
from tilewright.compat.tvm.printing import AS_TVM  # noqa: E402
from tilewright.compat.tvm.runtime import DataType, convert, cpu, cuda, device, nd, opencl  # noqa: E402
from tilewright.compat.tvm.testing import pytest_generate_tests  # noqa: E402
from tilewright.compat.tvm.testing.targets import fixtures  # noqa: E402
from tilewright.script.wording import enter  # noqa: E402

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
    "contrib",
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
    "opencl",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_terminal_summary",
    "register_func",
    "runtime",
    "script",
    "sparse",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
]


def pytest_configure(config: Any) -> None:
    """Hook of pytest: gives tests their target and its device; texts are TVM's."""
    enter(AS_TVM)
    config.pluginmanager.register(fixtures(), "tilewright.compat.tvm.testing.targets")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Hook of pytest: says how many comparisons needed proofs."""
    if Proofs.report():
        terminalreporter.write_line(Proofs.report())
