"""Kernels for GPUs: every pass leaves what the interpreter computes, without races, and every barrier is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright.script import from_source
from tilewright.script import tir as T

TARGET = "opencl"


def run(module: ir.Module, *arrays: Any) -> list[np.ndarray]:
    """Return the arrays after the first function of the module has run on copies of them."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
    _core.interpret(module, "main", *copies)
    return copies


def check_every_pass(sch: tw.Schedule, arrays: list[Any], expected: list[np.ndarray]) -> ir.Module:
    """Assert that after each pass the interpreter finds no race, and leaves `expected` in the last arrays."""
    module = sch.mod
    for name, module in _core.lower_stages(sch.mod, TARGET):
        after = run(module, *arrays)
        for found, wanted in zip(after[-len(expected) :], expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}\n{module.script()}")
    return module


def without_barriers(module: ir.Module) -> Iterator[ir.Module]:
    """Yield the module without its first barrier, without its second one, and so on."""
    text = module.script().splitlines()
    for number, line in enumerate(text):
        if "tvm_storage_sync" in line:
            indent = line[: len(line) - len(line.lstrip())]
            yield from_source("\n".join([*text[:number], indent + "T.evaluate(0)", *text[number + 1 :]]))


def check_barriers_are_needed(module: ir.Module, arrays: list[Any], count: int) -> None:
    """Assert that there are `count` barriers, and that the interpreter reports a race without any one of them."""
    mutants = list(without_barriers(module))
    assert len(mutants) == count, module.script()
    for mutant in mutants:
        with pytest.raises(tw.Error) as raised:
            run(mutant, *arrays)
        assert raised.value.code in ("interpret/race", "interpret/async-copy")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def matmul(m: int, n: int, k: int) -> Any:
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k})), B: T.Buffer(({k}, {n})), C: T.Buffer(({m}, {n}))):
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")


def tiled(m: int, n: int, k: int, virtual: bool = False) -> tw.Schedule:
    """A product whose blocks fetch tiles into shared memory together."""
    sch = tw.Schedule(matmul(m, n, k))
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    v = 2 if virtual else 1
    by, vy, ty, yi = sch.split(i, [None, v, 4, 2])
    bx, vx, tx, xi = sch.split(j, [None, v, 4, 2])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(by, bx, vy, vx, ty, tx, k0, k1, yi, xi)
    axes = ["blockIdx.y", "blockIdx.x", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x"]
    for loop, axis in zip([by, bx, vy, vx, ty, tx], axes, strict=True):
        sch.bind(loop, axis)
    sch.reverse_compute_at(write, tx, preserve_unit_loops=True)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k0, preserve_unit_loops=True)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, y, x = sch.split(fused, [None, 4, 4])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
    return sch


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("shape", [(16, 32, 12), (20, 9, 10)])
def test_a_product_with_shared_tiles(shape, virtual):
    m, n, k = shape
    a, b = numbers(m, k), numbers(k, n, seed=1)
    arrays = [a, b, np.full((m, n), np.nan, "float32")]
    module = check_every_pass(tiled(m, n, k, virtual), arrays, [a @ b])
    # A remainder of the reduction is a piece of its own: fetched behind the loop, and used behind one more barrier.
    check_barriers_are_needed(module, arrays, 2 if k % 4 == 0 else 3)


def test_a_kernel_is_a_function_with_one_loop_for_each_axis():
    module = check_every_pass(
        tiled(16, 16, 8), [numbers(16, 8), numbers(8, 16), numbers(16, 16)], [numbers(16, 8) @ numbers(8, 16)]
    )
    assert {str(name) for name in module.functions} == {"main", "main_kernel"}
    kernel = module["main_kernel"]
    axes = [str(axis) for axis in kernel.attrs["tir.kernel_launch_params"]]
    assert axes == ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]
    body, found = kernel.body, []
    while isinstance(body, ir.For):
        found.append((body.thread_binding.thread_tag, int(body.extent)))
        body = body.body
    assert found == list(zip(axes, [2, 2, 4, 4], strict=True))


