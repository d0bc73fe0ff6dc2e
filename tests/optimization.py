"""How much LLVM optimizes the kernels that tests run once, on a few elements: most of them not at all.

Almost half of the time of the tests of schedules, lowering and heuristics was LLVM's, ours and that of PoCL. Defects of
these layers show in any code. Optimized code finds what only the optimizer relies on, so a share of the tests has it,
always the same ones.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tilewright import _core

#: folders whose kernels for processors are compiled by `quick`. Those of `codegen` are not: they are there for
#: attributes that the optimizer relies on, as `noalias` and `nsw`.
QUICK = {"heuristics", "interpreter", "lower", "schedule", "script", "sparse"}
#: folders whose kernels for devices are compiled without optimization
ON_DEVICES = QUICK | {"codegen"}
#: one test of so many is optimized all the same; with 1, all tests are
SHARE = int(os.environ.get("TILEWRIGHT_OPTIMIZED_SHARE", "4"))

compile_object = _core.compile_object


def is_optimized(item: Any) -> bool:
    """Return whether a test belongs to the share, or is marked."""
    return item.get_closest_marker("optimized") is not None or zlib.crc32(item.nodeid.encode()) % SHARE == 0


@contextmanager
def of_test(item: Any) -> Iterator[None]:
    """Compile what the test runs as `is_optimized` says. Code to read, and that of other processes, is optimized."""
    folder = Path(item.path).relative_to(Path(__file__).parent).parts[0]
    if folder not in ON_DEVICES or is_optimized(item):
        yield
        return

    def quickly(lowered: Any, target: str = "native", *kept: bool, **options: Any) -> Any:
        is_on_host = target.startswith(("opencl", "cuda"))
        quick = (folder in QUICK or is_on_host) and not any(kept)
        return compile_object(lowered, target, *kept, **{"quick": quick, **options})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "compile_object", quickly)
        patch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")  # PoCL reads it whenever it compiles a program
        yield
