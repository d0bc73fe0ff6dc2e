"""The pass inject_virtual_threads: what is the same for all virtual threads runs once, unless it adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import agrees, script_after

import tilewright as tw
from tilewright.script import from_source


def kernel(statement: str) -> Any:
    """Six blocks of three virtual and four real threads."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32"), B: T.Buffer((6, 4), "int32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        for v in T.thread_binding(3, thread="vthread.x"):
            for t in T.thread_binding(4, thread="threadIdx.x"):
                {statement}
""")


A = np.array([3, 1, 4, 1, 5, 9], "int32")


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize(
    ("statement", "start", "times"),
    [("T.atomic_add(T.address_of(C[b]), A[b])", 0, 12), ("if t == 1:\n T.atomic_add(T.address_of(C[b]), 2)", 5, 0)],
)
def test_an_atomic_operation_runs_for_each_virtual_thread(target: str, statement: str, start: int, times: int) -> None:
    start_values, rows = np.full(6, start, "int32"), np.zeros((6, 4), "int32")
    expected = start_values + (times * A if times else 3 * 2)
    program = kernel(statement.replace("\n ", "\n" + " " * 20))
    agrees(program, "inject_virtual_threads", [A, start_values, rows], [A, expected, rows], target)
    if target == "opencl":
        found = start_values.copy()
        tw.compile(program, target=target)(A, found, rows)
        np.testing.assert_array_equal(found, expected)


def test_steps_of_sums_that_are_the_same_run_for_each_virtual_thread() -> None:
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in T.thread_binding(6, thread="threadIdx.x"):
        for k in T.thread_binding(3, thread="vthread.x"):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi]
""")
    found = np.zeros(6, "int32")
    tw.compile(program, target="opencl", schedule="as written")(A, found)
    np.testing.assert_array_equal(found, 3 * A)


def test_the_same_store_runs_once() -> None:
    program = kernel("B[b, t] = A[b] + t")
    assert "T.unroll" not in script_after(program, "inject_virtual_threads", "opencl")
    rows = A[:, None] + np.arange(4, dtype="int32")
    agrees(program, "inject_virtual_threads", [A, A, 0 * rows], [A, A, rows], "opencl")


def test_a_value_that_was_loaded_before_a_barrier_stays_the_same() -> None:
    """The element that it was loaded from has another value behind the barrier."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), G: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for v in T.thread_binding(2, thread="vthread.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            x: T.int32 = G[v * 4 + t] * 2
            G[v * 4 + t] = A[v * 4 + t]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[v * 4 + t] = x + v
""")
    a, g, b = np.arange(8, dtype="int32"), np.arange(30, 38, dtype="int32"), np.zeros(8, "int32")
    expected = 2 * g + np.repeat(np.arange(2, dtype="int32"), 4)
    for target in ("opencl", "cuda"):
        agrees(program, "inject_virtual_threads", [a, g, b], [a, a, expected], target)
    tw.compile(program, target="opencl")(a, g, b)
    np.testing.assert_array_equal(b, expected)
