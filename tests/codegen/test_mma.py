"""Products by mma and ldmatrix: the interpreter lane by lane after every pass, and the instructions of CUDA."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from codegen.test_wmma import product
from lower.test_gpu import check_barriers_are_needed
from tilewright import _core
from tilewright.script import from_source
from tilewright.tensor_intrin import TensorIntrin, cuda


def by_registers(
    m: int, n: int, k: int, dtype: str, out: str, group: dict[str, str], maps: list[Any], transposed: bool
) -> tw.Schedule:
    """Blocks of two warps. Each computes tiles of 16 x 16 in registers, from tiles in shared memory."""
    sch = tw.Schedule(product(m, n, k, dtype, out, transposed))
    depth = 32 if dtype == "int8" else 16
    block = sch.get_block("C")
    (i, ii), (j, ji), (r, ri) = (
        sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(block), [16, 16, depth], strict=True)
    )
    sch.reorder(i, j, r, ii, ji, ri)
    outer = sch.blockize(ii)
    by, ty, i = sch.split(i, [None, 2, 1])
    bx, j = sch.split(j, [None, 2])
    sch.reorder(by, bx, ty, r, i, j)
    for loop, axis in zip([by, bx, ty], ["blockIdx.y", "blockIdx.x", "threadIdx.y"], strict=True):
        sch.bind(loop, axis)
    for number in (0, 1):
        copy = sch.cache_read(outer, number, "shared")
        sch.compute_at(copy, r)
        lanes = 16 if dtype == "int8" else 8
        _, y, x, vector = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 2, 32, lanes])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(vector)
        sch.storage_align(copy, 0, axis=-2, factor=32, offset=lanes)
    loads = [sch.cache_read(outer, number, "warp") for number in (0, 1)]
    for load in loads:
        sch.compute_at(load, i)
    store = sch.cache_write(outer, 0, "warp")
    sch.reverse_compute_at(store, ty)
    sch.decompose_reduction(outer, r)
    shapes = [(16, depth), (16, depth) if transposed else (depth, 16), (16, 16)]
    tiles = []
    for copy, (rows, columns) in zip([*loads, store], shapes, strict=True):
        a, b = sch.get_loops(copy)[-2:]
        (a0, a1), (b0, b1) = sch.split(a, [None, rows]), sch.split(b, [None, columns])
        sch.reorder(a0, b0, a1, b1)
        tiles.append(a1)
    for copy, side, layout in zip([*loads, store], ["write", "write", "read"], maps, strict=True):
        sch.transform_layout(copy, (side, 0), layout)
    for tile, name in zip(tiles, [group["load_a"], group["load_b"], group["store"]], strict=True):
        sch.tensorize(tile, name)
    sch.tensorize(sch.get_loops(sch.get_block("C"))[-3], group["compute"])
    sch.tensorize(sch.get_loops(sch.get_block("C_init"))[-2], group["init"])
    return sch


def tiles_of_16(i: Any, j: Any) -> Any:
    return (i // 16, j // 16, *cuda.shared_16x16_to_ldmatrix_32x8_layout(i % 16, j % 16))


def rows_of_32(i: Any, j: Any) -> Any:
    return (i // 16, j // 32, *cuda.shared_16x32_to_ldmatrix_32x16_layout(i % 16, j % 32))


def columns_of_32(i: Any, j: Any) -> Any:
    return (i // 32, j // 16, *cuda.shared_32x16_to_ldmatrix_32x16_layout(i % 32, j % 16))


KINDS = [
    *(("float16", out, transposed) for out in ("float32", "float16") for transposed in (False, True)),
    *(("bfloat16", "float32", transposed) for transposed in (False, True)),
    *(("int8", "int32", transposed) for transposed in (False, True)),
]


def scheduled(m: int, n: int, k: int, dtype: str, out: str, transposed: bool, by_store: bool = True) -> tw.Schedule:
    group = cuda.get_mma_intrin_group("shared", "global", dtype, dtype, out, False, transposed, not by_store)
    if dtype == "int8":
        maps = [rows_of_32, rows_of_32 if transposed else columns_of_32, tiles_of_16]
    else:
        maps = [tiles_of_16] * 3
    return by_registers(m, n, k, dtype, out, group, maps, transposed)


def numpy_type(dtype: str) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)


def operands(m: int, n: int, k: int, dtype: str, out: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Elements differ from one another: a tile that is transposed or shifted gives other sums."""
    draw = np.random.default_rng(1)
    limit = 3 if out == "float16" else 9
    a = draw.integers(-limit, limit, (m, k)).astype(numpy_type(dtype))
    b = draw.integers(-limit, limit, (k, n)).astype(numpy_type(dtype))
    return a, b, (a.astype("int64") @ b.astype("int64")).astype(out)


