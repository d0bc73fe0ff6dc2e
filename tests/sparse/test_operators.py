"""Products with sparse matrices against dense ones: all kinds of structure, empty and lopsided ones among them."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from tilewright.sparse import Structure, operators, programs
from tilewright.sparse.convert import LANES, to_sell
from tilewright.timing import limit_threads

KINDS = ["csr", "csc", "bsr", "coo"]
TYPES = [("float32", "int32"), ("float64", "int64")]


def dense_of(shape: tuple[int, int], what: str) -> np.ndarray:
    """A matrix of small integers, so that sums are exact."""
    random = np.random.default_rng(sum(shape))
    dense = np.where(random.random(shape) < 0.2, random.integers(-4, 5, shape), 0)
    if what == "one dense row" and shape[0]:
        dense[:] = 0
        dense[shape[0] // 2] = 1
    if what == "empty rows":
        dense[::2] = 0
    if what == "empty":
        dense[:] = 0
    return dense


def in_kind(dense: np.ndarray, kind: str, dtype: str, index: str):
    matrix = scipy.sparse.coo_array(dense.astype(dtype))
    made = scipy.sparse.bsr_array(matrix, blocksize=(2, 3)) if kind == "bsr" else matrix.asformat(kind)
    for name in ("indptr", "indices"):
        if kind != "coo":
            setattr(made, name, getattr(made, name).astype(index))
    if kind == "coo":
        made.coords = tuple(each.astype(index) for each in made.coords)
    return made


SHAPES = [(30, 24), (2, 0), (0, 3), (0, 0), (4, 300)]
CASES = [((30, 24), what) for what in ("random", "one dense row", "empty rows", "empty")] + [
    (shape, "random") for shape in SHAPES[1:]
]


def test_all_elements_of_a_new_result_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is not cleared before."""
    monkeypatch.setattr(operators, "aligned_empty", lambda shape, dtype: np.full(shape, np.nan, dtype))
    for what in ("random", "empty rows", "empty"):
        dense = dense_of((30, 24), what).astype("float32")
        a = tw.sparse.from_scipy(in_kind(dense, "csr", "float32", "int32"))
        x, b = np.ones((30, 5), "float32"), np.ones((24, 5), "float32")
        assert not np.isnan(tw.sparse.sddmm(a, x, b).values).any()
        for _ in range(2):
            np.testing.assert_array_equal(tw.sparse.spmm(a, b), dense @ b)
            np.testing.assert_array_equal(tw.sparse.spmv(a, b[:, 0].copy()), dense.sum(axis=1))
            tw.sparse.prepare_spmv(a)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "index"), TYPES)
def test_against_dense(kind: str, dtype: str, index: str) -> None:
    for shape, what in CASES:
        if kind == "bsr" and 0 in shape:
            continue  # SciPy makes none
        dense = dense_of(shape, what).astype(dtype)
        matrix = in_kind(dense, kind, dtype, index)
        a = tw.sparse.from_scipy(matrix)
        assert a.structure.kind == kind and a.structure.index_dtype == index
        np.testing.assert_array_equal(a.to_scipy().toarray(), dense)
        random = np.random.default_rng(1)
        for threads in (1, 2):
            with limit_threads(threads):
                for columns in (1, 16, 20):
                    b = random.integers(-4, 5, (shape[1], columns)).astype(dtype)
                    np.testing.assert_array_equal(tw.sparse.spmm(a, b), dense @ b)
                x = random.integers(-4, 5, shape[1]).astype(dtype)
                np.testing.assert_array_equal(tw.sparse.spmv(a, x), dense @ x)
                left, right = (random.integers(-4, 5, (extent, 16)).astype(dtype) for extent in shape)
                sampled = tw.sparse.sddmm(a, left, right)
                stored = scipy.sparse.csr_array(matrix, copy=True)
                stored.data[:] = 1
                np.testing.assert_array_equal(sampled.to_scipy().toarray(), (left @ right.T) * stored.toarray())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_nonzeros_that_occur_twice_add_up(kind: str) -> None:
    rows, columns = np.array([3, 0, 3, 3, 1]), np.array([2, 1, 2, 0, 1])
    matrix = scipy.sparse.coo_array((np.arange(1, 6, dtype="float32"), (rows, columns)), shape=(4, 3))
    offsets, order = np.searchsorted(np.sort(rows), range(5)), np.argsort(rows, kind="stable")
    if kind == "csr":
        matrix = scipy.sparse.csr_array((matrix.data[order], columns[order], offsets), shape=(4, 3))
    if kind == "csc":
        offsets, order = np.searchsorted(np.sort(columns), range(4)), np.argsort(columns, kind="stable")
        matrix = scipy.sparse.csc_array((matrix.data[order], rows[order], offsets), shape=(4, 3))
    a, x = tw.sparse.from_scipy(matrix), np.array([1, 10, 100], "float32")
    assert a.nnz == 5
    want = [20, 50, 0, 404]
    np.testing.assert_array_equal(tw.sparse.spmv(a, x), want)
    tw.sparse.prepare_spmv(a)
    np.testing.assert_array_equal(tw.sparse.spmv(a, x), want)


