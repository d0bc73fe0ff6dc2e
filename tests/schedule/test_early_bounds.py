"""Steps do not ask for ranges of loops where the program does not: with a size of zero, or beyond the end of a loop,
these might divide by zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.testing import check, check_refused

SUMS = """@T.prim_func
def main(a: T.handle, C: T.Buffer((24,), "int32")):
    n = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n, 24), "int32")
    for k in range({outer}):
        for i in range({inner}):
            with T.block("C"):
                vi = T.axis.spatial(24, i)
                vk = T.axis.reduce({outer}, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vk, vi] * (vi // 2)
"""
Step = Callable[[tw.Schedule], Any]
STEPS: dict[str, tuple[Step, str]] = {
    "reorder": (lambda sch: sch.reorder(*sch.get_loops("C")[::-1]), "reorder/P3"),
    "fuse": (lambda sch: sch.fuse(*sch.get_loops("C")), "fuse/P5"),
    "cache_index": (lambda sch: sch.cache_index("C", "global", 0), "cache_index/P4"),
    "cache_write": (lambda sch: sch.cache_write("C", 0, "global"), "cache_write/P4"),
    "decompose_reduction": (
        lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[0]),
        "decompose_reduction/P4",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_ranges_stay_in_loops_that_may_not_run(name: str) -> None:
    step, code = STEPS[name]
    before = from_source(SUMS.format(outer="n", inner="24 // n"))
    check_refused(before, step, code)
    result = np.full(24, 5, "int32")
    tw.compile(before, "interpreter")(np.zeros((0, 24), "int32"), result)
    np.testing.assert_array_equal(result, np.full(24, 5))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("outer", "inner"), [("n", "24"), ("n", "24 // (n + 1)"), ("n", "T.min(n, 24)")])
def test_ranges_that_never_fail_move(name: str, outer: str, inner: str) -> None:
    step, _ = STEPS[name]
    sch = tw.Schedule(from_source(SUMS.format(outer=outer, inner=inner)))
    step(sch)
    a = np.arange(72, dtype="int32").reshape(3, 24)
    results = []
    for program in (from_source(SUMS.format(outer=outer, inner=inner)), sch):
        results.append(np.full(24, 5, "int32"))
        tw.compile(program, "interpreter")(a, results[-1])
    np.testing.assert_array_equal(results[1], results[0])


def test_a_range_leaves_a_loop_that_runs() -> None:
    """Where the outer loop runs anyway, the inner one's range is computed in any order."""
    sch = tw.Schedule(from_source(SUMS.format(outer="3", inner="24 // n").replace("A[vk, vi]", "vk")))
    sch.reorder(*sch.get_loops("C")[::-1])


TRIANGLE = """@T.prim_func
def main(C: T.Buffer((10, 24), "int32")):
    for j in range(10):
        for k in range(24 // ({divisor})):
            with T.block("C"):
                vj, vk = T.axis.remap("SS", [j, k])
                C[vj, vk] = vj + vk
"""


def test_split_beyond_the_extent() -> None:
    """Two loops of 2 and 7 iterations reach j = 13."""
    before = from_source(TRIANGLE.format(divisor="12 - j"))
    check_refused(before, lambda sch: sch.split(sch.get_loops("C")[0], [None, 7]), "split/P6")
    check(before, lambda sch: sch.split(sch.get_loops("C")[0], [None, 4]))  # 12 - j is 1 at least
    check(before, lambda sch: sch.split(sch.get_loops("C")[0], [None, 5]))
    check(from_source(TRIANGLE.format(divisor="j + 1")), lambda sch: sch.split(sch.get_loops("C")[0], [None, 7]))


PARTS = """@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((4, 24), "int32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = vi
    for j in range(4):
        for k in range(24 // ({divisor})):
            with T.block("C"):
                vj, vk = T.axis.remap("SS", [j, k])
                C[vj, vk] = vj + vk
"""


def test_other_parts_of_a_fused_loop() -> None:
    """In the iterations of the first part, j is -8 to -1."""

    def fuse(sch: tw.Schedule) -> None:
        sch.horizontal_fuse(sch.get_loops("A")[0], sch.get_loops("C")[0])

    check_refused(from_source(PARTS.format(divisor="j + 1")), fuse, "horizontal_fuse/P3")
    check(from_source(PARTS.format(divisor="j + 9")), fuse)


DOMAINS = """@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n, 24), "int32")
    C = T.match_buffer(c, (n, 24), "int32")
    for k in range(n):
        for i in range({inner}):
            with T.block("C"):
                vi = T.axis.spatial({inner}, i)
                vk = T.axis.spatial(n, k)
                C[vk, vi] = A[vk, vi] * 3
"""
COPIES: dict[str, tuple[Step, str]] = {
    "pad_einsum": (lambda sch: sch.pad_einsum("C", [4, 1]), "pad_einsum/P5"),
    "reindex": (lambda sch: sch.reindex("C", ("read", 0)), "reindex/P5"),
    "reindex_write": (lambda sch: sch.reindex("C", ("write", 0)), "reindex/P5"),
    "reindex_cache_read": (
        lambda sch: sch.reindex_cache_read("C", 0, "global", lambda i, k: (i, k)),
        "reindex_cache_read/P5",
    ),
    "reverse_cache_read": (lambda sch: sch.reverse_cache_read("C", 0, "global"), "reverse_cache_read/P5"),
    "transform_block_layout": (
        lambda sch: sch.transform_block_layout("C", lambda i, k: (i, k)),
        "transform_block_layout/P3",
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_shapes_and_loops_of_copies(name: str) -> None:
    step, code = COPIES[name]
    check_refused(from_source(DOMAINS.format(inner="24 // n")), step, code)
    check(from_source(DOMAINS.format(inner="24 // (n + 1)")), step)


def test_the_shape_of_a_read_copy() -> None:
    producer = DOMAINS.replace("C[", "B[").replace('"C"', '"B"')
    _, _, loops = DOMAINS.partition("    for k")
    text = producer.replace("    for k", '    B = T.alloc_buffer((n, 24), "int32")\n    for k')
    text += ("    for k" + loops).replace("A[", "B[")

    def step(sch: tw.Schedule) -> None:
        sch.cache_read("C", 0, "global")

    check_refused(from_source(text.format(inner="24 // n")), step, "cache_read/P4")
    check(from_source(text.format(inner="24 // (n + 1)")), step)
