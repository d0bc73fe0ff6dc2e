"""tvm.sparse: schedules of SparseTIR's examples, before and after iterations are lowered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
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
    """The init is decomposed before the sum is cached: a schedule in another order than that of the examples."""
    a = random_csr(M, N)
    sch = tir.Schedule(lower_sparse_iter(bound(scripts.csrmm, M, N, 2, a.nnz, 2)))
    rows, block = sch.get_block("csrmm0"), sch.get_block("csrmm1")
    (i,) = sch.get_loops(rows)
    j, k1, k2, k3 = sch.get_loops(block)
    sch.reorder(k1, k2, k3, j)
    assert sch.get(sch.decompose_reduction(block, j)).name_hint == "csrmm1_init"
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
    sch.match_to_alloc(sch.get_block("first"), 0)
    assert "B_tmp = T.alloc_buffer((16,))" in sch.mod.script()


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


@T.prim_func
def two_kernels(
    X: T.Buffer((24,), "float32"),
    Y: T.Buffer((40,), "float32"),
    P: T.Buffer((24,), "float32"),
    Q: T.Buffer((40,), "float32"),
) -> None:
    T.func_attr({"horizontal_fuse": True})
    for i, j in T.grid(3, 8):
        with T.block("first"):
            vi = T.axis.spatial(24, i * 8 + j)
            P[vi] = X[vi] + T.float32(1)
    for i, j in T.grid(5, 8):
        with T.block("second"):
            vi = T.axis.spatial(40, i * 8 + j)
            Q[vi] = Y[vi] * T.float32(2)


@pytest.mark.parametrize("threads", [(8, 8), (8, 4)])
def test_kernels_are_fused_where_their_threads_fit(threads: tuple[int, int]) -> None:
    sch = tir.Schedule(two_kernels)
    for name, count in zip(("first", "second"), threads, strict=True):
        i, j = sch.get_loops(sch.get_block(name))
        i, j = sch.split(sch.fuse(i, j), [None, count])
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
    built = tvm.build(sch.mod, target="opencl")
    fused = len({*threads}) == 1
    assert built.get_source().count("__kernel") == (1 if fused else 2)  # the driver runs the pass by itself
    mod = tvm.tir.transform.HorizontalFusion()(sch.mod)
    assert mod.script().count("blockIdx.x") == (1 if fused else 2)
    assert "horizontal_fuse" not in mod["main"].attrs
    assert tvm.tir.transform.InjectScope()(mod).script() == mod.script()
    assert tvm.tir.transform.LowerAtomic()(mod).script() == mod.script()
    x, y, p, q = whole(24), whole(40), np.zeros(24, "float32"), np.zeros(40, "float32")
    arrays = [tvm.nd.array(each, device=tvm.opencl(0)) for each in (x, y, p, q)]
    tvm.build(mod, target="opencl")(*arrays)
    np.testing.assert_array_equal(arrays[2].numpy(), x + 1)
    np.testing.assert_array_equal(arrays[3].numpy(), 2 * y)
    other = tvm.tir.transform.HorizontalFusion()(tvm.IRModule({"main": two_readers}))
    assert other["main"].same_as(two_readers)


def test_axes_that_are_made_without_a_script() -> None:
    """An iteration over CSR from its nodes."""
    from tvm.tir import sparse

    m, n, nnz = 3, 5, 6
    indptr, indices, a, y = (tir.Var(name, "handle") for name in ("indptr", "indices", "a", "y"))
    rows = sparse.dense_fixed_axis("I", m, "int32")
    columns = sparse.sparse_variable_axis("J", rows, n, nnz, indptr, indices, "int32")
    ragged = sparse.dense_variable_axis("K", rows, n, nnz, columns.indptr, "int32")
    padded = sparse.sparse_fixed_axis("L", rows, n, 2, indices, "int32", sorted=False)
    assert columns.is_sparse and columns.is_variable and ragged.is_variable and not ragged.is_sparse
    assert padded.is_sparse and int(padded.nnz_cols.value) == 2 and not padded.sorted
    assert sparse.AxisKind(ragged.is_variable + 2 * ragged.is_sparse) is sparse.AxisKind.DenseVariable
    pointer = tvm.ir.PointerType(tvm.ir.PrimType("float32"))
    values = sparse.SparseBuffer(tir.Var("A", pointer), [rows, columns], "float32", "A")
    sums = sparse.SparseBuffer(tir.Var("Y", pointer), [rows], "float32", "Y")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    iters = [sparse.SpIterVar(i, False, rows), sparse.SpIterVar(j, True, columns)]
    init = tir.BufferStore(sums, tir.const(0, "float32"), [i])
    step = tir.BufferStore(sums, tir.BufferLoad(sums, [i]) + tir.BufferLoad(values, [i, j]), [i])
    body = tir.SparseIteration(iters, "sums", {}, init, step)
    buffers = {indptr: columns.indptr, indices: columns.indices, a: values, y: sums}
    func = tvm.ir.load_json(tvm.ir.save_json(_function([a, y, indptr, indices], buffers, body, [rows, columns])))
    ends, given = np.array([0, 2, 2, 6], "int32"), whole(nnz)
    result = np.full(m, np.nan, "float32")
    mod = lower_sparse_buffer(lower_sparse_iter(tvm.IRModule({"main": func})))
    run(mod, "llvm", given, result, ends, np.array([0, 1, 0, 1, 2, 4], "int32"))
    np.testing.assert_array_equal(result, [given[:2].sum(), 0, given[2:].sum()])
    with pytest.raises(TypeError, match="extra_storage"):
        sparse.SparseBuffer(values.data, [rows], "float32", "A", 1)


def test_fused_attached_and_flattened_axes_without_a_script() -> None:
    """They are those of T.fuse, T.attach and T.flatten."""
    from tvm.tir import sparse

    m = 3
    indptr, indices, x, y, z = (tir.Var(name, "handle") for name in ("indptr", "indices", "x", "y", "z"))
    rows = sparse.dense_fixed_axis("I", m, "int32")
    columns = sparse.sparse_variable_axis("J", rows, m, 4, indptr, indices, "int32")
    fused = [sparse.FusedAxis([rows, columns], at) for at in range(2)]
    assert [each.name for each in fused] == ["fused_IJ_I", "fused_IJ_J"]
    assert [int(each.length.value) for each in fused] == [1, 4] and fused[0].nnz_cols.value == 1
    with pytest.raises(ValueError, match="axis 2 of a group of 2"):
        sparse.FusedAxis([rows, columns], 2)
    attached = sparse.AttachedAxis(columns, columns)
    assert attached.name == "J_attach_J" and attached.parent.same_as(columns)
    numbers = sparse.FlattenedAxis("F", [rows, columns], 4, [], "int32")
    pointer = tvm.ir.PointerType(tvm.ir.PrimType("float32"))
    given, sums, halves = (
        sparse.SparseBuffer(tir.Var(name, pointer), [axis], "float32", name)
        for name, axis in (("X", rows), ("Y", rows), ("Z", numbers))
    )
    i, j, k, f = (tir.Var(name, "int32") for name in "ijkf")
    iters = [sparse.SpIterVar(i, False, fused[0]), sparse.SpIterVar(j, True, fused[1])]
    iters.append(sparse.SpIterVar(k, True, attached))
    step = tir.BufferStore(sums, tir.BufferLoad(sums, [i]) + tir.BufferLoad(given, [k]), [i])
    hops = tir.SparseIteration(iters, "hops", {}, None, step)
    half = tir.BufferStore(halves, tir.BufferLoad(halves, [f]) / tir.const(2, "float32"), [f])
    flat = tir.SparseIteration([sparse.SpIterVar(f, False, numbers)], "halves", {}, None, half)
    buffers = {indptr: columns.indptr, indices: columns.indices, x: given, y: sums, z: halves}
    axes = [rows, columns, numbers]
    func = _function([x, y, z, indptr, indices], buffers, tir.SeqStmt([hops, flat]), axes)
    a = scipy.sparse.csr_matrix(np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0]], "float32"))
    result, vector, elements = np.zeros(m, "float32"), whole(m), np.arange(4, dtype="float32")
    mod = lower_sparse_buffer(lower_sparse_iter(tvm.IRModule({"main": func})))
    run(mod, "llvm", vector, result, elements, a.indptr, a.indices)
    np.testing.assert_array_equal(result, a @ (a @ vector))
    np.testing.assert_array_equal(elements, np.arange(4) / 2)


def _function(params: Any, buffers: Any, body: Any, axes: Any) -> Any:
    from tilewright import ir

    return ir.PrimFunc(params, buffers, None, {"global_symbol": "main"}, body, axes)