def test_operands_of_zero_columns() -> None:
    a = tw.sparse.from_scipy(in_kind(dense_of((30, 24), "random"), "csr", "float32", "int32"))
    assert tw.sparse.spmm(a, np.zeros((24, 0), "float32")).shape == (30, 0)
    assert (tw.sparse.sddmm(a, np.zeros((30, 0), "float32"), np.zeros((24, 0), "float32")).values == 0).all()


def test_nan_reaches_only_rows_that_hold_its_column() -> None:
    dense = dense_of((30, 24), "random").astype("float32")
    dense[:, 0] = 0
    a = tw.sparse.from_scipy(scipy.sparse.csr_array(dense))
    for special in (np.nan, np.inf):
        x = np.ones(24, "float32")
        x[0] = special
        np.testing.assert_array_equal(tw.sparse.spmv(a, x), dense[:, 1:] @ x[1:])
        b = np.repeat(x[:, None], 16, 1)
        np.testing.assert_array_equal(tw.sparse.spmm(a, b), dense[:, 1:] @ b[1:])


def test_results_go_where_they_are_asked_for() -> None:
    dense = dense_of((30, 24), "random").astype("float32")
    a = tw.sparse.from_scipy(scipy.sparse.csr_array(dense))
    b, out = np.ones((24, 16), "float32"), np.empty((30, 16), "float32")
    assert tw.sparse.spmm(a, b, out) is out and (out == dense @ b).all()
    y = np.empty(30, "float32")
    assert tw.sparse.spmv(a, b[:, 0].copy(), out=y) is y


@pytest.mark.parametrize("layout", KINDS)
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_tensors_of_pytorch(layout: str, index: str) -> None:
    if layout == "coo" and index == "int32":
        return  # PyTorch's coordinates are int64
    torch = pytest.importorskip("torch")
    dense = torch.from_numpy(dense_of((30, 24), "random").astype("float32"))
    made = in_kind(dense.numpy(), layout, "float32", index)
    if layout == "coo":
        sparse = torch.sparse_coo_tensor(np.stack(made.coords), made.data, dense.shape)
    else:
        make = getattr(torch, f"sparse_{layout}_tensor")
        sparse = make(*map(torch.from_numpy, (made.indptr, made.indices, made.data)), size=dense.shape)
    a = tw.sparse.from_torch(sparse)
    assert a.structure.index_dtype == index
    values = sparse._values() if layout == "coo" else sparse.values()
    assert np.shares_memory(a.values, values.numpy())
    b = torch.ones(24, 16, requires_grad=True).detach()
    product = tw.sparse.spmm(a, b)
    assert isinstance(product, torch.Tensor) and torch.equal(product, dense @ b)
    assert torch.equal(tw.sparse.spmv(a, b[:, 0].contiguous()), dense @ b[:, 0])


def test_conversions_are_kept() -> None:
    a = tw.sparse.from_scipy(in_kind(dense_of((30, 24), "random"), "csc", "float32", "int32"))
    assert not tw.sparse.conversions(tw.sparse.from_scipy(a.to_scipy().tocsr()))
    for _ in range(2):
        tw.sparse.spmm(a, np.ones((24, 4), "float32"))
    (conversion,) = tw.sparse.conversions(a)
    assert conversion.format == "csr" and conversion.seconds > 0 and conversion.spmvs > 0
    assert tw.sparse.prepare_spmv(a).format == "sell" and len(tw.sparse.conversions(a)) == 2
    assert "SpMVs" in str(conversion)


