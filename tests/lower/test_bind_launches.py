"""The pass bind_launches: T.launch_thread is a loop over threads, whatever is declared between two launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import check

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T

A = np.arange(256, dtype="float32").reshape(4, 64)


def test_each_launch_is_a_loop() -> None:
    @T.prim_func(private=True)
    def before(A: T.Buffer((4, 64)), B: T.Buffer((4, 64))):
        b = T.launch_thread("blockIdx.x", 4)
        S = T.decl_buffer((64,), scope="shared")
        with T.launch_thread("threadIdx.x", 64) as t:
            S[t] = A[b, t]
        with T.launch_thread("threadIdx.x", 64) as u:
            B[b, u] = S[63 - u]

    @T.prim_func(private=True)
    def after(A: T.Buffer((4, 64)), B: T.Buffer((4, 64))):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            S = T.decl_buffer((64,), scope="shared")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                S[t] = A[b, t]
            for u in T.thread_binding(64, thread="threadIdx.x"):
                B[b, u] = S[63 - u]

    check(before, "bind_launches", after)


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
@pytest.mark.parametrize(
    "lines",
    [
        ['b = T.launch_thread("blockIdx.x", 4)', "{shared}", 't = T.launch_thread("threadIdx.x", 64)'],
        ['b = T.launch_thread("blockIdx.x", 4)', 't = T.launch_thread("threadIdx.x", 64)', "{shared}"],
        ['b = T.launch_thread("blockIdx.x", 4)', 'S_1 = T.allocate([64], "float32", "shared")',
         't = T.launch_thread("threadIdx.x", 64)', 'S = T.decl_buffer((64,), data=S_1, scope="shared")'],
    ],
)  # fmt: skip
def test_threads_that_are_launched_exchange_data(target: str, lines: list[str]) -> None:
    declared = 'S = T.decl_buffer((64,), scope="shared")'
    text = "".join(f"    {line}\n" for line in lines).format(shared=declared)
    program: Any = from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4, 64)), B: T.Buffer((4, 64))):\n"
        + text
        + "    S[t] = A[b, t]\n    B[b, t] = S[63 - t]\n"
    )
    found = np.zeros_like(A)
    tw.compile(program, target=target)(A, found)
    np.testing.assert_array_equal(found, A[:, ::-1])
