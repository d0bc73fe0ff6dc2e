"""Steps refuse loops whose bounds read what the program changes, where they would be asked at another time."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

CHANGED = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(2):
        for k in range(N[0]):
            with T.block("b"):
                v = T.axis.opaque(64, k)
                B[v] = B[v] + A[v]
                N[0] = 3
"""


@pytest.mark.parametrize(("step", "code"), [("split", "split/P8"), ("fuse", "fuse/P5")])
def test_loops_that_change_their_bounds_are_not_rewritten(step, code):
    """A condition of the new loops, or the extent of the fused one, would be asked at another time."""
    sch = tw.Schedule(from_source(CHANGED))
    loops = sch.get_loops("b")
    with pytest.raises(tw.ScheduleError, match=r"read what .* changes") as raised:
        _ = sch.split(loops[1], [None, 4]) if step == "split" else sch.fuse(*loops)
    assert raised.value.code == code
    kept = tw.Schedule(from_source(CHANGED.replace("N[0] = 3", "B[v + 1] = 3")))
    loops = kept.get_loops("b")
    kept.split(loops[1], [None, 4]) if step == "split" else kept.fuse(*loops)
    results = []
    for program in (CHANGED.replace("N[0] = 3", "B[v + 1] = 3"), kept):
        b = np.zeros(64, "int32")
        module = from_source(program) if isinstance(program, str) else program
        tw.compile(module)(np.arange(64, dtype="int32"), np.array([9], "int32"), b)
        results.append(b)
    expected = np.zeros(64, "int32")
    for _ in range(2):
        for k in range(9):
            expected[k] += k
            expected[k + 1] = 3
    for b in results:
        np.testing.assert_array_equal(b, expected)


HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "int32"), N: T.Buffer((4,), "int32"), Y: T.Buffer((4, 8), "int32")):
    X = T.alloc_buffer((4, 8), "int32")
    R = T.alloc_buffer((4,), "int32")
"""
ROWS = """
    for i in range(4):
        for j in range(N[0]):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = A[vi + vj]
    N[0] = 2
    for i in range(4):
        for j in range({end}):
            with T.block("c"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial({domain}, j)
                Y[vi, vj] = X[vi, vj] * 2
"""
SUMS = """
    for i in range(4):
        N[i] = {now}
        for j in range(N[i]):
            with T.block("s"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.reduce(8, j)
                with T.init():
                    R[vi] = 0
                R[vi] = R[vi] + A[vi + vj]
    for i in range(4):
        with T.block("c"):
            vi = T.axis.spatial(4, i)
            Y[vi, 0] = R[vi]
"""
LOCAL = """
    for i in range(4):
        for j in range(N[0]):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = A[vi + vj]
            N[0] = 3
"""
CHANGED_BETWEEN = [
    # The rows of t are as long as N[0] was before.
    ("reverse_compute_at/P3", ROWS, lambda sch: sch.reverse_compute_at("c", sch.get_loops("t")[1])),
    ("reverse_compute_inline/P4", ROWS, lambda sch: sch.reverse_compute_inline("c")),
    # The buffer would be allocated before N[0] = 2.
    ("reindex/P5", ROWS, lambda sch: sch.reindex("c", ("write", 0))),
    # The init would ask N[i] before the loop that sets it.
    ("decompose_reduction/P5", SUMS, lambda sch: sch.decompose_reduction("s", sch.get_loops("s")[0])),
    # All rows but the first one have three elements.
    ("cache_index/P4", LOCAL, lambda sch: sch.cache_index("t", "local")),
]


@pytest.mark.parametrize(("code", "text", "step"), CHANGED_BETWEEN, ids=[case[0] for case in CHANGED_BETWEEN])
def test_bounds_that_change_between_blocks(code, text, step):
    text = HEAD + text.format(end="N[0]", domain="N[0]" if code.startswith("reindex/") else "8", now="3 - i")
    sch = tw.Schedule(from_source(text))
    with pytest.raises(tw.ScheduleError) as raised:
        step(sch)
    assert raised.value.code == code and raised.value.hint