def test_other_values_of_a_structure() -> None:
    dense = dense_of((40, 24), "random").astype("float32")
    for kind in KINDS:
        a = tw.sparse.from_scipy(in_kind(dense, kind, "float32", "int32"))
        x = np.arange(24, dtype="float32")
        for factor in (1, -3):
            b = a.with_values(a.values * factor)
            tw.sparse.prepare_spmv(b)
            np.testing.assert_array_equal(tw.sparse.spmv(b, x), dense @ x * factor)
            assert b.structure is a.structure


@pytest.mark.parametrize(("dtype", "index"), TYPES)
def test_sell_gives_the_bits_of_csr(dtype: str, index: str) -> None:
    """Lanes sum in the order of the row, and padding takes no part, whatever x holds there."""
    random = np.random.default_rng(2)
    for shape, what in [*CASES, ((100, 90), "random"), ((16, 16), "random"), ((33, 50), "one dense row")]:
        dense = dense_of(shape, what)
        matrix = in_kind(dense, "csr", dtype, index)
        matrix.data = random.standard_normal(len(matrix.data)).astype(dtype)
        one, other = tw.sparse.from_scipy(matrix), tw.sparse.from_scipy(matrix)
        tw.sparse.prepare_spmv(other)
        x = random.standard_normal(shape[1]).astype(dtype)
        x[:1] = np.nan
        for threads in (1, 2):
            with limit_threads(threads):
                want, got = (tw.sparse.spmv(each, x) for each in (one, other))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.isnan(want), (dense[:, :1] != 0).any(1))


@pytest.mark.parametrize(("dtype", "index"), TYPES)
def test_streamed_matrices_give_the_same_bits(dtype: str, index: str) -> None:
    """The program for matrices that are prefetched, with columns behind the last one that is prefetched, and before."""
    streamed = tw.compile(programs.spmv_sell(LANES, dtype, index, streamed_bytes=0))
    assert "prefetch" in streamed.inspect("tir")
    random = np.random.default_rng(3)
    for shape in ((7, 0), (100, 90), (33, 700)):
        matrix = in_kind(dense_of(shape, "random"), "csr", dtype, index)
        matrix.data = random.standard_normal(len(matrix.data)).astype(dtype)
        x, y = random.standard_normal(shape[1]).astype(dtype), np.empty(shape[0], dtype)
        a = tw.sparse.from_scipy(matrix)
        sell, values = to_sell(a)
        streamed(sell.starts, sell.indices, values, sell.lengths, sell.full, sell.order, x, y)
        np.testing.assert_array_equal(y, tw.sparse.spmv(tw.sparse.from_scipy(matrix), x))


