"""Where memory of kernels stands once all loops over threads are one nest."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source


@pytest.mark.parametrize("between", ["", "for u in T.thread_binding(4, thread='threadIdx.y'):"])
def test_main_memory_of_one_thread_becomes_local(between: str) -> None:
    """Threads that share the scratch of a search overwrite each other's."""
    func = from_source(f"""
@T.prim_func
def main(P: T.Buffer((38,), "int32"), M: T.Buffer((168,), "int32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("search"):
                vp = T.axis.spatial(168, b * 32 + t)
                T.where(b * 32 + t < 168)
                low = T.alloc_buffer((1,), "int32")
                high = T.alloc_buffer((1,), "int32")
                low[0] = 1
                high[0] = 37
                while low[0] < high[0]:
                    middle: T.int32 = low[0] + (high[0] - low[0]) // 2
                    if P[middle] > vp:
                        high[0] = middle
                    else:
                        low[0] = middle + 1
                {between or "if True:"}
                    M[vp] = low[0] - 1
""")
    kernel = tw.compile(func, target="opencl", schedule="as written")
    header = kernel.inspect("opencl").split("__kernel")[1].split("{")[0]
    # What threads along another axis share stays in main memory.
    assert ("low" in header) == bool(between)
    if between:
        return
    ends = np.linspace(0, 168, 38).astype("int32")
    found = np.zeros(168, "int32")
    kernel(ends, found)
    np.testing.assert_array_equal(found, np.searchsorted(ends, np.arange(168), side="right") - 1)
