"""Heuristic schedules of sums over rows whose lengths are data: SpMM over CSR."""

from itertools import pairwise

import numpy as np
import pytest
from tests.heuristics.cpu.programs import SORTED_ROWS, sparse_product

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.task.specialize import specialize
from tilewright.testing import check_schedule
from tilewright.timing import limit_threads


def scheduled(program: tw.ir.PrimFunc, target: str = "llvm -mcpu=skylake-avx512 -num-cores=4") -> tw.Schedule:
    sch = tw.Schedule(program)
    cpu.schedule_for_cpu(sch, tw.Target(target), best=True)
    return sch


def test_columns_are_accumulators_and_rows_are_shared_by_their_lengths() -> None:
    sch = scheduled(sparse_product(128))
    text = sch.mod.script()
    assert 'T.parallel(m, annotations={"balanced_by": [P.data, m + 1]})' in text
    # 128 numbers are 8 vectors, all of them inside of the loop over the row.
    kinds = [(sch.get(loop).kind.name, sch.get(loop).extent) for loop in sch.get_loops("sum")[1:]]
    assert [(kind, int(extent)) for kind, extent in kinds] == [("SERIAL", 1), ("UNROLLED", 8), ("VECTORIZED", 16)]
    check_schedule(sch, sparse_product(128))


L2 = "llvm -mcpu=skylake-avx512 -num-cores=4 -l2-bytes=1048576"


def test_a_large_operand_is_prefetched() -> None:
    program = sparse_product(128)
    n = program.buffer_map[program.params[3]].shape[0]
    large = scheduled(specialize(program, {n: 25_000}), L2).mod.script()
    assert "T.where(P[vi] + p + 16 < z)" in large and "T.prefetch(B, " in large
    assert "T.prefetch" not in scheduled(specialize(program, {n: 2000}), L2).mod.script()


def test_the_kernel_finds_out_whether_an_operand_is_large() -> None:
    text = scheduled(sparse_product(128), L2).mod.script()
    assert 'T.where(T.int64(2049) <= T.Cast("int64", n) and P[vi] + p + 16 < z)' in text, text
    for l2_bytes in (1024, 1 << 20):  # requests run, and do not
        sch = scheduled(sparse_product(128), f"llvm -mcpu=skylake-avx512 -num-cores=4 -l2-bytes={l2_bytes}")
        check_schedule(sch, sparse_product(128))


def test_short_rows_are_loaded_as_fast_as_they_are_prefetched() -> None:
    for columns, dtype, is_long in ((16, "float32", False), (32, "float32", True), (16, "float64", True)):
        text = scheduled(sparse_product(columns, dtype), L2).mod.script()
        assert ("T.prefetch" in text) == is_long, text


@pytest.mark.parametrize(
    ("columns", "dtype", "ahead"),
    [
        (32, "float32", 32),
        (64, "float32", 32),
        (128, "float32", 16),
        (128, "float64", 8),
        (1024, "float64", 1),
        (4096, "float64", 1),
    ],
)
def test_what_is_prefetched_stays_in_l1(columns: int, dtype: str, ahead: int) -> None:
    text = scheduled(sparse_product(columns, dtype), L2).mod.script()
    assert f"P[vi] + p + {ahead} < z" in text, text


def test_sizes_of_typical_calls_say_what_is_large() -> None:
    for n, is_large in ((25_000, True), (2000, False)):
        sch = tw.Schedule(tw.sparse.programs.spmm(128))
        cpu.schedule_for_cpu(sch, tw.Target(L2), best=True, sizes={"n": n})
        assert ("T.prefetch" in sch.mod.script()) == is_large


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_rows_are_partial_sums(dtype: str) -> None:
    """SDDMM: the columns of two rows are lanes, and threads share rows by their lengths."""
    sch = scheduled(tw.sparse.programs.sddmm(128, dtype))
    assert [sch.get(loop).kind.name for loop in sch.get_loops("dot")] == ["SERIAL", "VECTORIZED"]
    text = sch.mod.script()
    assert 'T.parallel(m, annotations={"balanced_by": [P.data, m + 1]})' in text
    check_schedule(sch, tw.sparse.programs.sddmm(128, dtype))
    assert "float32x" in (asm := tw.compile(sch).inspect("tir")) or "float64x" in asm


def test_more_columns_than_registers_are_panels_outside_of_the_row() -> None:
    sch = scheduled(sparse_product(128), "llvm -mcpu=haswell -num-cores=4")
    extents = [sch.get(loop).extent for loop in sch.get_loops("sum")]
    assert [int(extent) for extent in (extents[0], *extents[2:])] == [2, 8, 8]
    check_schedule(sch, sparse_product(128))


@pytest.mark.parametrize("declared", [SORTED_ROWS, "pass"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 5, 32, 48, 128, 640])
def test_compiled(columns: int, dtype: str, declared: str) -> None:
    kernels = [tw.compile(sparse_product(columns, dtype, index, declared)) for index in ("int32", "int64")]
    random = np.random.default_rng(0)
    for lengths in ([3, 0, 5, 1], [0, 0], [], [70, 0, 1], [2] * 300):
        pointers = np.concatenate([[0], np.cumsum(lengths)])
        z = int(pointers[-1])
        columns_of = np.concatenate([np.sort(random.choice(80, size, replace=False)) for size in lengths] or [[]])
        values = random.integers(-4, 5, z).astype(dtype)
        b = random.integers(-4, 5, (80, columns)).astype(dtype)
        places = columns_of.astype("int64")
        want = np.array([values[s:e] @ b[places[s:e]] for s, e in pairwise(pointers)]).reshape(-1, columns)
        for kernel, index in zip(kernels, ("int32", "int64"), strict=True):
            for threads in (1, 2):
                c = np.full((len(lengths), columns), np.nan, dtype)
                with limit_threads(threads):
                    kernel(pointers.astype(index), places.astype(index), values, b, c)
                np.testing.assert_array_equal(c, want)


def test_no_columns_of_the_dense_operand() -> None:
    kernel = tw.compile(sparse_product(32))
    empty, c = np.zeros(0, "int32"), np.full((3, 32), np.nan, "float32")
    kernel(np.zeros(4, "int32"), empty, np.zeros(0, "float32"), np.zeros((0, 32), "float32"), c)
    assert (c == 0).all()
