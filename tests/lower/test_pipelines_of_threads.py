"""Software pipelines inside of loops over threads: any two threads may access what they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from lower.passes import agrees
from tilewright.script import from_source

PASS = "inject_software_pipelines"
STAGES = '{"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}'


@pytest.mark.parametrize("shift", [1, 5])
def test_elements_of_other_threads_are_not_written_before_these_have_read_them(shift: int) -> None:
    """`S[tx]` and `S[tx + 1]` differ for each thread, and are one element for two of them."""

    def program(outside: str, inside: str) -> Any:
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 32), "int32"), B: T.Buffer((6, 32), "int32")):
    {outside}
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for k in T.serial(6, annotations={STAGES}):
            with T.block("both"):
                T.reads(A[k, 0:32])
                T.writes(B[k, 0:32])
                {inside}
                with T.block("S"):
                    T.reads(A[k, tx])
                    T.writes(S[tx])
                    S[tx] = A[k, tx]
                with T.block("B"):
                    T.where(tx + {shift} < 32)
                    T.reads(S[tx + {shift}])
                    T.writes(B[k, tx])
                    B[k, tx] = S[tx + {shift}]
""")

    buffer = f'S = T.alloc_buffer(({32 + shift},), "int32", scope="shared")'
    a, b = np.arange(6 * 32, dtype="int32").reshape(6, 32), np.zeros((6, 32), "int32")
    expected = b.copy()
    expected[:, : 32 - shift] = a[:, shift:]
    agrees(program("", buffer), PASS, [a, b], [a, expected], "opencl")
    tw.compile(program("", buffer), target="opencl")(a, b)
    np.testing.assert_array_equal(b, expected)
    with pytest.raises(tw.Error) as raised:
        tw.compile(program(buffer, ""), target="opencl")
    assert raised.value.code == "lower/pipeline-order"


@pytest.mark.parametrize("target", ["G", "B"])
def test_rows_of_threads_are_their_own(target: str) -> None:
    """Elements 8 * tx + k of one iteration and 8 * tx + k + 1 of the next one meet for no two threads."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((256,), "int32"), G: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for k in T.serial(8, annotations={STAGES}):
            with T.block("G"):
                T.reads(A[tx * 8 + k])
                T.writes(G[tx * 8 + k])
                G[tx * 8 + k] = A[tx * 8 + k] + 1
            with T.block("B"):
                T.reads(G[tx * 8 + k])
                T.writes({target}[tx * 8 + k])
                {target}[tx * 8 + k] = G[tx * 8 + k] * 2
""")
    a = np.arange(256, dtype="int32")
    arrays = {"A": a, "G": np.zeros(256, "int32"), "B": np.zeros(256, "int32")}
    expected = {**arrays, "G": a + 1, target: 2 * (a + 1)}
    agrees(program, PASS, list(arrays.values()), list(expected.values()), "opencl")
    tw.compile(program, target="opencl")(*arrays.values())
    for name, found in arrays.items():
        np.testing.assert_array_equal(found, expected[name])
