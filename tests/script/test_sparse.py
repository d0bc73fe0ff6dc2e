"""Sparse programs: axes, buffers and iterations, parsed, printed, compared, stored, refused and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from tests.sparse_programs import CSF, RAGGED, SDDMM, SPMM, csf, function

import tilewright as tw
from tilewright import _core, ir, script
from tilewright.script import tir as T
from tilewright.support.changed_nodes import with_fields


@T.prim_func
def spmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k_1]:
        with T.init():
            C[i, k_1] = T.float32(0)
        C[i, k_1] = C[i, k_1] + A[i, j] * B[j, k_1]


def random_csr(m: int, n: int, density: float, seed: int, dtype: str = "float32") -> Any:
    """With empty rows and, where there is room, one dense one."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((m, n)) * (rng.random((m, n)) < density)
    if m > 2:
        dense[m // 2] = rng.standard_normal(n)
        dense[0] = 0
    matrix = scipy.sparse.csr_matrix(dense.astype(dtype))
    matrix.sort_indices()
    return matrix


def run(func: Any, *arguments: Any) -> None:
    """In the interpreter, as users call it."""
    tw.compile(func, target="interpreter")(*arguments)


def run_spmm(matrix: Any, dense: np.ndarray) -> np.ndarray:
    m, n = matrix.shape
    k = dense.shape[1]
    result = np.full((m, k), np.nan, "float32")
    run(spmm, matrix.data, dense, result, matrix.indptr, matrix.indices, m, n, k, matrix.nnz)
    return result


@pytest.mark.parametrize(("m", "n", "k"), [(7, 9, 3), (1, 1, 1), (5, 1, 4), (0, 4, 2), (4, 0, 2), (6, 8, 0)])
def test_products_with_csr_equal_scipy(m: int, n: int, k: int) -> None:
    """Rows without elements are initialized, too."""
    matrix = random_csr(m, n, 0.3, seed=m * 31 + n)
    dense = np.random.default_rng(1).standard_normal((n, k)).astype("float32")
    np.testing.assert_allclose(run_spmm(matrix, dense), matrix @ dense, rtol=1e-5, atol=1e-6)


def test_texts_are_read_back() -> None:
    text = spmm.script()
    assert "J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))" in text
    assert 'A = T.sp.match_buffer(a, (I, J), "float32")' in text
    assert 'with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, k_1]:' in text
    ir.assert_structural_equal(script.from_source(text), spmm)
    assert script.from_source(text).script() == text
    ir.assert_structural_equal(ir.load_json(ir.save_json(spmm)), spmm)


def test_ragged_rows_inside_of_an_iteration_over_rows() -> None:
    lengths = [3, 0, 5, 1]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    x = np.arange(1, indptr[-1] + 1, dtype="float32")
    y = np.full(4, np.nan, "float32")
    run(function(RAGGED), x, y, indptr, 4, 5, len(x))
    rows = np.split(x, indptr[1:-1])
    np.testing.assert_array_equal(y, [np.sum(row * np.arange(1, len(row) + 1)) for row in rows])


ELL = """
def f(a: T.handle, x: T.Buffer((6,)), y: T.Buffer((4,)), indices: T.handle):
    I = T.dense_fixed(4)
    J = T.sparse_fixed(I, (6, 2), indices, sorted=False)
    A = T.match_sparse_buffer(a, (I, J))
    with T.iter([I, J], "SR", "ell") as [i, j]:
        with T.init():
            y[i] = T.float32(0)
        y[i] = y[i] + A[i, j] * x[j]
"""


def test_equally_long_rows_are_arrays_of_two_dimensions() -> None:
    indices = np.array([[5, 0], [1, 2], [3, 0], [4, 5]], "int32")
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal((4, 2)).astype("float32"), rng.standard_normal(6).astype("float32")
    y = np.empty(4, "float32")
    run(function(ELL), a, x, y, indices.reshape(-1))
    np.testing.assert_allclose(y, (a * x[indices]).sum(1), rtol=1e-6)


BSR = """
def f(a: T.handle, x: T.Buffer((3, 4)), y: T.Buffer((2, 5)), p: T.handle, q: T.handle, nnzb: T.int32):
    IO = T.sp.dense_fixed(2)
    JO = T.sp.compressed_varied(IO, (3, nnzb), (p, q))
    II = T.sp.dense_fixed(5)
    JI = T.sp.dense_fixed(4)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "float32")
    with T.sp.iteration([IO, II, JO, JI], "SSRR", "bsr") as [io, ii, jo, ji]:
        with T.init():
            y[io, ii] = T.float32(0)
        y[io, ii] = y[io, ii] + A[io, jo, ii, ji] * x[jo, ji]
"""


def test_blocks_keep_their_dimensions() -> None:
    blocks = np.random.default_rng(0).standard_normal((3, 5, 4)).astype("float32")
    x = np.random.default_rng(1).standard_normal((3, 4)).astype("float32")
    y = np.full((2, 5), np.nan, "float32")
    func = function(BSR)
    assert [str(extent) for extent in func.buffer_map[func.params[0]].shape] == ["nnzb", "5", "4"]
    run(func, blocks, x, y, np.array([0, 2, 3], "int32"), np.array([0, 2, 1], "int32"), 3)
    expected = np.stack([blocks[0] @ x[0] + blocks[1] @ x[2], blocks[2] @ x[1]])
    np.testing.assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_a_tensor_of_three_dimensions_times_two_matrices(density: float) -> None:
    rng = np.random.default_rng(0)
    tensor = rng.standard_normal((3, 4, 5)) * (rng.random((3, 4, 5)) < density)
    b, c, d = rng.standard_normal((4, 2)), rng.standard_normal((5, 2)), np.full((3, 2), np.nan)
    values, p1, q1, p2, q2 = csf(tensor)
    run(function(CSF), values, b, c, d, p1, q1, p2, q2, 3, 4, 5, len(q1), len(q2), 2)
    np.testing.assert_allclose(d, np.einsum("ijk,jr,kr->ir", tensor, b, c), atol=1e-12)


def test_fused_axes_write_each_element() -> None:
    matrix = random_csr(6, 7, 0.4, 3, "float64")
    rng = np.random.default_rng(2)
    x, y, out = rng.standard_normal((6, 3)), rng.standard_normal((7, 3)), np.full(matrix.nnz, np.nan)
    func = function(SDDMM)
    assert "[T.sp.fuse(I, J), K]" in func.script()
    run(func, out, x, y, matrix.indptr, matrix.indices, 6, 7, 3, matrix.nnz)
    rows, cols = matrix.nonzero()
    np.testing.assert_allclose(out, (x[rows] * y[cols]).sum(1))


DENSE_READS = """
def f(a: T.handle, y: T.Buffer((4, 5)), p: T.handle, q: T.handle, nnz: T.int32):
    I = T.sp.dense_fixed(4)
    J = T.sp.compressed_varied(I, (5, nnz), (p, q))
    J_all = T.sp.dense_fixed(5)
    A = T.sp.match_buffer(a, (I, J), "float32", default_value=DEFAULT)
    with T.sp.iteration([I, J_all], "SS", "dense") as [i, j]:
        y[i, j] = A[i, j]
"""


@pytest.mark.parametrize("default", [0.0, 2.5, float("inf")])
def test_absent_coordinates_have_the_default_value(default: float) -> None:
    matrix = random_csr(4, 5, 0.5, 5)
    y = np.empty((4, 5), "float32")
    func = function(DENSE_READS, DEFAULT=default)
    run(func, matrix.data, y, matrix.indptr, matrix.indices, matrix.nnz)
    present = np.zeros((4, 5), bool)
    present[matrix.nonzero()] = True
    np.testing.assert_array_equal(y, np.where(present, matrix.toarray(), np.float32(default)))
    ir.assert_structural_equal(script.from_source(func.script()), func)


EXTRA = """
def f(a: T.handle, y: T.handle, n: T.int32, m: T.int32):
    I = T.sp.dense_fixed(LENGTH)
    K = T.sp.dense_fixed(2)
    A = T.sp.match_buffer(a, (I, K), "float32", extra_storage=MORE)
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([I, K], "SS", "copy") as [i, k]:
        Y[i, k] = A[i, k]
"""


@pytest.mark.parametrize(
    ("length", "more"),
    [
        ("n", "3"),
        ("n + 1", "3"),
        ("7", "3"),
        ("7", "m"),
        ("n", "m"),
        ("n", "n * 2"),
        ("n * m", "m + 1"),
        ("n - 1", "1"),
    ],
)
def test_extra_storage_is_read_back_and_stays_as_it_is(length: str, more: str) -> None:
    func = function(EXTRA.replace("LENGTH", length).replace("MORE", more))
    text = func.script()
    assert f"extra_storage={more}" in text
    ir.assert_structural_equal(script.from_source(text), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    n, m = 5, 3
    used, unused = (eval(each, {"n": n, "m": m}) for each in (length, more))
    a = np.arange(2 * (used + unused), dtype="float32").reshape(-1, 2)
    for target in ("interpreter", "native"):
        before, y = a.copy(), np.full((used, 2), np.nan, "float32")
        tw.compile(func, target)(a, y, n, m)
        np.testing.assert_array_equal(y, before[:used])
        np.testing.assert_array_equal(a, before)
        with pytest.raises(tw.ArgumentError):
            tw.compile(func, target)(a[1:], y, n, m)


def test_a_default_of_minus_zero_keeps_its_sign() -> None:
    matrix, y = random_csr(4, 5, 0.5, 5), np.empty((4, 5), "float32")
    func = function(DENSE_READS, DEFAULT=-0.0)
    ir.assert_structural_equal(script.from_source(func.script()), func)
    present = np.zeros((4, 5), bool)
    present[matrix.nonzero()] = True
    for target in ("interpreter", "native"):
        tw.compile(func, target)(matrix.data, y, matrix.indptr, matrix.indices, matrix.nnz)
        np.testing.assert_array_equal(np.signbit(y[~present]), True)


ABSENT_STORE = DENSE_READS.replace("y[i, j] = A[i, j]", "A[i, j] = y[i, j]")


def test_a_store_to_an_absent_coordinate_is_reported() -> None:
    matrix = random_csr(4, 5, 0.5, 5)
    with pytest.raises(tw.Error, match="coordinates that 'A' does not hold") as caught:
        run(
            function(ABSENT_STORE, DEFAULT=0),
            matrix.data,
            np.ones((4, 5), "float32"),
            matrix.indptr,
            matrix.indices,
            matrix.nnz,
        )
    assert caught.value.code == "interpret/absent"


ATTACHED = """
def f(a: T.handle, y: T.Buffer((3, 4)), pa: T.handle, qa: T.handle, ps: T.handle, qs: T.handle, za: T.int32,
      zs: T.int32):
    I = T.sp.dense_fixed(4)
    J = T.sp.compressed_varied(I, (4, za), (pa, qa))
    A = T.sp.match_buffer(a, (I, J), "float32")
    S = T.sp.dense_fixed(3)
    E = T.sp.compressed_varied(S, (4, zs), (ps, qs))
    with T.sp.iteration([S, E, T.sp.attach(J, E)], "SRR", "rows") as [s, e, j]:
        y[s, j] = y[s, j] + A[e, j]
"""


def test_an_attached_axis_is_selected_by_a_coordinate() -> None:
    """Rows of a matrix, named by the coordinates of another one: not by their positions."""
    matrix, chosen = random_csr(4, 4, 0.5, 5), random_csr(3, 4, 0.5, 8)
    y = np.zeros((3, 4), "float32")
    func = function(ATTACHED)
    structure = (matrix.indptr, matrix.indices, chosen.indptr, chosen.indices)
    run(func, matrix.data, y, *structure, matrix.nnz, chosen.nnz)
    np.testing.assert_allclose(y, (chosen != 0).astype("float32") @ matrix.toarray(), rtol=1e-6)
    ir.assert_structural_equal(script.from_source(func.script()), func)


@pytest.mark.parametrize("text", [RAGGED, ELL, BSR, CSF, SDDMM])
def test_every_program_prints_and_is_stored(text: str) -> None:
    func = function(text)
    printed = func.script()
    ir.assert_structural_equal(script.from_source(printed), func)
    assert script.from_source(printed).script() == printed
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)


@pytest.mark.parametrize("extra", ["3", "m", "m + 1", "nnz * 2"])
@pytest.mark.parametrize("axes", ["I", "I, J", "I, J, K"])
@pytest.mark.parametrize("size", ["m", "4"])
def test_extra_storage_is_read_as_it_is_printed(extra: str, axes: str, size: str) -> None:
    func = function(
        f"""
def f(a: T.handle, p: T.handle, q: T.handle, m: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed({size})
    J = T.sp.compressed_varied(I, (6, nnz), (p, q))
    K = T.sp.dense_fixed(2)
    A = T.sp.match_buffer(a, ({axes},), "float32", extra_storage={extra})
    T.evaluate(0)
"""
    )
    printed = func.script()
    assert f"extra_storage={extra})" in printed
    ir.assert_structural_equal(script.from_source(printed), func)


def test_elements_behind_those_of_the_axes_stay() -> None:
    output = 'T.sp.match_buffer(c, (I, K), "float64"'
    func = function(SPMM.replace(output, f"{output}, extra_storage=2"))
    matrix = random_csr(4, 5, 0.5, 5, "float64")
    b = np.random.default_rng(0).standard_normal((5, 16))
    for target in ("interpreter", "native"):
        c = np.full((6, 16), 7.0)
        tw.compile(func, target)(matrix.data, b, c, matrix.indptr, matrix.indices, 4, 5, matrix.nnz)
        np.testing.assert_allclose(c, np.concatenate([matrix @ b, np.full((2, 16), 7)]))


def test_names_of_axes_take_no_part_in_equality_and_their_structure_does() -> None:
    func = function(SDDMM)
    renamed = SDDMM.replace("J_all", "Columns").replace("K", "Q").replace("I = ", "Rows = ").replace("(I,", "(Rows,")
    assert ir.structural_hash(function(renamed.replace("fuse(I", "fuse(Rows"))) == ir.structural_hash(func)
    ir.assert_structural_equal(function(renamed.replace("fuse(I", "fuse(Rows")), func)
    for change in (
        ("J_all = T.sp.dense_fixed(n)", "J_all = T.sp.dense_fixed(m)"),
        ("(J_all, K)", "(I, K)"),
        ("T.sp.fuse(I, J), K", "I, J, K"),
        ('"SSR"', '"SSS"'),
        ('{"note": 1}', '{"note": 2}'),
        ("(p, q))", "(p, q), sorted=False)"),
    ):
        other = function(SDDMM.replace(*change))
        assert not ir.structural_equal(other, func), change
        assert ir.structural_hash(other) != ir.structural_hash(func), change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("[I, J, K]", "[J, I, K]"), "verify/axis-order"),
        (('"SRS"', '"SR"'), "builder/axis"),
        (('"SRS"', '"SXS"'), "builder/axis"),
        (("C[i, k_1] = T.float32(0.0)", "C[i, j] = T.float32(0)"), "verify/axis"),
        (("A[i, j] * B", "A[i] * B"), "ir/index-count"),
        (("(indptr, indices)", "(indptr, m)"), "builder/not-a-handle"),
        (('(I, J), "float32"', '(J, I), "float32"'), "verify/axis-order"),
        (("T.sp.match_buffer(c, (I, K)", "T.sp.match_buffer(c, ()"), "builder/axis"),
        (("T.sp.match_buffer(c, (I, K)", "T.sp.match_buffer(c, I"), "builder/axis"),
        (("T.sp.match_buffer(c, (I, K)", "T.sp.match_buffer(c, (I, 3)"), "builder/axis"),
        (('(I, K), "float32")', '(I, K), "float32", extra_storage=-1)'), "builder/axis"),
        (('(I, K), "float32")', '(I, K), "int8", default_value=300)'), "script/constant"),
    ],
)
def test_mistakes_are_refused(change: tuple[str, str], code: str) -> None:
    text = spmm.script().replace(*change)
    assert text != spmm.script()
    with pytest.raises(tw.Error) as caught:
        script.from_source(text)
    assert caught.value.code == code, str(caught.value)
    assert "^" in str(caught.value)


