"""Programs over formats without a schedule: rows run in parallel where each occurs once, on a CPU and on devices. Of
other formats, threads share the columns of the result; without columns, each adds to a copy of the result.
"""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from fuzz.format_rules import SPMV as spmv
from tilewright import script
from tilewright.heuristics import gpu
from tilewright.sparse import convert_structure, decompose_format, formats

from .test_decompose import spmm

M, N = 300, 200

#: formats in whose loops over rows each row occurs once, or in one bucket alone
FORMATS = {
    "csr": formats.csr(M, N),
    "ell": formats.ell(M, N, 30),
    "bsr": formats.bsr(M, N, 4),
    "dcsr": formats.dcsr(M, N),
    "padded_csr": formats.padded_csr(M, N, 4),
    "ragged": formats.ragged(M, N),
    "hyb": formats.hyb(M, N, 1, 3, cut=False),
    "dbsr": formats.dbsr(M, N, 4),
    "dbsr with a part of a block": formats.dbsr(M, N, 7, 3),
    "sr_bcrs": formats.sr_bcrs(M, N, 4, 2),
    "sell": formats.sell(M, N, 4),
    "sell with a part of a slice": formats.sell(M, N, 16, 64),
}
#: formats of which several stored elements may belong to one row
SCATTERED = {
    "coo": formats.coo(M, N),
    "csc": formats.csc(M, N),
    "hyb with cut rows": formats.hyb(M, N, 2, 1),
}


def spmm_of(columns: int) -> Any:
    """Return the product of a program that says how many columns there are."""
    text = spmm.script().replace("T.sp.dense_fixed(k)", f"T.sp.dense_fixed({columns})")
    return script.from_source(text)


def matrix_of(what: str = "random") -> Any:
    """Small integers, so that sums are exact. No nonzero is in column 0, to which padding points."""
    random = np.random.default_rng(len(what))
    mask = random.random((M, N)) < (0 if what == "empty" else 0.05)
    if what == "dense rows":
        mask[:] = False
        mask[[0, M // 2, M - 1]] = True
    mask[:, 0] = False
    return scipy.sparse.csr_matrix(np.where(mask, random.integers(1, 5, (M, N)), 0).astype("float32"))


def arguments(program: Any, rules: Any, matrix: Any) -> list[Any]:
    converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
    return program.arguments(converted, converted.convert_values(matrix.data))


def check_product(kernel: Any, program: Any, rules: Any, columns: int) -> None:
    """On one thread and two, with NaN where padding points."""
    for what in ("random", "empty", "dense rows") if rules[0].name != "ell" else ("random",):
        matrix = matrix_of(what)
        more = arguments(program, rules, matrix)
        dense = np.random.default_rng(0).integers(-4, 5, (N, columns)).astype("float32")
        want = matrix @ dense
        dense[0] = np.nan
        for threads in (1, 2):
            out = np.full((M, columns), np.nan, "float32")
            kernel.threads = threads
            kernel(dense, out, matrix.indptr, matrix.indices, M, N, columns, matrix.nnz, *more)
            np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["native -num-cores=4", "opencl"])
def test_rows_run_in_parallel(name: str, target: str) -> None:
    rules = FORMATS[name]
    program = decompose_format(spmm, "A", rules)
    kernel = tw.compile(program.function, target)
    step = "sch.parallel(" if target.startswith("native") else '"blockIdx.x")'
    assert str(kernel.inspect("schedule")).count(step) == 1 + len(rules)  # with the initialization
    assert "compile/one-thread" not in [note.code for note in kernel.notes]
    check_product(kernel, program, rules, 5)


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("columns", [0, 32, 100])
def test_threads_share_columns(name: str, columns: int) -> None:
    """0: the call says how many there are."""
    rules = SCATTERED[name]
    program = decompose_format(spmm_of(columns) if columns else spmm, "A", rules)
    kernel = tw.compile(program.function, "native -num-cores=2")
    steps = str(kernel.inspect("schedule")).count("sch.parallel(")
    assert len(rules) <= steps <= 1 + len(rules)  # with the initialization, unless that is short
    assert "compile/one-thread" not in [note.code for note in kernel.notes]
    for count in [columns] if columns else [1, 5, 40]:
        check_product(kernel, program, rules, count)


def test_the_number_of_nonzeros_says_whether_columns_are_worth_a_thread() -> None:
    """Only calls know it: code divides the work that makes a thread worthwhile by that of an iteration."""
    program = decompose_format(spmm_of(32), "A", SCATTERED["coo"])
    assert "div i64 40000" in str(tw.compile(program.function, "native -num-cores=2").inspect("llvm"))


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("columns", [0, 32])
def test_threads_of_a_device_have_columns_of_their_own(name: str, columns: int) -> None:
    rules = SCATTERED[name]
    program = decompose_format(spmm_of(columns) if columns else spmm, "A", rules)
    kernel = tw.compile(program.function, "opencl")
    assert "lower/one-thread" not in [note.code for note in kernel.notes]
    check_product(kernel, program, rules, columns or 5)


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.parametrize("what", ["random", "empty", "dense rows"])
def test_threads_add_to_copies_of_a_result_without_columns(name: str, cores: int, what: str) -> None:
    rules = SCATTERED[name]
    program = decompose_format(spmv, "A", rules)
    kernel = tw.compile(program.function, f"native -num-cores={cores}")
    assert ("sch.rfactor(" in str(kernel.inspect("schedule"))) == (cores > 1)
    assert "compile/one-thread" not in [note.code for note in kernel.notes]
    matrix = matrix_of(what).astype("float64")
    more = arguments(program, rules, matrix)
    x = np.random.default_rng(0).integers(-4, 5, N).astype("float64")
    want = matrix @ x
    x[0] = np.nan
    for threads in (1, 2):
        y = np.full(M, np.nan)
        kernel.threads = threads
        kernel(x, y, matrix.indptr, matrix.indices, M, N, matrix.nnz, *more)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("name", ["coo", "hyb with cut rows"])
@pytest.mark.parametrize("what", ["random", "empty", "dense rows"])
def test_threads_of_a_device_add_to_elements_in_any_order(name: str, what: str) -> None:
    """Atomic operations on 32 bits, which every device has; the interpreter finds no race."""
    rules = SCATTERED[name]
    program = decompose_format(script.from_source(spmv.script().replace("float64", "float32")), "A", rules)
    kernel = tw.compile(program.function, "opencl")
    codes = [note.code for note in kernel.notes]
    assert "compile/unordered-sums" in codes and "lower/one-thread" not in codes
    matrix = matrix_of(what)
    more = arguments(program, rules, matrix)
    x = np.random.default_rng(0).integers(-4, 5, N).astype("float32")
    want = matrix @ x
    x[0] = np.nan
    schedule = tw.Schedule(program.function)
    gpu.schedule_for_gpu(schedule, tw.Target("opencl"))
    for run in (kernel, tw.compile(schedule, "interpreter")):
        y = np.full(M, np.nan, "float32")
        run(x, y, matrix.indptr, matrix.indices, M, N, matrix.nnz, *more)
        np.testing.assert_array_equal(y, want)