def test_many_products_convert() -> None:
    dense = np.ones((60, 50), "float32")
    for copy in (True, False):
        a, x = tw.sparse.from_scipy(scipy.sparse.csr_array(dense), copy=copy), np.ones(50, "float32")
        for _ in range(30):
            assert (tw.sparse.spmv(a, x) == 50).all()
        assert [each.format for each in tw.sparse.conversions(a)] == (["sell"] if copy else [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copy", [False, True])
def test_results_do_not_depend_on_the_number_of_products(kind: str, copy: bool) -> None:
    """Products see all changes of shared values, or none of a copy, however many there were before."""
    dense = np.where(np.random.default_rng(3).random((60, 48)) < 0.9, 1, 0).astype("float32")
    matrix = in_kind(dense, kind, "float32", "int32")
    a, x, b = tw.sparse.from_scipy(matrix, copy=copy), np.ones(48, "float32"), np.ones((48, 2), "float32")
    values = matrix.data.copy()
    for number in range(30):
        matrix.data[...] = values * number
        want = dense @ x * (1 if copy else number)
        np.testing.assert_array_equal(tw.sparse.spmv(a, x), want)
        np.testing.assert_array_equal(tw.sparse.spmm(a, b)[:, 1], want)
        np.testing.assert_array_equal(a.to_scipy() @ x, want)


@pytest.mark.parametrize("kind", KINDS)
def test_a_prepared_matrix_has_values_of_its_own(kind: str) -> None:
    dense = np.ones((60, 48), "float32")
    matrix = in_kind(dense, kind, "float32", "int32")
    a, x = tw.sparse.from_scipy(matrix), np.ones(48, "float32")
    tw.sparse.spmv(a, x)
    matrix.data *= 2
    tw.sparse.prepare_spmv(a)
    matrix.data *= 2
    for product in (tw.sparse.spmv(a, x), tw.sparse.spmm(a, x[:, None])[:, 0], a.to_scipy() @ x):
        assert (product == 96).all()
    values = np.full(a.values.shape, 3, "float32")
    shared, copied = a.with_values(values), a.with_values(values, copy=True)
    values[...] = 5
    assert (tw.sparse.spmv(shared, x) == 5 * 48).all() and (tw.sparse.spmv(copied, x) == 3 * 48).all()


def test_new_values_of_a_prepared_structure_need_no_array_of_the_user() -> None:
    """The conversion to SELL is reused. It must not read offsets that may have changed since."""
    random = np.random.default_rng(0)
    dense = dense_of((40, 30), "random")
    matrix = in_kind(dense, "csr", "float32", "int32")
    x = random.integers(-4, 5, 30).astype("float32")
    a = tw.sparse.from_scipy(matrix)
    tw.sparse.prepare_spmv(a)
    matrix.indptr[1:-1] = matrix.indptr[-1]
    b = a.with_values(3 * matrix.data, copy=True)
    tw.sparse.prepare_spmv(b)
    np.testing.assert_array_equal(tw.sparse.spmv(b, x), 3 * dense @ x)


def refused(code: str, make) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        make()
    assert caught.value.code == code and caught.value.hint


def test_arguments_that_do_not_fit() -> None:
    scipy_matrix = scipy.sparse.csr_array(dense_of((30, 24), "random").astype("float32"))
    a, b = tw.sparse.from_scipy(scipy_matrix), np.ones((24, 4), "float32")
    refused("sparse/matrix", lambda: tw.sparse.spmm(scipy_matrix, b))
    refused("sparse/shape", lambda: tw.sparse.spmm(a, b[:23]))
    refused("sparse/shape", lambda: tw.sparse.spmm(a, b[:, 0]))
    refused("sparse/shape", lambda: tw.sparse.spmv(a, b))
    refused("sparse/shape", lambda: tw.sparse.spmm(a, b, np.ones((30, 5), "float32")))
    refused("sparse/shape", lambda: tw.sparse.sddmm(a, np.ones((30, 4), "float32"), np.ones((24, 5), "float32")))
    refused("sparse/dtype", lambda: tw.sparse.spmm(a, b.astype("float64")))
    refused("sparse/kind", lambda: tw.sparse.from_scipy(scipy_matrix.todia()))
    refused("sparse/kind", lambda: tw.sparse.from_scipy(np.ones((2, 2))))
    refused("sparse/kind", lambda: tw.sparse.from_torch(np.ones((2, 2))))
    for make in (scipy.sparse.coo_array, scipy.sparse.csr_array):
        refused("sparse/shape", lambda make=make: tw.sparse.from_scipy(make(np.ones(3, "float32"))))
    refused("sparse/values", lambda: tw.sparse.from_scipy(scipy_matrix.astype("int32")))
    refused("sparse/values", lambda: tw.sparse.Matrix(a.structure, np.ones(3, "float32")))
    refused("sparse/values", lambda: tw.sparse.Matrix(a.structure, [1.0]))
    damaged = scipy_matrix.copy()
    damaged.indices[5] = 24
    refused("sparse/index", lambda: tw.sparse.from_scipy(damaged))
    damaged = scipy_matrix.copy()
    damaged.indptr = np.zeros(0, "int32")
    refused("sparse/indptr", lambda: tw.sparse.from_scipy(damaged))
    with pytest.raises(tw.ArgumentError, match="not contiguous"):
        tw.sparse.spmm(a, np.asfortranarray(b))


def test_tensors_that_do_not_fit() -> None:
    torch = pytest.importorskip("torch")
    refused("sparse/kind", lambda: tw.sparse.from_torch(torch.ones(2, 2)))
    refused("sparse/device", lambda: tw.sparse.from_torch(torch.ones(2, 2).to_sparse().to("meta")))
    refused("sparse/shape", lambda: tw.sparse.from_torch(torch.ones(2, 2, 2).to_sparse()))
    refused("sparse/shape", lambda: tw.sparse.from_torch(torch.ones(2, 2).to_sparse(1)))
    refused("sparse/values", lambda: tw.sparse.from_torch(torch.eye(2, dtype=torch.bfloat16).to_sparse_csr()))


def test_arrays_behind_the_last_offset_are_not_used() -> None:
    matrix = scipy.sparse.csr_array(dense_of((30, 24), "random").astype("float32"))
    padded = scipy.sparse.csr_array(matrix.shape, dtype="float32")
    padded.indptr = matrix.indptr
    padded.indices = np.append(matrix.indices, [99, -5]).astype("int32")
    padded.data = np.append(matrix.data, [1, 2]).astype("float32")
    a = tw.sparse.from_scipy(padded)
    assert a.nnz == matrix.nnz
    np.testing.assert_array_equal(a.to_scipy().toarray(), matrix.toarray())


def test_scipy_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    a = tw.sparse.Matrix(Structure("csr", (1, 1), np.zeros(1, "int32"), np.arange(2, dtype="int32")), np.ones(1))
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    refused("sparse/import", a.to_scipy)
    assert tw.sparse.spmv(a, np.ones(1)) == [1]


def test_messages_name_the_arguments_of_the_call() -> None:
    a = tw.sparse.from_scipy(scipy.sparse.random(10, 8, 0.3, "csr", dtype="float32", random_state=0))
    b, x, out = np.ones((8, 4), "float32"), np.ones(8, "float32"), np.ones((10, 4), "float32")
    constant = out.copy()
    constant.flags.writeable = False

    def refused(code: str, text: str, call: Callable[[], object]) -> None:
        with pytest.raises(tw.ArgumentError, match=text) as caught:
            call()
        assert caught.value.code == code and caught.value.hint

    refused("sparse/dtype", "out is of float64", lambda: tw.sparse.spmm(a, b, out=out.astype("float64")))
    refused(
        "sparse/contiguous",
        "out is not contiguous",
        lambda: tw.sparse.spmm(a, b, out=np.ones((10, 8), "float32")[:, ::2]),
    )
    refused("sparse/contiguous", "b is not contiguous", lambda: tw.sparse.spmm(a, np.ones((4, 8), "float32").T))
    refused("sparse/contiguous", "x is not contiguous", lambda: tw.sparse.spmv(a, np.ones(16, "float32")[::2]))
    refused("sparse/contiguous", "y is not contiguous", lambda: tw.sparse.sddmm(a, out, np.ones((4, 8), "float32").T))
    refused("sparse/read-only", "out is read-only", lambda: tw.sparse.spmm(a, b, out=constant))
    assert tw.sparse.spmv(a, x).shape == (10,)


def test_gradients_are_not_dropped() -> None:
    torch = pytest.importorskip("torch")
    offsets, columns = torch.tensor([0, 1, 2]), torch.tensor([0, 1])
    recorded = torch.sparse_csr_tensor(offsets, columns, torch.ones(2), size=(2, 2), requires_grad=True)
    with pytest.raises(tw.ArgumentError, match="records gradients") as caught:
        tw.sparse.from_torch(recorded)
    assert caught.value.code == "sparse/gradient" and "tensor.detach()" in str(caught.value)
    a = tw.sparse.from_torch(recorded.detach())
    dense = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(tw.ArgumentError, match="b records gradients"):
        tw.sparse.spmm(a, dense)
    assert torch.equal(tw.sparse.spmm(a, dense.detach()), torch.ones(2, 3))


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_matrices_become_tensors(kind: str) -> None:
    """Of each kind, as the tensor that they were made of; and sampled products."""
    torch = pytest.importorskip("torch")
    dense = torch.from_numpy(dense_of((30, 24), "random").astype("float32"))
    made = {"csr": dense.to_sparse_csr, "csc": dense.to_sparse_csc, "coo": lambda: dense.to_sparse().coalesce()}
    tensor = dense.to_sparse_bsr((2, 3)) if kind == "bsr" else made[kind]()
    matrix = tw.sparse.from_torch(tensor)
    back = matrix.to_torch()
    assert back.layout == tensor.layout and torch.equal(back.to_dense(), dense)
    x, y = torch.rand(30, 5), torch.rand(24, 5)
    sampled = tw.sparse.sddmm(matrix, x, y).to_torch()
    present = tensor.to_dense() != 0
    torch.testing.assert_close(sampled.to_dense()[present], (x @ y.T)[present])
