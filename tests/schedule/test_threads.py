"""Sketches of GPU kernels: tiles that threads fetch together, their registers, loops bound again to an axis."""

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, check_same, workloads
from tilewright.testing.check import check_equivalent, run_in_interpreter


@T.prim_func
def conv2d(A: T.Buffer((2, 10, 10, 4)), W: T.Buffer((3, 3, 4, 8)), B: T.Buffer((2, 8, 8, 8))):
    for n, h, w, o, dh, dw, i in T.grid(2, 8, 8, 8, 3, 3, 4):
        with T.block("B"):
            vn, vh, vw, vo, rh, rw, ri = T.axis.remap("SSSSRRR", [n, h, w, o, dh, dw, i])
            with T.init():
                B[vn, vh, vw, vo] = T.float32(0)
            B[vn, vh, vw, vo] = B[vn, vh, vw, vo] + A[vn, vh + rh, vw + rw, ri] * W[rh, rw, ri, vo]


def fetch(sch: Any, block: Any, number: int, loop: Any, threads: dict[str, int], scope: str = "shared") -> Any:
    """A copy of what the block reads, at the loop, made by all threads together."""
    copy = sch.cache_read(block, number, scope)
    sch.compute_at(copy, loop, preserve_unit_loops=True)
    fused = sch.fuse(*sch.get_loops(copy)[-len(sch.get(block).reads[number].region) :])
    _, *parts = sch.split(fused, [None, *threads.values()])
    for part, axis in zip(parts, threads, strict=True):
        sch.bind(part, axis)
    return copy


