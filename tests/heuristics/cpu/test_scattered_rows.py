"""Heuristic schedules of sums that are added to rows which data select: threads share columns, or sum into copies."""

from __future__ import annotations

import pytest
from tests.heuristics.cpu.programs import scattered_product

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.script import from_source
from tilewright.testing import check_schedule

TARGET = "llvm -mcpu=skylake-avx512 -num-cores=4"


def scheduled(program: tw.ir.PrimFunc, target: str = TARGET) -> tw.Schedule:
    sch = tw.Schedule(program)
    cpu.schedule_for_cpu(sch, tw.Target(target), best=True)
    return sch


@pytest.mark.parametrize(("columns", "panels"), [(100, 4), (128, 4), (40, 3), (17, 2), (640, 4)])
def test_threads_have_cache_lines_of_their_own(columns: int, panels: int) -> None:
    program = scattered_product(columns)
    sch = scheduled(program)
    (shared, step, inside) = sch.get_loops("sum")
    assert [sch.get(loop).kind.name for loop in (shared, step)] == ["PARALLEL", "SERIAL"]
    assert int(sch.get(shared).extent) == panels and int(sch.get(inside).extent) % 16 == 0
    check_schedule(sch, program)
    assert not cpu.serial_updates(sch.mod["main"])


@pytest.mark.parametrize(
    ("columns", "elements", "target"),
    [(16, 60, TARGET), (100, 90, "llvm -mcpu=skylake-avx512 -num-cores=1")],
)
def test_one_thread_where_there_is_one_core_or_little_to_add(columns: int, elements: int, target: str) -> None:
    program = scattered_product(columns, elements)
    sch = scheduled(program, target)
    assert all(sch.get(loop).kind.name != "PARALLEL" for loop in sch.get_loops("sum"))
    assert len(cpu.serial_updates(sch.mod["main"])) == 1
    check_schedule(sch, program)


def test_a_note_says_what_runs_in_one_thread() -> None:
    kernel = tw.compile(scattered_product(16, 60), "native -num-cores=4")
    (note,) = [note for note in kernel.notes if note.code == "compile/one-thread"]
    assert "add to one row of 'C'" in note.message and "cut=False" in note.message


@pytest.mark.parametrize(("columns", "cores"), [(1, 2), (16, 4), (3, 64)])
def test_threads_add_to_copies_of_a_result_of_few_columns(columns: int, cores: int) -> None:
    program = scattered_product(columns)
    sch = scheduled(program, f"llvm -mcpu=skylake-avx512 -num-cores={cores}")
    assert [int(extent) for extent in sch.get(sch.get_block("sum_rf")).writes[0].buffer.shape] == [
        min(cores, 8),
        37,
        columns,
    ]
    for block in ("sum_rf_init", "sum_rf", "sum"):
        assert sch.get(sch.get_loops(block)[0]).kind.name == "PARALLEL"
    check_schedule(sch, program)
    assert not cpu.serial_updates(sch.mod["main"])


def test_copies_are_initialized_in_parallel_where_another_block_makes_the_rows() -> None:
    """It stands before the sum as well, and has no loops."""
    program = from_source("""@T.prim_func
def scattered(I: T.Buffer((90,), "int32"), A: T.Buffer((90,)), C: T.Buffer((37,))):
    R = T.alloc_buffer((90,), "int32")
    with T.block("rows"):
        T.reads(I[0:90])
        T.writes(R[0:90])
        for p in range(90):
            R[p] = I[p] % 37
    for i in range(37):
        with T.block("zero"):
            vi = T.axis.spatial(37, i)
            C[vi] = T.float32(0)
    for p in range(90):
        with T.block("sum"):
            vp = T.axis.reduce(90, p)
            C[R[vp]] += A[vp]
""")
    sch = scheduled(program)
    for name in ("sum_rf_init", "sum_rf"):
        assert sch.get(sch.get_loops(name)[0]).kind.name == "PARALLEL"
    check_schedule(sch, program)


@pytest.mark.parametrize("change", ["", "C[J[vp] + 1, vj]"])
def test_rows_that_data_select_are_vectors(change: str) -> None:
    """What the index reads is the same in all lanes, unless lanes write it."""
    text = scattered_product(64).script()
    if change:
        text = text.replace("C[R[vp], vj]", change)
    kernel = tw.compile(from_source(text), TARGET.replace("4", "1"), schedule="as written")
    assert "T.Broadcast(A" in str(kernel.inspect("tir"))


def test_rows_that_lanes_change_are_no_vectors() -> None:
    kernel = tw.compile(
        from_source("""@T.prim_func
def f(R: T.Buffer((64,), "int32"), A: T.Buffer((9,), "int32")):
    T.assume_buffer_domain(A, [0, 9])
    for p, j in T.grid(9, 32):
        with T.block("sum"):
            vp, vj = T.axis.remap("RR", [p, j])
            R[R[vp] + vj] = R[R[vp] + vj] + A[vp]
"""),
        TARGET,
        schedule="as written",
    )
    assert "T.Broadcast(A" not in str(kernel.inspect("tir"))