@pytest.mark.parametrize(("dtype", "out", "transposed"), KINDS)
def test_registers_mean_the_same_after_every_pass(dtype, out, transposed):
    m, n, k = 32, 64, 96
    a, b, expected = operands(m, n, k, dtype, out)
    given = np.ascontiguousarray(b.T) if transposed else b
    before, stages = "", []
    for name, module in _core.lower_stages(scheduled(m, n, k, dtype, out, transposed).mod, "cuda"):
        text = module.script()
        # As long as there are blocks, the interpreter goes by the description.
        if "T.block(" in text or text == before:
            continue
        before = text
        stages.append(name)
        c = np.full((m, n), 77, out)
        _core.interpret(module, "main", a, given, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{name}\n{text}")
    assert "lower_warp_memory" in stages and 'scope="warp"' not in before


@pytest.mark.parametrize(("dtype", "out", "transposed"), KINDS)
def test_cuda_has_instructions_for_registers(dtype, out, transposed):
    kernel = compiled(scheduled(32, 64, 96, dtype, out, transposed))
    text = kernel.inspect("ptx")
    short = {"float16": "f16", "float32": "f32", "bfloat16": "bf16", "int8": "s8", "int32": "s32"}
    depth = 32 if dtype == "int8" else 16
    types = ".".join(short[each] for each in (out, dtype, dtype, out))
    assert f"mma.sync.aligned.m16n8k{depth}.row.col.{types}" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text) == (depth == 16 and not transposed)
    for use in kernel.report["kernels"]:
        assert use["stack"] == use["spill_stores"] == use["spill_loads"] == 0, use  # all are registers


@pytest.mark.parametrize(("dtype", "out", "transposed"), [KINDS[0], KINDS[-1]])
def test_copies_in_the_background_while_tiles_are_multiplied(dtype, out, transposed):
    sch = scheduled(32, 32, 96, dtype, out, transposed)
    loop = sch.get_loops(sch.get_block("C_o_update"))[3]
    for key, values in (("stage", [0, 0, 2]), ("order", [0, 1, 2]), ("async_stages", [0])):
        sch.annotate(loop, f"software_pipeline_{key}", values)
    a, b, expected = operands(32, 32, 96, dtype, out)
    given = np.ascontiguousarray(b.T) if transposed else b
    module = _core.lower(sch.mod, "cuda")[0]
    c = np.full((32, 32), 77, out)
    _core.interpret(module, "main", a, given, c)
    np.testing.assert_array_equal(c, expected, err_msg=module.script())
    text = compiled(sch).inspect("ptx")
    assert "cp.async.cg.shared.global" in text and "ldmatrix" in text and "mma.sync" in text


def test_threads_wait_for_tiles_that_are_loaded_by_ldmatrix():
    module = _core.lower(scheduled(32, 32, 48, "float16", "float32", False).mod, "cuda")[0]
    a, b, _ = operands(32, 32, 48, "float16", "float32")
    count = module.script().count("tvm_storage_sync")
    assert count >= 2
    check_barriers_are_needed(module, [a, b, np.zeros((32, 32), "float32")], count)


# ---- single instructions, each against its description


