"""Products by tensor cores through fragments: the interpreter after every pass, and the instructions of CUDA."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from lower.test_gpu import check_barriers_are_needed
from tilewright import _core
from tilewright.script import from_source


def product(m: int, n: int, k: int, dtype: str, out: str, transposed: bool) -> Any:
    shape, element = (f"({n}, {k})", "B[vj, vk]") if transposed else (f"({k}, {n})", "B[vk, vj]")
    factors = [f'T.cast({value}, "{out}")' if dtype != out else value for value in ("A[vi, vk]", element)]
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{dtype}"), B: T.Buffer({shape}, "{dtype}"), C: T.Buffer(({m}, {n}), "{out}")):
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.cast(0, "{out}")
            C[vi, vj] = C[vi, vj] + {factors[0]} * {factors[1]}
""")


def by_fragments(
    m: int, n: int, k: int, dtype: str = "float16", out: str = "float32", transposed: bool = False, steps: int = 1
) -> tw.Schedule:
    """Blocks of 2 x 2 warps, each of which computes a tile of 16 x 16, from tiles in shared memory of 16 `steps`."""
    sch = tw.Schedule(product(m, n, k, dtype, out, transposed))
    short = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}
    block = sch.get_block("C")
    tiles = [sch.split(loop, [None, 16]) for loop in sch.get_loops(block)]
    (i, ii), (j, ji), (k0, ki) = tiles
    by, ty = sch.split(i, [None, 2])
    bx, tz = sch.split(j, [None, 2])
    k0, k1 = sch.split(k0, [None, steps]) if steps > 1 else (k0, k0)
    sch.reorder(by, bx, ty, tz, k0, *([k1] if steps > 1 else []), ii, ji, ki)
    for loop, axis in zip([by, bx, ty, tz], ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.z"], strict=True):
        sch.bind(loop, axis)
    write = sch.cache_write(block, 0, "wmma.accumulator")
    sch.reverse_compute_at(write, tz)
    loads = []
    for number, operand in enumerate("ab"):
        shared, fragment = (sch.cache_read(block, number, scope) for scope in ("shared", f"wmma.matrix_{operand}"))
        sch.compute_at(fragment, k1)
        sch.compute_at(shared, k0)
        _, y, z, x = sch.split(sch.fuse(*sch.get_loops(shared)[-2:]), [None, 2, 2, 32])
        for loop, axis in ((y, "threadIdx.y"), (z, "threadIdx.z"), (x, "threadIdx.x")):
            sch.bind(loop, axis)
        trans = "_trans" if transposed and operand == "b" else ""
        loads.append((fragment, f"wmma_load_16x16x16_{short[dtype]}_{operand}{trans}_shared"))
    init = sch.decompose_reduction(block, k0)
    for copy, name in [*loads, (write, f"wmma_store_16x16x16_{short[out]}_global")]:
        rows, columns = (sch.split(loop, [None, 16]) for loop in sch.get_loops(copy)[-2:])
        sch.reorder(rows[0], columns[0], rows[1], columns[1])
        sch.tensorize(rows[1], name)
    sch.tensorize(sch.get_loops(init)[-2], f"wmma_fill_16x16x16_{short[out]}")
    types = short[dtype] * 2 + short[out]
    sch.tensorize(sch.get_loops(block)[-3], f"wmma_sync_16x16x16_{types}{'_trans' if transposed else ''}")
    return sch


KINDS = [("float16", "float32", False), ("float16", "float32", True), ("float16", "float16", False)]
KINDS += [("int8", "int32", False), ("int8", "int32", True)]


@pytest.mark.parametrize(("dtype", "out", "transposed"), KINDS)
def test_fragments_mean_the_same_after_every_pass(dtype, out, transposed):
    """Elements differ from one another: a tile that is transposed or shifted gives other sums."""
    m, n, k = 32, 32, 48
    draw = np.random.default_rng(1)
    limit = 3 if out == "float16" else 9
    a = draw.integers(-limit, limit, (m, k)).astype(dtype)
    b = draw.integers(-limit, limit, (k, n)).astype(dtype)
    expected = (a.astype("int64") @ b.astype("int64")).astype(out)
    given = np.ascontiguousarray(b.T) if transposed else b
    sch = by_fragments(m, n, k, dtype, out, transposed)
    before = ""
    for name, module in _core.lower_stages(sch.mod, "cuda"):
        text = module.script()
        # As long as there are blocks, the interpreter goes by the description.
        if "T.block(" in text or text == before:
            continue
        before = text
        c = np.full((m, n), 77, out)
        _core.interpret(module, "main", a, given, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{name}\n{module.script()}")
    assert "if thread_x == 0" not in module.script()  # whole warps take part


def test_threads_wait_for_tiles_that_fragments_are_loaded_from():
    sch = by_fragments(32, 32, 48)
    module = _core.lower(sch.mod, "cuda")[0]
    a = np.random.default_rng(0).integers(-4, 5, (32, 48)).astype("float16")
    arrays = [a, np.ascontiguousarray(a[:, :32].T.repeat(2, 0)[:48]), np.zeros((32, 32), "float32")]
    check_barriers_are_needed(module, arrays, module.script().count("tvm_storage_sync"))
    assert module.script().count("tvm_storage_sync") >= 2


def script_of(sch: tw.Schedule) -> str:
    return str(_core.lower(sch.mod, "cuda")[0].script())


@pytest.mark.parametrize(("dtype", "out", "transposed"), KINDS)
def test_cuda_has_instructions_for_fragments(dtype, out, transposed):
    kernel = compiled(by_fragments(32, 64, 48, dtype, out, transposed))
    text = kernel.inspect("ptx")
    short = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}
    types = f"{short[out]}.{short[out]}" if dtype == "float16" else "s32.s8.s8.s32"
    layout = "col" if transposed else "row"
    assert text.count(f"wmma.mma.sync.aligned.row.{layout}.m16n16k16.{types}") == 3  # one for each tile of 48
    assert f"wmma.load.b.sync.aligned.{layout}.m16n16k16" in text
    assert re.search(rf"wmma\.store\.d\.sync\.aligned\.row\.m16n16k16\S*\.{short[out]}", text)
    for use in kernel.report["kernels"]:
        assert use["stack"] == use["spill_stores"] == use["spill_loads"] == 0, use  # fragments are in registers


def test_loops_that_select_no_fragment_are_not_unrolled():
    """The loops over the reduction and over copies: compilers took more than 40 seconds for what became of them."""
    text = tw.compile(by_fragments(32, 64, 192, steps=2), target="cuda -arch=sm_80").inspect("cuda")
    kernel = text[text.index("__global__") :]
    assert kernel.count("for (int ") >= 3 and "#pragma unroll" not in kernel, kernel


def test_opencl_has_no_fragments():
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(by_fragments(32, 32, 32), target="opencl")
    assert raised.value.code == "codegen/not-on-device"


def test_rows_that_fragments_are_loaded_from_begin_at_multiples_of_16_bytes():
    sch = by_fragments(32, 32, 32)
    sch.storage_align(sch.get_block("A_shared"), 0, axis=0, factor=8, offset=4)
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(sch, target="cuda")
    assert raised.value.code == "codegen/fragment-stride"


def test_fragments_whose_shapes_are_not_said():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((256,))):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        F = T.decl_buffer((256,), scope="wmma.accumulator")
        A = T.decl_buffer((256,), "float16", scope="wmma.matrix_a")
        B = T.decl_buffer((256,), "float16", scope="wmma.matrix_b")
        T.tvm_mma_sync(F.data, 0, A.data, 0, B.data, 0, F.data, 0)
