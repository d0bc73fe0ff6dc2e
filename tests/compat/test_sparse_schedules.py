"""tvm.sparse: schedules of SparseTIR's examples, before and after iterations are lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tests.compat import sparse_scripts as scripts
from tests.compat.test_sparse_programs import TARGETS, random_csr, run, whole
from tvm import tir
from tvm.script import tir as T
from tvm.sparse import lower_sparse_buffer, lower_sparse_iter
from tvm.tir.transform import ExtractPreprocess, RemovePreprocess, RemoveUnusedArgs

M, N, K = 12, 10, 8


def bound(func: Any, *sizes: int) -> Any:
    return tvm.IRModule.from_expr(func.specialize(dict(zip(func.params[-len(sizes) :], sizes, strict=True))))


@pytest.mark.parametrize("target", TARGETS)
def test_sddmm_in_two_steps(target: str) -> None:
    """Nonzeros in one loop, the sum in lanes; what depends on the structure runs once."""
    a = random_csr(M, N)
    sch = tir.Schedule(bound(scripts.sddmm, M, N, K, a.nnz))
    iteration = sch.get_sparse_iteration("sddmm")
    i, j, k = sch.get_sp_iters(iteration)
    sch.sparse_fuse(iteration, [i, j])
    mod = lower_sparse_iter(sch.mod)
    first, mod = ExtractPreprocess()(mod), RemovePreprocess()(mod)
    sch = tir.Schedule(mod)
    block = sch.get_block("sddmm0")
    j, k = sch.get_loops(block)
    j, inner = sch.split(j, [None, 4])
    ko, kt, ki = sch.split(k, [None, 2, 4])
    sch.reorder(j, inner, ki, ko, kt)
    factored = sch.rfactor(ki, 0)
    sch.unroll(sch.get_loops(factored)[-1])
    sch.unroll(sch.get_loops(block)[-1])
    x, y, out = whole((M, K)), whole((N, K), 2), np.full(a.nnz, np.nan, "float32")
    arguments = [x, y, out, a.indptr, a.indices, np.zeros(a.nnz, "int32")]
    for part in (first, sch.mod):
        run(lower_sparse_buffer(part), target, *arguments)
    rows = np.repeat(np.arange(M), np.diff(a.indptr))
    np.testing.assert_array_equal(out, (x @ y.T)[rows, a.indices])


@pytest.mark.parametrize("target", TARGETS)
def test_csrmm_in_registers(target: str) -> None:
    """Lowering has made the init a block of its own: caching the sum and decomposing it still work."""
    a = random_csr(M, N)
    sch = tir.Schedule(lower_sparse_iter(bound(scripts.csrmm, M, N, 2, a.nnz, 2)))
    rows, block = sch.get_block("csrmm0"), sch.get_block("csrmm1")
    (i,) = sch.get_loops(rows)
    j, k1, k2, k3 = sch.get_loops(block)
    sch.reorder(k1, k2, k3, j)
    assert sch.get(sch.decompose_reduction(block, j)).name_hint == "csrmm_init"
    written = sch.cache_write(block, 0, "local")
    sch.annotate(written, "atomic", True)
    sch.parallel(i)
    mod = RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    x, y = whole((N, 16)), np.full((M, 16), np.nan, "float32")
    run(mod, target, a.data, x, y, a.indptr, a.indices)
    np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize("target", TARGETS)
def test_bsrmm_with_blocks_of_blocks(target: str) -> None:
    blk, mb, nb = 2, 5, 4
    a = random_csr(nb * blk, mb * blk).tobsr((blk, blk))
    a.sort_indices()
    sch = tir.Schedule(bound(scripts.bsrmm, nb, mb, len(a.indices), blk, K))
    iteration = sch.get_sparse_iteration("bsrmm")
    i, bi, bj, f, j = sch.get_sp_iters(iteration)
    sch.sparse_reorder(iteration, [i, j, bi, f, bj])
    sch = tir.Schedule(lower_sparse_iter(sch.mod))
    block = sch.get_block("bsrmm1")
    j, bi, f, bj = sch.get_loops(block)
    outer, inner = sch.split(f, [None, 4])
    sch.reorder(outer, j, bi, inner, bj)
    made = sch.blockize(bi)
    assert sch.get(made).name_hint == "bsrmm1_o"
    x, y = whole((mb, blk, K)), np.full((nb, blk, K), np.nan, "float32")
    run(lower_sparse_buffer(sch.mod), target, a.data, x, y, a.indptr, a.indices)
    np.testing.assert_array_equal(y.reshape(-1, K), a @ x.reshape(-1, K))


@pytest.mark.parametrize("target", TARGETS)
def test_an_init_stays_in_the_inner_block(target: str) -> None:
    nb, mb, width, blk = 4, 6, 3, 2
    random = np.random.default_rng(0)
    indices = np.sort(np.stack([random.permutation(mb)[:width] for _ in range(nb)]), 1).astype("int32")
    sch = tir.Schedule(bound(scripts.ellmm, nb, mb, K, width, blk))
    iteration = sch.get_sparse_iteration("ellmm")
    i, j, bi, bj, f = sch.get_sp_iters(iteration)
    sch.sparse_reorder(iteration, [i, bi, f, j, bj])
    sch = tir.Schedule(lower_sparse_iter(sch.mod))
    block = sch.get_block("ellmm0")
    i, bi, f, j, bj = sch.get_loops(block)
    outer = sch.blockize(f, inner_init=True)
    assert sch.get(outer).init is None and sch.get(block).init is not None
    sch.decompose_reduction(block, j)
    a, b, c = whole((nb, width, blk, blk)), whole((mb, blk, K), 2), np.full((nb, blk, K), np.nan, "float32")
    run(lower_sparse_buffer(sch.mod), target, a, b, c, indices)
    np.testing.assert_array_equal(c, np.einsum("iwab,iwbf->iaf", a, b[indices]))


@T.prim_func
def two_readers(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (16,), "float32")
    B = T.match_buffer(b, (16,), "float32")
    C = T.match_buffer(c, (16,), "float32")
    for i in range(16):
        with T.block("first"):
            vi = T.axis.spatial(16, i)
            T.block_attr({"marked": True})
            B[vi] = A[vi] + T.float32(1)
    for i in range(16):
        with T.block("second"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi] * T.float32(2)


@pytest.mark.parametrize(("name", "count"), [("marked", 1), (None, 2)])
def test_block_filters(name: str | None, count: int) -> None:
    """Of the readers of a buffer, a copy is for those with the annotation."""
    sch = tir.Schedule(two_readers)
    sch.set_block_filter("other")
    sch.unset_block_filter()
    if name is not None:
        sch.set_block_filter(name)
    sch.cache_read(sch.get_block("first"), 0, "local")
    assert sch.mod.script().count("A_local[vi] ") == count


def test_primitives_that_hide_and_refuse() -> None:
    sch = tir.Schedule(two_readers)
    sch.hide_buffer_access(sch.get_block("first"), "read", [0])
    assert len(sch.get(sch.get_block("first")).reads) == 0
    with pytest.raises(NotImplementedError, match=r"T\.alloc_sparse_buffer"):
        sch.match_to_alloc(sch.get_block("first"), 0)


def test_iterations_that_are_not_there() -> None:
    sch = tir.Schedule(tvm.IRModule.from_expr(scripts.sddmm))
    with pytest.raises(tir.ScheduleError):
        sch.get_sparse_iteration("spmm")
    i, j, k = sch.get_sp_iters(sch.get_sparse_iteration("sddmm"))
    for order in ([i, j], [i, i, k], [j, i, k]):
        with pytest.raises(tir.ScheduleError):
            sch.sparse_reorder(sch.get_sparse_iteration("sddmm"), order)
    with pytest.raises(tir.ScheduleError):
        sch.sparse_fuse(sch.get_sparse_iteration("sddmm"), [i, k])
