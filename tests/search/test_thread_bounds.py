"""Tilings that give a block too few or too many threads are refused before they are replayed."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from search.test_tune_device import integers, product
from tilewright import _core


def threads_of(schedule: Any) -> list[int]:
    """Return the extents of the loops of the schedule that are bound to threads."""
    found: list[int] = []

    def look(node: Any) -> None:
        if isinstance(node, _core.For) and node.thread_binding and node.thread_binding.thread_tag == "threadIdx.x":
            found.append(int(node.extent))

    for function in schedule.mod.functions.values():
        _core.visit(function, look)
    return found


def test_most_tilings_with_a_wrong_number_of_threads_are_not_replayed():
    most = 64
    program, target = product(32, 48, 16), f"opencl -max_threads_per_block={most}"
    result = tw.tune(program, target=target, trials=1, seed=5, progress=None)
    a, b = integers(32, 16), integers(16, 48, seed=1)
    np.testing.assert_array_equal(result.kernel(a, b), a @ b)
    threads = threads_of(result.schedule)
    assert threads and all(32 <= extent <= most for extent in threads)
    early, late = (result.progress.refusals.get(code, (0, ""))[0] for code in ("ThreadBounds", "VerifyGPUCode"))
    assert early > late and "threads" in result.progress.refusals["ThreadBounds"][1]