def test_what_stands_below_no_axis_is_refused() -> None:
    calls: dict[str, Callable[[], Any]] = {
        "compressed_varied": lambda: T.sp.compressed_varied(4, (7, 9), (None, None)),
        "compressed_fixed": lambda: T.sp.compressed_fixed("I", (7, 9), None),
        "dense_varied": lambda: T.sp.dense_varied(None, (7, 9), None),
        "attach": lambda: T.sp.attach(3, 4),
    }
    for name, call in calls.items():
        with pytest.raises(tw.ScriptError, match=f"T.sp.{name} takes an axis, and not") as caught:
            call()
        assert caught.value.code == "builder/axis" and caught.value.hint


def test_arrays_of_structure_that_are_too_short_are_refused() -> None:
    text = """
@T.prim_func
def f(a: T.handle, p: T.Buffer((5,), "int32"), q: T.Buffer((9,), "int32")):
    I = T.sp.dense_fixed(4)
    J = T.sp.compressed_varied(I, (7, 9), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "x") as [i, j]:
        A[i, j] = 0.0
"""
    script.from_source(text)
    for change, message in (
        (("p: T.Buffer((5,)", "p: T.Buffer((4,)"), "'p' has 4 elements, and axis 'J' takes 5 from it"),
        (("q: T.Buffer((9,)", "q: T.Buffer((8,)"), "'q' has 8 elements, and axis 'J' takes 9 from it"),
    ):
        with pytest.raises(tw.ScriptError, match=message) as caught:
            script.from_source(text.replace(*change))
        assert caught.value.code == "verify/axis" and "^" in str(caught.value) and caught.value.hint


