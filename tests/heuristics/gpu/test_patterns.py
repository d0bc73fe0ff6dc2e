"""The tables of patterns for GPUs: which rows schedule a program. That kernels are right is tested beside this file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.heuristics.cpu.programs import column_sums, convolution, product, vector

import tilewright as tw
from tilewright import te
from tilewright.heuristics import gpu
from tilewright.heuristics.gpu import patterns
from tilewright.heuristics.pattern import Match, Pattern, Rewrite, apply_patterns
from tilewright.script import from_source


def arguments_of_maxima() -> Any:
    return from_source("""
@T.prim_func
def argmax(A: T.Buffer((30, 500), "float32"), V: T.Buffer((30,), "float32"), I: T.Buffer((30,), "int32")):
    for i, k in T.grid(30, 500):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.float32(-3.4e38)
                I[vi] = -1
            at: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            most: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = at
            V[vi] = most
""")


def sum_from_3() -> Any:
    a, k = te.placeholder((30, 500), name="A"), te.reduce_axis((0, 500), name="k")
    return te.create_prim_func([a, te.compute((30,), lambda i: te.sum(a[i, k], k, init=te.const(3.0, "float32")))])


#: program, rows of each block in the order in which they are applied
EXPECTED: dict[str, tuple[Callable[[], Any], list[list[str]]]] = {
    "product": (lambda: product(128, 128, 128), [["shared tiles"]]),
    "groups of 3 channels": (lambda: convolution(14, 12, 36, groups=12), [["channel groups", "shared tiles"]]),
    "matrix times vector": (lambda: vector(400, 900), [["row"]]),
    "columns": (lambda: column_sums(900, 400), [["columns"]]),
    "one sum": (lambda: vector(1, 1 << 16), [["parts of a long reduction", "one thread for each result"]]),
    "short sums": (lambda: vector(4000, 5), [["one thread for each result"]]),
    "sum from 3": (sum_from_3, [["steps in order"]]),
    "argmax": (arguments_of_maxima, [["argmin or argmax"]]),
}


def applied(monkeypatch: pytest.MonkeyPatch, program: Any) -> list[list[str]]:
    """The rows that schedule each block of a program."""
    found: list[list[str]] = []

    def record(table: Sequence[Pattern | Rewrite], match: Match) -> list[str]:
        names = apply_patterns(table, match)
        found.append(names)
        return names

    monkeypatch.setattr(gpu, "apply_patterns", record)
    gpu.schedule_for_gpu(tw.Schedule(program), tw.Target("opencl"))
    # A schedule is tried on a copy first, so each block is met twice.
    return [list(names) for names in dict.fromkeys(tuple(names) for names in found if names)]


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_of_a_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, rows = EXPECTED[name]
    assert applied(monkeypatch, make()) == rows


def test_each_row_schedules_a_program_of_these() -> None:
    """Add a program to EXPECTED for a new row."""
    expected = {name for _, blocks in EXPECTED.values() for names in blocks for name in names}
    rows = [row.name for table in (patterns.CONTRACTIONS, patterns.REDUCTIONS) for row in table]
    assert sorted(expected) == sorted(set(rows)) and len(rows) == len(set(rows))
