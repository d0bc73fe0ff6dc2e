"""tvm.sparse: SparseTIR's examples as users adapt them, with their schedules, on the CPU and with threads of a device.

The calls are those of the examples, with loops bound to threads where the target has these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import tvm
from tests.compat import sparse_scripts as scripts
from tests.compat.test_sparse_formats import ell_rule
from tests.compat.test_sparse_programs import random_csr, run, whole
from tvm import tir
from tvm.script import tir as T
from tvm.sparse import (
    FormatRewriteRule,
    column_part_hyb,
    condense,
    csf_to_ell3d,
    format_decompose,
    lower_sparse_buffer,
    lower_sparse_iter,
)
from tvm.tir.transform import ExtractPreprocess, RemovePreprocess, RemoveUnusedArgs

M, N = 37, 29


class Threads:
    """Binds loops where the target has threads."""

    def __init__(self, target: str) -> None:
        self.target = target

    def __call__(self, sch: Any, loop: Any, axis: str) -> None:
        if self.target == "opencl":
            sch.bind(loop, axis)


@pytest.fixture(params=["llvm", "opencl"])
def bind(request: Any) -> Threads:
    return Threads(request.param)


def graph(m: int = M, n: int = N) -> Any:
    """An unweighted graph with an empty row and a long one."""
    a = random_csr(m, n, 0.15).tolil()
    a[m // 3, : 2 * n // 3] = 1
    a = a.tocsr()
    a.data[:] = 1
    a.indptr, a.indices = a.indptr.astype("int32"), a.indices.astype("int32")
    return a


def test_spmm(bind: Threads) -> None:
    a, tiles, width = graph(), 2, 3
    mod = tvm.IRModule.from_expr(scripts.csrmm)
    m, n, num_tiles, nnz, cwm = mod["main"].params[5:]
    mod["main"] = mod["main"].specialize({m: M, n: N, num_tiles: tiles, nnz: a.nnz, cwm: width})
    sch = tir.Schedule(lower_sparse_iter(mod))
    outer, inner = sch.get_block("csrmm0"), sch.get_block("csrmm1")
    (i,) = sch.get_loops(outer)
    j, foo, foi, fi = sch.get_loops(inner)
    sch.reorder(foo, fi, j, foi)
    bind(sch, fi, "threadIdx.x")
    bind(sch, foo, "blockIdx.y")
    sch.unroll(foi)
    io, ii = sch.split(i, [None, 8])
    bind(sch, io, "blockIdx.x")
    bind(sch, ii, "threadIdx.y")
    init = sch.decompose_reduction(inner, fi)
    ax0, ax1 = sch.get_loops(init)[-2:]
    bind(sch, ax0, "threadIdx.x")
    sch.unroll(ax1)
    x, y = whole((N, tiles * width * 4)), np.full((M, tiles * width * 4), np.nan, "float32")
    run(lower_sparse_buffer(sch.mod), bind.target, a.data, x, y, a.indptr, a.indices)
    np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize(("parts", "buckets"), [(1, [1, 2, 4]), (2, [1, 2, 4]), (1, [1, 4, 32])])
def test_spmm_over_hyb(bind: Threads, parts: int, buckets: list[int]) -> None:
    """The init stays in the program: rows of buckets that others add to are not set by them."""
    a, tiles, width = graph(), 2, 3
    arrays = [tvm.nd.array(each, device=tvm.cpu()) for each in (a.indptr, a.indices)]
    rows, columns, mask = column_part_hyb(M, N, *arrays, parts, buckets)
    names = [(part, bucket) for part in range(parts) for bucket in range(len(buckets))]
    rules = [ell_rule(f"{p}_{b}", M, N, rows[p][b].shape[0], buckets[b]) for p, b in names]
    mod = RemovePreprocess()(format_decompose(tvm.IRModule.from_expr(scripts.csrmm), rules))
    m, n, num_tiles, nnz, cwm = mod["main"].params[5:10]
    sizes = {m: M, n: N, num_tiles: tiles, nnz: a.nnz, cwm: width}
    mod["main"] = mod["main"].specialize(sizes).with_attr("horizontal_fuse", True)
    sch = tir.Schedule(mod)
    for part, bucket in names:
        iteration = sch.get_sparse_iteration(f"csrmm_{part}_{bucket}")
        o, i, *_ = sch.get_sp_iters(iteration)
        sch.sparse_fuse(iteration, [o, i])
    sch = tir.Schedule(lower_sparse_iter(sch.mod))
    for part, bucket in names:
        block = sch.get_block(f"csrmm_{part}_{bucket}0")
        i, j, foo, foi, fi = sch.get_loops(block)
        sch.reorder(foo, fi, j, foi)
        if parts > 1 or bucket + 1 == len(buckets):
            sch.annotate(block, "atomic", True)
            written = sch.reverse_cache_write(block, 0, "local")
            sch.reverse_compute_at(written, fi, True)
        bind(sch, fi, "threadIdx.x")
        bind(sch, foo, "blockIdx.y")
        for loop in (foi, j):
            sch.unroll(loop)
            sch.annotate(loop, "pragma_unroll_explicit", 0)
        io, _, ii = sch.split(i, [None, buckets[-1] // buckets[bucket], 8])
        bind(sch, io, "blockIdx.x")
        bind(sch, ii, "threadIdx.y")
        init = sch.decompose_reduction(block, fi)
        ax0, ax1 = sch.get_loops(init)[-2:]
        bind(sch, ax0, "threadIdx.x")
        sch.unroll(ax1)
    mod = RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    x = whole((N, tiles * width * 4))
    more = [each[p][b].numpy() for p, b in names for each in (mask, rows, columns)]
    more[::3] = [each.astype("float32") for each in more[::3]]
    # The interpreter checks what is declared of rows, of which some occur several times.
    for target in [bind.target] + ["interpreter"] * (bind.target == "llvm"):
        y = np.zeros((M, x.shape[1]), "float32")
        run(mod, target, x, y, *more)
        np.testing.assert_array_equal(y, a @ x)


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_spmm_over_hyb_of_open_sizes(target: str) -> None:
    """Nothing but widths of buckets is known; sums are atomic without a copy in registers."""
    a, feat, widths = graph(), 16, [1, 2, 4]
    arrays = [tvm.nd.array(each, device=tvm.cpu()) for each in (a.indptr, a.indices)]
    rows, columns, mask = (each[0] for each in column_part_hyb(M, N, *arrays, 1, widths))
    rules = [ell_rule(str(bucket), M, N, 0, width) for bucket, width in enumerate(widths)]
    for rule, width in zip(rules, widths, strict=True):
        rule.new_format_desc = scripts.ell.specialize({scripts.ell.params[-1]: width})
    sch = tir.Schedule(RemovePreprocess()(format_decompose(tvm.IRModule.from_expr(scripts.csr_sum), rules)))
    for rule in rules:
        iteration = sch.get_sparse_iteration(f"csrmm_{rule.name}")
        sch.sparse_fuse(iteration, sch.get_sp_iters(iteration)[:2])
    sch = tir.Schedule(lower_sparse_iter(sch.mod))
    for rule in rules:
        block = sch.get_block(f"csrmm_{rule.name}0")
        sch.annotate(block, "atomic", True)
    mod = RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    x, y = whole((N, feat)), np.zeros((M, feat), "float32")
    known: dict[str, Any] = {"b": x, "c": y, "m": M, "n": N, "k": feat, "nnz": a.nnz}
    for bucket, (r, c, f) in enumerate(zip(rows, columns, mask, strict=True)):
        sizes = {"m": M, "n": N, "num_rows": r.shape[0]}
        given = {"a": f.numpy().astype("float32"), "indices_i": r.numpy(), "indices_j": c.numpy(), **sizes}
        known |= {f"{name}_{bucket}": value for name, value in given.items()}
    run(mod, target, *[known[param.name] for param in mod["main"].params])
    np.testing.assert_array_equal(y, a @ x)


def test_spmm_over_blocks(bind: Threads) -> None:
    size, feat = 8, 16
    a = graph(6, 5)
    blocks = whole((a.nnz, size, size))
    given = dict(zip(scripts.bsrmm.params[-5:], [6, 5, a.nnz, size, feat], strict=True))
    sch = tir.Schedule(tvm.IRModule.from_expr(scripts.bsrmm.specialize(given)))
    iteration = sch.get_sparse_iteration("bsrmm")
    i, bi, bj, f, j = sch.get_sp_iters(iteration)
    sch.sparse_reorder(iteration, [i, j, bi, f, bj])
    sch = tir.Schedule(lower_sparse_iter(sch.mod))
    inner, outer = sch.get_block("bsrmm1"), sch.get_block("bsrmm0")
    j, bi, f, bj = sch.get_loops(inner)
    bio, bii = sch.split(bi, [size // 4, 4])
    bjo, bji = sch.split(bj, [size // 4, 4])
    foo, foi, fi = sch.split(f, [None, 2, 4])
    sch.reorder(foo, j, bio, foi, bjo, bii, fi, bji)
    sch.unroll(foi)
    (i,) = sch.get_loops(outer)
    bind(sch, i, "blockIdx.x")
    bind(sch, bio, "threadIdx.y")
    bind(sch, foo, "blockIdx.y")
    written = sch.cache_write(inner, 0, "local")
    sch.reverse_compute_at(written, foo, True)
    ax0, ax1 = sch.get_loops(written)[-2:]
    ax2, ax3 = sch.split(ax1, [None, 4])
    ax0, ax1 = sch.split(ax0, [None, 4])
    sch.reorder(ax0, ax2, ax1, ax3)
    sch.unroll(ax2)
    bind(sch, ax0, "threadIdx.y")
    sch.decompose_reduction(inner, j)
    # What a block reads is counted as by the implementation: results, values, the dense operand, its rows.
    values = sch.cache_read(inner, 1, "local")
    sch.compute_at(values, bio)
    ax0, ax1 = sch.get_loops(values)[-2:]
    ax1, ax2 = sch.split(ax1, [None, 4])
    sch.reorder(ax1, ax0, ax2)
    shared = sch.cache_read(inner, 2, "shared")
    sch.compute_at(shared, foi)
    local = sch.cache_read(inner, 2, "local")
    sch.compute_at(local, bjo)
    assert [sch.get(each).reads[0].buffer.name for each in (values, shared, local)] == ["A", "B", "B_shared"]
    x, y = whole((5 * size, feat), 3), np.full((6 * size, feat), np.nan, "float32")
    run(lower_sparse_buffer(sch.mod), bind.target, blocks, x, y, a.indptr, a.indices)
    want = scipy.sparse.bsr_matrix((blocks, a.indices, a.indptr), shape=(6 * size, 5 * size)) @ x
    np.testing.assert_array_equal(y, want)


@T.prim_func
def dbsrmm(
    a: T.handle, b: T.handle, c: T.handle, ends: T.handle, rows: T.handle, indptr: T.handle, indices: T.handle,
    mb: T.int32, nb: T.int32, some: T.int32, nnzb: T.int32,
) -> None:  # fmt: skip
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    O = T.dense_fixed(1)
    I = T.sparse_variable(O, (mb, some), (ends, rows), "int32")
    J = T.sparse_variable(I, (nb, nnzb), (indptr, indices), "int32")
    ID = T.dense_fixed(mb)
    JD = T.dense_fixed(nb)
    BI = T.dense_fixed(4)
    BJ = T.dense_fixed(4)
    F = T.dense_fixed(16)
    A = T.match_sparse_buffer(a, (O, I, J, BI, BJ), "float32")
    B = T.match_sparse_buffer(b, (JD, BJ, F), "float32")
    C = T.match_sparse_buffer(c, (ID, BI, F), "float32")
    with T.sp_iter([O, I, J, BI, BJ, F], "SSRSRS", "dbsrmm") as [o, i, j, bi, bj, f]:
        with T.init():
            C[i, bi, f] = 0.0
        C[i, bi, f] = C[i, bi, f] + A[o, i, j, bi, bj] * B[j, bj, f]


@pytest.mark.parametrize("target", ["interpreter", "llvm"])
def test_spmm_over_blocks_of_rows_that_are_not_empty(target: str) -> None:
    """The root axis of one value keeps its block and its loop. How many rows there are is data, so that they are the
    loop of a grid only where the two axes are fused."""
    a = graph(6, 5)
    some = np.flatnonzero(np.diff(a.indptr)).astype("int32")
    blocks = whole((a.nnz, 4, 4))
    sch = tir.Schedule(lower_sparse_iter(tvm.IRModule.from_expr(dbsrmm)))
    outer, rows, inner = (sch.get_block(f"dbsrmm{level}") for level in range(3))
    assert len(sch.get_loops(outer)) == len(sch.get_loops(rows)) == 1
    j, bi, bj, f = sch.get_loops(inner)
    sch.reorder(bi, f, j, bj)
    written = sch.cache_write(inner, 0, "local")
    sch.reverse_compute_at(written, f, True)
    x, y = whole((20, 16), 3), np.zeros((24, 16), "float32")
    ends, indptr = np.array([0, len(some)], "int32"), np.append(a.indptr[some], a.nnz).astype("int32")
    sizes = [6, 5, len(some), a.nnz]
    run(lower_sparse_buffer(sch.mod), target, blocks, x, y, ends, some, indptr, a.indices, *sizes)
    want = scipy.sparse.bsr_matrix((blocks, a.indices, a.indptr), shape=(24, 20)) @ x
    np.testing.assert_array_equal(y, want)


def test_spmm_over_condensed_tiles(bind: Threads) -> None:
    a, tile, group, feat, lanes = graph(), 8, 4, 32, 8
    mb = -(-M // tile)
    indptr, tiles, mask = (each.numpy() for each in condense(a.indptr, a.indices, tile, group))
    sizes = {"mt": mb, "n": N, "t": tile, "g": group, "groups": len(tiles), "k": feat}
    given = {param: sizes[param.name] for param in scripts.sr_bcrs.params if param.name in sizes}
    sch = tir.Schedule(lower_sparse_iter(tvm.IRModule.from_expr(scripts.sr_bcrs.specialize(given))))
    outer, inner = sch.get_block("tcspmm0"), sch.get_block("tcspmm1")
    (i,) = sch.get_loops(outer)
    bind(sch, i, "blockIdx.x")
    jo, ii, ji, f = sch.get_loops(inner)
    foo, foi, fi = sch.split(f, [None, 2, lanes])
    bind(sch, foo, "blockIdx.y")
    sch.unroll(foi)
    sch.reorder(foo, jo, foi, ii, ji, fi)
    values = sch.cache_read(inner, 0, "local")
    sch.compute_at(values, jo)
    shared = sch.reverse_cache_read(inner, 1, "shared")
    sch.compute_at(shared, foi)
    written = sch.cache_write(inner, 0, "local")
    sch.reverse_compute_at(written, foo)
    sch.reverse_cache_read(inner, 1, "local")
    ax0, ax1 = sch.get_loops(written)[-2:]
    ax1, ax2 = sch.split(ax1, [None, lanes])
    sch.reorder(ax1, ax0, ax2)
    init = sch.decompose_reduction(inner, jo)
    assert sch.get(init).name_hint == sch.get(sch.get_block("tcspmm1_init")).name_hint
    sch.hide_buffer_access(inner, "read", [3])
    assert "JI_indices" not in [region.buffer.name for region in sch.get(inner).reads]
    fused = sch.fuse(*sch.get_loops(shared)[-2:])
    ax0, ax1 = sch.split(fused, [None, lanes])
    bind(sch, ax1, "threadIdx.x")
    x, y = whole((N, feat)), np.full((mb * tile, feat), np.nan, "float32")
    run(lower_sparse_buffer(sch.mod), bind.target, mask.astype("float32"), x, y, indptr, tiles)
    np.testing.assert_array_equal(y[:M], a @ x)


@pytest.mark.parametrize(("ty", "tx", "vec", "group"), [(2, 8, 2, 2), (1, 8, 1, 1), (4, 4, 4, 4)])
def test_sddmm(bind: Threads, ty: int, tx: int, vec: int, group: int) -> None:
    """Parents of nonzeros are searched for once; threads add up parts of a product, and combine them."""
    a, feat = graph(), 32
    given = dict(zip(scripts.sddmm.params[-4:], [M, N, feat, a.nnz], strict=True))
    sch = tir.Schedule(tvm.IRModule.from_expr(scripts.sddmm.specialize(given)))
    iteration = sch.get_sparse_iteration("sddmm")
    i, j, k = sch.get_sp_iters(iteration)
    sch.sparse_fuse(iteration, [i, j])
    mod = lower_sparse_iter(sch.mod)
    first, mod = ExtractPreprocess()(mod), RemovePreprocess()(mod)
    sch = tir.Schedule(first)
    (i,) = sch.get_loops(sch.get_block("binary_search_block_0_0"))
    io, ii = sch.split(i, [None, 32])
    bind(sch, ii, "threadIdx.x")
    bind(sch, io, "blockIdx.x")
    x, y, out = whole((M, feat)), whole((N, feat), 2), np.full(a.nnz, np.nan, "float32")
    arguments = [x, y, out, a.indptr, a.indices, np.zeros(a.nnz, "int32")]
    run(lower_sparse_buffer(sch.mod), bind.target, *arguments)
    rows = positions_of(a.indptr)
    np.testing.assert_array_equal(arguments[-1], rows)

    sch = tir.Schedule(mod)
    block = sch.get_block("sddmm0")
    j, k = sch.get_loops(block)
    ko, kio, kii = sch.split(k, [None, tx, vec])
    factored = sch.rfactor(kio, 2)
    j = sch.get_loops(factored)[0]
    joo, joi, ji = sch.split(j, [None, ty, group])
    bind(sch, joo, "blockIdx.x")
    bind(sch, joi, "threadIdx.y")
    sch.unroll(ji)
    sch.reverse_compute_at(block, joi, True)
    sch.set_scope(factored, 0, "local")
    reads = [sch.cache_read(factored, 0, "local"), sch.cache_read(factored, 2, "local")]
    assert [sch.get(each).reads[0].buffer.name for each in reads] == ["A", "B"]
    written = sch.cache_write(block, 0, "local")
    ko, kio, kii = sch.get_loops(factored)[-3:]
    sch.reorder(ko, ji)
    for each in reads:
        sch.compute_at(each, ji, True)
        ax0, ax1 = sch.split(sch.get_loops(each)[-1], [tx, vec])
        bind(sch, ax0, "threadIdx.x")
        sch.vectorize(ax1)
    sch.reverse_compute_at(written, joi, True)
    sch.vectorize(sch.get_loops(written)[-1])
    bind(sch, kio, "threadIdx.x")
    sch.unroll(kii)
    sch.unroll(ko)
    ax0, ax1, ax2 = sch.get_loops(block)[-3:]
    sch.reorder(ax1, ax2, ax0)
    bind(sch, ax0, "threadIdx.x")
    sch.unroll(ax2)
    sch.unroll(ax1)
    run(lower_sparse_buffer(sch.mod), bind.target, *arguments)
    np.testing.assert_array_equal(out, (x @ y.T)[rows, a.indices])


def relations(count: int = 3, m: int = 21, n: int = 21) -> tuple[Any, ...]:
    """Which edges there are, and the structure in CSF: all rows of each relation are stored."""
    exists = np.random.default_rng(0).random((count, m, n)) < 0.2
    exists[0, 3, :15] = True
    _, _, columns = np.nonzero(exists)
    ends = np.cumsum([0, *exists.sum(2).reshape(-1)])
    arrays = np.arange(count + 1) * m, np.tile(np.arange(m), count), ends, columns
    return exists.astype("float32"), *[each.astype("int32") for each in arrays]


def positions_of(indptr: Any) -> np.ndarray:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)).astype("int32")


def test_rgcn(bind: Threads) -> None:
    """A weight in registers for each relation, and sums that rows of several relations are added to. Each thread copies
    all of the weight: decision 0084."""
    dense, indptr, rows, ends, columns = relations()
    some = np.flatnonzero(np.diff(ends))  # rows without edges are not stored
    structure = [np.searchsorted(some, indptr).astype("int32"), rows[some], np.append(ends[some], ends[-1]), columns]
    count, m, n = dense.shape
    feat = 8
    sizes = [m, n, count, feat, len(some), len(columns)]
    given = dict(zip(scripts.rgcn_forward.params[-6:], sizes, strict=True))
    sch = tir.Schedule(lower_sparse_iter(tvm.IRModule.from_expr(scripts.rgcn_forward.specialize(given))))
    outer, rows_of, inner = (sch.get_block(f"rgcn-forward{level}") for level in range(3))
    weights = sch.cache_read(rows_of, 3, "local")
    assert sch.get(weights).reads[0].buffer.name == "W"
    sch.annotate(sch.cache_write(inner, 0, "local"), "atomic", True)
    fo, r = sch.get_loops(outer)
    foo, foi = sch.split(fo, [4, None])
    (i,) = sch.get_loops(rows_of)
    io, _ = sch.split(i, [8, None])
    j, f_in = sch.get_loops(inner)
    sch.reorder(f_in, j)
    for loop, axis in ((r, "blockIdx.y"), (io, "blockIdx.x"), (foo, "blockIdx.z")):
        bind(sch, loop, axis)
    bind(sch, f_in, "threadIdx.x")
    bind(sch, foi, "threadIdx.y")
    _, _, ax2 = sch.get_loops(weights)
    sch.vectorize(ax2)
    w, x, y = whole((count, feat, feat)), whole((n, feat), 2), np.zeros((m, feat), "float32")
    values = np.ones(len(columns), "float32")
    run(lower_sparse_buffer(sch.mod), bind.target, values, w, x, y, *[each.astype("int32") for each in structure])
    np.testing.assert_array_equal(y, np.einsum("rij,jf,rof->io", dense, x, w))


def test_rgcn_over_buckets_of_relations(bind: Threads) -> None:
    """Thread blocks add to rows of several relations, and to cut rows, by atomic operations."""
    dense, *structure = relations()
    count, m, n = dense.shape
    feat, widths, group = 8, [1, 2, 4], 4
    arrays = [tvm.nd.array(each) for each in structure]
    indptr, rows, columns, mask = csf_to_ell3d(*arrays, [group // width for width in widths], widths)
    rules = []
    for bucket, width in enumerate(widths):
        sizes = [count, m, n, rows[bucket].shape[0], group // width, width]
        given = dict(zip(scripts.ell_of_relations.params[-6:], sizes, strict=True))
        rules.append(
            FormatRewriteRule(
                str(bucket),
                scripts.ell_of_relations.specialize(given),
                ["A"],
                ["R", "I", "J"],
                ["R", "IO", "II", "J"],
                {"R": ["R"], "I": ["IO", "II"], "J": ["J"]},
                lambda r, i, j: (r, 0, i, j),
                lambda r, io, ii, j: (r, ii, j),
            )
        )
    given = dict(zip(scripts.rgcn_forward.params[-6:-2], [m, n, count, feat], strict=True))
    func = scripts.rgcn_forward.specialize(given).with_attr("horizontal_fuse", True)
    mod = RemovePreprocess()(format_decompose(tvm.IRModule.from_expr(func), rules))
    sch = tir.Schedule(mod["main"])
    for bucket, _ in enumerate(widths):
        iteration = sch.get_sparse_iteration(f"rgcn-forward_{bucket}")
        fo, r, io, ii, j, fi = sch.get_sp_iters(iteration)
        sch.sparse_reorder(iteration, [r, io, ii, j, fo, fi])
        sch.sparse_fuse(iteration, [r, io])
    sch = tir.Schedule(RemovePreprocess()(lower_sparse_iter(sch.mod))["main"])
    for bucket, _ in enumerate(widths):
        block = sch.get_block(f"rgcn-forward_{bucket}0")
        io, ii, j, fo, fi = sch.get_loops(block)
        foo, foi = sch.split(fo, [2, None])
        sch.reorder(io, ii, foo, foi, j, fi)
        sch.blockize(j, True)
        weights = sch.cache_read(block, 2, "local")
        assert sch.get(weights).reads[0].buffer.name == "W"
        sch.annotate(sch.cache_write(block, 0, "local"), "atomic", True)
        bind(sch, fi, "threadIdx.x")
        bind(sch, sch.get_loops(weights)[-1], "threadIdx.x")
        bind(sch, foi, "threadIdx.y")
        bind(sch, io, "blockIdx.x")
        sch.unroll(j)
    mod = RemoveUnusedArgs()(lower_sparse_buffer(sch.mod))
    w, x, y = whole((count, feat, feat)), whole((n, feat), 2), np.zeros((m, feat), "float32")
    buckets = zip(mask, rows, columns, strict=True)
    more = [each for f, r, c in buckets for each in (f.numpy().astype("float32"), r.numpy(), c.numpy())]
    run(mod, bind.target, w, x, y, *more, *[positions_of(each.numpy()) for each in indptr])
    np.testing.assert_array_equal(y, np.einsum("rij,jf,rof->io", dense, x, w))