def test_axes_are_not_known_where_blocks_are_expected() -> None:
    with pytest.raises(tw.Error, match="lower_sparse_iter") as caught:
        _core.verify(_core.as_module(spmm), "scheduled")
    assert caught.value.code == "verify/stage"


def test_nodes_that_are_no_axes_are_refused() -> None:
    i32, n = ir.IntImm("int32", 4), ir.Var("n", "int32")
    root = ir.Axis("I", None, i32, i32, i32)
    data = T.Buffer((4,), "int32")
    for fields in (
        ("J", None, i32, i32, None),  # variable without an indptr
        ("J", root, i32, i32, i32, data, data),  # and with both
        ("J", None, i32, i32, i32, None, data),  # sparse without a parent
        ("J", root, i32, i32, i32),  # a dense fixed axis with one
        ("J", root, ir.FloatImm("float32", 1.0), i32, i32, None, data),
        ("J", root, i32, i32, i32, None, T.Buffer((4, 4), "int32")),
        ("J", None, i32, i32, i32, None, None, "int32", True, root),  # attached to nothing
        ("J", root, i32, i32, i32, None, T.Buffer((4,), "float32")),
        ("J", None, i32, i32, i32, None, None, "float32"),
        *(("J", None, i32, i32, i32, None, None, dtype) for dtype in ("int8", "uint8", "int16", "uint32", "uint64")),
        *(("J", root, i32, i32, i32, None, T.Buffer((4,), dtype)) for dtype in ("int8", "uint16", "uint32")),
    ):
        with pytest.raises(tw.Error) as caught:
            ir.Axis(*fields)
        assert caught.value.code == "ir/axis", fields
    with pytest.raises(tw.Error, match="neither spatial nor a reduction"):
        ir.SpIterVar(n, ir.IterType.OPAQUE, root)
    with pytest.raises(tw.Error) as caught:
        ir.SpIterVar(ir.Var("n", "int64"), ir.IterType.DATA_PAR, root)
    assert caught.value.code == "ir/dtype-mismatch"


