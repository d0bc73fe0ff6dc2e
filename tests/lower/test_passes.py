"""Each pass on the example of its contract, and where it has to stop."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright.ir import assert_structural_equal
from tilewright.script import tir as T
from tilewright.testing import check_equivalent

TARGET = "llvm -mcpu=x86-64-v3"  # 16 registers of 8 floats


def check(before: Any, name: str, expected: Any) -> None:
    """Lowering `before` up to pass `name` gives `expected`, whatever their names are."""
    after = tw.lower(before, after=name, target=TARGET)
    assert_structural_equal(next(iter(after.functions.values())).body, expected.body, map_free_vars=True)


def unchanged(before: Any, name: str) -> None:
    names = [pass_name for pass_name, _ in _core.list_passes()]
    earlier = tw.lower(before, after=names[names.index(name) - 1], target=TARGET)
    assert_structural_equal(tw.lower(before, after=name, target=TARGET), earlier)


def test_passes_are_listed_with_reasons() -> None:
    passes = _core.list_passes()
    names = [name for name, _ in passes]
    assert names.index("check_races") < names.index("lower_prefetches") < names.index("lower_init_blocks")
    assert all(reason for _, reason in passes)


# ---- lower_prefetches


def test_a_prefetch_is_one_hint_for_each_cache_line() -> None:
    @T.prim_func(private=True)
    def before(A: T.Buffer((8, 40), "float32"), x: T.Buffer((), "float64"), n: T.int32):
        T.prefetch(A, [T.Range(0, 4), T.Range(2, n)])
        T.prefetch(x, [])

    @T.prim_func(private=True)
    def after(A: T.Buffer((8, 40), "float32"), x: T.Buffer((), "float64"), n: T.int32):
        for i, j in T.grid(4, (n - 2 + 15) // 16 + 1):
            T.call_intrin("handle", "tir.prefetch", T.address_of(A[i, 2 + T.min(j * 16, n - 2 - 1)]), 0, 3, 1)
        T.call_intrin("handle", "tir.prefetch", T.address_of(x[()]), 0, 3, 1)

    check(before, "lower_prefetches", after)


def test_what_is_allocated_begins_with_a_line() -> None:
    @T.prim_func
    def copied(A: T.Buffer((8, 40), "float32"), B: T.Buffer((8, 40), "float32")):
        t = T.alloc_buffer((8, 48))
        for i, j in T.grid(8, 40):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = A[vi, vj]
        for i in range(8):
            T.prefetch(t, [T.Range(i, i + 1), T.Range(0, 40)])
            T.prefetch(A, [T.Range(i, i + 1), T.Range(0, 40)])
            for j in range(40):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = t[vi, vj]

    text = tw.lower(copied, "lower_prefetches").script()
    assert "T.grid(1, 3)" in text and "T.grid(1, 4)" in text


# ---- plan_allocations


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


def allocations(program: Any, after: str) -> dict[str, tuple[str, list[Any]]]:
    """For each allocated buffer: the loop around its block, and its shape."""
    found: dict[str, tuple[str, list[Any]]] = {}

    def walk(node: Any, loop: str) -> None:
        if isinstance(node, _core.For):
            loop = node.loop_var.name_hint
        if isinstance(node, _core.Block):
            for buffer in node.alloc_buffers:
                found[buffer.name] = (loop, [getattr(extent, "value", extent) for extent in buffer.shape])
        for child in (getattr(node, name, None) for name in ("body", "block", "then_case", "else_case", "init")):
            if child is not None:
                walk(child, loop)
        for child in getattr(node, "seq", ()):
            walk(child, loop)

    for func in tw.lower(program, after=after, target=TARGET).functions.values():
        walk(func.body, "")
    return found


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


# ---- lower_init_blocks, inline_block_axes, lower_match_buffers, lower_blocks


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


def test_views_are_their_source() -> None:
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32")):
        for i in range(2):
            with T.block("B"):
                v = T.axis.spatial(2, i)
                s = T.int32()
                W = T.match_buffer(A[v * 4 : v * 4 + 4, 0:4], (4, 4), strides=[s, 1])
                for a, b in T.grid(4, 4):
                    W[a, b] = T.Cast("float32", s)

    @T.prim_func
    def expected(A: T.Buffer((8, 8), "float32")):
        for i in range(2):
            for a, b in T.grid(4, 4):
                A[i * 4 + a, b] = T.Cast("float32", 8)

    check(before, "lower_blocks", expected)


# ---- flatten_buffers, simplify_indices


@pytest.mark.parametrize("dtype", ["int32", "uint16", "uint32", "uint64"])
def test_rows_that_are_chosen_without_a_sign_are_vectors(dtype: str) -> None:
    @T.prim_func
    def rows(A: T.Buffer((500, 16), "float32"), at: T.Buffer((8,), dtype), B: T.Buffer((8, 16), "float32")):
        for i in range(8):
            for j in T.vectorized(16):
                B[i, j] = A[at[i], j]

    text = tw.lower(rows, target="llvm -mcpu=x86-64-v4").script()
    assert "uint32x16" not in text and "uint64x16" not in text
    assert "T.Broadcast(at" not in text


def test_strides_and_offsets_are_in_the_index() -> None:
    @T.prim_func
    def before(a: T.handle):
        s = T.int32()
        o = T.int32()
        A = T.match_buffer(a, (8, 8), "float32", strides=[s, 1], elem_offset=o)
        for i, j in T.grid(8, 8):
            A[i, j] = T.float32(0)

    assert "A_1[i * A.strides[0] + j + A.elem_offset]" in tw.lower(before, after="flatten_buffers").script()


def test_large_buffers_are_counted_with_64_bits() -> None:
    @T.prim_func
    def before(A: T.Buffer((70000, 70000), "int8")):
        A[69999, 69999] = T.int8(1)

    assert "4899999999" in tw.lower(before, after="simplify_indices").script()


def test_indices_are_simplified() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            if i < 64:
                B[(i * 4 + 2) // 4] = A[i % 64]

    @T.prim_func
    def expected(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        A_1 = T.decl_buffer((64,), "float32", data=A.data)
        B_1 = T.decl_buffer((64,), "float32", data=B.data)
        for i in range(64):
            B_1[i] = A_1[i]

    check(before, "simplify_indices", expected)


def test_conditions_of_values_wrap_around() -> None:
    """Indices do not overflow; what a value depends on may."""

    @T.prim_func
    def wrapped(x: T.int32, n: T.int32, a: T.handle, B: T.Buffer((6,), "int32")):
        A = T.match_buffer(a, (n,), "int32")
        B[0] = T.Select(T.int32(4) > T.int32(0) - T.int32(-2147483648), 1, 2)
        B[1] = T.if_then_else(x + 1 > x, 1, 2)
        B[2] = T.Select(x * 2 // 2 == x, 1, 0)
        for i in range(3):
            B[3 + i] = T.Select(i * 1500000000 >= 0, 1, 2)
        for i in range(n):
            A[i] = T.Select(i + 1 <= n, 1, 2)

    for x in (5, 2147483647):
        found = []
        for target in ("interpreter", "native"):
            a, b = np.zeros(4, "int32"), np.zeros(6, "int32")
            tw.compile(wrapped, target=target)(x, 4, a, b)
            found.append([*a, *b])
        assert found[0] == found[1]
        assert found[0][4:] == [1, 1 if x == 5 else 2, int(x == 5), 1, 1, 2]
    lowered = tw.lower(wrapped, after="simplify_indices", target=TARGET)
    assert "<= n" not in str(lowered)  # sizes are small enough for what is made of them


# ---- vectors


def test_plain_loops_become_vectors() -> None:
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), s: T.float32, B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * s

    @T.prim_func
    def expected(A: T.Buffer((16,), "float32"), s: T.float32, B: T.Buffer((16,), "float32")):
        A_1 = T.decl_buffer((16,), "float32", data=A.data)
        B_1 = T.decl_buffer((16,), "float32", data=B.data)
        B_1[0:16] = A_1[0:16] * T.Broadcast(s, 16)

    check(before, "vectorize_loops", expected)


def test_what_speaks_against_vectors() -> None:
    @T.prim_func
    def total(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(64):
            B[0] = B[0] + A[i]

    @T.prim_func
    def shifted(A: T.Buffer((65,), "float32")):
        for i in range(64):
            A[i + 1] = A[i]

    @T.prim_func
    def strided(A: T.Buffer((576,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = A[i * 9]

    @T.prim_func
    def called(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = T.nextafter(A[i], T.float32(0))

    for program in (total, shifted, strided, called):
        unchanged(program, "vectorize_plain_loops")


@pytest.mark.parametrize(
    ("extent", "lanes"),
    [
        (8, [8]),
        (12, [8, 4]),
        (13, [8, 4, 1]),
        (7, [4, 2, 1]),
        (24, [8, 8, 8]),
        (40, [8] * 5),
        (64, [64]),
        (1000, [32, 8]),
    ],
)
def test_lanes_are_powers_of_two(extent: int, lanes: list[int]) -> None:
    @T.prim_func
    def before(A: T.Buffer((extent,), "float32")):
        for i in T.vectorized(extent):
            A[i] = T.float32(1)

    stores: list[int] = []
    body = tw.lower(before, after="unroll_loops", target=TARGET)

    def note(node: Any) -> None:
        if isinstance(node, _core.BufferStore):
            stores.append(count_lanes(node))

    tw.ir.visit(body, note)
    assert stores == lanes


def test_elementary_functions_have_the_registers_to_themselves() -> None:
    @T.prim_func
    def before(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
        for i in range(1024):
            B[i] = T.pow(A[i], A[i])

    assert "for i in T.vectorized(8)" in tw.lower(before, after="split_vector_loops", target=TARGET).script()


def count_lanes(store: Any) -> int:
    name = str(store.value.dtype)
    return int(name.split("x")[1]) if "x" in name else 1


def test_conditions_of_lanes_are_masks() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in T.vectorized(8):
            if i < n:
                A[i] = A[i] + T.float32(1)

    after = tw.lower(before, after="vectorize_loops", target=TARGET)
    assert after.script().count("predicate=T.Ramp(0, 1, 8) < T.Broadcast(n, 8)") == 2


# ---- partition_loops, unroll_loops, promote_registers, plan_workspaces


def test_full_tiles_have_no_conditions() -> None:
    @T.prim_func
    def before(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        for i, a in T.grid(17, 6):
            if i * 6 + a < 100:
                B[i * 6 + a] = T.nextafter(A[i * 6 + a], T.float32(0))

    @T.prim_func
    def expected(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        A_1 = T.decl_buffer((100,), "float32", data=A.data)
        B_1 = T.decl_buffer((100,), "float32", data=B.data)
        for i, a in T.grid(16, 6):
            B_1[i * 6 + a] = T.nextafter(A_1[i * 6 + a], T.float32(0))
        for a in range(4):
            B_1[96 + a] = T.nextafter(A_1[96 + a], T.float32(0))

    check(before, "partition_loops", expected)


def test_iterations_in_which_nothing_happens_are_left_out() -> None:
    """Two tails in one another: of the last tile's rows some are full, one is partial, and the others are not there."""

    @T.prim_func
    def rows(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64, 8), "float32")):
        for i, j in T.grid(64, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    sch = tw.Schedule(rows)
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    _, group, row = sch.split(i, [None, 8, 5])
    local = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(local, group)
    for loop in (j, sch.get_loops(local)[-1]):
        sch.vectorize(loop)
    sch.unroll(row)
    text = tw.lower(sch, after="partition_loops", target=TARGET).script()
    assert "T.min(" not in text and "if " not in text
    assert all(buffer["promoted"] for buffer in tw.compile(sch, target=TARGET).report["promotions"])
    a = np.arange(512, dtype="float32").reshape(64, 8)
    b = np.zeros_like(a)
    tw.compile(sch, target=TARGET)(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_both_ends_of_a_loop_may_be_idle() -> None:
    @T.prim_func
    def before(B: T.Buffer((100,), "int32"), C: T.Buffer((100,), "int32")):
        for i in range(20):
            for a in range(6):
                if i * 6 + a >= 30 and i * 6 + a < 62:
                    B[i * 6 + a] = a
            for a in range(6):
                if i * 6 + a < 32:
                    C[i * 6 + a] = a
        for i in range(20):
            for a in range(6):
                if i * 6 + a >= 31 and i * 6 + a < 62:
                    B[i * 6 + a] = B[i * 6 + a] + a

    check_equivalent(before, tw.lower(before, after="partition_loops"))
    text = tw.lower(before, after="partition_loops").script()
    assert "range(11, 20)" not in text and "range(20)" not in text


def test_symbolic_tails() -> None:
    @T.prim_func
    def before(b: T.handle):
        n = T.int32()
        B = T.match_buffer(b, (n,), "float32")
        for i in range((n + 3) // 4):
            for a in range(4):
                if i * 4 + a < n:
                    B[i * 4 + a] = T.nextafter(B[i * 4 + a], T.float32(0))

    text = tw.lower(before, after="partition_loops").script()
    assert "for i, a in T.grid(n // 4, 4):" in text
    assert "for a in range(n % 4):" in text  # of the last i, which there is where n % 4 is not 0
    assert "if " not in text


def test_parallel_loops_branch_instead() -> None:
    @T.prim_func
    def before(B: T.Buffer((100,), "float32")):
        for i in T.parallel(17):
            for a in range(6):
                if i * 6 + a < 100:
                    B[i * 6 + a] = T.nextafter(B[i * 6 + a], T.float32(0))

    text = tw.lower(before, after="partition_loops").script()
    assert text.count("T.parallel") == 1
    assert "if i < 16:" in text and "for a in range(4):" in text


def test_accumulators_become_slots() -> None:
    @T.prim_func
    def before(A: T.Buffer((64, 16), "float32"), B: T.Buffer((16,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((2, 8), scope="local")
            for i in range(2):
                for j in T.vectorized(8):
                    X[i, j] = T.float32(0)
            for k in range(64):
                for i in range(2):
                    for j in T.vectorized(8):
                        X[i, j] = X[i, j] + A[k, i * 8 + j]
            for i in range(2):
                for j in T.vectorized(8):
                    B[i * 8 + j] = X[i, j]

    @T.prim_func
    def expected(A: T.Buffer((64, 16), "float32"), B: T.Buffer((16,), "float32")):
        A_1 = T.decl_buffer((1024,), "float32", data=A.data)
        B_1 = T.decl_buffer((16,), "float32", data=B.data)
        x = T.decl_buffer((1,), "float32x8", scope="local")
        y = T.decl_buffer((1,), "float32x8", scope="local")
        x[0] = T.Broadcast(T.float32(0), 8)
        y[0] = T.Broadcast(T.float32(0), 8)
        for k in range(64):
            x[0] = x[0] + A_1[k * 16 : k * 16 + 8]
            y[0] = y[0] + A_1[k * 16 + 8 : k * 16 + 8 + 8]
        B_1[0:8] = x[0]
        B_1[8:16] = y[0]

    check(before, "promote_registers", expected)
    promotion = tw.compile(before, target=TARGET, schedule="as written").report["promotions"][0]
    assert promotion.pop("where").startswith(__file__)
    assert promotion == {"function": "before", "buffer": "X", "promoted": True, "registers": 2, "reason": ""}


def refusal(program: Any) -> str:
    report = tw.compile(program, target=TARGET, schedule="as written").report["promotions"][0]
    assert not report["promoted"]
    return str(report["reason"])


def test_what_cannot_live_in_registers_is_reported() -> None:
    @T.prim_func
    def large(A: T.Buffer((1000,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((1000,), scope="local")
            for i in range(1000):
                X[i] = T.float32(1)
            for i in range(1000):
                A[i] = X[i]

    @T.prim_func
    def selected(A: T.Buffer((8,), "float32"), n: T.int32):
        with T.block("root"):
            X = T.alloc_buffer((8,), scope="local")
            for i in range(8):
                X[i] = A[i]
            A[0] = X[n]

    @T.prim_func
    def shared(A: T.Buffer((8,), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((8,), scope="local")
            for i in range(8):
                X[i] = A[i]
            for j in T.parallel(8):
                A[j] = X[0]

    assert "4000 bytes" in refusal(large)
    assert "not constant" in refusal(selected)
    assert "parallel loop 'j'" in refusal(shared)


def test_workspaces_are_allocated_once_and_shared() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(4):
            t = T.decl_buffer((100,), "float32")
            for j in range(64):
                t[j] = T.sin(A[j])
            u = T.decl_buffer((50,), "float32")
            for j in range(50):
                u[j] = T.sin(t[j])
            B[i] = u[i]
        for i in range(4):
            v = T.decl_buffer((200,), "float32")
            for j in range(64):
                v[j] = T.sin(A[j])
            B[i + 4] = v[i]

    text = tw.lower(before).script()
    assert text.count("T.allocate(") == 2
    assert 'T.allocate([T.int64(200)], "float32", "global")' in text
    assert text.index("T.allocate(") < text.index("for i in range(4)")


def test_parallel_loops_in_one_another_share_no_workspace() -> None:
    """The thread that meets the inner loop runs it, so it is serial where memory is planned."""

    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for i in T.parallel(4):
            for j in T.parallel(8):
                t = T.decl_buffer((100,), "float32")
                for k in T.parallel(100):
                    t[k] = A[i, j] + T.Cast("float32", k)
                B[i, j] = t[j] + t[99]

    after = tw.lower(before)
    text = after.script()
    assert text.count("T.parallel(") == 1 and text.count("T.allocate(") == 1
    assert text.index("T.parallel(4)") < text.index("T.allocate(") < text.index("for j in range(8)")
    check_equivalent(before, after)
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tw.compile(before, schedule="as written")(a, b)
    assert (b == 2 * a + np.arange(8, dtype="float32") + 99).all()


def test_unrolling_is_full_or_a_hint() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        for i in T.unroll(4):
            A[i] = T.sin(A[i])
        for i in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
            A[i] = T.cos(A[i])

    text = tw.lower(before, after="unroll_loops").script()
    assert text.count("T.sin") == 4
    assert text.count("T.cos") == 1
    assert '"unroll_hint": 64' in text


def test_unrolling_has_a_budget() -> None:
    """Three loops of 64 in one another are a quarter of a million copies."""

    @T.prim_func
    def nested(A: T.Buffer((64, 64, 64), "float32")):
        for i in T.unroll(64):
            for j in T.unroll(64):
                for k in T.unroll(64):
                    A[i, j, k] = A[i, j, k] + T.float32(1)

    start = time.monotonic()
    with pytest.warns(tw.PerformanceWarning, match="loop 'i' is not unrolled: 64 copies of") as caught:
        kernel = tw.compile(nested, schedule="as written")
    assert time.monotonic() - start < 10  # some tenths of a second on an idle machine
    assert caught[0].filename == __file__
    assert {note.code for note in kernel.notes} == {"lower/not-unrolled"}
    a = np.zeros((64, 64, 64), "float32")
    kernel(a)
    assert (a == 1).all()


def test_the_budget_is_for_all_loops_together() -> None:
    steps = "".join(f"    for i{k} in T.unroll(2000):\n        A[i{k}] = A[i{k}] + 1\n" for k in range(12))
    program = tw.script.from_source("@T.prim_func\ndef f(A: T.Buffer((2000,), 'int32')):\n" + steps)
    with pytest.warns(tw.PerformanceWarning) as caught:
        kernel = tw.compile(program, schedule="as written")
    assert 0 < sum("is not unrolled" in str(each.message) for each in caught) < 12
    a = np.zeros(2000, "int32")
    kernel(a)
    assert (a == 12).all()


def test_hints_multiply() -> None:
    @T.prim_func
    def nested(A: T.Buffer((64, 64, 64), "float32")):
        for i in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
            for j in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
                for k in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
                    A[i, j, k] = A[i, j, k] + T.float32(1)

    text = tw.lower(nested, after="unroll_loops").script()
    hints = [int(hint) for hint in re.findall(r'"unroll_hint": (\d+)', text)]
    assert len(hints) == 3
    assert hints[0] * hints[1] * hints[2] <= 8192


def test_deep_nests_compile_fast() -> None:
    names = [f"i{k}" for k in range(100)]
    text = "@T.prim_func\ndef f(A: T.Buffer((101,), 'float32'), B: T.Buffer((101,), 'float32')):\n"
    text += f"    for {', '.join(names)} in T.grid({', '.join(['2', '1', '1', '1', '2'] * 20)}):\n"
    text += f"        B[{' + '.join(names)}] = A[{' + '.join(names)}] + T.float32(1)\n"
    program = tw.script.from_source(text.replace("T.grid(2, 1, 1, 1, 2", "T.grid(2, 2, 2, 2, 2", 1))
    start = time.monotonic()
    tw.compile(program, schedule="as written")
    assert time.monotonic() - start < 5  # half a second on an idle machine


def test_rests_that_compute_much_are_one_vector() -> None:
    """13 of 16 lanes at once, not 8, 4 and 1 after one another."""

    @T.prim_func
    def powers(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
        for i in T.vectorized(13):
            B[i] = T.exp(A[i])

    @T.prim_func
    def copies(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
        for i in T.vectorized(13):
            B[i] = A[i] + T.float32(1)

    wide = "llvm -mcpu=skylake-avx512"
    assert tw.lower(powers, target=wide).script().count("T.exp") == 1
    assert tw.lower(copies, target=wide).script().count("T.Broadcast(T.float32(1.0), ") == 2
    check_equivalent(powers, tw.lower(powers, target=wide))


def test_memory_of_open_sizes_is_shared_with_the_same_size() -> None:
    program = tw.script.from_source("""
@T.prim_func
def func(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(2):
        with T.block("first"):
            x = T.alloc_buffer((n,))
            for j in range(n):
                x[j] = A[j] * T.float32(2)
            for j in range(n):
                B[j] = x[n - 1 - j]
    for i in range(2):
        with T.block("second"):
            y = T.alloc_buffer((n,))
            z = T.alloc_buffer((n + 1,))
            for j in range(n):
                y[j] = B[j] + T.float32(1)
                z[j + 1] = y[j]
            for j in range(n):
                B[j] = y[n - 1 - j] + z[j + 1]
""")
    text = tw.lower(program, after="plan_workspaces").script()
    assert text.count("T.allocate") == 2  # x and y, and z
    a = np.arange(7, dtype="float32")
    once = 2 * a[::-1] + 1
    again = (once[::-1] + once) + 1
    b = np.zeros(7, "float32")
    tw.compile(program, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, again[::-1] + again)
