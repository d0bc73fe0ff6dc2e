"""The pass plan_allocations: buffers move to the innermost place that holds all their accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.lower.passes import agrees, allocations, check_unchanged

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


@T.prim_func
def two_stages(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    with T.block("root"):
        t = T.alloc_buffer((64,))
        for i in range(16):
            for j in range(4):
                with T.block("t"):
                    v = T.axis.spatial(64, i * 4 + j)
                    t[v] = A[v] * T.float32(2)
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(64, i * 4 + j)
                    B[v] = t[v] + T.float32(1)


def test_buffers_move_to_their_accesses_and_shrink() -> None:
    assert allocations(two_stages, "plan_allocations") == {"t": ("i", [64])}
    assert allocations(two_stages, "compact_buffers") == {"t": ("i", [4])}


def test_buffers_stay_outside_of_loops_that_carry_values() -> None:
    @T.prim_func
    def program(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
        with T.block("root"):
            total = T.alloc_buffer((16,))
            state = T.alloc_buffer((1,))
            for k in range(16):
                for i in range(16):
                    with T.block("total"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            total[vi] = T.float32(0)
                        total[vi] = total[vi] + A[vi, vk]
            for i in range(16):
                with T.block("C"):
                    vi = T.axis.spatial(16, i)
                    C[vi] = total[vi]
            for t in range(16):
                with T.block("state"):
                    vt = T.axis.opaque(16, t)
                    state[0] = T.if_then_else(vt == 0, T.float32(0), state[0]) + C[vt]
                    D[vt] = state[0]

    assert allocations(program, "plan_allocations") == {"total": ("", [16]), "state": ("", [1])}


def test_blocks_around_the_new_place_no_longer_name_the_buffer() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        t = T.alloc_buffer((8,), "float32")
        for i in range(2):
            with T.block("tile"):
                vi = T.axis.spatial(2, i)
                for j in range(4):
                    with T.block("inside"):
                        vj = T.axis.spatial(4, j)
                        t[vi * 4 + vj] = T.float32(1)
                        A[vi * 4 + vj] = T.float32(2)

    after = tw.lower(before, after="plan_allocations")
    blocks: list[Any] = []
    ir.post_order_visit(
        after.functions["before"].body, lambda node: blocks.append(node) if isinstance(node, ir.Block) else None
    )
    (tile,) = (block for block in blocks if block.name_hint == "tile")
    assert [region.buffer.name for region in [*tile.reads, *tile.writes]] == ["A"]
    assert [block.name_hint for block in blocks if block.alloc_buffers] == [""]
    check_equivalent(before, tw.lower(before))


def test_blocks_that_only_declare_a_buffer_no_longer_do() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        t = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                t[vi] = A[vi]
        with T.block("says so"):
            T.reads(t[0:8], A[0:8])
            T.writes(B[0:8])
            for i in range(8):
                B[i] = A[i]

    assert "t[0:8]" not in tw.lower(before, after="plan_allocations").script()
    check_equivalent(before, tw.lower(before))


def test_nothing_is_allocated_in_a_vectorized_loop() -> None:
    @T.prim_func
    def program(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((4, 16))
            for i in range(4):
                for j in T.vectorized(16):
                    with T.block("t"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        t[vi, vj] = A[vi, vj]
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = t[vi, vj]

    assert allocations(program, "compact_buffers") == {"t": ("i", [1, 16])}


def test_a_buffer_in_its_new_place_holds_the_same_values() -> None:
    a = np.arange(64, dtype="float32")
    agrees(two_stages, "plan_allocations", [a, np.zeros_like(a)], [a, a * 2 + 1])


def test_a_buffer_that_is_read_after_the_loop_stays() -> None:
    @T.prim_func
    def apart(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        with T.block("root"):
            T.reads(A[0:8])
            T.writes(B[0:8])
            t = T.alloc_buffer((8,))
            for i in range(8):
                with T.block("t"):
                    v = T.axis.spatial(8, i)
                    t[v] = A[v] * T.float32(2)
            for i in range(8):
                with T.block("B"):
                    v = T.axis.spatial(8, i)
                    B[v] = t[7 - v]

    check_unchanged(apart, "plan_allocations")
    a = np.arange(8, dtype="float32")
    agrees(apart, "plan_allocations", [a, np.zeros_like(a)], [a, 2 * a[::-1]])


def test_domains_of_axes_are_accesses() -> None:
    @T.prim_func
    def program(A: T.Buffer((12,), "float32"), B: T.Buffer((4,), "float32")):
        with T.block("root"):
            P = T.alloc_buffer((5,), "int32")
            for i in range(5):
                with T.block("P"):
                    vi = T.axis.spatial(5, i)
                    P[vi] = vi * 3
            for i, p in T.grid(4, 3):
                with T.block("sum"):
                    vi = T.axis.spatial(4, i)
                    vp = T.axis.reduce(P[i + 1] - P[i], p)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi * 3 + vp]

    assert allocations(program, "plan_allocations") == {"P": ("", [5])}
    A = np.arange(12, dtype="float32")
    agrees(program, "plan_allocations", [A, np.zeros(4, "float32")], [A, A.reshape(4, 3).sum(1)])
    B = np.zeros(4, "float32")
    tw.compile(program)(A, B)
    np.testing.assert_array_equal(B, A.reshape(4, 3).sum(1))


def test_regions_whose_bounds_are_said_by_a_buffer_that_moves() -> None:
    """The body of "add" reads neither P nor B: the region P[B[vk]] does not keep B where it was."""

    @T.prim_func
    def program(P: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        with T.block("root"):
            B = T.alloc_buffer((8,), "int32")
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = 7 - vi
            for i in range(8):
                with T.block("row"):
                    vi = T.axis.spatial(8, i)
                    T.reads(C[vi], P[0:8], B[0:8])
                    T.writes(C[vi])
                    for k in range(8):
                        with T.block("add"):
                            vk = T.axis.spatial(8, k)
                            T.reads(C[vi], P[B[vk]], B[vk])
                            T.writes(C[vi])
                            C[vi] = C[vi] + T.float32(1)

    assert "B" in allocations(program, "plan_allocations")
    for target in ("interpreter", "native"):
        C = np.zeros(8, "float32")
        tw.compile(program, target=target)(np.zeros(8, "int32"), C)
        np.testing.assert_array_equal(C, np.full(8, 8, "float32"))
