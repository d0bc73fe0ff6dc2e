"""Blocks that use one memory under two names: NumPy says what the program means, and no step changes that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

#: the region that X names, the element of the whole that is read, and its place seen from that of X
READS = {"a later one": ("0:4", "Y[v + 1]", 1), "an earlier one": ("1:5", "Y[v]", -1)}


def program(region: str, read: str) -> Any:
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((8,), "int32")):
    with T.block("views"):
        T.reads(A[0:4], C[0:8])
        T.writes(C[0:8])
        X = T.match_buffer(C[{region}], (4,), "int32", offset_factor=1)
        Y = T.match_buffer(C[0:8], (8,), "int32", offset_factor=1)
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                T.reads(A[v], {read})
                T.writes(X[v])
                X[v] = A[v] + {read}
""")


def loop(sch: tw.Schedule) -> Any:
    return sch.get_loops("B")[0]


STEPS = {
    "parallel": lambda sch: sch.parallel(loop(sch)),
    "vectorize": lambda sch: sch.vectorize(loop(sch)),
    "bind": lambda sch: sch.bind(loop(sch), "threadIdx.x"),
    "reorder": lambda sch: sch.reorder(*reversed(sch.split(loop(sch), [2, 2]))),
    "transform_block_layout": lambda sch: sch.transform_block_layout("B", lambda i: (3 - i,)),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("read", READS)
def test_the_order_of_iterations_matters(read: str, step: str) -> None:
    region, element, _ = READS[read]
    sch = tw.Schedule(program(region, element))
    with pytest.raises(tw.ScheduleError, match="accesses one memory as"):
        STEPS[step](sch)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
@pytest.mark.parametrize("read", READS)
def test_they_run_as_written(read: str, target: str) -> None:
    region, element, distance = READS[read]
    a, c = np.arange(4, dtype="int32"), np.arange(0, 80, 10, dtype="int32")
    want, first = c.copy(), int(region[0])
    for v in range(4):
        want[first + v] = a[v] + want[first + v + distance]
    tw.compile(program(region, element), target=target)(a, c)
    np.testing.assert_array_equal(c, want)


def test_a_reduction_stays_with_its_init() -> None:
    source = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((8,), "int32")):
    with T.block("views"):
        T.reads(A[0:4, 0:8], C[0:8])
        T.writes(C[0:8])
        X = T.match_buffer(C[0:4], (4,), "int32", offset_factor=1)
        Y = T.match_buffer(C[0:8], (8,), "int32", offset_factor=1)
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk], Y[vi + 1])
                T.writes(X[vi])
                with T.init():
                    X[vi] = 0
                X[vi] = X[vi] + A[vi, vk] * Y[vi + 1]
""")
    for step in (
        lambda sch: sch.decompose_reduction("B", loop(sch)),
        lambda sch: sch.rfactor(sch.get_loops("B")[1], 0),
        lambda sch: sch.bind(sch.get_loops("B")[1], "threadIdx.x"),
    ):
        with pytest.raises(tw.ScheduleError):
            step(tw.Schedule(source))
