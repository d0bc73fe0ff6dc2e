"""Searches over sparse programs: spaces see the program as the user wrote it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from fuzz.format_rules import SPMV as spmv
from tilewright import _core, script
from tilewright.sparse import convert_structure, decompose_format, formats
from tilewright.task.task import module_of, program_keys

from .test_decompose import spmm

M, N, NNZ = 60, 90, 100


SIZES = {"m": M, "n": N, "nnz": NNZ}


def lowers(sch: tw.Schedule) -> None:
    sch.lower_sparse_iter()
    sch.parallel(sch.get_loops("spmv0")[0])


def samples(sch: tw.Schedule) -> None:
    """Which step comes depends on what is sampled."""
    fuses = sch.sample_categorical([0, 1], [0.5, 0.5])
    if sch.get(fuses):
        sch.sparse_fuse(*sch.get_sp_iters("spmv"))
        sch.lower_sparse_iter()
    else:
        sch.lower_sparse_iter()
        sch.parallel(sch.get_loops("spmv0")[0])


def does_not_lower(sch: tw.Schedule) -> None:
    sch.parallel(sch.get_loops("spmv0")[0])


def check(compiled: Any) -> None:
    """Against SciPy; values are small integers, so that sums are exact."""
    random = np.random.default_rng(0)
    matrix = scipy.sparse.random(M, N, NNZ / (M * N), "csr", random_state=0)
    matrix.data = random.integers(-4, 5, matrix.nnz).astype("float64")
    x, y = random.integers(-4, 5, N).astype("float64"), np.full(M, np.nan)
    compiled(matrix.data, x, y, matrix.indptr, matrix.indices, M, N, matrix.nnz)
    np.testing.assert_array_equal(y, matrix @ x)


@pytest.mark.parametrize("function", [lowers, samples, does_not_lower])
def test_traces_replay_on_the_program_of_the_user(function: Any, tmp_path: Path) -> None:
    database = tmp_path / "records.db"
    space = tw.space(spmv)(function)
    result = tw.tune(spmv, space=space, trials=2, sizes=SIZES, database=database, progress=None)
    assert result.record is not None and "lower_sparse_iter" in str(result.schedule.trace)
    again = tw.Schedule(spmv)
    result.schedule.trace.apply_to_schedule(again, remove_postproc=False)
    tw.ir.assert_structural_equal(again.mod, result.schedule.mod)
    for compiled in (result.kernel, tw.compile(again), tw.compile(spmv, database=database)):
        check(compiled)
    same = tw.tune(spmv, space=space, trials=2, sizes=SIZES, database=database, progress=None)
    assert same.record is not None and same.record.trace == result.record.trace


def test_spaces_of_either_kind_share_a_database(tmp_path: Path) -> None:
    database = tmp_path / "records.db"
    for function in (does_not_lower, lowers, None, samples):
        result = tw.tune(spmv, space=function, trials=2, sizes=SIZES, database=database, progress=None)
        assert result.record is not None and not result.progress.failures
        check(result.kernel)
    check(tw.compile(spmv, database=database))


def test_candidates_of_a_module_have_the_parameters_of_the_program() -> None:
    def decomposes(sch: tw.Schedule) -> None:
        widest = sch.sample_categorical([0, 1], [0.5, 0.5])
        sch.decompose_format("A", "hyb", [M, N, 2, widest], count=6)
        sch.lower_sparse_iter()

    module = tw.ir.Module({"main": spmv})
    with pytest.raises(tw.ScheduleError, match="makes a program of other parameters") as caught:
        tw.tune(module, space=decomposes, trials=2, sizes=SIZES, progress=None)
    assert caught.value.code == "space/parameters" and "decompose_format" in str(caught.value)


def test_a_decomposed_program_is_tuned_over_its_own_arrays() -> None:
    matrix = scipy.sparse.random(M, N, 0.05, "csr", random_state=0)
    rules = formats.hyb(M, N, 1, 1)
    program = decompose_format(spmv, "A", rules)
    converted = convert_structure(rules, (M, N), matrix.tocoo().coords)
    more = program.arguments(converted, converted.convert_values(matrix.data))
    names = [param.name for param in program.function.params]
    given = [np.ones(N), np.zeros(M), matrix.indptr, matrix.indices, M, N, matrix.nnz, *more]
    inputs = {at: value for at, value in enumerate(given) if names[at] not in ("x", "y")}

    def fuses(sch: tw.Schedule) -> None:
        sch.lower_sparse_iter()

    result = tw.tune(program.function, space=fuses, trials=1, inputs=inputs, progress=None)
    y = np.full(M, np.nan)
    result.kernel(np.ones(N), y, *given[2:])
    np.testing.assert_allclose(y, matrix @ np.ones(N))


@pytest.mark.parametrize("name", ["csr", "ell"])
def test_rows_are_tuned_for_a_device(name: str) -> None:
    """Loops over the elements of a row are inside of threads; calls say how many rows there are."""
    matrix = scipy.sparse.random(64, 50, 0.1, "csr", dtype="float32", random_state=0)
    given = {"indptr": matrix.indptr, "indices": matrix.indices, "m": 64, "n": 50, "k": 8, "nnz": matrix.nnz}
    program, before, more = spmm, [matrix.data], []
    if name == "ell":
        rules = formats.ell(64, 50, 16)
        decomposed = decompose_format(spmm, "A", rules)
        converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
        program, before, more = (
            decomposed.function,
            [],
            decomposed.arguments(converted, converted.convert_values(matrix.data)),
        )
        given |= {param.name: value for param, value in zip(program.params[-len(more) :], more, strict=True)}
    result = tw.tune(program, target="opencl", trials=3, inputs=given, progress=None)
    assert result.record is not None and result.progress.outcomes.get("ok", 0) >= 1, result
    dense, out = np.random.default_rng(0).random((50, 8), "float32"), np.full((64, 8), np.nan, "float32")
    for kernel in (result.kernel, tw.compile(result.schedule, target="opencl")):
        kernel(*before, dense, out, matrix.indptr, matrix.indices, 64, 50, 8, matrix.nnz, *more)
        np.testing.assert_allclose(out, matrix @ dense, rtol=1e-4)


def test_searches_with_the_parts_of_tvm_refuse_rows_of_any_length() -> None:
    """What nobody asks to change stays as published."""
    generator = _core.PostOrderApply(postprocs=_core.Postproc.defaults("cuda"))
    sizes = {"m": M, "n": N, "nnz": NNZ}
    result = tw.tune(spmv, space=generator, target="opencl", trials=1, sizes=sizes, progress=None)
    assert result.record is None and "DisallowDynamicLoop" in result.progress.refusals


def test_records_of_earlier_versions_are_found() -> None:
    """Those declared neither an order of rows of one length, nor a longest row, nor several orders of one buffer."""
    func = script.from_source("""@T.prim_func
def f(y: T.handle, ptr: T.handle, near: T.handle, m: T.int32, n: T.int32, z: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, z), ptr)
    K = T.sp.compressed_fixed(J, (n, 2), near)
    L = T.sp.compressed_fixed(I, (n, 4), near)
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "zero") as [i]:
        Y[i] = T.float32(0)
""")
    (lowered,) = module_of(func).functions.values()
    text = re.sub(r', longest=n|, order="increasing", segments=2', "", lowered.script())
    text = re.sub(r"\n.*segments=4\)", "", text)
    assert text.count("assume_buffer_domain") == lowered.script().count("assume_buffer_domain") - 1 == 2
    assert "longest" in lowered.script() and "longest" not in text
    assert program_keys(script.from_source(text))[0] in program_keys(func)[1:]
