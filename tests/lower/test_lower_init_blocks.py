"""The pass lower_init_blocks: the init of a reduction runs before its loops, or at their first iteration."""

from __future__ import annotations

import numpy as np
from tests.lower.passes import agrees, check, check_unchanged, script_after

import tilewright as tw
from tilewright.script import tir as T


def test_initialization_runs_before_its_reduction() -> None:
    @T.prim_func
    def before(A: T.Buffer((16, 64, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        for i, k, j in T.grid(16, 64, 8):
            with T.block("C"):
                vi, vk, vj = T.axis.remap("SRS", [i, k, j])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk, vj]

    @T.prim_func
    def expected(A: T.Buffer((16, 64, 8), "float32"), C: T.Buffer((16, 8), "float32")):
        for i in range(16):
            for j in range(8):
                C[i, j] = T.float32(0)
            for k, j in T.grid(64, 8):
                C[i, j] = C[i, j] + A[i, k, j]

    check(before, "lower_blocks", expected)


def test_initialization_stays_where_loops_mix_axes() -> None:
    @T.prim_func
    def before(A: T.Buffer((16, 64), "float32"), C: T.Buffer((16,), "float32")):
        for k, i in T.grid(64, 32):
            with T.block("C"):
                vi = T.axis.spatial(16, i // 2)
                vk = T.axis.reduce(128, k * 2 + i % 2)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk // 2]

    @T.prim_func
    def expected(A: T.Buffer((16, 64), "float32"), C: T.Buffer((16,), "float32")):
        for k, i in T.grid(64, 32):
            if k * 2 + i % 2 == 0:
                C[i // 2] = T.float32(0)
            C[i // 2] = C[i // 2] + A[i // 2, (k * 2 + i % 2) // 2]

    check(before, "lower_blocks", expected)


def test_the_init_is_a_block_before_the_loops_of_the_reduction() -> None:
    @T.prim_func
    def sums(A: T.Buffer((4, 6), "int32"), C: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 5
                C[vi] = C[vi] + A[vi, vk]

    text = script_after(sums, "lower_init_blocks")
    assert text.index("for i in range(4)") < text.index('T.block("C_init")') < text.index("for k in range(6)")
    assert "T.init()" not in text
    a = np.arange(24, dtype="int32").reshape(4, 6)
    agrees(sums, "lower_init_blocks", [a, np.full(4, 99, "int32")], [a, a.sum(1, dtype="int32") + 5])


def test_the_init_waits_where_it_reads_what_the_loop_writes() -> None:
    """Before the loop, D would hold what the call passed."""

    @T.prim_func
    def sums(A: T.Buffer((4, 6), "int32"), D: T.Buffer((6,), "int32"), C: T.Buffer((4,), "int32")):
        for k in range(6):
            with T.block("D"):
                vk = T.axis.spatial(6, k)
                D[vk] = vk + 1
            for i in range(4):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = D[0]
                    C[vi] = C[vi] + A[vi, vk]

    text = script_after(sums, "lower_init_blocks")
    assert text.index('T.block("D")') < text.index("C[vi] = D[0]")
    a = np.arange(24, dtype="int32").reshape(4, 6)
    steps = np.arange(1, 7, dtype="int32")
    given = [a, np.full(6, 50, "int32"), np.full(4, 99, "int32")]
    agrees(sums, "lower_init_blocks", given, [a, steps, a.sum(1, dtype="int32") + 1])


def test_no_init_runs_where_an_empty_loop_leaves_axes_without_values() -> None:
    """`vi` is bound to -1 under a loop without iterations: outside of it, there is no such element to begin with."""

    @T.prim_func
    def empty(A: T.Buffer((4, 12), "int32"), C: T.Buffer((4,), "int32")):
        t = T.alloc_buffer((4,), "int32")
        for i, k in T.grid(2, 0):
            with T.block("S"):
                vi = T.axis.spatial(4, i - 1)
                vk = T.axis.reduce(12, k % 12)
                with T.init():
                    t[vi] = 5
                t[vi] = t[vi] + A[vi, vk]
        for i in range(0):
            with T.block("R"):
                vi = T.axis.spatial(4, i)
                C[vi] = t[vi]

    a, c = np.ones((4, 12), "int32"), np.full(4, 99, "int32")
    agrees(empty, "lower_init_blocks", [a, c], [a, c])
    tw.compile(empty, schedule="as written")(a, found := c.copy())
    np.testing.assert_array_equal(found, c)


def test_blocks_without_an_init_stay() -> None:
    @T.prim_func
    def adds(A: T.Buffer((4, 6), "int32"), C: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]

    check_unchanged(adds, "lower_init_blocks")
