"""tvm.sparse: scripts of SparseTIR's implementation run, from formats to kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import tvm
from tests.compat import sparse_scripts as scripts
from tvm.script import tir as T
from tvm.sparse import (
    FormatRewriteRule,
    column_part_hyb,
    condense,
    csf_to_ell3d,
    format_decompose,
    lower_sparse_buffer,
    lower_sparse_iter,
    specialize_buffer,
)

import tilewright as tw

M, N, K, B = 6, 8, 4, 2


csrmm, bsr = scripts.csr_sum, scripts.bsr


@T.prim_func
def csrmm_bsr(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
    a_bsr: T.handle,
    indptr_bsr: T.handle,
    indices_bsr: T.handle,
    mb: T.int32,
    nb: T.int32,
    nnzb: T.int32,
    blk: T.int32,
) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.dense_fixed(n)
    K = T.dense_fixed(k)
    IO = T.dense_fixed(mb)
    JO = T.sparse_variable(IO, (nb, nnzb), (indptr_bsr, indices_bsr), "int32")
    II = T.dense_fixed(blk)
    JI = T.dense_fixed(blk)
    A = T.match_sparse_buffer(a, (I, J), "float32")
    B = T.match_sparse_buffer(b, (J_detach, K), "float32")
    C = T.match_sparse_buffer(c, (I, K), "float32")
    A_bsr = T.match_sparse_buffer(a_bsr, (IO, JO, II, JI), "float32")
    with T.sp_iter([IO, JO, II, JI], "SSSS", "rewrite_A_bsr") as [io, jo, ii, ji]:
        T.sp_iter_attr({"preprocess": True})
        A_bsr[io, jo, ii, ji] = A[io * 2 + ii, jo * 2 + ji]
    with T.sp_iter([IO, II, JO, JI, K], "SSRRS", "csrmm_bsr") as [io, ii, jo, ji, k]:
        with T.init():
            C[io * 2 + ii, k] = 0.0
        C[io * 2 + ii, k] = C[io * 2 + ii, k] + A_bsr[io, jo, ii, ji] * B[jo * 2 + ji, k]


def rule(name: str = "bsr") -> Any:
    return FormatRewriteRule(
        name,
        bsr,
        ["A"],
        ["I", "J"],
        ["IO", "JO", "II", "JI"],
        {"I": ["IO", "II"], "J": ["JO", "JI"]},
        lambda i, j: (i // 2, j // 2, i % 2, j % 2),
        lambda io, jo, ii, ji: (io * 2 + ii, jo * 2 + ji),
    )


def matrix(seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    values = random.integers(-4, 5, (M, N)) * (random.random((M, N)) < 0.3)
    return scipy.sparse.csr_matrix(values.astype("float32"))


def test_format_decompose_is_as_published() -> None:
    mod = format_decompose(tvm.IRModule.from_expr(csrmm), [rule()])
    tvm.ir.assert_structural_equal(mod["main"], csrmm_bsr)
    without = format_decompose(tvm.IRModule.from_expr(csrmm), [rule()], include_format_rewrite_blks=False)
    removed = tvm.tir.transform.RemovePreprocess()(mod)
    tvm.ir.assert_structural_equal(without["main"], removed["main"])
    two = format_decompose(tvm.IRModule.from_expr(csrmm), [rule("one"), rule("two")])["main"]
    assert int(two.attrs["composable"]) == 1 and "composable" not in mod["main"].attrs
    names = ["rewrite_A_one", "rewrite_A_two", "csrmm_one", "csrmm_two"]
    assert [each.name_hint for each in two.body.seq] == names
    with pytest.raises(TypeError, match="Expected IRModule"):
        format_decompose(csrmm, [rule()])


@pytest.mark.parametrize("target", ["llvm", "interpreter"])
def test_a_product_over_blocks(target: str) -> None:
    a = matrix()
    blocks = a.tobsr((B, B))
    blocks.sort_indices()
    mod = format_decompose(tvm.IRModule.from_expr(csrmm), [rule()])
    first, then = tvm.tir.transform.ExtractPreprocess()(mod), tvm.tir.transform.RemovePreprocess()(mod)
    x = np.arange(N * K, dtype="float32").reshape(N, K)
    stored = np.full(blocks.data.size, np.nan, "float32")
    y = np.full(M * K, np.nan, "float32")
    args = [a.data, x.reshape(-1), y, a.indptr, a.indices, M, N, K, a.nnz]
    args += [stored, blocks.indptr, blocks.indices, M // B, N // B, len(blocks.indices), B]
    for part in (first, then):
        part = lower_sparse_buffer(lower_sparse_iter(part))
        assert all(len(buffer.shape) == 1 for buffer in part["main"].buffer_map.values())
        if target == "llvm":
            tvm.build(part, target="llvm")(*args)
        else:
            tw.compile(part, target)(*args)
    np.testing.assert_array_equal(stored, blocks.data.reshape(-1))
    np.testing.assert_array_equal(y.reshape(M, K), a @ x)


def test_schedules_of_stage_one_and_two() -> None:
    sch = tvm.tir.Schedule(tvm.IRModule.from_expr(csrmm))
    iteration = sch.get_sparse_iteration("csrmm")
    i, j, k = sch.get_sp_iters(iteration)
    sch.sparse_reorder(iteration, [k, i, j])
    sch.sparse_fuse(iteration, [i, j])
    with pytest.raises(tvm.tir.ScheduleError):
        sch.sparse_reorder(iteration, [j, i, k])
    mod = lower_sparse_iter(sch.mod, check_invalid_binary_search=True)
    sch = tvm.tir.Schedule(mod)
    assert len(sch.get_loops(sch.get_block("csrmm0"))) == 2
    mod = tvm.tir.transform.RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    a = matrix(1)
    x, y = np.arange(N * K, dtype="float32"), np.zeros(M * K, "float32")
    tvm.build(mod, target="llvm")(a.data, x, y, a.indptr, a.indices, M, N, K, a.nnz)
    np.testing.assert_array_equal(y.reshape(M, K), a @ x.reshape(N, K))
    assert int(mod["main"].attrs["sparse_tir_level"]) == 0


def test_indices_that_a_formula_tells() -> None:
    mod = lower_sparse_iter(tvm.IRModule.from_expr(csrmm))
    assert {"J_indptr", "J_indices"} <= {buffer.name for buffer in mod["main"].buffer_map.values()}
    mod = specialize_buffer(mod, "J_indices", lambda p: (p % 8,))
    a = scipy.sparse.csr_matrix(np.arange(1, M * N + 1, dtype="float32").reshape(M, N))
    x, y = np.eye(N, K, dtype="float32"), np.zeros((M, K), "float32")
    tvm.build(mod, target="llvm")(a.data, x, y, a.indptr, M, N, K, a.nnz)
    np.testing.assert_array_equal(y, a @ x)


def test_functions_of_a_module_are_replaced() -> None:
    mod = tvm.IRModule.from_expr(csrmm)
    m, n, k, nnz = mod["main"].params[5:]
    mod["main"] = mod["main"].specialize({m: M, n: N, k: K}).with_attr("horizontal_fuse", True)
    assert bool(mod["main"].attrs["horizontal_fuse"]) and "horizontal_fuse" not in csrmm.attrs
    mod.update_func(mod.get_global_var("main"), csrmm)
    mod.update(tvm.IRModule({"other": bsr}))
    assert mod["main"].same_as(csrmm) and list(mod.functions) == ["main", "other"]
    sch = tvm.tir.Schedule(mod)
    with pytest.raises(TypeError, match="take a copy first"):
        sch.mod["main"] = bsr
    with pytest.raises(TypeError, match="take a copy first"):
        mod["main"] = bsr


@pytest.mark.parametrize("parts", [1, 3])
def test_column_part_hyb(parts: int) -> None:
    buckets = [1, 2, 4]
    a = scipy.sparse.random(30, 25, 0.3, "csr", random_state=parts)
    a.sort_indices()
    given = [tvm.nd.array(each.astype("int32")) for each in (a.indptr, a.indices)]
    rows, columns, mask = column_part_hyb(30, 25, *given, parts, buckets)
    size, seen = -(-25 // parts), np.zeros((30, 25), int)
    assert len(rows) == len(columns) == len(mask) == parts
    for part in range(parts):
        for bucket, width in enumerate(buckets):
            r, c, f = (each[part][bucket].numpy() for each in (rows, columns, mask))
            assert c.shape == f.shape == (len(r), width) and (np.diff(r) >= 0).all()
            assert (c[f == 0] == 0).all() and (c[f == 1] // size == part).all()
            lengths = f.sum(1)
            least = buckets[bucket - 1] if bucket and width != buckets[-1] else 0
            assert ((lengths > least) & (lengths <= width)).all()
            np.add.at(seen, (np.repeat(r, width)[f.reshape(-1) == 1], c[f == 1]), 1)
    np.testing.assert_array_equal(seen, (a.toarray() != 0).astype(int))


def test_condense() -> None:
    a = scipy.sparse.random(10, 17, 0.3, "csr", random_state=2)
    a.sort_indices()
    indptr, tiles, mask = (each.numpy() for each in condense(a.indptr, a.indices, 4, 3))
    assert indptr.shape == (4,) and tiles.shape == (indptr[-1], 3) and mask.shape == (indptr[-1], 4, 3)
    have = np.zeros((12, 17), int)
    for strip in range(3):
        groups = tiles[indptr[strip] : indptr[strip + 1]].reshape(-1)
        want = np.unique(a[strip * 4 : strip * 4 + 4].indices)
        np.testing.assert_array_equal(groups[: len(want)], want)
        assert (groups[len(want) :] == 0).all() and len(groups) - len(want) < 3
        for group in range(indptr[strip], indptr[strip + 1]):
            for row, place in zip(*np.nonzero(mask[group]), strict=True):
                have[strip * 4 + row, tiles[group, place]] += 1
    np.testing.assert_array_equal(have[:10], (a.toarray() != 0).astype(int))


def test_csf_to_ell3d() -> None:
    random = np.random.default_rng(3)
    exists = random.random((3, 9, 11)) < 0.35
    exists[1] = False
    lengths = [[np.flatnonzero(row) for row in relation] for relation in exists]
    rows = [[r for r, columns in enumerate(relation) if len(columns)] for relation in lengths]
    indptr_0 = np.cumsum([0, *map(len, rows)]).astype("int32")
    indices_0 = np.concatenate(rows).astype("int32")
    fibers = [lengths[r][row] for r, some in enumerate(rows) for row in some]
    indptr_1 = np.cumsum([0, *map(len, fibers)]).astype("int32")
    indices_1 = np.concatenate(fibers).astype("int32")
    groups, widths = [4, 2, 1], [1, 2, 4]
    indptr, row, column, mask = csf_to_ell3d(indptr_0, indices_0, indptr_1, indices_1, groups, widths)
    have = np.zeros(exists.shape, int)
    for bucket, (count, width) in enumerate(zip(groups, widths, strict=True)):
        begins, r, c, f = (each[bucket].numpy() for each in (indptr, row, column, mask))
        assert begins.shape == (4,) and r.shape == (begins[-1], count) and c.shape == f.shape == (*r.shape, width)
        for relation in range(3):
            for group in range(begins[relation], begins[relation + 1]):
                filled = f[group].any(1)
                assert filled[0] and (np.diff(filled.astype(int)) <= 0).all()
                assert (r[group][~filled] == r[group][filled][-1]).all() and (c[group][f[group] == 0] == 0).all()
                for place, slot in zip(*np.nonzero(f[group]), strict=True):
                    have[relation, r[group, place], c[group, place, slot]] += 1
    np.testing.assert_array_equal(have, exists.astype(int))


def test_schedules_of_dense_programs_follow_tvm() -> None:
    """What lowered sparse programs need beyond it, such as copies that have the annotations of a block, is theirs."""

    @T.prim_func
    def sums(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16,), "float32")):
        C = T.alloc_buffer((16,), "float32")
        for i, k in T.grid(16, 16):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.block_attr({"kind": "sum"})
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(16):
            with T.block("D"):
                vi = T.axis.spatial(16, i)
                D[vi] = C[vi]

    sch = tvm.tir.Schedule(sums)
    copy = sch.cache_write("C", 0, "global")
    assert dict(sch.get(copy).annotations) == {}
    with pytest.raises(tvm.tir.ScheduleError, match="ancestor of block"):
        sch.compute_at("C", sch.get_loops("C")[0])
    with pytest.raises(tvm.tir.ScheduleError):
        sch.reverse_compute_at(copy, sch.get_loops(copy)[0])
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    with pytest.raises(tvm.tir.ScheduleError):
        sch.decompose_reduction("C_update", sch.get_loops("C_update")[1])