def test_a_default_value_has_the_type_of_the_elements() -> None:
    fields = {name: getattr(T.Buffer((4,), "float32"), name) for name in ir.Buffer.__match_args__}
    with pytest.raises(tw.Error) as caught:
        ir.Buffer(**{**fields, "default_value": ir.IntImm("int32", 1)})
    assert caught.value.code == "ir/default-value"


@pytest.mark.parametrize(
    ("indptr", "indices", "code", "message"),
    [
        ([0, 3, 2, 4], [0, 1, 2, 3], "interpret/structure", "indptr of axis 'J' descends"),
        ([0, 2, 3, 4], [1, 0, 2, 3], "interpret/structure", "do not ascend"),
        ([0, 2, 3, 4], [1, 1, 2, 3], "interpret/structure", "do not ascend"),
        ([0, 2, 3, 4], [0, 4, 2, 3], "interpret/out-of-bounds", "is outside of"),
        ([0, 2, 3, 4], [-1, 1, 2, 3], "interpret/out-of-bounds", "is outside of"),
        ([0, 2, 3, 5], [0, 1, 2, 3], "interpret/out-of-bounds", "reads"),
    ],
)
def test_damaged_structure_is_reported(indptr: list[int], indices: list[int], code: str, message: str) -> None:
    arrays = [np.array(numbers, "int32") for numbers in (indptr, indices)]
    values, dense, out = np.ones(4, "float32"), np.ones((4, 1), "float32"), np.empty((3, 1), "float32")
    with pytest.raises(tw.Error, match=message) as caught:
        run(spmm, values, dense, out, *arrays, 3, 4, 1, 4)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("indptr", "indices", "code", "message"),
    [
        ([0, 2, 1], [0, 1], "interpret/structure", "indptr of axis 'J' descends"),
        ([0, 2, 3], [2, 0, 1], "interpret/structure", "do not ascend"),
        ([0, 2, 3], [0, 0, 1], "interpret/structure", "do not ascend"),
        ([0, 2, 3], [0, 5, 1], "interpret/out-of-bounds", "is outside of"),
        ([0, 2, 3], [-1, 1, 2], "interpret/out-of-bounds", "is outside of"),
    ],
)
def test_structure_is_asserted_where_nothing_iterates_over_it(
    indptr: list[int], indices: list[int], code: str, message: str
) -> None:
    """Searches would find other elements in it, or none."""
    func = function(DENSE_READS.replace("dense_fixed(4)", "dense_fixed(2)").replace("(4, 5)", "(2, 5)"), DEFAULT=0)
    arrays = [np.array(numbers, "int32") for numbers in (indptr, indices)]
    with pytest.raises(tw.Error, match=message) as caught:
        run(func, np.ones(len(indices), "float32"), np.empty((2, 5), "float32"), *arrays, len(indices))
    assert caught.value.code == code and caught.value.hint