def test_what_no_thread_runs_is_left_to_the_first_one():
    @T.prim_func
    def before(A: T.Buffer((4, 8)), B: T.Buffer((4,)), C: T.Buffer((4, 8))):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi, 0] + T.float32(1)
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * B[vi]

    a = numbers(4, 8)
    b = a[:, 0] + 1
    sch = tw.Schedule(before)
    module = _core.lower(sch.mod, TARGET)[0]
    after = run(module, a, np.zeros(4, "float32"), np.zeros((4, 8), "float32"))
    np.testing.assert_array_equal(after[1], b)
    np.testing.assert_array_equal(after[2], a * b[:, None])
    check_barriers_are_needed(module, [a, np.zeros(4, "float32"), np.zeros((4, 8), "float32")], 1)


def test_buffers_that_share_bytes_are_kept_apart_by_barriers():
    @T.prim_func
    def before(A: T.Buffer((32,)), B: T.Buffer((32,)), C: T.Buffer((32,))):
        S = T.alloc_buffer((32,), scope="shared")
        U = T.alloc_buffer((32,), scope="shared")
        for b in T.thread_binding(1, thread="blockIdx.x"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("S"):
                    v = T.axis.spatial(32, t)
                    S[v] = A[v]
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    v = T.axis.spatial(32, t)
                    B[v] = S[31 - v]
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("U"):
                    v = T.axis.spatial(32, t)
                    U[v] = A[v] * T.float32(2)
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("C"):
                    v = T.axis.spatial(32, t)
                    C[v] = U[31 - v]

    a = numbers(32)
    arrays = [a, np.zeros(32, "float32"), np.zeros(32, "float32")]
    module = check_every_pass(tw.Schedule(before), arrays, [a[::-1], 2 * a[::-1]])
    assert 'T.decl_buffer((128,), "uint8", scope="shared")' in module.script()  # one buffer's worth of bytes
    check_barriers_are_needed(module, arrays, 3)


@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_vectors_whose_elements_are_not_contiguous_need_no_more_barriers(lanes):
    """Tiles are transposed when they are filled, so lanes are far apart. Both are filled without a wait in between."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({8 * lanes},)), B: T.Buffer(({8 * lanes},))):
    S = T.alloc_buffer((4, {2 * lanes}), scope="shared")
    U = T.alloc_buffer((4, {2 * lanes}), scope="shared")
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            for l in T.vectorized({lanes}):
                with T.block("S"):
                    v = T.axis.spatial({8 * lanes}, tx * {lanes} + l)
                    S[v % 4, v // 4] = A[v]
            for l in T.vectorized({lanes}):
                with T.block("U"):
                    v = T.axis.spatial({8 * lanes}, tx * {lanes} + l)
                    U[v % 4, v // 4] = A[v] * T.float32(2)
            for l in range({lanes}):
                with T.block("B"):
                    v = T.axis.spatial({8 * lanes}, tx * {lanes} + l)
                    B[v] = S[3 - v % 4, {2 * lanes - 1} - v // 4] + U[v % 4, v // 4]
""")
    a = numbers(8 * lanes)
    arrays = [a, np.zeros_like(a)]
    module = check_every_pass(tw.Schedule(program), arrays, [a[::-1] + 2 * a])
    check_barriers_are_needed(module, arrays, 1)


