"""Reductions across threads by shuffles (CUDA): where they are used, and that every pass keeps the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from lower.test_thread_reductions import row_sums
from samples import seeds
from tilewright import _core
from tilewright.script import from_source


def interpreted(sch: tw.Schedule, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return the arrays after a run, which are the same after every pass for CUDA."""
    expected = [each.copy() for each in arrays]
    _core.interpret(sch.mod, "main", *expected)
    for name, module in _core.lower_stages(sch.mod, "cuda"):
        found = [each.copy() for each in arrays]
        _core.interpret(module, "main", *found)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{name}\n{module.script()}")
    return expected


def text_of(sch: tw.Schedule) -> str:
    return tw.lower(sch, target="cuda").script()


def by_threads(rows: int, length: int, y: int, x: int) -> tw.Schedule:
    """`y` rows of a block at once, `x` threads for each."""
    sch = tw.Schedule(row_sums(rows, length, rows))
    i, k = sch.get_loops("C")
    block, row = sch.split(i, [None, y])
    serial, thread = sch.split(k, [None, x])
    sch.reorder(thread, serial)
    sch.bind(block, "blockIdx.x")
    sch.bind(row, "threadIdx.y")
    sch.bind(thread, "threadIdx.x")
    return sch


@pytest.mark.parametrize(
    ("y", "x", "shuffles", "barriers"),
    [
        (1, 32, 5, 0),
        (4, 8, 3, 0),  # four rows are a warp
        (3, 32, 5, 0),
        (16, 2, 1, 0),
        (1, 64, 5 + 1, 1),  # two warps, whose sums each warp combines
        (2, 256, 5 + 3, 1),
        (1, 1024, 5 + 5, 1),
        (1, 96, 5, 1),  # three warps: a tree of their sums
        (2, 8, 0, 3),  # half a warp of two rows
        (1, 8, 3, 0),  # all threads that there are
        (1, 48, 4, 1),  # three halves of warps, then a tree of their sums
        (1, 24, 3, 1),
        (4, 24, 3, 1),  # rows of 24 threads fill three warps
        (2, 24, 0, 4),  # a warp and a half, of two rows
        (1, 33, 0, 5),
        (32, 3, 0, 1),
    ],
)
def test_where_threads_shuffle(y, x, shuffles, barriers):
    length = 3 * x + 1  # not every thread has the same number of steps
    sch = by_threads(2 * y, length, y, x)
    text = text_of(sch)
    assert (text.count("tvm_warp_shuffle_down"), text.count("tvm_storage_sync")) == (shuffles, barriers), text
    assert ("shared" in text) == (barriers > 0), text
    a = np.random.default_rng(x).integers(-9, 9, (2 * y, length)).astype("int32")
    _, c = interpreted(sch, a, np.full(2 * y, 77, "int32"))
    np.testing.assert_array_equal(c, a.sum(axis=1))
    ptx = compiled(sch).inspect("ptx")
    assert ptx.count("shfl.sync.down.b32") == shuffles, ptx


AXES = {"x": "threadIdx.x", "y": "threadIdx.y", "z": "threadIdx.z"}


@pytest.mark.parametrize(
    ("row", "threads", "shuffles", "barriers"),
    [
        ("", "y8 x32", 5 + 3, 1),
        ("", "x32 y8", 5 + 3, 1),  # lanes are numbered along x whatever the order of the loops is
        ("", "y8 x4", 5, 0),  # eight rows of four threads are a warp
        ("", "x4 y8", 5, 0),
        ("", "y4 x16", 5 + 1, 1),
        ("", "z2 y4 x4", 5, 0),
        ("", "z2 x16", 5, 0),
        ("", "y3 x8", 3, 1),
        ("", "y2 x24", 4, 1),
        ("", "y3 x32", 5, 1),
        ("", "y3 x3", 0, 3),
        ("z2", "y4 x8", 5, 0),
        ("z2", "y2 x8", 4, 0),  # two reductions share a warp
        ("z3", "y2 x8", 0, 4),  # a warp and a half
        ("y2", "z2 x32", 5 + 1, 1),
        ("y2", "z2 x16", 0, 5),  # threads of another reduction stand in between
        ("x2", "y16", 0, 4),
    ],
)
def test_reductions_over_several_thread_axes(row, threads, shuffles, barriers):
    extents = [int(each[1:]) for each in threads.split()]
    count = int(np.prod(extents))
    rows, length = 2 * int(row[1:] or 1), 3 * count + 1
    sch = tw.Schedule(row_sums(rows, length, rows))
    i, k = sch.get_loops("C")
    block, of_row = sch.split(i, [None, int(row[1:] or 1)])
    serial, *loops = sch.split(k, [None, *extents])
    sch.reorder(*loops, serial)
    sch.bind(block, "blockIdx.x")
    if row:
        sch.bind(of_row, AXES[row[0]])
    for loop, each in zip(loops, threads.split(), strict=True):
        sch.bind(loop, AXES[each[0]])
    text = text_of(sch)
    assert (text.count("tvm_warp_shuffle_down"), text.count("tvm_storage_sync")) == (shuffles, barriers), text
    a = np.random.default_rng(count).integers(-9, 9, (rows, length)).astype("int32")
    _, c = interpreted(sch, a, np.full(rows, 77, "int32"))
    np.testing.assert_array_equal(c, a.sum(axis=1))
    ptx = compiled(sch).inspect("ptx")
    assert ptx.count("shfl.sync.down.b32") == shuffles, ptx


