"""Heuristic schedules of recurrences: what is independent runs in parallel and in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.heuristics.cpu.programs import recurrence

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.script import from_source

TARGET = "llvm -mcpu=skylake-avx512 -num-cores=4"


def scheduled(program: tw.ir.PrimFunc, target: str = TARGET) -> tw.Schedule:
    sch = tw.Schedule(program)
    cpu.schedule_for_cpu(sch, tw.Target(target), best=True)
    sch.verify()
    return sch


def kinds(sch: tw.Schedule) -> list[tuple[str, str]]:
    """The loops around the block, from the outermost."""
    loops = [sch.get(loop) for loop in sch.get_loops("S_o")] + [sch.get(loop) for loop in sch.get_loops("S")]
    return [(loop.kind.name, str(loop.extent)) for loop in loops]


@pytest.mark.parametrize(
    ("columns", "target", "expected"),
    [
        (1024, TARGET, [("PARALLEL", "8"), ("VECTORIZED", "128"), ("SERIAL", "300")]),
        (256, TARGET, [("PARALLEL", "4"), ("VECTORIZED", "64"), ("SERIAL", "300")]),
        (256, TARGET.replace("4", "1"), [("PARALLEL", "2"), ("VECTORIZED", "128"), ("SERIAL", "300")]),
        (24, TARGET, [("VECTORIZED", "24"), ("SERIAL", "300")]),
        (7, TARGET, [("SERIAL", "7"), ("SERIAL", "300")]),
    ],
)
def test_columns(columns: int, target: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(scheduled(recurrence(columns, 300), target)) == expected


def test_results_are_those_of_numpy() -> None:
    generator = np.random.default_rng(1)
    a, x = (generator.uniform(0.5, 1, (40, 150)).astype("float32") for _ in range(2))
    expected = x.copy()
    for step in range(1, 40):
        expected[step] += expected[step - 1] * a[step]
    found = np.zeros_like(x)
    tw.compile(scheduled(recurrence(150, 40), "native"))(a, x, found)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def of_three_axes(axes: str, before: str = "S[vn, vt - 1, vc]") -> tw.ir.PrimFunc:
    """S[n, t, c] of an element before, in loops in the order of `axes`."""
    loops = [{"n": 9, "t": 40, "c": 100}[axis] for axis in axes]
    names = ", ".join(f"v{axis}" for axis in axes)
    return from_source(f"""@T.prim_func
def f(A: T.Buffer((9, 40, 100)), S: T.Buffer((9, 40, 100))):
    for x, y, z in T.grid({", ".join(map(str, loops))}):
        with T.block("S"):
            {names} = T.axis.remap("SSS", [x, y, z])
            S[vn, vt, vc] = T.if_then_else(vt == 0, T.float32(0), {before}) * T.float32(0.5) + A[vn, vt, vc]
""")


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ("nct", [("PARALLEL", "9"), ("VECTORIZED", "100"), ("SERIAL", "40")]),
        ("cnt", [("PARALLEL", "9"), ("VECTORIZED", "100"), ("SERIAL", "40")]),
        ("ntc", [("PARALLEL", "9"), ("SERIAL", "40"), ("SERIAL", "100")]),
    ],
)
def test_rows_among_others(axes: str, expected: list[tuple[str, str]]) -> None:
    """They become the innermost of the independent loops, but do not leave the steps."""
    assert kinds(scheduled(of_three_axes(axes))) == expected


def test_an_axis_whose_neighbors_are_read_is_no_independent_one() -> None:
    sch = scheduled(of_three_axes("nct", "S[vn, vt - 1, T.max(vc - 1, 0)]"))
    assert kinds(sch) == [("PARALLEL", "9"), ("SERIAL", "100"), ("SERIAL", "40")]


def test_steps_outermost_are_left_to_other_rows() -> None:
    trace = str(scheduled(of_three_axes("tnc")).trace)
    assert "blockize" not in trace and "parallel" not in trace