def test_what_each_thread_has_for_itself_needs_no_barrier():
    @T.prim_func
    def before(A: T.Buffer((4, 32)), B: T.Buffer((4, 32))):
        S = T.alloc_buffer((32,), scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for i in range(4):
                with T.block("S"):
                    vi, v = T.axis.remap("SS", [i, t])
                    S[v] = A[vi, v]
                with T.block("B"):
                    vi, v = T.axis.remap("SS", [i, t])
                    B[vi, v] = S[v] + T.float32(1)

    a = numbers(4, 32)
    module = check_every_pass(tw.Schedule(before), [a, np.zeros((4, 32), "float32")], [a + 1])
    assert "tvm_storage_sync" not in module.script()


@pytest.mark.parametrize("index", ["v // 2 * 2", "(v + vi) % 32"])
def test_equal_text_of_indices_is_no_proof(index):
    """Several threads share an element, or one iteration's belongs to another thread in the next one."""
    before = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 32)), B: T.Buffer((4, 32))):
    S = T.alloc_buffer((32,), scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for i in range(4):
            with T.block("S"):
                vi, v = T.axis.remap("SS", [i, t])
                S[v] = A[vi, v]
            with T.block("B"):
                vi, v = T.axis.remap("SS", [i, t])
                B[vi, v] = S[{index}]
""")
    a = numbers(4, 32)
    v, vi = np.meshgrid(np.arange(32), np.arange(4))
    expected = a[vi, eval(index, {"v": v, "vi": vi})]
    arrays = [a, np.zeros((4, 32), "float32")]
    module = check_every_pass(tw.Schedule(before), arrays, [expected])
    check_barriers_are_needed(module, arrays, 2)


@pytest.mark.parametrize("threads", [1, 2, 7, 32])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_reduction_across_threads(threads, rows):
    length = threads * 4
    before = from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, {length})), C: T.Buffer((6,))):
    for i, k in T.grid(6, {length}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
""")
    sch = tw.Schedule(before)
    i, k = sch.get_loops("C")
    bx, ty = sch.split(i, [None, rows])
    _, tx = sch.split(k, [None, threads])
    for loop, axis in zip([bx, ty, tx], ["blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    a = numbers(6, length)
    check_every_pass(sch, [a, np.zeros(6, "float32")], [a.sum(axis=1)])


@pytest.mark.parametrize(("rows", "length"), [(6, 32), (7, 32), (7, 37), (3, 5)])
def test_a_reduction_across_threads_with_a_last_block_of_few_rows(rows, length):
    before = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {length})), C: T.Buffer(({rows},))):
    for i, k in T.grid({rows}, {length}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
""")
    sch = tw.Schedule(before)
    i, k = sch.get_loops("C")
    bx, ty = sch.split(i, [None, 4])
    _, tx = sch.split(k, [None, 8])
    for loop, axis in zip([bx, ty, tx], ["blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    a = numbers(rows, length)
    check_every_pass(sch, [a, np.zeros(rows, "float32")], [a.sum(axis=1)])


def test_a_reduction_across_threads_needs_each_barrier():
    before = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 16)), C: T.Buffer((2,))):
    for i, k in T.grid(2, 16):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.min_value("float32")
            C[vi] = T.max(C[vi], A[vi, vk])
""")
    sch = tw.Schedule(before)
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    a = numbers(2, 16)
    arrays = [a, np.zeros(2, "float32")]
    module = check_every_pass(sch, arrays, [a.max(axis=1)])
    check_barriers_are_needed(module, arrays, 4)  # before each of the halvings; the first thread makes the last one


def test_extents_that_differ_are_refused_in_the_users_words():
    program = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    C = T.match_buffer(c, (m,))
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(n, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v]
        for j in T.thread_binding(m, thread="threadIdx.x"):
            with T.block("C"):
                v = T.axis.spatial(m, j)
                C[v] = T.float32(1)
""")
    with pytest.raises(tw.ScriptError) as raised:
        tw.lower(program, target=TARGET)
    assert raised.value.code == "lower/thread-extent"
    assert "loop 'i'" in str(raised.value) and "loop 'j'" in str(raised.value)


def refused(body: str, code: str) -> tw.ScriptError:
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4096,)), B: T.Buffer((4096,))):
{body}
""")
    with pytest.raises(tw.ScriptError) as raised:
        tw.lower(program, target=TARGET)
    assert raised.value.code == code
    return raised.value


def test_what_a_gpu_cannot_run_is_refused():
    copy = """
            with T.block("B"):
                v = T.axis.spatial(4096, {})
                B[v] = A[v]"""
    refused("    if True:\n        for i in range(4096):" + copy.format("i"), "lower/not-on-device")
    refused(
        "    if True:\n        for i in T.thread_binding(4096, thread='threadIdx.x'):" + copy.format("i"),
        "lower/threads",
    )
    error = refused(
        "    for b in T.thread_binding(64, thread='blockIdx.x'):\n"
        "        for i in T.thread_binding(b + 1, thread='threadIdx.x'):" + copy.format("b * 64 + i % 64"),
        "lower/launch-extent",
    )
    assert "its extent depends on another loop" in error.message and "T.where" in error.hint
    error = refused(
        "    for b in T.thread_binding(64, thread='blockIdx.x'):\n"
        "        for i in T.thread_binding(T.Cast('int32', A[0]), thread='threadIdx.x'):" + copy.format("b * 64 + i"),
        "lower/launch-extent",
    )
    assert "its extent is read from memory" in error.message and "largest extent" in error.hint
    refused(
        "    S = T.alloc_buffer((4096, 16), scope='shared')\n"
        "    for b in T.thread_binding(1, thread='blockIdx.x'):\n"
        "        for i in T.thread_binding(16, thread='threadIdx.x'):\n"
        "            for j in range(4096):\n"
        "                with T.block('S'):\n"
        "                    v, u = T.axis.remap('SS', [j, i])\n"
        "                    S[v, u] = A[v]\n"
        "        for i in T.thread_binding(16, thread='threadIdx.x'):\n"
        "            for j in range(4096):\n"
        "                with T.block('B'):\n"
        "                    v, u = T.axis.remap('SS', [j, i])\n"
        "                    T.where(i == 0)\n"
        "                    B[v] = S[v, 15 - u]\n",
        "lower/shared-memory",
    )