def alone(name: str) -> tw.Schedule:
    """One block that computes what the description says, from and to memory of the grid."""
    lines = str(TensorIntrin.get(name).desc.script()).splitlines()
    first = next(number for number, line in enumerate(lines) if 'T.block("root")' in line)
    declared = re.findall(r"(\w+) = T\.match_buffer\(\w+, \((\d+), (\d+)\)(.*)\)", "\n".join(lines[:first]))
    declared += re.findall(r"(\w+): T\.Buffer\(\((\d+), (\d+)\)([^)]*)\)", "\n".join(lines[:first]))
    reads = next(line for line in lines[first:] if "T.reads(" in line)
    body = [line for line in lines[first + 1 :] if not re.match(r" {8}T\.(reads|writes)", line)]
    parameters, inside, before, behind = [], [], [], []
    for buffer, rows, columns, options in declared:
        dtype = (re.search(r'"(\w*\d)"', options) or re.match("(.*)", "float32")).group(1)
        scope = (re.search(r'scope="([\w.]+)"', options) or re.match("(.*)", "global")).group(1)
        if scope == "global":
            parameters.append(f'{buffer}: T.Buffer(({rows}, {columns}), "{dtype}")')
            continue
        parameters.append(f'of_{buffer}: T.Buffer(({rows}, {columns}), "{dtype}")')
        inside.append(f'{buffer} = T.alloc_buffer(({rows}, {columns}), "{dtype}", scope="{scope}")')
        for into in (buffer, f"of_{buffer}"):
            if into == buffer and buffer + "[" not in reads:
                continue
            source = f"of_{buffer}" if into == buffer else buffer
            lanes = f'T.thread_binding({rows}, thread="threadIdx.x")' if scope == "warp" else f"range({rows})"
            (before if into == buffer else behind).append(f"""
        for lane in {lanes}:
            for register in range({columns}):
                with T.block("{source}_to_{into}"):
                    vl, vr = T.axis.remap("SS", [lane, register])
                    {into}[vl, vr] = {source}[vl, vr]""")
    text = f"""
@T.prim_func
def main({", ".join(parameters)}):
    {(chr(10) + "    ").join(inside)}
    for bx in T.thread_binding(1, thread="blockIdx.x"):{"".join(before)}
"""
    return tw.Schedule(from_source(text + "\n".join(body) + "".join(behind)))


ALONE = [
    *(f"mma_fill_16x16_{short}" for short in ("f16", "f32", "i32")),
    *(f"mma_store_16x16_{short}_global_" for short in ("f16", "f32", "i32")),
    *("mma_store_16x16_f32_shared_dyn_", "mma_store_16x16_f32_shared_dyn_simple_"),
    *("mma_store_16x16_f16_shared_dyn_simple_", "mma_ldmatrix_f16_a", "mma_ldmatrix_f16_a_dyn", "mma_ldmatrix_bf16_a"),
    *("mma_ldmatrix_i8_a", "mma_ldmatrix_i8_b", "mma_i8i8i32"),
]


@pytest.mark.parametrize("name", ALONE)
def test_each_instruction_computes_what_it_describes(name):
    """All elements differ. (Operands with the layout of A that are no A are covered by the products above.)"""
    sch = alone(name)
    draw = np.random.default_rng(2)
    arrays = []
    for parameter in sch.mod["main"].params:
        buffer = sch.mod["main"].buffer_map[parameter]
        shape = [int(extent) for extent in buffer.shape]
        values = draw.permutation(shape[0] * shape[1]).reshape(shape) % 251 - 125
        arrays.append(values.astype(numpy_type(buffer.dtype)))
    expected = [array.copy() for array in arrays]
    _core.interpret(sch.mod, "main", *expected)
    block = next(each for each in sch.get_child_blocks(sch.get_block("root")) if "_to_" not in sch.get(each).name_hint)
    loops = sch.get_loops(block)
    sch.tensorize(loops[1], name)
    module = _core.lower(sch.mod, "cuda")[0]
    found = [array.copy() for array in arrays]
    _core.interpret(module, "main", *found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=module.script())


def test_an_instruction_of_which_a_thread_is_missing():
    """Threads of a warp that go different ways, and threads without a warp."""

    def program(condition: str, threads: int = 32) -> Any:
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float16")):
    for tx in T.thread_binding({threads}, thread="threadIdx.x"):
        S = T.decl_buffer((256,), "float16", scope="shared")
        W = T.decl_buffer((8,), "float16", scope="local")
        for i in range(8):
            S[tx * 8 + i] = T.float16(0)
        T.tvm_storage_sync("shared")
        if {condition}:
            T.evaluate(
                T.ptx_ldmatrix(
                    False, 1, ".b16", W.data, 0,
                    T.tvm_access_ptr(T.type_annotation("float16"), S.data, 0, 256, 1), tx % 8 * 8, dtype="float16",
                )
            )
