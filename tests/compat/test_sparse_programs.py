"""tvm.sparse: what SparseTIR's users write, for each operator of its examples, against NumPy and SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import tvm
from tests.compat import sparse_scripts as scripts
from tvm.script import tir as T
from tvm.sparse import lower_sparse_buffer, lower_sparse_iter

import tilewright as tw

M, N, K = 7, 9, 4
TARGETS = ["interpreter", "llvm"]


def random_csr(m: int = M, n: int = N, density: float = 0.35, seed: int = 0) -> Any:
    """Small integers, with an empty row."""
    random = np.random.default_rng(seed)
    dense = random.integers(-4, 5, (m, n)) * (random.random((m, n)) < density)
    dense[m // 2] = 0
    matrix = scipy.sparse.csr_matrix(dense.astype("float32"))
    matrix.indptr, matrix.indices = matrix.indptr.astype("int32"), matrix.indices.astype("int32")
    return matrix


def whole(shape: Any, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def lowered(func: Any, sizes: dict[str, int] | None = None) -> Any:
    """The module as examples build it: sizes are bound first."""
    if sizes is not None:
        known = {param: sizes[param.name] for param in func.params if param.name in sizes}
        func = func.specialize(known)
    mod = lower_sparse_iter(tvm.IRModule.from_expr(func))
    sch = tvm.tir.Schedule(mod)
    return lower_sparse_buffer(sch.mod)


def run(mod: Any, target: str, *arguments: Any) -> None:
    """Call a kernel with arrays of one dimension, as the published lowering makes them."""
    flat = [each.reshape(-1) if isinstance(each, np.ndarray) else each for each in arguments]
    if target == "interpreter":
        tw.compile(mod, target)(*flat)
        return
    device = tvm.opencl(0) if target == "opencl" else tvm.cpu(0)
    arrays = [tvm.nd.array(each, device=device) if isinstance(each, np.ndarray) else each for each in flat]
    tvm.build(mod["main"], target=target)(*arrays)
    for given, array in zip(flat, arrays, strict=True):
        if isinstance(given, np.ndarray):
            given[:] = array.numpy()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_specialized", [False, True])
def test_csrmm(target: str, is_specialized: bool) -> None:
    a, b, c = random_csr(), whole((N, 2, 3, 4)), np.full((M, 2, 3, 4), np.nan, "float32")
    sizes = {"m": M, "n": N, "num_tiles": 2, "nnz": a.nnz, "cwm": 3}
    mod = lowered(scripts.csrmm, sizes if is_specialized else None)
    run(mod, target, a.data, b, c, a.indptr, a.indices, *([] if is_specialized else [M, N, 2, a.nnz, 3]))
    np.testing.assert_array_equal(c.reshape(M, -1), a @ b.reshape(N, -1))


@pytest.mark.parametrize("target", TARGETS)
def test_csrmm_over_dense_columns(target: str) -> None:
    a, b, c = random_csr(), whole((N, K)), np.full((M, K), np.nan, "float32")
    run(lowered(scripts.csrmm_dense_iter), target, a.data, b, c, a.indptr, a.indices, M, N, K, a.nnz)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("target", TARGETS)
def test_segment_reduce(target: str) -> None:
    indptr = np.array([0, 3, 3, 10, 12], "int32")
    a, b = whole(12), np.full(4, np.nan, "float32")
    run(lowered(scripts.segment_reduce, {"n": 4, "nnz": 12}), target, a, b, indptr)
    np.testing.assert_array_equal(b, [a[i:j].sum() for i, j in itertools.pairwise(indptr)])


@pytest.mark.parametrize("target", TARGETS)
def test_element_wise(target: str) -> None:
    a, b = random_csr(), np.full(random_csr().nnz, np.nan, "float32")
    run(lowered(scripts.csr_element_wise), target, a.data, b, a.indptr, a.indices, M, N, a.nnz)
    np.testing.assert_array_equal(b, a.data * np.float32(2.5))


@pytest.mark.parametrize("target", TARGETS)
def test_bsrmm(target: str) -> None:
    blk, mb, nb = 2, 5, 4
    a = random_csr(nb * blk, mb * blk).tobsr((blk, blk))
    a.sort_indices()
    b, c = whole((mb, blk, K)), np.full((nb, blk, K), np.nan, "float32")
    sizes = {"nb": nb, "mb": mb, "nnzb": len(a.indices), "blk": blk, "feat_size": K}
    run(lowered(scripts.bsrmm, sizes), target, a.data, b, c, a.indptr, a.indices)
    np.testing.assert_array_equal(c.reshape(-1, K), a @ b.reshape(-1, K))


@pytest.mark.parametrize("target", TARGETS)
def test_ellmm(target: str) -> None:
    nb, mb, width, blk = 4, 6, 3, 2
    random = np.random.default_rng(0)
    indices = np.sort(np.stack([random.permutation(mb)[:width] for _ in range(nb)]), 1).astype("int32")
    a, b, c = whole((nb, width, blk, blk)), whole((mb, blk, K), 2), np.full((nb, blk, K), np.nan, "float32")
    sizes = {"nb": nb, "mb": mb, "feat_size": K, "nnz_cols": width, "blk": blk}
    run(lowered(scripts.ellmm, sizes), target, a, b, c, indices)
    np.testing.assert_array_equal(c, np.einsum("iwab,iwbf->iaf", a, b[indices]))


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_a_batch_of_ragged_matrices(target: str) -> None:
    sizes = [(2, 3, 4), (1, 2, 1), (3, 1, 2)]
    x = [whole((i, j), s) for s, (i, j, k) in enumerate(sizes)]
    y = [whole((j, k), s + 9) for s, (i, j, k) in enumerate(sizes)]
    of_batch = [[each[d] for each in sizes] for d in range(3)]
    of_rows = [np.repeat([each[d] for each in sizes], [each[r] for each in sizes]) for r, d in ((0, 1), (1, 2), (0, 2))]
    offsets = [np.cumsum([0, *each]).astype("int32") for each in (*of_batch, *of_rows)]
    z = np.full(offsets[-1][-1], np.nan, "float32")
    flat = [np.concatenate([each.reshape(-1) for each in some]) for some in (x, y)]
    mod = lower_sparse_buffer(lower_sparse_iter(tvm.IRModule.from_expr(scripts.batch_matmul)))
    run(mod, target, *flat, z, *offsets, 3, *[int(each[-1]) for each in offsets])
    want = np.concatenate([(p @ q).reshape(-1) for p, q in zip(x, y, strict=True)])
    np.testing.assert_array_equal(z, want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("level", [2, 3])
def test_reductions_of_four_dimensions(level: int, target: str) -> None:
    random = np.random.default_rng(0)
    offsets, count = [], 4
    for _ in range(3):
        offsets.append(np.cumsum([0, *random.integers(0, 4, count)]).astype("int32"))
        count = int(offsets[-1][-1])
    x, y = whole(count), np.full(int(offsets[level - 2][-1]), np.nan, "float32")
    func = scripts.reduction_of_four_to_two if level == 2 else scripts.reduction_of_four_to_three
    run(lowered(func), target, x, y, *offsets, 4, *[int(each[-1]) for each in offsets])
    of = np.arange(count)
    for each in offsets[: level - 2 : -1]:
        of = np.searchsorted(each, of, "right") - 1
    np.testing.assert_array_equal(y, np.bincount(of, x, len(y)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["sddmm", "fused_sddmm"])
def test_sddmm(name: str, target: str) -> None:
    a, x, y = random_csr(), whole((M, K)), whole((N, K), 2)
    out = np.full(a.nnz, np.nan, "float32")
    run(lowered(getattr(scripts, name)), target, x, y, out, a.indptr, a.indices, M, N, K, a.nnz)
    rows = np.repeat(np.arange(M), np.diff(a.indptr))
    np.testing.assert_array_equal(out, (x @ y.T)[rows, a.indices])


@pytest.mark.parametrize("target", TARGETS)
def test_fused_reduction(target: str) -> None:
    a, b = random_csr(), np.full(M, np.nan, "float32")
    run(lowered(scripts.fused_csr_reduce), target, a.data, b, a.indptr, a.indices, M, N, a.nnz)
    np.testing.assert_array_equal(b, np.asarray(a.sum(1)).reshape(-1))


def csf(shape: tuple[int, int, int], density: float = 0.4, seed: int = 0) -> tuple[Any, ...]:
    """Tensor, and offsets and coordinates of its two compressed dimensions; the first one is dense."""
    random = np.random.default_rng(seed)
    dense = random.integers(1, 5, shape) * (random.random(shape) < density)
    dense[0] = 0
    some = dense.any(2)
    i, j = np.nonzero(some)
    indptr_j = np.searchsorted(i, np.arange(shape[0] + 1)).astype("int32")
    fibers = dense[i, j]
    rows, k = np.nonzero(fibers)
    indptr_k = np.searchsorted(rows, np.arange(len(fibers) + 1)).astype("int32")
    values = fibers[rows, k].astype("float32")
    return dense.astype("float32"), values, indptr_j, j.astype("int32"), indptr_k, k.astype("int32")


@pytest.mark.parametrize("target", TARGETS)
def test_three_dimensions(target: str) -> None:
    dense, values, *structure = csf((4, 5, 6))
    b = np.full(4, np.nan, "float32")
    numbers = [len(structure[1]), len(values), 4, 5, 6]
    run(lowered(scripts.square_sum), target, values, b, *structure, *numbers)
    np.testing.assert_array_equal(b, dense.sum((1, 2)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_checked", [False, True])
def test_elements_where_another_structure_has_coordinates(target: str, is_checked: bool) -> None:
    """A coordinate that is absent yields the default, whether or not searches are asked to be checked."""
    dense, values, indptr_j, indices_j, indptr_k, indices_k = csf((4, 5, 6))
    random, others = np.random.default_rng(5), []
    for begin, end in itertools.pairwise(indptr_k):
        others.append(np.sort(random.permutation(6)[: end - begin]))
    other = np.concatenate(others).astype("int32")
    b = np.full(4, np.nan, "float32")
    mod = tvm.IRModule.from_expr(scripts.square_sum_two_k)
    mod = lower_sparse_buffer(lower_sparse_iter(mod, check_invalid_binary_search=is_checked))
    numbers = [len(indices_j), len(values), 4, 5, 6]
    run(mod, target, values, b, indptr_j, indices_j, indptr_k, indices_k, indptr_k, other, *numbers)
    i, j = np.nonzero(dense.any(2))
    of_fiber = np.repeat(np.arange(len(i)), np.diff(indptr_k))
    want = np.bincount(i[of_fiber], dense[i[of_fiber], j[of_fiber], other], 4)
    np.testing.assert_array_equal(b, want)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_are_not_empty(target: str) -> None:
    a = random_csr()
    rows = np.flatnonzero(np.diff(a.indptr)).astype("int32")
    indptr = np.append(a.indptr[rows], a.nnz).astype("int32")
    b = np.zeros(M, "float32")
    ends = np.array([0, len(rows)], "int32")
    run(lowered(scripts.masked_rows), target, a.data, b, ends, rows, indptr, a.indices, M, N, len(rows), a.nnz)
    np.testing.assert_array_equal(b, np.asarray(a.sum(1)).reshape(-1))


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_of_rows(target: str) -> None:
    a, b = random_csr(), np.full(random_csr().nnz, np.nan, "float32")
    run(lowered(scripts.softmax), target, a.data, b, a.indptr, a.indices, M, N, a.nnz)
    for begin, end in zip(a.indptr, a.indptr[1:], strict=False):
        row = np.exp(a.data[begin:end].astype("float64"))
        np.testing.assert_allclose(b[begin:end], row / row.sum(), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_rgcn_with_types_of_edges(target: str) -> None:
    relations = 3
    a = random_csr(N, N)
    kind = np.random.default_rng(4).integers(0, relations, a.nnz).astype("int32")
    w, x, y = whole((relations, K, K)), whole((N, K), 2), np.full((N, K), np.nan, "float32")
    mod = lowered(scripts.rgcn_hetero, {"n": N, "r": relations, "feat_size": K, "nnz": a.nnz})
    run(mod, target, kind, w, x, y, a.indptr, a.indices)
    rows, want = np.repeat(np.arange(N), np.diff(a.indptr)), np.zeros((N, K), "float32")
    np.add.at(want, rows, np.einsum("eof,ef->eo", w[kind], x[a.indices]))
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("target", TARGETS)
def test_rgms(target: str) -> None:
    dense, _, indptr_i, indices_i, indptr_j, indices_j = csf((3, 6, 8))
    w, x, y = whole((3, K, K)), whole((8, K), 2), np.zeros((6, K), "float32")
    numbers = [6, 8, 3, K, len(indices_i), len(indices_j)]
    run(lowered(scripts.rgms), target, w, x, y, indptr_i, indices_i, indptr_j, indices_j, *numbers)
    np.testing.assert_array_equal(y, np.einsum("rij,jf,rfo->io", dense != 0, x, w))


@pytest.mark.parametrize("target", TARGETS)
def test_sparse_convolution(target: str) -> None:
    random = np.random.default_rng(0)
    offsets, m, n, c_in, c_out = 3, 6, 5, 2, 4
    pairs = [np.sort(random.permutation(m)[: 2 + r]) for r in range(offsets)]
    indptr = np.cumsum([0, *map(len, pairs)]).astype("int32")
    out_ids = np.concatenate(pairs).astype("int32")
    in_ids = random.integers(0, n, len(out_ids)).astype("int32")
    x, w, y = whole((n, c_in)), whole((offsets, c_in, c_out), 2), np.zeros((m, c_out), "float32")
    numbers = [m, n, offsets, c_in, c_out, len(out_ids)]
    run(lowered(scripts.sparse_conv), target, in_ids, x, w, y, indptr, out_ids, *numbers)
    want = np.zeros_like(y)
    of = np.repeat(np.arange(offsets), np.diff(indptr))
    np.add.at(want, out_ids, np.einsum("pi,pio->po", x[in_ids], w[of]))
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("target", TARGETS)
def test_mttkrp(target: str) -> None:
    dense, values, *structure = csf((4, 5, 6))
    b, c, d = whole((5, K)), whole((6, K), 2), np.full((4, K), np.nan, "float32")
    numbers = [4, 5, 6, K, len(structure[1]), len(values)]
    run(lowered(scripts.mttkrp), target, values, b, c, d, *structure, *numbers)
    np.testing.assert_array_equal(d, np.einsum("ijk,jf,kf->if", dense, b, c))


@pytest.mark.parametrize("target", TARGETS)
def test_attached_axes(target: str) -> None:
    a = random_csr(N, N)
    x, y = whole(N), np.full(N, np.nan, "float32")
    run(lowered(scripts.two_hops), target, x, y, a.indptr, a.indices, N, a.nnz)
    pattern = (a != 0).astype("float32")
    np.testing.assert_array_equal(y, pattern @ (pattern @ x))


@pytest.mark.parametrize("target", TARGETS)
def test_attention_in_one_iteration(target: str) -> None:
    a = random_csr(N, N)
    q, k, v = (whole((N, K), seed) * np.float32(0.3) for seed in (1, 2, 3))
    out = np.full((N, K), np.nan, "float32")
    run(lowered(scripts.fusedmm), target, q, k, v, out, a.indptr, a.indices, N, K, a.nnz)
    scores = q @ k.T
    for i, (begin, end) in enumerate(itertools.pairwise(a.indptr)):
        columns = a.indices[begin:end]
        row = np.exp(scores[i, columns] - scores[i, columns].max(initial=-100))
        want = (row / row.sum()) @ v[columns] if len(columns) else np.zeros(K)
        np.testing.assert_allclose(out[i], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_ragged_axes_that_are_attached(target: str) -> None:
    random, m, n, width = np.random.default_rng(0), 5, 6, 3
    indptr = np.cumsum([0, *random.integers(0, 4, m)]).astype("int32")
    chosen = np.sort(np.stack([random.permutation(m)[:width] for _ in range(n)]), 1).astype("int32")
    x, y = whole(int(indptr[-1])), np.full(n, np.nan, "float32")
    run(lowered(scripts.sums_of_selected_rows), target, x, y, chosen, indptr, n, width, m, len(x))
    np.testing.assert_array_equal(y, [sum(x[indptr[j] : indptr[j + 1]].sum() for j in row) for row in chosen])


@pytest.mark.parametrize("target", TARGETS)
def test_flattened_axes(target: str) -> None:
    @T.prim_func
    def relu_of_elements(
        a: T.handle, b: T.handle, indptr: T.handle, indices: T.handle, mb: T.int32, nb: T.int32, nnzb: T.int32
    ) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
        IO = T.dense_fixed(mb)
        JO = T.sparse_variable(IO, (nb, nnzb), (indptr, indices), "int32")
        II = T.dense_fixed(2)
        JI = T.dense_fixed(3)
        F = T.flatten([IO, JO, II, JI], nnzb * 6, [indptr], "int32")
        A = T.match_sparse_buffer(a, (F,), "float32")
        B = T.match_sparse_buffer(b, (F,), "float32")
        with T.sp_iter([F], "S", "relu") as [f]:
            B[f] = T.max(A[f], T.float32(0))

    indptr, indices = np.array([0, 2, 3], "int32"), np.array([0, 2, 1], "int32")
    a, b = whole((3, 2, 3)), np.full((3, 2, 3), np.nan, "float32")
    run(lower_sparse_iter(tvm.IRModule.from_expr(relu_of_elements)), target, a, b, indptr, indices, 2, 3, 3)
    np.testing.assert_array_equal(b, np.maximum(a, 0))


@pytest.mark.parametrize("target", TARGETS)
def test_coordinates_of_64_bits(target: str) -> None:
    @T.prim_func
    def scaled(a: T.handle, x: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
        T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
        I = T.dense_fixed(m, "int64")
        J = T.sparse_variable(I, (n, nnz), (indptr, indices), "int64")
        K = T.dense_fixed(2, "int64")
        A = T.match_sparse_buffer(a, (I, J, K), "float32")
        X = T.match_sparse_buffer(x, (I, K), "float32")
        with T.sp_iter([I, J, K], "SSS", "scaled") as [i, j, k]:
            A[i, j, k] = A[i, j, k] * X[i, k]

    csr = random_csr()
    a, x = whole((csr.nnz, 2)), whole((M, 2), 2)
    want = a * np.repeat(x, np.diff(csr.indptr), 0)
    run(lowered(scaled), target, a, x, csr.indptr.astype("int64"), csr.indices.astype("int64"), M, N, csr.nnz)
    np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("target", TARGETS)
def test_loaded_coordinates_of_an_axis_of_one_position(target: str) -> None:
    """The region is one element, whatever its index is loaded from."""

    @T.prim_func
    def selected(e: T.handle, x: T.handle, y: T.handle, n: T.int32):
        T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
        I = T.dense_fixed(n)
        One = T.dense_fixed(1)
        E = T.match_sparse_buffer(e, (I,), "int32")
        X = T.match_sparse_buffer(x, (I, One), "float32")
        Y = T.match_sparse_buffer(y, (I,), "float32")
        with T.sp_iter([I], "S", "selected") as [i]:
            Y[i] = X[i, E[i]]

    x, y = whole((N, 1)), np.zeros(N, "float32")
    run(lowered(selected), target, np.zeros(N, "int32"), x, y, N)
    np.testing.assert_array_equal(y, x[:, 0])


@T.prim_func
def sums_and_counts(a: T.handle, y: T.handle, z: T.handle, indptr: T.handle, m: T.int32, nnz: T.int32):
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 2})
    I = T.dense_fixed(m)
    J = T.dense_variable(I, (100, nnz), indptr, "int32")
    A = T.match_sparse_buffer(a, (I, J), "float32")
    Y = T.match_sparse_buffer(y, (I,), "float32")
    Z = T.match_sparse_buffer(z, (I,), "float32")
    with T.sp_iter([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = T.float32(0)
        Y[i] = Y[i] + A[i, j]
        Z[i] = Z[i] + T.float32(1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_flattened", [True, False])
def test_empty_rows_are_initialized_where_the_init_is_that_of_one_of_two_results(
    target: str, is_flattened: bool
) -> None:
    """Also where a script builds what lower_sparse_iter has made, without lower_sparse_buffer."""
    indptr = np.array([0, 3, 3, 5], "int32")
    a, y, z = whole(5), np.full(3, np.nan, "float32"), np.full(3, 7, "float32")
    mod = lower_sparse_iter(tvm.IRModule.from_expr(sums_and_counts))
    mod = lower_sparse_buffer(mod) if is_flattened else mod
    tvm.build(mod, target=target)(a, y, z, indptr, 3, 5)
    np.testing.assert_array_equal(y, [a[:3].sum(), 0, a[3:].sum()])
    np.testing.assert_array_equal(z, [10, 7, 9])


@pytest.mark.parametrize("target", TARGETS)
def test_empty_rows_of_what_is_built_without_lower_sparse_buffer(target: str) -> None:
    indptr = np.array([0, 3, 3, 5], "int32")
    a, b = whole(5), np.full(3, np.nan, "float32")
    tvm.build(lower_sparse_iter(tvm.IRModule.from_expr(scripts.segment_reduce)), target=target)(a, b, indptr, 3, 5)
    np.testing.assert_array_equal(b, [a[:3].sum(), 0, a[3:].sum()])


def test_fields_of_nodes() -> None:
    func = scripts.csrmm
    i, j, *_ = func.sp_axes
    assert j.is_variable and j.is_sparse and not i.is_variable and not i.is_sparse
    assert func.body.name == "csrmm" and [each.is_reduction for each in func.body.sp_iter_vars[:2]] == [False, True]
    a, b, *_ = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    assert [str(extent) for extent in a.flattened.shape] == ["nnz"] and b.flattened.axes == ()


def test_scripts_are_read_as_they_are_printed() -> None:
    for name, func in vars(scripts).items():
        if isinstance(func, tvm.tir.PrimFunc):
            tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
            tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(func)), func)
            assert "T." in func.script(), name