""")
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(program, target="cuda")
    assert raised.value.code == "codegen/not-on-device"
    with pytest.raises(tw.Error) as raised:
        _core.interpret(_core.as_module(program), "main", np.zeros(256, "float32"))
    assert raised.value.code == "interpret/unsupported"


@pytest.mark.parametrize("by_element", [False, True])
def test_every_thread_has_the_elements_that_it_accesses_by_itself(by_element: bool) -> None:
    """Otherwise the thread that stores a product computes it for its warp."""
    pointer = 'T.tvm_access_ptr(T.type_annotation("float32"), C.data, 0, 256, 2)'
    store = f'T.tvm_store_matrix_sync(F.data, 16, 16, 16, 0, {pointer}, 16, "row_major")'
    if by_element:
        store = "for e in range(8):\n            C[e * 32 + t] = F[e * 32 + t]"
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16"), C: T.Buffer((256,))):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        F = T.decl_buffer((256,), scope="wmma.accumulator")
        X = T.decl_buffer((256,), "float16", scope="wmma.matrix_a")
        Y = T.decl_buffer((256,), "float16", scope="wmma.matrix_b")
        T.tvm_fill_fragment(F.data, 16, 16, 16, 0, T.float32(0))
        T.tvm_load_matrix_sync(
            X.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation("float16"), A.data, 0, 256, 1), 16, "row_major"
        )
        T.tvm_load_matrix_sync(
            Y.data, 16, 16, 16, 0, T.tvm_access_ptr(T.type_annotation("float16"), B.data, 0, 256, 1), 16, "row_major"
        )
        T.tvm_mma_sync(F.data, 0, X.data, 0, Y.data, 0, F.data, 0)
        {store}
""")
    draw = np.random.default_rng(4)
    a, b = draw.integers(-9, 9, (16, 16)).astype("float16"), draw.integers(-9, 9, (16, 16)).astype("float16")
    c = np.zeros(256, "float32")
    _core.interpret(_core.as_module(program), "main", a, b, c)
    np.testing.assert_array_equal(c.reshape(16, 16), a.astype("float32") @ b.astype("float32"))