""")

    for given in (program("tx < 16"), program("tx < 16", 16)):
        with pytest.raises(tw.Error) as raised:
            _core.interpret(_core.as_module(given), "main", np.zeros(64, "float16"))
        assert raised.value.code == "interpret/warp"
    with pytest.raises(tw.Error) as raised:
        tw.compile(program("tx < 16", 16), target="cuda")
    assert raised.value.code == "lower/warp-memory"


def test_opencl_has_no_instructions_of_warps():
    with pytest.raises(tw.Error) as raised:
        tw.compile(scheduled(32, 32, 32, "float16", "float32", False), target="opencl")
    assert raised.value.code == "lower/no-warps" and "mma_fill" in str(raised.value)


def test_rows_that_ldmatrix_reads_begin_at_multiples_of_16_bytes():
    sch = scheduled(32, 32, 32, "float16", "float32", False)
    sch.storage_align(sch.get_block("A_shared"), 0, axis=0, factor=8, offset=4)
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(sch, target="cuda")
    assert raised.value.code == "codegen/fragment-stride"


@pytest.mark.parametrize(
    ("shape", "dtype", "short", "out", "out_short", "k"),
    [
        ("m16n8k8", "float16", "fp16", "float32", "fp32", 8),
        ("m16n8k8", "bfloat16", "bf16", "float32", "fp32", 8),
        ("m16n8k4", "float32", "tf32", "float32", "fp32", 4),
        ("m16n8k8", "float32", "tf32", "float32", "fp32", 8),
        ("m16n8k16", "int8", "int8", "int32", "int32", 16),
        ("m16n8k16", "float16", "fp16", "float16", "fp16", 16),
        ("m16n8k16", "bfloat16", "bf16", "float32", "fp32", 16),
        ("m16n8k32", "uint8", "uint8", "int32", "int32", 32),
    ],
)
def test_shapes_and_types_by_hand(shape, dtype, short, out, out_short, k):
    """Threads pick their elements by the map that PTX documents, written here a second time."""
    width = 4 // np.dtype(numpy_type(dtype)).itemsize
    of_a, of_b = 16 * k // 32, 8 * k // 32
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((16, {k}), "{dtype}"), B: T.Buffer(({k}, 8), "{dtype}"), C: T.Buffer((16, 8), "{out}")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            a = T.decl_buffer(({of_a},), "{dtype}", scope="local")
            b = T.decl_buffer(({of_b},), "{dtype}", scope="local")
            c = T.decl_buffer((4,), "{out}", scope="local")
            for r in range({of_a}):
                a[r] = A[
                    tx // 4 + r // {width} % 2 * 8, tx % 4 * {width} + r % {width} + r // {2 * width} * {4 * width}
                ]
            for r in range({of_b}):
                b[r] = B[tx % 4 * {width} + r % {width} + r // {width} * {4 * width}, tx // 4]
            for r in range(4):
                c[r] = C[tx // 4 + r // 2 * 8, tx % 4 * 2 + r % 2]
            T.evaluate(
                T.ptx_mma(
                    "{shape}", "row", "col", "{short}", "{short}", "{out_short}",
                    a.data, 0, b.data, 0, c.data, 0, False, dtype="{out}",
                )
            )
            for r in range(4):
                C[tx // 4 + r // 2 * 8, tx % 4 * 2 + r % 2] = c[r]
""")
    a, b, expected = operands(16, 8, k, dtype if dtype != "uint8" else "int8", out)
    a, b = (np.abs(a.astype("int64")).astype(numpy_type(dtype)) if dtype == "uint8" else a for a in (a, b))
    expected = (a.astype("int64") @ b.astype("int64") + 5).astype(out)
    for module in (_core.as_module(program), _core.lower(_core.as_module(program), "cuda")[0]):
        c = np.full((16, 8), 5, out)
        _core.interpret(module, "main", a, b, c)
        np.testing.assert_array_equal(c, expected)
    text = compiled(program).inspect("ptx")
    assert f"mma.sync.aligned.{shape}.row.col" in text
