"""Memory that threads share, where other loops stand between theirs."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import script


@pytest.mark.parametrize("inner", ["threadIdx.x", "vthread.x", "threadIdx.y"])
@pytest.mark.parametrize("outer", ["T.parallel(2)", "range(2)"])
def test_iterations_between_loops_of_threads_own_what_they_share(inner: str, outer: str) -> None:
    """Each iteration of the loop between has a buffer of its own, which all threads around and inside share."""
    around = "threadIdx.x" if inner == "threadIdx.y" else "threadIdx.y"
    program = script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(A: T.Buffer((2,), "int32"), B: T.Buffer((4, 2, 3), "int32")):
    S = T.alloc_buffer((1,), "int32", scope="shared")
    for i in T.thread_binding(4, thread="{around}"):
        for j in {outer}:
            with T.block("S"):
                v = T.axis.spatial(2, j)
                S[0] = A[v]
            for k in T.thread_binding(3, thread="{inner}"):
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    B[vi, vj, vk] = S[0]
"""
    )
    a, b = np.array([3, 5], "int32"), np.zeros((4, 2, 3), "int32")
    tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
    np.testing.assert_array_equal(b, np.broadcast_to(a[None, :, None], b.shape))