def matmul_sketch(sch: Any, scope: str = "shared") -> None:
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    by, vy, ty, yi = sch.split(i, [2, 2, 4, 2])
    bx, vx, tx, xi = sch.split(j, [2, 2, 4, 2])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(by, bx, vy, vx, ty, tx, k0, k1, yi, xi)
    axes = ["blockIdx.y", "blockIdx.x", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x"]
    for loop, axis in zip([by, bx, vy, vx, ty, tx], axes, strict=True):
        sch.bind(loop, axis)
    sch.reverse_compute_at(write, tx, preserve_unit_loops=True)
    for number in (0, 1):
        fetch(sch, block, number, k0, {"threadIdx.y": 4, "threadIdx.x": 4}, scope)


def conv2d_sketch(sch: Any) -> None:
    block = sch.get_block("B")
    write = sch.cache_write(block, 0, "local")
    n, h, w, o, dh, dw, i = sch.get_loops(block)
    h0, h1 = sch.split(h, [2, 4])
    w0, w1 = sch.split(w, [2, 4])
    o0, o1 = sch.split(o, [2, 4])
    sch.reorder(n, h0, o0, w0, h1, o1, dh, dw, i, w1)
    block_loop = sch.fuse(n, h0, o0)
    for loop, axis in zip(
        [block_loop, w0, h1, o1], ["blockIdx.x", "vthread.x", "threadIdx.y", "threadIdx.x"], strict=True
    ):
        sch.bind(loop, axis)
    sch.reverse_compute_at(write, o1, preserve_unit_loops=True)
    for number in (0, 1):
        fetch(sch, block, number, dh, {"threadIdx.y": 4, "threadIdx.x": 4})


def shapes(module: ir.Module) -> dict[str, list[int]]:
    """Of the buffers that blocks allocate."""
    found: dict[str, list[int]] = {}

    def note(node: Any) -> None:
        if isinstance(node, ir.Block):
            found.update({buffer.name: [int(extent) for extent in buffer.shape] for buffer in node.alloc_buffers})

    ir.post_order_visit(module, note)
    return found


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_a_product_with_tiles_that_threads_fetch_together(scope):
    sch = check(workloads.matmul(32, 32, 16), lambda sch: matmul_sketch(sch, scope))
    # Of what all threads of a block read in one step, and of what one thread computes.
    compact = tw.lower(sch.mod, after="compact_buffers", target="interpreter")
    name = f"_{scope}"
    assert shapes(compact) == {"C_local": [2, 2], "A" + name: [16, 4], "B" + name: [4, 16]}
    check_equivalent(workloads.matmul(32, 32, 16), compact)


def test_a_convolution_with_tiles_that_threads_fetch_together():
    sch = check(conv2d, conv2d_sketch)
    compact = tw.lower(sch.mod, after="compact_buffers", target="interpreter")
    assert shapes(compact) == {"B_local": [1, 1, 4, 1], "A_shared": [1, 4, 10, 4], "W_shared": [1, 3, 4, 4]}
    check_equivalent(conv2d, compact)


def test_a_lowered_program_keeps_the_order_of_statements():
    """Without blocks, threads wait where plain statements exchange data in shared memory."""
    sch = tw.Schedule(workloads.matmul(32, 32, 16))
    matmul_sketch(sch)
    for after in ["lower_blocks", "plan_workspaces"]:
        check_equivalent(workloads.matmul(32, 32, 16), tw.lower(sch.mod, after=after, target="interpreter"))


def tile(sch: Any, extent: int = 8, scope: str = "shared") -> tuple[Any, Any]:
    """B of elementwise_chain(16, 8) at blocks of rows, each row of its tile filled by all threads."""
    copy = sch.cache_read("B", 0, scope)
    i, j = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    return copy, j


@T.prim_func
def rows(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, 7 - vj] * T.float32(2)


def test_each_thread_fetches_its_part_of_what_all_read():
    @T.prim_func
    def after(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
        A_shared = T.alloc_buffer((16, 8), scope="shared")
        for i in T.thread_binding(16, thread="blockIdx.x"):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                for ax0 in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block("A_shared"):
                        v0, v1 = T.axis.remap("SS", [i, ax0])
                        A_shared[v0, v1] = A[v0, v1]
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A_shared[vi, 7 - vj] * T.float32(2)

    def together(sch):
        copy, j = tile(sch)
        sch.compute_at(copy, j)
        sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")

    check(rows, together, after)


def test_each_thread_keeps_its_own_copy():
    """Of scope "local", the copy holds what one thread reads; a loop over it is no loop over threads."""

    @T.prim_func
    def after(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
        A_local = T.alloc_buffer((16, 8), scope="local")
        for i in T.thread_binding(16, thread="blockIdx.x"):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("A_local"):
                    v0 = T.axis.spatial(16, i)
                    v1 = T.axis.spatial(8, 7 - j)
                    A_local[v0, v1] = A[v0, v1]
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A_local[vi, 7 - vj] * T.float32(2)

    def own(sch):
        copy, j = tile(sch, scope="local")
        sch.compute_at(copy, j)

    check(rows, own, after)


def test_neighbors_share_the_memory_of_a_warp():
    def together(sch):
        copy, j = tile(sch, scope="warp")
        sch.compute_at(copy, j)
        sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")

    check(rows, together)

    # Of more threads than a warp has, each group of 32 has a copy.
    @T.prim_func
    def wide(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for j in range(64):
            with T.block("B"):
                vj = T.axis.spatial(64, j)
                B[vj] = A[vj // 2]

    def too_wide(sch):
        copy = sch.cache_read("B", 0, "warp")
        (j,) = sch.get_loops("B")
        sch.bind(j, "threadIdx.x")
        sch.compute_at(copy, j)

    check_refused(wide, too_wide, "compute_at/P9")


def test_another_extent_is_refused():
    def other_extent(sch):
        copy, j = tile(sch)
        sch.compute_at(copy, j)
        _, inner = sch.split(sch.get_loops(copy)[-1], [None, 4])
        sch.bind(inner, "threadIdx.x")

    error = check_refused(rows, other_extent, "bind/P7")
    assert "do not provably have the same extent" in str(error)

    def of_one_kernel(sch):
        i, j = sch.get_loops("B")
        k, l, m = sch.split(j, [2, 2, 2])
        sch.bind(k, "threadIdx.x")
        sch.bind(i, "blockIdx.x")
        sch.bind(l, "threadIdx.y")
        sch.bind(m, "threadIdx.y")

    check_refused(rows, of_one_kernel, "bind/P7")


def test_what_depends_on_both_loops_is_refused():
    def both(sch):
        _, j = sch.get_loops("B")
        i, _ = sch.get_loops("B")
        _, inner = sch.split(i, [2, 8])
        sch.bind(inner, "threadIdx.x")
        sch.bind(j, "threadIdx.x")

    assert "depends on both" in str(check_refused(rows, both, "bind/P7"))


def test_results_that_other_threads_need_are_refused():
    """Each thread would fill one element of its own copy."""

    def registers(sch):
        copy = sch.cache_read("B", 0, "local")
        i, j = sch.get_loops("B")
        sch.bind(j, "threadIdx.x")
        sch.compute_at(copy, i)
        sch.bind(i, "blockIdx.x")
        sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")

    check_refused(rows, registers, "bind/P7")

    def shared(sch):
        copy = sch.cache_read("B", 0, "shared")
        i, j = sch.get_loops("B")
        sch.bind(j, "threadIdx.x")
        sch.compute_at(copy, i)
        sch.bind(i, "blockIdx.x")
        sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")

    check(rows, shared)


@T.prim_func
def half_a_tile(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
    A_shared = T.alloc_buffer((16, 8), scope="shared")
    for i in range(16):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            for ax0 in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("A_shared"):
                    v0 = T.axis.spatial(16, i)
                    v1 = T.axis.spatial(8, ax0)
                    A_shared[v0, v1] = A[v0, v1]
            for k in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    vj = T.axis.spatial(8, j * 2 + k)
                    B[vi, vj] = A_shared[vi, 7 - vj]


def test_a_tile_that_is_not_all_there_is_refused():
    def bind(sch):
        sch.bind(sch.get_loops("B")[0], "blockIdx.x")

    error = check_refused(half_a_tile, bind, "bind/P5")
    assert "A_shared[i, 0:4] is complete" in str(error).replace("0:3 + 1", "0:4")
    with pytest.raises(tw.ScriptError) as raised:
        run_in_interpreter(half_a_tile)
    assert raised.value.code == "interpret/uninitialized"


def test_threads_that_do_not_all_come_are_no_team():
    """A tile that only some of the threads fill, each for itself, says nothing about the others."""

    @T.prim_func
    def ragged(A: T.Buffer((8,)), B: T.Buffer((8,))):
        S = T.alloc_buffer((8,), scope="shared")
        for j in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(j + 1):
                with T.block("S"):
                    v = T.axis.spatial(8, j)
                    T.where(k == 0)
                    S[v] = A[v]
                with T.block("B"):
                    v = T.axis.spatial(8, j)
                    T.where(k == 0)
                    B[v] = S[7 - v]

    check_refused(ragged, lambda sch: sch.compute_inline("S"), "compute_inline/P6")
    with pytest.raises(tw.ScriptError) as raised:
        run_in_interpreter(ragged)
    assert raised.value.code in ("interpret/race", "interpret/uninitialized")


def test_reductions_are_not_shared_out_twice():
    @T.prim_func
    def sums(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        S = T.alloc_buffer((4,), scope="local")
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                for k in range(8):
                    with T.block("S"):
                        v, r = T.axis.remap("SR", [i, k])
                        with T.init():
                            S[v] = T.float32(0)
                        S[v] = S[v] + A[v, r]
                with T.block("B"):
                    v = T.axis.spatial(4, i)
                    T.where(j == 0)
                    B[v] = S[v]

    error = check_refused(sums, lambda sch: sch.bind(sch.get_loops("S")[2], "threadIdx.x"), "bind/P7")
    assert "a part of the reduction" in str(error)


def test_a_reduction_follows_its_parts_to_the_threads_that_have_them():
    @T.prim_func
    def before(A: T.Buffer((16, 16)), B: T.Buffer((16,))):
        parts = T.alloc_buffer((16, 16), scope="local")
        for j in T.thread_binding(16, thread="blockIdx.x"):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                for k in range(4):
                    with T.block("parts"):
                        vi = T.axis.spatial(16, i * 4 + k)
                        vj = T.axis.spatial(16, j)
                        parts[vi, vj] = A[vj, vi]
        for i, k in T.grid(16, 16):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + parts[vk, vi]

    @T.prim_func
    def after(A: T.Buffer((16, 16)), B: T.Buffer((16,))):
        parts = T.alloc_buffer((16, 16), scope="local")
        for j in T.thread_binding(16, thread="blockIdx.x"):
            for i in T.thread_binding(4, thread="threadIdx.x"):
                for k in range(4):
                    with T.block("parts"):
                        vi = T.axis.spatial(16, i * 4 + k)
                        vj = T.axis.spatial(16, j)
                        parts[vi, vj] = A[vj, vi]
                for k in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(16, j)
                        vk = T.axis.reduce(16, i * 4 + k)
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + parts[vk, vi]

    check(before, lambda sch: sch.reverse_compute_at("B", sch.get_loops("parts")[1]), after)


def test_the_verifier_knows_loops_bound_again():
    @T.prim_func(check_well_formed=False)
    def narrow(A: T.Buffer((8,))):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for j in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("A"):
                    v = T.axis.spatial(8, j)
                    A[v] = T.float32(0)

    @T.prim_func(check_well_formed=False)
    def both(A: T.Buffer((8, 8))):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("A"):
                    v, w = T.axis.remap("SS", [i, j])
                    A[v, w] = T.float32(0)

    for wrong in (narrow, both):
        with pytest.raises(tw.ScriptError) as raised:
            ir.verify(wrong)
        assert raised.value.code == "verify/thread"
    with pytest.raises(tw.ScriptError) as raised:
        run_in_interpreter(narrow)
    assert raised.value.code == "interpret/thread"


def test_unknown_scopes_are_refused():
    for scope in ["glob", "m16n8k8.matrix", "nonsense"]:
        check_refused(rows, lambda sch, scope=scope: sch.cache_read("B", 0, scope), "cache_read/P2")
    for scope in ["", "shared.dyn", "warp", "wmma.matrix_a", "texture:weight", "amx.tmm", "m16n8k8.matrixB"]:
        check(rows, lambda sch, scope=scope: sch.cache_read("B", 0, scope))
    check_same(tw.Schedule(rows).mod, rows)


@T.prim_func
def mirrored(A: T.Buffer((8,)), B: T.Buffer((8,))):
    S = T.alloc_buffer((8,), scope="shared")
    for j in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("S"):
            v = T.axis.spatial(8, j)
            S[v] = A[v]
        with T.block("B"):
            v = T.axis.spatial(8, j)
            B[v] = S[7 - v]


def test_what_threads_give_to_one_another_keeps_their_loop_bound():
    def inline(sch):
        sch.compute_inline("S")

    check(mirrored, inline)

    def loop(sch):
        return sch.get_loops("B")[0]

    check_refused(mirrored, lambda sch: sch.unroll(loop(sch)), "unroll/P1")
    check_refused(mirrored, lambda sch: sch.parallel(loop(sch)), "parallel/P5")
    check_refused(mirrored, lambda sch: sch.vectorize(loop(sch)), "vectorize/P5")
    check_refused(mirrored, lambda sch: sch.bind(loop(sch), "blockIdx.x"), "bind/P5")

    def when_nothing_is_given(sch):
        sch.compute_inline("S")
        sch.unroll(loop(sch))

    check(mirrored, when_nothing_is_given)


def test_memory_that_a_block_allocates_is_one_for_all_threads():
    """The threads around would fill it with different values."""

    @T.prim_func
    def outer(A: T.Buffer((4, 8)), B: T.Buffer((4, 8))):
        for i in T.thread_binding(4, thread="threadIdx.y"):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:8])
                T.writes(B[vi, 0:8])
                for j in range(8):
                    with T.block("B"):
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = A[vi, 7 - vj]

    check_refused(outer, lambda sch: sch.cache_read("B", 0, "shared"), "cache_read/P9")
    check(outer, lambda sch: sch.cache_read("B", 0, "local"))


def test_each_block_has_its_tile_whatever_can_be_proved_of_it():
    """Fused, the loops of the copy no longer say in a provable way that it is complete."""

    @T.prim_func
    def columns(pA: T.handle, pB: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(pA, (4, n))
        B = T.match_buffer(pB, (n, m, 4))
        for i, j, k in T.grid(n, m, 4):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vk, vj % n] + A[0, 0]

    def fused(sch):
        copy = sch.cache_read("B", 0, "shared")
        _, j, k = sch.get_loops("B")
        sch.bind(j, "blockIdx.x")
        sch.bind(k, "threadIdx.x")
        sch.compute_at(copy, j)
        sch.fuse(*sch.get_loops(copy)[2:])

    check(columns, fused)


def test_threads_around_blocks_of_threads_are_not_bound_again_inside():
    """What both virtual threads fill together would have to be outside of their loop, and inside of that of blocks."""

    @T.prim_func
    def main(A: T.Buffer((4, 4)), B: T.Buffer((2, 4))):
        for x in T.thread_binding(2, thread="vthread.x"):
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for j in range(4):
                    with T.block("B"):
                        v, w = T.axis.remap("SS", [b, j])
                        B[v, w] = A[3, w]

    def filled(sch, axis):
        copy = sch.cache_read("B", 0, "shared")
        sch.compute_at(copy, sch.get_loops("B")[1], preserve_unit_loops=True)
        sch.bind(sch.split(sch.get_loops(copy)[-1], [None, 2])[1], axis)

    check_refused(main, lambda sch: filled(sch, "vthread.x"), "bind/P7")
    check(main, lambda sch: filled(sch, "threadIdx.x"))


@T.prim_func
def fetched_together(A: T.Buffer((8, 4)), B: T.Buffer((8, 4))):
    S = T.alloc_buffer((8, 4), scope="shared")
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for i in range(8):
            for u in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("S"):
                    v, w = T.axis.remap("SS", [i, u])
                    S[v, w] = A[v, w]
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, t])
                B[v, w] = S[v, 3 - w]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (lambda sch: sch.blockize(sch.get_loops("S")[2]), "blockize/P1"),
        (lambda sch: sch.loop_partition(sch.get_loops("S")[1], [3]), "loop_partition/P5"),
    ],
)
def test_no_block_comes_between_loops_of_the_same_threads(step, code):
    error = check_refused(fetched_together, step, code)
    assert "both bound to threadIdx.x" in str(error)


def test_threads_find_their_own_where_tiles_are_digits_of_many_loops():
    @T.prim_func
    def own_tiles(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
        B = T.alloc_buffer((8, 2, 8), scope="local")
        for b in T.thread_binding(4, "blockIdx.y"):
            for c in T.thread_binding(4, "blockIdx.x"):
                for t in T.thread_binding(4, "threadIdx.x"):
                    for i in range(2):
                        with T.block("B"):
                            vi = T.axis.spatial(16, b // 2 * 8 + c // 2 * 4 + t // 2 * 2 + i)
                            vj = T.axis.spatial(8, b % 2 * 4 + c % 2 * 2 + t % 2)
                            B[vi // 2, vi % 2, vj] = A[vi, vj] * T.float32(2)
                for i, t in T.grid(2, 4):
                    with T.block("C"):
                        v = T.axis.spatial(8, b // 2 * 4 + c // 2 * 2 + t // 2)
                        vi = T.axis.spatial(2, i)
                        vj = T.axis.spatial(8, b % 2 * 4 + c % 2 * 2 + t % 2)
                        C[v * 2 + vi, vj] = B[v, vi, vj] + T.float32(1)

    check(own_tiles, lambda sch: sch.bind(sch.get_loops("C")[3], "threadIdx.x"))


SHARED_COPY = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((8, 4), "int32")):
    S = T.alloc_buffer((4, 8), "int32", scope="shared")
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(4):
{copy}
            with T.block("B"):
                vi, vx = T.axis.remap("SS", [i, tx])
                B[vx, vi] = S[vi, 7 - vx]
"""
BOUND_AGAIN = """\
            for x in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("S"):
                    vi, vx = T.axis.remap("SS", [i, x])
                    S[vi, vx] = A[vi, vx]"""
BY_EACH_THREAD = """\
            with T.block("S"):
                vi, vx = T.axis.remap("SS", [i, tx])
                S[vi, vx] = A[vi, vx]"""


@pytest.mark.parametrize(
    ("copy", "method"), [(BOUND_AGAIN, "parallel"), (BY_EACH_THREAD, "parallel"), (BY_EACH_THREAD, "vectorize")]
)
def test_threads_do_not_wait_in_iterations_that_run_side_by_side(copy, method):
    """Thread tx reads what thread 7 - tx has copied: they wait for one another in each iteration of i."""
    program = from_source(SHARED_COPY.format(copy=copy))
    a, b = np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros((8, 4), np.int32)
    tw.compile(program, "interpreter", schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a[:, ::-1].T)
    error = check_refused(program, lambda sch: getattr(sch, method)(sch.get_loops("B")[1]), f"{method}/P5")
    assert "threads of a team synchronize only outside of loops" in error.hint
