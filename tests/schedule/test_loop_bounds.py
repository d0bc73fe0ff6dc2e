"""split and fuse refuse loops whose body changes what their bounds read."""

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