@pytest.mark.parametrize("part", range(2))
def test_random_shapes_of_teams(part):
    """Extents of any kind, which axes reduce, loops in any order, serial loops around and conditions on rows."""
    for seed in seeds(part, 8):
        draw = np.random.default_rng(seed)
        axes = list(draw.permutation(["x", "y", "z"])[: draw.integers(1, 4)])
        extents = [int(draw.choice([1, 2, 3, 4, 6, 8, 16, 24, 32])) for _ in axes]
        while np.prod(extents) > 512:
            extents[int(np.argmax(extents))] //= 2
        reduced = int(draw.integers(1, len(axes) + 1))
        count, of_rows = int(np.prod(extents[:reduced])), int(np.prod(extents[reduced:]))
        rows, length = int(draw.integers(1, 2 * of_rows + 2)), int(draw.integers(1, 3 * count + 2))
        sch = tw.Schedule(row_sums(rows, length, rows))
        i, k = sch.get_loops("C")
        block, *row_loops = sch.split(i, [None, *extents[reduced:]])
        serial, *loops = sch.split(k, [None, *extents[:reduced]])
        if draw.integers(0, 2):
            sch.reorder(*loops, serial)
        sch.bind(block, "blockIdx.x")
        for loop, axis in zip([*loops, *row_loops], axes, strict=True):
            sch.bind(loop, AXES[axis])
        a = np.random.default_rng(seed).integers(-9, 9, (rows, length)).astype("int32")
        _, c = interpreted(sch, a, np.full(rows, 77, "int32"))
        np.testing.assert_array_equal(c, a.sum(axis=1), err_msg=f"{seed} {axes} {extents} {reduced}")
        if seed % 4 == 0:
            compiled(sch)


