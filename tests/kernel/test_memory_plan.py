"""kernel.inspect("memory") and kernel.report["kernels"]: where kernels keep their buffers, and where threads wait."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import from_source

EXCHANGE = """
@T.prim_func
def main(A: T.Buffer((4, 32)), B: T.Buffer((4, 32), "float16"), C: T.Buffer((4, 32))):
    S = T.alloc_buffer((32,), scope="shared")
    U = T.alloc_buffer((32,), "float16", scope="shared")
    x = T.alloc_buffer((1,), scope="local")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("S"):
                S[tx] = A[bx, tx]
            with T.block("x"):
                x[0] = S[31 - tx]
            with T.block("U"):
                U[tx] = B[bx, tx]
            with T.block("C"):
                C[bx, tx] = x[0] + T.cast(U[31 - tx], "float32")
"""


def rows(kernel: Any) -> dict[str, str]:
    """The lines of the table, by the first word."""
    return {line.split()[0]: " ".join(line.split()[1:]) for line in kernel.inspect("memory").splitlines()}


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_buffers_that_are_never_alive_together_share_bytes(target: str) -> None:
    kernel = tw.compile(tw.Schedule(from_source(EXCHANGE)), target=target)
    found = rows(kernel)
    assert found["main_kernel:"] == "blocks of 32 threads, 128 bytes of shared memory, 3 barriers"
    assert found["S"] == "shared 32 float32 128 0 U" and found["U"] == "shared 32 float16 64 0 S"
    assert found["x"] == "local 1 float32 4 each thread"
    uses = kernel.report["kernels"]
    assert {use["kernel"] for use in uses} <= {"tw_main_kernel"}
    if target == "opencl":
        assert uses == [{"kernel": "tw_main_kernel", "threads": 32, "shared_bytes": 128, "barriers": 3}]
    else:
        assert all(use["shared_bytes"] == 128 for use in uses)


def test_each_kernel_has_a_table() -> None:
    program = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,)), C: T.Buffer((64,))):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            B[i] = A[i] * T.float32(2)
    for i in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("C"):
            C[i] = B[63 - i]
"""
    kernel = tw.compile(tw.Schedule(from_source(program)), target="opencl")
    text, uses = kernel.inspect("memory"), kernel.report["kernels"]
    assert [use["threads"] for use in uses] == [64, 32] and len({use["kernel"] for use in uses}) == 2
    assert text.count("0 bytes of shared memory, 0 barriers") == 2 and "blocks of 32 threads" in text


def test_kernels_of_processors_have_no_plan() -> None:
    a = te.placeholder((64,), name="A")
    kernel = tw.compile(te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 2.0, name="B")]))
    with pytest.raises(tw.ArgumentError) as raised:
        kernel.inspect("memory")
    assert raised.value.code == "kernel/inspect" and "kernels" not in kernel.report
