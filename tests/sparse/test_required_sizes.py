"""Programs over formats refuse calls of other sizes than the format is for, before anything is read or written."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from tilewright import script
from tilewright.sparse import FormatRewriteRule, compressed, convert_structure, decompose_format, dense, formats

from .test_decompose import FORMATS, spmm

M, N, K = 12, 18, 3


def call_of(rules: list[FormatRewriteRule], m: int, n: int = N, memory: Any = None) -> tuple[Any, ...]:
    """The arguments of a product with the identity of M rows, for a dense operand of n rows and a result of m rows."""
    matrix = scipy.sparse.eye(M, N, format="csr", dtype="float32")
    program = decompose_format(spmm, "A", rules)
    converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
    more = program.arguments(converted, converted.convert_values(matrix.data))
    c = (np.full((64, K), -1, "float32") if memory is None else memory)[:m]
    return program, (
        np.ones((n, K), "float32"), c, np.zeros(m + 1, "int32"), matrix.indices, m, n, K, matrix.nnz, *more
    )  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["native", "interpreter", "opencl"])
def test_sizes_that_do_not_fit(name: str, target: str) -> None:
    code = "interpret/extent" if target == "interpreter" else "call/extent"
    program, fits = call_of(FORMATS[name], M)
    kernel = tw.compile(program.function, target)
    kernel(*fits)
    assert (fits[1] == 1).all()
    for m, n, what in ((M - 5, N, "m is not 12"), (M + 5, N, "m is not 12"), (M, N - 1, "n is not 18")):
        memory = np.full((64, K), -1, "float32")
        _, wrong = call_of(FORMATS[name], m, n, memory)
        calls = [kernel] if target == "interpreter" else [kernel, kernel.validate]
        for call in calls:
            with pytest.raises(tw.ArgumentError, match=what) as caught:
                call(*wrong)
            assert caught.value.code == code and "shape (12, 18)" in str(caught.value) and caught.value.hint
        assert (memory == -1).all()


def test_a_step_of_a_schedule() -> None:
    sch = tw.Schedule(spmm)
    sch.decompose_format("A", "csr", [M, N])
    sch.lower_sparse_iter()
    _, wrong = call_of(FORMATS["csr"], 5)
    for target, code in (("native", "call/extent"), ("interpreter", "interpret/extent")):
        with pytest.raises(tw.ArgumentError, match="m is not 12") as caught:
            tw.compile(sch, target)(*wrong)
        assert caught.value.code == code


def test_libraries(tmp_path: Any) -> None:
    program, fits = call_of(FORMATS["ell"], M)
    exported = tw.compile(program.function).export(tmp_path, "product")
    kernel = tw.load(exported.library)
    kernel(*fits)
    assert (fits[1] == 1).all()
    with pytest.raises(tw.ArgumentError, match="m is not 12"):
        kernel(*call_of(FORMATS["ell"], 5)[1])


def test_rules_without_a_shape() -> None:
    """Dense axes say how far rows go at least."""
    by_row = FormatRewriteRule("rows", (dense("i", M), compressed("j")), lambda z: (z.row, z.column))
    axes = (dense("b", 3), compressed("j"), dense("r", 5))
    blocks = FormatRewriteRule("blocks", axes, lambda z: (z.row // 5, z.column, z.row % 5))
    for rule, least in ((by_row, 12), (blocks, 11)):
        for target in ("native", "interpreter"):
            kernel = tw.compile(decompose_format(spmm, "A", [rule]).function, target)
            _, fits = call_of([rule], M)
            kernel(*fits)
            assert (fits[1] == 1).all()
            with pytest.raises(tw.ArgumentError, match=f"m is less than {least}"):
                kernel(*call_of([rule], least - 1)[1])


def test_programs_of_a_constant_shape() -> None:
    constant = script.from_source(
        spmm.script().replace("T.sp.dense_fixed(m)", f"T.sp.dense_fixed({M})").replace("m: T.int32, ", "")
    )
    decompose_format(constant, "A", formats.csr(M, N))
    rules = [FormatRewriteRule("rows", (dense("i", M + 1), compressed("j")), lambda z: (z.row, z.column))]
    for wrong in (formats.csr(M + 1, N), formats.hyb(M - 1, N, 1, 1), rules, formats.csf(M, N, 4)):
        with pytest.raises(tw.ArgumentError) as caught:
            decompose_format(constant, "A", wrong)
        assert caught.value.code == "sparse/shape"


def test_structures_of_another_shape() -> None:
    """The conversion of a larger matrix is refused where arguments are made of it, though the arrays look alike."""

    def of(m: int) -> tuple[Any, Any, list[Any]]:
        rules = formats.hyb(m, N, 1, 2)
        matrix = scipy.sparse.random(m, N, 0.2, "csr", dtype="float32", random_state=0)
        matrix.sort_indices()
        converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
        return decompose_format(spmm, "A", rules), converted, converted.convert_values(matrix.data)

    program, converted, stored = of(M)
    program.arguments(converted, stored)
    _, larger, elements = of(3 * M)
    with pytest.raises(
        tw.ArgumentError, match=r"has the shape \(36, 18\), and the program is for \(12, 18\)"
    ) as caught:
        program.arguments(larger, elements)
    assert caught.value.code == "sparse/shape"
    with pytest.raises(tw.ArgumentError, match=r"'csr' is for the shape \(12, 18\)") as caught:
        convert_structure(formats.csr(M, N), (M + 1, N), (np.zeros(1, int), np.zeros(1, int)))
    assert caught.value.code == "sparse/shape"


OWN_SIZES = """
@T.prim_func
def f(a: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    rows, elements = T.int32(is_size_var=True), T.int32(is_size_var=True)
    P = T.match_buffer(p, (rows,), "int32")
    Q = T.match_buffer(q, (elements,), "int32")
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (P, Q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = T.float32(0)
        Y[i] += A[i, j] * T.Cast("float32", j)
"""


@pytest.mark.parametrize("target", ["native", "opencl"])
def test_arrays_of_structure_are_long_enough(target: str) -> None:
    kernel = tw.compile(script.from_source(OWN_SIZES), target)
    p, q = np.array([0, 2, 3], "int32"), np.array([0, 1, 4], "int32")
    y = np.zeros(2, "float32")
    for indptr, indices in ((p, q), (np.append(p, 3), np.append(q, 7))):
        given = (np.ones(3, "float32"), y, indptr.astype("int32"), indices.astype("int32"), 2, 5, 3)
        kernel(*given)
        np.testing.assert_array_equal(y, [1, 4])
    for indptr, indices, text in (
        (p[:2], q, "rows is less than m [+] 1: 'P' is too short for axis 'J'"),
        (p, q[:2], "elements is less than nnz: 'Q' is too short for axis 'J'"),
    ):
        for call in (kernel, kernel.validate):
            with pytest.raises(tw.ArgumentError, match=text) as caught:
                call(np.ones(3, "float32"), y, indptr.copy(), indices.copy(), 2, 5, 3)
            assert caught.value.code == "call/extent" and caught.value.hint


def test_indices_by_a_formula_need_no_size() -> None:
    sch = tw.Schedule(script.from_source(OWN_SIZES))
    sch.lower_sparse_iter()
    implicit = tw.sparse.specialize_buffer(sch.mod["main"], "Q", lambda p: (p + 1,))
    kernel, y = tw.compile(implicit), np.zeros(2, "float32")
    kernel(np.ones(3, "float32"), y, np.array([0, 2, 3], "int32"), 2, 5, 3)
    np.testing.assert_array_equal(y, [3, 3])
    with pytest.raises(tw.ArgumentError, match="rows is less than m"):
        kernel(np.ones(3, "float32"), y, np.array([0, 2], "int32"), 2, 5, 3)