def test_rows_of_one_length_are_asserted_to_ascend() -> None:
    text = ELL.replace(", sorted=False", "").replace(
        'with T.iter([I, J], "SR", "ell") as [i, j]:',
        'J_all = T.dense_fixed(6)\n    with T.iter([I, J_all], "SR", "ell") as [i, j]:',
    )
    a, x, y = np.ones((4, 2), "float32"), np.ones(6, "float32"), np.empty(4, "float32")
    run(function(text), a, x, y, np.array([0, 5, 1, 2, 0, 3, 4, 5], "int32"))
    assert (y == 2).all()
    with pytest.raises(tw.Error, match="do not ascend") as caught:
        run(function(text), a, x, y, np.array([0, 5, 1, 2, 3, 0, 4, 5], "int32"))
    assert caught.value.code == "interpret/structure"


@pytest.mark.parametrize("dtype", ["int65", "int8", "uint8", "int16", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("kind", ["dense_fixed(m", "compressed_varied(I, (n, nnz), (p, q)"])
def test_a_type_of_coordinates_that_does_not_exist_is_the_only_error(kind: str, dtype: str) -> None:
    """What stands in an iteration over an unknown axis is at its place. 255 positions would fit uint8, but neither the
    number of their ends nor -1 for a coordinate that is absent."""
    text = SPMM.replace(kind, f'{kind}, idtype="{dtype}"')
    with pytest.raises(tw.ScriptError, match=f"idtype is '{dtype}'") as caught:
        function(text)
    assert caught.value.code == "builder/axis" and "coordinates are int32 or int64" in str(caught.value)
    assert "T.init" not in str(caught.value) and "2 errors" not in str(caught.value)


def test_statements_in_scopes_that_do_not_open_are_checked_otherwise() -> None:
    text = SPMM.replace("T.sp.iteration([I, J, K]", "T.sp.iteration([I, J, L]").replace(
        "C[i, k] = T.float64(0)", "C[0] = x"
    )
    with pytest.raises(tw.ScriptError) as caught:
        function(text)
    message = str(caught.value)
    assert "'L' is not defined" in message and "'x' is not defined" in message and "belongs directly" not in message


FLATTENED = """
def f(a: T.handle, b: T.handle, p: T.handle, q: T.handle, s: T.handle, nnz: T.int32):
    I = T.sp.dense_fixed(4)
    J = T.sp.compressed_varied(I, (6, nnz), (p, q))
    K = T.sp.dense_fixed(3)
    E = T.sp.flatten([I, J])
    F = T.sp.flatten([I, J, K])
    A = T.sp.match_buffer(a, (F,), "float32")
    B = T.sp.match_buffer(b, (I, J, K), "float32")
    S = T.sp.match_buffer(s, (E, K), "float32")
    with T.sp.iteration([F], "S", "twice") as [f]:
        A[f] = A[f] * T.float32(2)
    with T.sp.iteration([I, J, K], "SSS", "stored") as [i, j, k]:
        B[i, j, k] = T.float32(i * 100 + j * 10 + k)
    with T.sp.iteration([E, K], "SS", "rows") as [e, k]:
        S[e, k] = T.float32(e * 3 + k) + A[e * 3 + k]
"""


@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_flattened_axes_number_elements(target: str) -> None:
    matrix = random_csr(4, 6, 0.4, 3)
    a = np.arange(3 * matrix.nnz, dtype="float32")
    b, s = np.full((matrix.nnz, 3), np.nan, "float32"), np.full((matrix.nnz, 3), np.nan, "float32")
    tw.compile(function(FLATTENED), target)(a, b, matrix.indptr, matrix.indices, s, matrix.nnz)
    np.testing.assert_array_equal(a, 2 * np.arange(3 * matrix.nnz))
    rows = np.repeat(np.arange(4), np.diff(matrix.indptr))
    np.testing.assert_array_equal(b, (rows * 100 + matrix.indices * 10)[:, None] + np.arange(3))
    np.testing.assert_array_equal(s.reshape(-1), 3 * np.arange(3 * matrix.nnz))


def test_flattened_axes_are_scheduled_and_verified() -> None:
    sch = tw.Schedule(function(FLATTENED))
    sch.lower_sparse_iter()
    sch.parallel(sch.get_loops("twice0")[0])
    sch.vectorize(sch.split(sch.get_loops("rows0")[0], [None, 4])[1])
    sch.verify()


def test_flattened_axes_print_are_stored_and_compared() -> None:
    func = function(FLATTENED)
    printed = func.script()
    assert "F = T.sp.flatten([I, J, K])" in printed
    for again in (script.from_source(printed), ir.load_json(ir.save_json(func))):
        ir.assert_structural_equal(again, func)
        assert ir.structural_hash(again) == ir.structural_hash(func)
    named = FLATTENED.replace("flatten([I, J])", "flatten([I, J], nnz, [p, q])").replace("K])", "K], nnz * 3)")
    ir.assert_structural_equal(function(named), func)
    plain = function(FLATTENED.replace("T.sp.flatten([I, J])", "T.sp.dense_fixed(nnz)"))
    assert not ir.structural_equal(plain, func) and ir.structural_hash(plain) != ir.structural_hash(func)
    assert any(axis.flattened for axis in func.axes) and not func.axes[0].flattened
    wide = FLATTENED.replace("flatten([I, J])", 'flatten([I, J], idtype="int64")')
    assert 'T.sp.flatten([I, J], idtype="int64")' in function(wide).script()


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("[I, J])", "[I, J], nnz + 1)", "builder/axis", r"with nnz \+ 1 elements, where its axes have nnz"),
        ("[I, J])", "[I, J], nnz, [s])", "builder/axis", "offsets that none of its axes has"),
        ("[I, J])", "[])", "builder/axis", "of no axes"),
        ("[I, J])", "I)", "builder/axis", "a list of axes"),
        ("[I, J])", "[J])", "verify/axis-order", "flattens 'J' without 'I'"),
    ],
)
def test_flattened_axes_that_are_refused(old: str, new: str, code: str, text: str) -> None:
    with pytest.raises(tw.ScriptError, match=text) as caught:
        function(FLATTENED.replace(f"E = T.sp.flatten({old}", f"E = T.sp.flatten({new}"))
    assert caught.value.code == code


def test_a_flattened_axis_below_another_one() -> None:
    func = function(FLATTENED)
    root, old, *_ = func.axes
    wrong = with_fields(old, flattened=[root])
    changed = _core.rewrite(func, lambda node: wrong if isinstance(node, ir.Axis) and node.same_as(old) else None)
    with pytest.raises(tw.ScriptError, match="flattens axes, and stands below another one") as caught:
        _core.verify(_core.as_module(changed), "sparse")
    assert caught.value.code == "verify/axis"
