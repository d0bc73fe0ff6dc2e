"""tw.tune over the formats of a tensor: a space that decomposes it, with sampled parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from fuzz.format_rules import SPMV as spmv
from tilewright.sparse import convert_structure

M, N = 60, 90


def matrix_of(what: str) -> Any:
    """A matrix of small integers, so that sums are exact."""
    random = np.random.default_rng(len(what))
    mask = random.random((M, N)) < (0 if what == "empty" else 0.05)
    if what == "one dense row":
        mask[:] = False
        mask[M // 2] = True
    return scipy.sparse.csr_matrix(np.where(mask, random.integers(1, 5, (M, N)), 0).astype("float64"))


def searched(space: Any, matrix: Any, trials: int = 6, **options: Any) -> Any:
    inputs = {"indptr": matrix.indptr, "indices": matrix.indices, "m": M, "n": N, "nnz": matrix.nnz}
    return tw.tune(spmv, space=space, trials=trials, inputs=inputs, progress=None, **options)


def check(result: Any, matrix: Any) -> None:
    """Against SciPy, with NaN where padding points: no nonzero is in a column that is not used."""
    x = np.random.default_rng(0).integers(-4, 5, N).astype("float64")
    x[np.setdiff1d(np.arange(N), matrix.indices)] = np.nan
    want = np.zeros(M)
    np.add.at(want, matrix.tocoo().coords[0], matrix.data * x[matrix.indices])
    converted = convert_structure(result.decomposition.rules, (M, N), matrix.tocoo().coords)
    more = result.decomposition.arguments(converted, converted.convert_values(matrix.data))
    replayed = tw.Schedule(spmv)
    result.schedule.trace.apply_to_schedule(replayed, remove_postproc=False)
    tw.ir.assert_structural_equal(replayed.mod, result.schedule.mod)
    for kernel in (result.kernel, tw.compile(replayed), tw.compile(replayed, "interpreter")):
        y = np.full(M, np.nan)
        kernel(x, y, matrix.indptr, matrix.indices, M, N, matrix.nnz, *more)
        np.testing.assert_array_equal(y, want)


def buckets(sch: Any) -> None:
    """What comes behind the format depends on its sample, and samples itself."""
    widest = sch.sample_categorical([0, 1, 2], [0.3, 0.3, 0.4])
    iterations = sch.decompose_format("A", "hyb", [M, N, 1, widest, 0], count=4)
    assert len(iterations) == 4
    for iteration in iterations:
        root, row, *_ = sch.get_sp_iters(iteration)
        sch.sparse_fuse(root, row)
    sch.lower_sparse_iter()
    size = sch.get(sch.sample_categorical([1, 4], [0.5, 0.5]))
    tasks = [sch.get_loops(f"spmv_hyb_0_{bucket}0")[0] for bucket in (*range(sch.get(widest) + 1), "rest")]
    tasks[0] = sch.split(tasks[0], [None, size])[0]
    sch.parallel(sch.horizontal_fuse(*tasks))


@pytest.mark.parametrize("what", ["random", "empty", "one dense row"])
def test_buckets_with_sampled_widths(what: str) -> None:
    matrix = matrix_of(what)
    result = searched(buckets, matrix, trials=8)
    assert {choice.parameters for choice in result.choices} == {(M, N, 1, widest, 0) for widest in range(3)}
    seconds = [choice.seconds for choice in result.choices]
    assert seconds == sorted(seconds) and all(choice.result is not None for choice in result.choices)
    check(result, matrix)
    if what == "random":
        assert "agree" in str(result.schedule.verify())
    text = str(result.table())
    assert "hyb(60, 90, 1, 2, 0)" in text and "conversion" in text and "in calls" in text


def test_formats_of_several_kinds() -> None:
    def kinds(sch: Any) -> None:
        kind = sch.get(sch.sample_categorical([0, 1, 2], [0.3, 0.3, 0.4]))
        if kind == 0:
            sch.decompose_format("A", "csr", [M, N])
        elif kind == 1:
            sch.decompose_format("A", "sell", [M, N, 4, sch.sample_categorical([8, 64], [0.5, 0.5])])
        else:
            sch.decompose_format("A", "ell", [M, N, 1])  # which holds no row of two nonzeros
        sch.lower_sparse_iter()

    matrix = matrix_of("random")
    result = searched(kinds, matrix)
    assert {choice.name for choice in result.choices} == {"csr", "sell", "ell"}
    (refused,) = (choice for choice in result.choices if choice.name == "ell")
    assert refused is result.choices[-1] and "not in 0 to before 1" in refused.failure and refused.converted is None
    assert "not in 0 to before 1" in str(result.table())
    check(result, matrix)


def test_one_format() -> None:
    def dcsr(sch: Any) -> None:
        sch.decompose_format("A", "dcsr", [M, N])
        sch.lower_sparse_iter()

    matrix = matrix_of("random")
    result = searched(dcsr, matrix, trials=1)
    assert [str(choice) for choice in result.choices] == [f"dcsr({M}, {N})"] and "dcsr" in repr(result)
    check(result, matrix)


def test_a_search_goes_on_with_its_records(tmp_path: Path) -> None:
    matrix, database = matrix_of("random"), tmp_path / "records.db"
    first = searched(buckets, matrix, database=database)
    again = searched(buckets, matrix, database=database)
    traces = [
        {str(choice): choice.result.record.trace for choice in each.choices if choice.result.record}
        for each in (first, again)
    ]
    assert traces[0] == traces[1]


def test_no_format_holds_the_structure() -> None:
    def ell(sch: Any) -> None:
        sch.decompose_format("A", "ell", [M, N, 1])
        sch.lower_sparse_iter()

    result = searched(ell, matrix_of("one dense row"), trials=1)
    with pytest.raises(tw.ResourceError, match="no format has a correct candidate") as caught:
        _ = result.kernel
    assert caught.value.code == "tune/no-correct-candidate" and f"ell({M}, {N}, 1)" in str(caught.value)


def test_errors_behind_the_format_show_the_line_of_the_space() -> None:
    def wrong(sch: Any) -> None:
        sch.decompose_format("A", "csr", [M, N])
        sch.lower_sparse_iter()
        sch.get_block("nothing")

    result = searched(wrong, matrix_of("random"), trials=1)
    assert "nothing" in result.best.failure
    with pytest.raises(tw.ResourceError, match="nothing"):
        _ = result.schedule


def test_two_tensors_are_not_decomposed() -> None:
    def twice(sch: Any) -> None:
        sch.decompose_format("A", "csr", [M, N])
        sch.decompose_format("A", "csr", [M, N])

    assert "decomposes two tensors" in searched(twice, matrix_of("random"), trials=1).best.failure


def test_the_best_format_is_found_in_the_database(tmp_path: Path) -> None:
    matrix, database = matrix_of("random"), tmp_path / "records.db"
    result = searched(buckets, matrix, database=database)
    with pytest.raises(tw.ResourceError, match="no record of this program as it is, but with 'A' in other") as caught:
        tw.compile(spmv, database=database)
    assert caught.value.code == "database/no-record" and "tw.sparse.recorded_format" in str(caught.value)
    assert all(f"{choice} (" in str(caught.value) for choice in result.choices)
    found = tw.sparse.recorded_format(spmv, database)
    tw.ir.assert_structural_equal(found.function, result.decomposition.function)
    assert [rule.name for rule in found.rules] == [rule.name for rule in result.decomposition.rules]
    kernel = tw.compile(found.function, database=database)
    assert kernel.schedule == "recorded"
    converted = convert_structure(found.rules, (M, N), matrix.tocoo().coords)
    x, y = np.random.default_rng(0).integers(-4, 5, N).astype("float64"), np.full(M, np.nan)
    more = found.arguments(converted, converted.convert_values(matrix.data))
    kernel(x, y, matrix.indptr, matrix.indices, M, N, matrix.nnz, *more)
    np.testing.assert_array_equal(y, matrix @ x)


def test_records_of_the_program_itself_come_first(tmp_path: Path) -> None:
    def dcsr(sch: Any) -> None:
        sch.decompose_format("A", "dcsr", [M, N])
        sch.lower_sparse_iter()

    matrix, database = matrix_of("random"), tmp_path / "records.db"
    searched(lambda sch: sch.lower_sparse_iter(), matrix, trials=1, database=database)
    other = tw.sparse.decompose_format(spmv, "A", tw.sparse.formats.csr(M, N)).function
    with pytest.raises(tw.ResourceError, match=r"holds no record of this program\n"):
        tw.compile(other, database=database)
    searched(dcsr, matrix, trials=1, database=database)
    assert tw.sparse.recorded_format(spmv, database).rules[0].name == "dcsr"
    kernel: Any = tw.compile(spmv, database=database)
    y = np.full(M, np.nan)
    kernel(matrix.data, np.ones(N), y, matrix.indptr, matrix.indices, M, N, matrix.nnz)
    np.testing.assert_array_equal(y, matrix @ np.ones(N))


def test_no_format_is_in_the_database(tmp_path: Path) -> None:
    database = tmp_path / "records.db"
    searched(lambda sch: sch.lower_sparse_iter(), matrix_of("random"), trials=1, database=database)
    with pytest.raises(tw.ResourceError, match="in any format") as caught:
        tw.sparse.recorded_format(spmv, database)
    assert caught.value.code == "database/no-record"
