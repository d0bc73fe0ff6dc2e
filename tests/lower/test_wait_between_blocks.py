"""The pass wait_between_blocks: loops over threads that stand one after another keep their order in the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import agrees

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source


def kernel(own: str) -> Any:
    """What one loop over threads leaves in main memory, the next one reads, at places that data choose."""
    return from_source(f"""
@T.prim_func
def main(
    I: T.Buffer((32,), "int32"), A: T.Buffer((4, 32), "int32"), R: T.Buffer((4, 32), "int32"),
    B: T.Buffer((4, 32), "int32")
):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for k in range(3):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                R[b, t] = A[b, t] * 2 + k
                {own}
            for u in T.thread_binding(32, thread="threadIdx.x"):
                B[b, u] = B[b, u] + R[b, I[u]]
""")


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize("own", ["T.evaluate(0)", 'T.tvm_storage_sync("shared")'])
def test_loops_over_threads_run_one_after_another(target: str, own: str) -> None:
    draw = np.random.default_rng(0)
    i, a = draw.permutation(32).astype("int32"), draw.integers(-50, 50, (4, 32)).astype("int32")
    r, b = a * 2 + 2, (6 * a + 3)[:, i]
    given, expected = [i, a, 0 * a, 0 * a], [i, a, r, b]
    program = kernel(own)
    agrees(program, "wait_between_blocks", given, expected, target)
    for name, module in _core.lower_stages(tw.Schedule(program).mod, target):
        arrays = [each.copy() for each in given]
        _core.interpret(module, "main", *arrays)
        for found, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}\n{module.script()}")
    # In each iteration, one barrier before R is read, and one before the next iteration writes it.
    assert module.script().count("tvm_storage_sync") == 2