def test_data_that_the_host_would_have_to_read() -> None:
    blocks = """
    for i in T.thread_binding(4096, thread="blockIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(4096, i)
            B[v] = A[v]{}"""
    error = refused('    assert A[0] > T.float32(0), "positive"' + blocks.format(""), "lower/not-on-device")
    assert "assertion reads 'A'" in error.message and "before the call" in error.hint and "sch.bind" not in error.hint
    error = refused("    x: T.float32 = A[0]" + blocks.format(" + x"), "lower/not-on-device")
    assert "'x' is read from 'A'" in error.message and "in the blocks" in error.hint


def test_a_grid_of_many_blocks_along_y_is_folded():
    @T.prim_func
    def before(B: T.Buffer((70000, 3), "int32")):
        for i in T.thread_binding(70000, thread="blockIdx.y"):
            for j in T.thread_binding(3, thread="blockIdx.x"):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = vi * 3 + vj

    module = _core.lower(tw.Schedule(before).mod, TARGET)[0]
    assert 'T.thread_binding(210000, thread="blockIdx.x")' in module.script()
    b = run(module, np.zeros((70000, 3), "int32"))[0]
    np.testing.assert_array_equal(b, np.arange(210000).reshape(70000, 3))


@pytest.mark.parametrize("size", [24, 40, 1000])
def test_shared_tiles_keep_their_size_where_the_last_one_is_cut_off(size):
    module = _core.lower(tiled(size, size, size).mod, TARGET)[0]
    (arena,) = set(re.findall(r'T.decl_buffer\(\((\d+),\), "uint8", scope="shared"\)', module.script()))
    assert int(arena) == 2 * 8 * 4 * 4  # rows of A and columns of B, four steps of float32


def test_an_open_size_is_a_parameter_of_the_kernel():
    before = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] + T.float32(1)
""")
    sch = tw.Schedule(before)
    bx, tx = sch.split(sch.get_loops("B")[0], [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    for n in (0, 1, 32, 100):
        a = numbers(n)
        check_every_pass(sch, [a, np.zeros(n, "float32")], [a + 1])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (  # a grid of more than 2^31 blocks
            "    for i in T.thread_binding(70000, thread='blockIdx.y'):\n"
            "        for j in T.thread_binding(70000, thread='blockIdx.x'):\n"
            "            with T.block('B'):\n"
            "                v = T.axis.spatial(4096, i // 1024 * 64 + j // 1200)\n"
            "                T.where(i * 70000 < 64 and j == 0)\n"
            "                B[v] = A[v]",
            "lower/grid",
        ),
        (  # shared memory that outlives a kernel
            "    S = T.alloc_buffer((64,), scope='shared')\n"
            "    for i in T.thread_binding(64, thread='threadIdx.x'):\n"
            "        with T.block('S'):\n"
            "            v = T.axis.spatial(64, i)\n"
            "            S[v] = A[v]\n"
            "    for i in T.thread_binding(64, thread='threadIdx.x'):\n"
            "        with T.block('B'):\n"
            "            v = T.axis.spatial(64, i)\n"
            "            B[v] = S[63 - v]",
            "lower/memory-of-kernel",
        ),
    ],
)
def test_grids_and_memory_beyond_a_kernel(body, code):
    refused(body, code)


def test_shared_memory_has_a_constant_size():
    program = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (n, 8))
    S = T.alloc_buffer((n, 8), scope="shared")
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for i in range(n):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("S"):
                    v, u = T.axis.remap("SS", [i, j])
                    S[v, u] = A[v, u]
        for i in range(n):
            for j in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    v, u = T.axis.remap("SS", [i, j])
                    B[v, u] = S[n - 1 - v, 7 - u]
""")
    with pytest.raises(tw.ScriptError) as raised:
        tw.lower(program, target=TARGET)
    assert raised.value.code == "lower/shared-size"