def test_lanes_that_could_be_kept_away_use_shared_memory():
    """Rows beyond the result, a serial loop around, and another axis of the kernel: parts of warps do not shuffle."""
    beyond = by_threads(6, 24, 4, 8)
    around = tw.Schedule(row_sums(8, 24, 8))
    i, k = around.get_loops("C")
    block, serial, row = around.split(i, [None, 2, 4])
    for loop, axis in zip(
        (block, row, around.split(k, [None, 8])[1]), ("blockIdx.x", "threadIdx.y", "threadIdx.x"), strict=True
    ):
        around.bind(loop, axis)
    for sch, rows in ((beyond, 6), (around, 8)):
        text = text_of(sch)
        assert "shuffle" not in text and "shared" in text, text
        a = np.random.default_rng(rows).integers(-9, 9, (rows, 24)).astype("int32")
        _, c = interpreted(sch, a, np.full(rows, 77, "int32"))
        np.testing.assert_array_equal(c, a.sum(axis=1))
    other = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for k in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
        for y in T.thread_binding(4, thread="threadIdx.y"):
            with T.block("D"):
                T.where(y == 0)
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi] * 2
""")
    assert "shuffle" not in text_of(tw.Schedule(other))
    a = np.random.default_rng(1).integers(-9, 9, (4, 8)).astype("int32")
    _, c, d = interpreted(tw.Schedule(other), a, np.zeros(4, "int32"), np.zeros(4, "int32"))
    np.testing.assert_array_equal(c, a.sum(axis=1))
    np.testing.assert_array_equal(d, 2 * c)


@pytest.mark.parametrize("threads", [32, 64, 96])
def test_a_reduction_goes_on_in_a_serial_loop(threads):
    """Of whole warps, all lanes come to every iteration, each of which adds what its threads have."""
    sch = tw.Schedule(row_sums(3, 4 * threads + 1, 3))
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(k, [None, threads])[1], "threadIdx.x")
    assert "tvm_warp_shuffle_down" in text_of(sch)
    a = np.random.default_rng(2).integers(-9, 9, (3, 4 * threads + 1)).astype("int32")
    _, c = interpreted(sch, a, np.full(3, 77, "int32"))
    np.testing.assert_array_equal(c, a.sum(axis=1))
    compiled(sch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int64"])
@pytest.mark.parametrize("operation", ["{} + {}", "T.max({}, {})"])
@pytest.mark.parametrize("threads", [32, 128])
def test_types_and_operations(threads, operation, dtype):
    start = f'T.min_value("{dtype}")' if "max" in operation else f"T.{dtype}(0)"
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, {threads}), "{dtype}"), C: T.Buffer((2,), "{dtype}")):
    for i, k in T.grid(2, {threads}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = {operation.format("C[vi]", "A[vi, vk]")}
""")
    )
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    if dtype != "bfloat16":
        a = np.random.default_rng(3).integers(-1, 2, (2, threads)).astype(dtype)
        _, c = interpreted(sch, a, np.full(2, 77, dtype))
        np.testing.assert_array_equal(c, a.max(axis=1) if "max" in operation else a.sum(axis=1, dtype=dtype))
    assert "shfl.sync.down" in compiled(sch).inspect("ptx")


@pytest.mark.parametrize("threads", [32, 128])
def test_pairs_of_an_index_and_a_value(threads):
    """Both parts of a step are those of before it, and of equal values the first one is found."""
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, {threads}), "int32"), W: T.Buffer((2,), "int32"), C: T.Buffer((2,), "int32")):
    for i, k in T.grid(2, {threads}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                W[vi] = -1
                C[vi] = -100
            found: T.int32 = T.Select(C[vi] > A[vi, vk] or (C[vi] == A[vi, vk] and W[vi] < vk), W[vi], vk)
            best: T.int32 = T.Select(C[vi] > A[vi, vk], C[vi], A[vi, vk])
            W[vi] = found
            C[vi] = best
""")
    )
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    a = np.random.default_rng(4).integers(0, 9, (2, threads)).astype("int32")
    _, where, best = interpreted(sch, a, np.zeros(2, "int32"), np.zeros(2, "int32"))
    np.testing.assert_array_equal(where, a.argmax(axis=1))
    np.testing.assert_array_equal(best, a.max(axis=1))
    assert text_of(sch).count("tvm_warp_shuffle_down") == 2 * {32: 5, 128: 7}[threads]
    compiled(sch)


def test_opencl_keeps_trees():
    sch = by_threads(4, 64, 2, 32)
    assert "shuffle" not in tw.lower(sch, target="opencl").script()
    a: Any = np.random.default_rng(5).integers(-9, 9, (4, 64)).astype("int32")
    c = np.zeros(4, "int32")
    tw.compile(sch, target="opencl")(a, c)
    np.testing.assert_array_equal(c, a.sum(axis=1))


def test_a_kernel_with_an_axis_that_the_reduction_does_not_have() -> None:
    """All threads along y come to the shuffles of the warp, and the first of them stores the result."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 3, 32), "int32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        S = T.decl_buffer((1,), "int32", scope="shared")
        for k in range(2):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("S"):
                    vi, vk = T.axis.spatial(1, 0), T.axis.reduce(64, k * 32 + t)
                    with T.init():
                        S[vi] = 0
                    S[vi] = S[vi] + A[b, vk]
        for y in T.thread_binding(3, thread="threadIdx.y"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                B[b, y, t] = S[0] * y + t
""")
    a = np.random.default_rng(3).integers(-9, 10, (2, 64)).astype("int32")
    expected = a.sum(1)[:, None, None] * np.arange(3)[:, None] + np.arange(32)
    _, found = interpreted(tw.Schedule(program), a, np.zeros((2, 3, 32), "int32"))
    np.testing.assert_array_equal(found, expected)
    text = text_of(tw.Schedule(program))
    assert text.count("shuffle") == 5
    assert not compiled(tw.Schedule(program)).notes