def test_a_thread_holds_the_fragments_of_one_step_only():
    """However long the reduction is: the next tile replaces the last one."""
    for k in (16, 160):
        allocated = re.findall(r"(\w+) = T\.decl_buffer\(\((\d+),\), .*matrix_", script_of(by_fragments(32, 32, k)))
        assert [int(size) for _, size in allocated] == [256, 256]


def in_two_levels(k: int, by_registers: bool) -> tw.Schedule:
    """Pipelines as the rules for tensor cores annotate them: of tiles in shared memory, and of fragments inside."""
    sch = by_fragments(32, 32, k, steps=2)
    outer, inner = sch.get_loops(sch.get_block("C_update_o"))[4:6]
    lists: dict[Any, dict[str, list[int]]] = {
        inner: {"stage": [0, 0, 1], "order": [0, 1, 2]},
        outer: {"stage": [0, 0, 0, 0, 0, 1, 1], "order": [0, 3, 1, 4, 5, 2, 6]},
    }
    if by_registers:
        for name in ("A_shared", "B_shared"):
            sch.annotate(sch.get_block(name), "tir.manifest_shared_memory_local_stage", 1)
            sch.annotate(sch.get_block(name), "double_buffer_scope", 0)
    else:
        lists[outer] = {"stage": [0, 0, 1, 2, 2], "order": [0, 1, 3, 2, 4], "async_stages": [0]}
    for loop, values in lists.items():
        for key, value in values.items():
            sch.annotate(loop, f"software_pipeline_{key}", value)
    return sch


@pytest.mark.parametrize("k", [32, 96])
@pytest.mark.parametrize("by_registers", [False, True])
def test_pipelines_of_tiles_and_of_fragments(k, by_registers):
    """Also where the reduction is shorter than the pipeline."""
    draw = np.random.default_rng(3)
    a, b = draw.integers(-9, 9, (32, k)).astype("float16"), draw.integers(-9, 9, (k, 32)).astype("float16")
    expected = a.astype("float32") @ b.astype("float32")
    before, stages = "", []
    sch = in_two_levels(k, by_registers)
    for name, module in _core.lower_stages(sch.mod, "cuda"):
        text = module.script()
        if "T.block(" in text or text == before:
            continue
        before = text
        stages.append(name)
        c = np.full((32, 32), 77, "float32")
        _core.interpret(module, "main", a, b, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{name}\n{text}")
    if k == 96:
        assert "A_shared_local" in text or not by_registers
        check_barriers_are_needed(module, [a, b, np.zeros((32, 32), "float32")], text.count("tvm_storage_sync"))
        for use in compiled(sch).report["kernels"]:
            assert use["spill_stores"] == use["spill_loads"] == 0, use


def test_tiles_of_fragments_begin_at_multiples_of_32_bytes() -> None:
    """A buffer of 520 elements of float32 is placed first, and ends at a multiple of 16 bytes that is none of 32."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float16"), B: T.Buffer((516,), "float32"), C: T.Buffer((516,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            first = T.decl_buffer((516,), scope="shared")
            tile = T.decl_buffer((16, 16), "float16", scope="shared")
            F = T.decl_buffer((16, 16), "float16", scope="wmma.matrix_a")
            for k in range(17):
                if k * 32 + t < 516:
                    first[k * 32 + t] = B[k * 32 + t]
            for k in range(8):
                tile[k * 2 + t // 16, t % 16] = A[k * 2 + t // 16, t % 16]
            T.tvm_load_matrix_sync(
                F.data, 16, 16, 16, 0,
                T.tvm_access_ptr(T.type_annotation("float16"), tile.data, 0, 256, 1), 16, "row_major"
            )
            for k in range(17):
                if k * 32 + t < 516:
                    C[k * 32 + t] = first[515 - k * 32 - t]
""")
    memory = compiled(program).inspect("memory")
    rows = {line.split()[0]: line for line in memory.splitlines() if line.strip()}
    assert " 2080" in rows["tile"], memory