def test_a_choice_that_depends_on_the_order_is_no_reduction_across_threads():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 16)), I: T.Buffer((2,), "int32"), V: T.Buffer((2,))):
    for i, k in T.grid(2, 16):
        with T.block("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            index: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            value: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = index
            V[vi] = value
""")
    sch = tw.Schedule(program)
    i, k = sch.get_loops("V")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    with pytest.raises(tw.ScriptError) as raised:
        tw.lower(sch, target=TARGET)
    assert raised.value.code == "lower/thread-reduction"


def test_loops_that_virtual_threads_or_threads_run_differently_hold_no_exchange():
    exchange = """
@T.prim_func
def main(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for o in T.thread_binding(8, thread="{outer}"):
            for i in T.thread_binding(8, thread="threadIdx.x"):
                S = T.decl_buffer((8,), scope="shared")
                for k in range({extent}):
                    S[i] = A[o, i]
                    T.tvm_storage_sync("shared")
                    B[o, i] = S[7 - i]
                    T.tvm_storage_sync("shared")
"""
    for outer, extent, code in [
        ("vthread.x", "o", "lower/virtual-thread"),
        ("threadIdx.y", "i", "lower/divergent-barrier"),
    ]:
        with pytest.raises(tw.ScriptError) as raised:
            tw.lower(from_source(exchange.format(outer=outer, extent=extent)), target=TARGET)
        assert raised.value.code == code


def test_loops_whose_length_depends_on_the_thread_and_that_exchange_nothing():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((20,)), B: T.Buffer((20,))):
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            S = T.decl_buffer((24,), scope="shared")
            for k in range(T.max(T.min(20 - i * 3, 3), 0)):
                S[i * 3 + k] = A[i * 3 + k]
            for k in range(T.max(T.min(20 - i * 3, 3), 0)):
                B[i * 3 + k] = S[i * 3 + k] * T.float32(2)
""")
    a = numbers(20)
    module = _core.lower(ir.Module({"main": program}), TARGET)[0]
    assert "tvm_storage_sync" not in module.script()
    np.testing.assert_array_equal(run(module, a, np.zeros_like(a))[1], a * 2)


def test_loops_that_are_cut_at_the_edge_and_exchange_nothing():
    """Their length is clamped by the last block; no thread goes beyond its own tile."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((100,)), B: T.Buffer((100,))):
    for x in T.thread_binding(5, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            S = T.decl_buffer((24,), scope="shared")
            R = T.decl_buffer((24,), scope="shared")
            for k in range(T.max(T.min(x * 24 + i * 3, 97) - x * 24 - i * 3 + 3, 0)):
                S[i * 3 + k] = A[x * 24 + i * 3 + k]
                R[i * 3 + k] = S[i * 3 + k] * T.float32(2)
                B[x * 24 + i * 3 + k] = R[i * 3 + k]
""")
    a = numbers(100)
    module = _core.lower(ir.Module({"main": program}), TARGET)[0]
    assert "tvm_storage_sync" not in module.script()
    np.testing.assert_array_equal(run(module, a, np.zeros_like(a))[1], a * 2)


