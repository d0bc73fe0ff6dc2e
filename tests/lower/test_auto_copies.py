"""Copies by read_at and write_at on devices: threads share them; layouts of shared memory without bank conflicts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from codegen.test_mma import operands, scheduled
from lower.test_gpu import matmul
from lower.test_software_pipelines import check_every_stage
from tilewright import _core, arith, ir
from tilewright.script import from_source


def with_copies(m: int, n: int, k: int, depth: int, dtype: str = "float32", **annotations: Any) -> tw.Schedule:
    """Tiles of 8 x 8 by 64 threads, whose operands are copied for each step of the reduction."""
    sch = tw.Schedule(from_source(matmul(m, n, k).script().replace("float32", dtype)))
    i, j, r = sch.get_loops("C")
    (i0, i1), (j0, j1), (r0, r1) = (sch.split(i, [None, 8]), sch.split(j, [None, 8]), sch.split(r, [None, depth]))
    sch.reorder(i0, j0, r0, i1, j1, r1)
    for loop, axis in zip([i0, j0, i1, j1], ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    for number in (0, 1):
        copy = sch.read_at(r0, "C", number, "shared")
        for key, value in annotations.items():
            sch.annotate(copy, key, value)
    return sch


def check_product(sch: tw.Schedule, m: int, n: int, k: int, dtype: str = "float32") -> ir.Module:
    a = np.random.default_rng(0).integers(-2, 3, (m, k)).astype(dtype)
    b = np.random.default_rng(1).integers(-2, 3, (k, n)).astype(dtype)
    expected = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    module = check_every_stage(sch.mod, "opencl", [a, b, np.zeros((m, n), dtype)], expected)
    c = np.zeros((m, n), dtype)
    tw.compile(sch, target="opencl")(a, b, c)
    np.testing.assert_array_equal(c, expected)
    return module


@pytest.mark.parametrize(("dtype", "vector_bytes", "lanes"), [("float32", 16, 4), ("float16", 8, 4), ("float32", 0, 1)])
def test_threads_share_copies(dtype, vector_bytes, lanes):
    annotations = {"vector_bytes": vector_bytes} if vector_bytes else {}
    sch = with_copies(16, 16, 96, 32, dtype, **annotations)
    check_product(sch, 16, 16, 96, dtype)
    text = tw.compile(sch, target="opencl").inspect("opencl")
    assert (f"vstore{lanes}(vload{lanes}(0, &A" in text) == (lanes > 1), text
    # Of 8 x 32 elements, each of 64 threads copies 4: at once, or one by one.
    script = tw.lower(sch, target="opencl", after="lower_auto_copies").script()
    rounds = re.findall(r"for o in range\((\d+)\)", script) or re.findall(r"T\.grid\((\d+),", script)
    assert "auto_copy" not in script and script.count("thread_binding(8") >= 6, (rounds, script)
    compiled(sch)


@pytest.mark.parametrize(("m", "n", "k", "depth"), [(13, 11, 50, 10), (9, 17, 7, 7), (8, 8, 3, 3)])
@pytest.mark.parametrize("annotations", [{}, {"vector_bytes": 16}, {"local_stage": 1}], ids=str)
def test_sizes_that_threads_do_not_divide(m, n, k, depth, annotations):
    check_product(with_copies(m, n, k, depth, **annotations), m, n, k)


def test_copies_go_through_registers():
    sch = with_copies(16, 16, 64, 16, vector_bytes=16, local_stage=1)
    script = tw.lower(sch, target="cuda", after="stage_shared_copies").script()
    assert "A_shared_local" in script and 'scope="local"' in script, script
    check_product(sch, 16, 16, 64)


def test_copies_inside_of_a_loop_over_threads():
    """Threads of all rows share them, though the copy stands in the loop over rows."""
    sch = tw.Schedule(matmul(16, 8, 32))
    i, j, r = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    r0, r1 = sch.split(r, [None, 8])
    sch.reorder(i0, i1, r0, j, r1)
    for loop, axis in zip([i0, i1, j], ["blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    sch.read_at(r0, "C", 0, "shared")
    sch.read_at(r0, "C", 1, "shared")
    check_product(sch, 16, 8, 32)
    script = tw.lower(sch, target="opencl", after="lower_auto_copies").script()
    assert (script.count('"threadIdx.y"'), script.count('"threadIdx.x"')) == (3, 4), script


def test_results_are_copied_back():
    sch = with_copies(16, 24, 40, 8)
    loop = sch.get_loops("C")[1]
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.write_at(loop, "C_update", 0, "shared")
    check_product(sch, 16, 24, 40)


@pytest.mark.parametrize(
    ("dtype", "depth"), [("float32", 32), ("float32", 16), ("float16", 64), ("int8", 64), ("float32", 8)]
)
def test_permuted_layouts(dtype, depth):
    """Elements are where the layout says, and readers find them there."""
    annotations = {"permuted_layout": "g2s_A", "vector_bytes": 16}
    sch = with_copies(16, 64, depth * 2, depth, dtype, **annotations)
    module = check_product(sch, 16, 64, depth * 2, dtype)
    assert "bitwise_xor" in module.script(), module.script()
    plain = with_copies(16, 64, depth * 2, depth, dtype, vector_bytes=16)
    assert "bitwise_xor" not in _core.lower(plain.mod, "opencl")[0].script()
    text = tw.compile(sch, target="opencl").inspect("opencl")
    lanes = 16 // np.dtype(dtype).itemsize
    assert f"vstore{lanes}(vload{lanes}(0, &A" in text, text


def test_rows_that_have_no_permuted_layout():
    """Of 48 bytes: a note says so. Padded rows are in different banks already."""
    kernel = tw.compile(with_copies(16, 16, 48, 12, permuted_layout=1), target="opencl")
    assert "lower/plain-layout" in {note.code for note in kernel.notes}
    assert "bitwise_xor" in kernel.inspect("tir")  # of B: rows of 32 bytes
    sch = with_copies(16, 16, 64, 32)
    sch.annotate("A_shared", "permuted_layout", 1)
    assert "bitwise_xor" in tw.lower(sch, target="opencl").script()
    sch.storage_align("A_shared", 0, axis=-2, factor=32, offset=8)
    kernel = tw.compile(sch, target="opencl")
    assert "bitwise_xor" not in kernel.inspect("tir"), kernel.inspect("tir")
    check_product(sch, 16, 16, 64)


def variables_of(expr: Any) -> set[Any]:
    found: set[Any] = set()
    ir.visit(expr, lambda node: found.add(node) if isinstance(node, ir.Var) else None)
    return found


def test_ldmatrix_follows_the_layout():
    """Tiles of B have rows of 128 bytes. The eight rows of each matrix that ldmatrix loads are in different banks."""
    sch = scheduled(32, 64, 96, "float16", "float32", False)
    sch.unannotate("B_shared", "buffer_dim_align")
    sch.annotate("B_shared", "permuted_layout", "g2s_B")
    a, b, expected = operands(32, 64, 96, "float16", "float32")
    stages = dict(_core.lower_stages(sch.mod, "cuda"))
    for name, module in stages.items():
        if "T.block(" in module.script():
            continue
        c = np.zeros((32, 64), "float32")
        _core.interpret(module, "main", a, b, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{name}\n{module.script()}")
    calls: list[Any] = []
    found = stages["lower_blocks"]
    ir.visit(
        found["main"].body,
        lambda node: calls.append(node) if isinstance(node, ir.Call) and node.op.name == "tir.ptx_ldmatrix" else None,
    )
    of_b = [call for call in calls if "bitwise_xor" in str(call)]
    assert of_b and len(of_b) < len(calls)
    for call in of_b:
        place = call.args[5].args[2] + call.args[6]
        variables = variables_of(place)
        lane = next(v for v in variables if v.name.startswith("tx"))
        begins = []
        for number in range(32):
            known = {v: number if v.same_as(lane) else 0 for v in variables}
            begins.append(int(arith.Analyzer().simplify(ir.substitute(place, known))))
        for matrix in range(4):
            banks = {begin * 2 % 128 // 16 for begin in begins[8 * matrix : 8 * matrix + 8]}
            assert len(banks) == 8, (matrix, begins)
    assert "ldmatrix" in compiled(sch).inspect("ptx")


def test_pointers_have_no_permuted_layout():
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(
            from_source("""
@T.prim_func
def main(A: T.Buffer((8, 32)), B: T.Buffer((8, 32))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("all"):
            S = T.alloc_buffer((8, 32), scope="shared")
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                for j in range(32):
                    with T.block("S"):
                        T.block_attr({"permuted_layout": 1})
                        vx, vj = T.axis.remap("SS", [tx, j])
                        S[vx, vj] = A[vx, vj]
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vx = T.axis.spatial(8, tx)
                    T.reads(S[vx, 0:32])
                    T.writes(B[vx, 0])
                    T.evaluate(T.call_extern("int32", "f", T.address_of(S[vx, 0])))
                    B[vx, 0] = T.float32(0)
"""),
            target="opencl",
        )
    assert raised.value.code == "lower/permuted-layout" and "pointer" in str(raised.value)
