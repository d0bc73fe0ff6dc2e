"""sch.horizontal_fuse concatenates the iterations of several loops in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sparse.test_decompose import M, N, mask_of, sddmm

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.sparse import convert_structure, decompose_format, formats
from tilewright.testing import check, check_refused


@T.prim_func
def parts(A: T.Buffer((8, 4)), B: T.Buffer((8,)), C: T.Buffer((5,)), D: T.Buffer((3,)), n: T.int32):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            for j in range(4):
                with T.block("sum"):
                    vj = T.axis.reduce(4, j)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] += A[vi, vj]
    for i in range(T.min(n, 5)):
        with T.block("C"):
            vi = T.axis.spatial(T.min(n, 5), i)
            C[vi] = A[vi, 0]
    for i in range(3):
        with T.block("D"):
            vi = T.axis.spatial(3, i)
            D[vi] = A[vi, 1]


def loops(sch: tw.Schedule, *names: str) -> list[Any]:
    return [sch.get_loops(name)[0] for name in names]


def fused(sch: tw.Schedule) -> Any:
    return sch.horizontal_fuse(*loops(sch, "B", "C", "D"))


@pytest.mark.parametrize("n", [-3, 0, 1, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_tasks_run_in_parallel(n: int, threads: int) -> None:
    """The second part has as many tasks as its bound says, none where that is negative."""
    sch = tw.Schedule(parts)
    sch.parallel(fused(sch))
    tw.ir.verify(sch.mod)
    a = np.random.default_rng(0).integers(-3, 4, (8, 4)).astype("float32")
    for target in ("interpreter", "native"):
        b, c, d = np.zeros(8, "float32"), np.zeros(5, "float32"), np.zeros(3, "float32")
        kernel = tw.compile(sch, target)
        kernel.threads = threads
        kernel(a, b, c, d, n)
        np.testing.assert_array_equal(b, a.sum(1))
        np.testing.assert_array_equal(c, np.where(np.arange(5) < n, a[:5, 0], 0))
        np.testing.assert_array_equal(d, a[:3, 1])


def test_the_schedule_goes_on_with_the_loop_and_the_blocks() -> None:
    def transform(sch: tw.Schedule) -> None:
        task = fused(sch)
        assert [sch.get(loop).loop_var.name_hint for loop in sch.get_loops("C")] == ["i_i_i_fused"]
        outer, _ = sch.split(task, [None, 4])
        sch.parallel(outer)

    constant = parts.script().replace(", n: T.int32", "").replace("T.min(n, 5)", "5")
    check(from_source(constant), transform)


def test_parts_that_read_one_another_run_in_order() -> None:
    @T.prim_func
    def chain(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[7 - vi]

    check(chain, lambda sch: sch.horizontal_fuse(*loops(sch, "B", "C")))
    sch = tw.Schedule(chain)
    task = sch.horizontal_fuse(*loops(sch, "B", "C"))
    with pytest.raises(tw.ScheduleError, match="parallel/P5"):
        sch.parallel(task)


def test_p1_loops_that_are_not_neighbors() -> None:
    for names in (("B",), ("B", "D"), ("C", "B"), ("B", "B")):
        check_refused(parts, lambda sch, names=names: sch.horizontal_fuse(*loops(sch, *names)), "horizontal_fuse/P1")
    check_refused(parts, lambda sch: sch.horizontal_fuse(), "horizontal_fuse/P1")


def test_p2_a_parallel_loop() -> None:
    def transform(sch: tw.Schedule) -> None:
        sch.parallel(loops(sch, "C")[0])
        fused(sch)

    check_refused(parts, transform, "horizontal_fuse/P2")


def test_p3_a_loop_inside_whose_bounds_are_data() -> None:
    @T.prim_func
    def program(N: T.Buffer((8,), "int32"), B: T.Buffer((8,)), C: T.Buffer((8, 4))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = T.float32(1)
        for i in range(8):
            for j in range(T.min(N[i], 4)):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.float32(1)

    check_refused(program, lambda sch: sch.horizontal_fuse(*loops(sch, "B", "C")), "horizontal_fuse/P3")


def test_p4_a_bound_that_another_part_writes() -> None:
    @T.prim_func
    def program(N: T.Buffer((8,), "int32"), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("N"):
                vi = T.axis.spatial(8, i)
                N[vi] = 3
        for i in range(N[0]):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.float32(1)

    check_refused(program, lambda sch: sch.horizontal_fuse(*loops(sch, "N", "C")), "horizontal_fuse/P4")


def test_p5_a_reduction_with_an_init() -> None:
    @T.prim_func
    def program(A: T.Buffer((8,)), B: T.Buffer((1,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    B[0] = T.float32(0)
                B[0] += A[vi]
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]

    check_refused(program, lambda sch: sch.horizontal_fuse(*loops(sch, "B", "C")), "horizontal_fuse/P5")


def test_p6_a_parallel_loop_around() -> None:
    @T.prim_func
    def chain(A: T.Buffer((4, 8)), B: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for n in range(4):
            for i in range(8):
                with T.block("B"):
                    vn, vi = T.axis.remap("SS", [n, i])
                    B[vn, vi] = A[vn, vi] + T.float32(1)
            for i in range(8):
                with T.block("C"):
                    vn, vi = T.axis.remap("SS", [n, i])
                    C[vn, vi] = B[vn, 7 - vi]

    def transform(sch: tw.Schedule) -> None:
        sch.parallel(sch.get_loops("B")[0])
        sch.horizontal_fuse(sch.get_loops("B")[1], sch.get_loops("C")[1])

    check_refused(chain, transform, "horizontal_fuse/P6")


#: nonzeros of a row in the last bucket of hyb: 2 to this
WIDEST = 2


@pytest.mark.parametrize("what", ["random", "empty", "one dense row"])
def test_buckets_of_a_format_are_tasks_of_equal_work(what: str) -> None:
    """SDDMM over hyb: one parallel loop over the rows of all buckets, in tasks of equal numbers of nonzeros."""
    text = sddmm.script().replace("T.sp.dense_fixed(k)", "T.sp.dense_fixed(8)").replace("k: T.int32, ", "")
    rules = formats.hyb(M, N, 1, WIDEST)
    program = decompose_format(from_source(text), "A", rules)
    sch = tw.Schedule(program.function, seed=1)
    for rule in rules:
        root, i, *_ = sch.get_sp_iters(f"sddmm_{rule.name}")
        sch.sparse_fuse(root, i)
    sch.lower_sparse_iter()
    tasks = []
    for bucket, rule in enumerate(rules):
        rows, _ = sch.split(sch.get_loops(f"sddmm_{rule.name}0")[0], [None, 2 ** (WIDEST - bucket)])
        tasks.append(rows)
    sch.parallel(sch.horizontal_fuse(*tasks))
    tw.ir.verify(sch.mod)
    mask = mask_of(what)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (extent, 8)).astype("float32") for extent in (M, N))
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    nnz = len(coordinates[0])
    converted = convert_structure(rules, mask.shape, coordinates)
    for target, threads in (("interpreter", 1), ("native", 1), ("native", 2)):
        stored = converted.convert_values(np.full(nnz, np.nan, "float32"))
        args = [x, y, indptr, coordinates[1], M, N, nnz, *program.arguments(converted, stored)]
        kernel = tw.compile(sch, target)
        kernel.threads = threads
        kernel(*args)
        results = [args[at].reshape(-1) for at in program.positions_of_elements()]
        np.testing.assert_array_equal(
            converted.values_back(results), (x[coordinates[0]] * y[coordinates[1]]).sum(1, dtype="float32")
        )