@pytest.mark.parametrize(
    ("condition", "index", "barriers"),
    [
        ("t * 4 + k < 1", "0", 0),
        ("b * 8 + t < 1", "0", 0),
        ("b * 8 + t < 1 and k < 3", "0", 0),
        ("b * 8 + t == k", "k", 0),
        ("(b * 3 + t) % 8 == 5", "(b * 5 + 5) % 8", 0),
        ("t == k", "0", 1),
        ("t == k // 2", "0", 1),
        ("b + t == k", "0", 1),
        ("7 - t == k", "0", 2),
        ("7 - t == k", "t", 0),
        ("7 - t == k", "k", 2),
    ],
)
def test_conditions_say_which_threads_meet(condition, index, barriers):
    """An element that one thread alone uses needs no barrier, whatever its index; one that goes around does."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,)), B: T.Buffer((2, 8))):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            S = T.decl_buffer((8,), scope="shared")
            S[t] = T.float32(0)
            for k in range(4):
                if {condition}:
                    S[{index}] = S[{index}] * T.float32(2) + A[k * 8 + t]
            B[b, t] = S[t]
""")
    a, expected = np.arange(1, 33, dtype="float32"), np.zeros((2, 8), "float32")
    for b, k, t in np.ndindex(2, 4, 8):
        if eval(condition, {"b": b, "k": k, "t": t}):
            at = eval(index, {"b": b, "k": k, "t": t})
            expected[b, at] = expected[b, at] * 2 + a[k * 8 + t]
    arrays = [a, np.zeros((2, 8), "float32")]
    module = check_every_pass(tw.Schedule(program), arrays, [expected])
    check_barriers_are_needed(module, arrays, barriers)
    found = np.zeros((2, 8), "float32")
    tw.compile(program, target=TARGET)(a, found)
    np.testing.assert_array_equal(found, expected)


def test_lanes_that_are_off_meet_nobody():
    """The last vectors of the rows are cut off; without their masks, they would reach into the next rows."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 3)), B: T.Buffer((8, 3))):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((24,), scope="shared")
        for i in range(2):
            for j in T.vectorized(2):
                if i * 2 + j < 3:
                    S[t * 3 + i * 2 + j] = A[t, i * 2 + j]
            for j in T.vectorized(2):
                if i * 2 + j < 3:
                    B[t, i * 2 + j] = S[t * 3 + i * 2 + j]
""")
    a = numbers(8, 3)
    module = check_every_pass(tw.Schedule(program), [a, np.zeros_like(a)], [a])
    assert "tvm_storage_sync" not in module.script()


def test_memory_of_kernels_is_not_used_outside():
    for scope in ("shared", "local"):
        sch = tw.Schedule(matmul(8, 8, 8))
        i, j, _ = sch.get_loops("C")
        sch.cache_read("C", 0, scope)
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
        with pytest.raises(tw.ScriptError, match="outside of kernels") as raised:
            tw.lower(sch, target=TARGET)
        assert raised.value.code == "lower/memory-of-kernel"


def test_what_stands_behind_a_loop_meets_its_last_iteration():
    """A loop over two versions of a tile ends with the second one; the statement behind it writes to the first one."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((5, 32)), B: T.Buffer((32,))):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.decl_buffer((64,), scope="shared")
        B[t] = T.float32(0)
        for k in range(4):
            S[k % 2 * 32 + t] = A[k, t]
            B[t] = B[t] + S[k % 2 * 32 + 31 - t]
        S[t] = A[4, t]
        B[t] = B[t] + S[31 - t]
""")
    a = numbers(5, 32)
    module = check_every_pass(tw.Schedule(program), [a, np.zeros(32, "float32")], [a.sum(0)[::-1]])
    check_barriers_are_needed(module, [a, np.zeros(32, "float32")], 2)


@pytest.mark.parametrize("axis", ["threadIdx.x", "blockIdx.y"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_what_stands_beside_a_loop_without_iterations_runs(axis: str, n: int) -> None:
    program = from_source(f"""
@T.prim_func
def main(a: T.handle, B: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "int32")
    for x in T.thread_binding(4, thread="blockIdx.x"):
        with T.block("B"):
            vx = T.axis.spatial(4, x)
            B[vx] = vx + 1
        for y in T.thread_binding(n, thread="{axis}"):
            with T.block("A"):
                vx, vy = T.axis.remap("SS", [x, y])
                A[vx, vy] = vx + vy * 4
""")
    rows = np.arange(4, dtype="int32")
    expected = [rows[:, None] + 4 * np.arange(n, dtype="int32")[None, :], rows + 1]
    check_every_pass(tw.Schedule(program), [np.zeros((4, n), "int32"), np.zeros(4, "int32")], expected)
    arrays = [np.zeros((4, n), "int32"), np.zeros(4, "int32")]
    tw.compile(program, target="opencl")(*arrays)
    for found, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
