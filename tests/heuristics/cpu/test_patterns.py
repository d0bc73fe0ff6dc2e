"""The tables of patterns: which rows schedule a program, in which order, and what a row excludes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.heuristics.cpu.programs import (
    PROGRAMS,
    bytes_product,
    convolution,
    depthwise,
    elementwise,
    product,
    recurrence,
    turned_copy,
)

import tilewright as tw
from tilewright import te
from tilewright.heuristics import cpu
from tilewright.heuristics.block_info import block_info
from tilewright.heuristics.cpu import patterns
from tilewright.heuristics.pattern import Match, Pattern, Requirement, Rewrite, apply_patterns
from tilewright.heuristics.sampling import Sampler
from tilewright.testing import formulas

AVX512 = "llvm -mcpu=skylake-avx512 -num-cores=2 -l1-bytes=32768 -l2-bytes=1048576 -l3-bytes=16777216"
AMX = "llvm -mcpu=sapphirerapids -num-cores=2 -l1-bytes=49152 -l2-bytes=2097152 -l3-bytes=62914560"

#: program, target, rows of each block in the order in which they are applied
EXPECTED: dict[str, tuple[Callable[[], Any], str, list[list[str]]]] = {
    "product": (lambda: product(128, 128, 128), AVX512, [["register tile"]]),
    "few rows times a large matrix": (lambda: product(16, 1024, 1024), AVX512, [["skinny GEMM"]]),
    "long reduction": (lambda: product(512, 512, 8192), AVX512, [["split-K", "register tile"], ["columns"]]),
    "one row": (lambda: product(1, 1024, 1024), AVX512, [["matrix-vector product"]]),
    "one column": (lambda: product(1024, 1, 1024, turned=True), AVX512, [["vector accumulators"], ["reduction"]]),
    "bytes": (lambda: bytes_product(128, 128, 128), AMX, [["matrix tiles"]]),
    "depthwise": (lambda: depthwise(28, 64), AVX512, [["sliding window"]]),
    "stride 2, channels first": (
        lambda: te.create_prim_func(formulas.conv2d_nchw(1, 64, 28, 28, 64, 3, 3, 2, 1)),
        AVX512,
        [["de-interleaved operand", "register tile"], ["rows"]],
    ),
    "groups of 3 channels": (
        lambda: convolution(14, 12, 36, groups=12),
        AVX512,
        [["channel groups", "register tile"], ["rows"]],
    ),
    "elementwise": (lambda: elementwise(1000, 1000), AVX512, [["contiguous"]]),
    "recurrence": (lambda: recurrence(1000, 64), AVX512, [["recurrence"]]),
    "transposed copy": (lambda: turned_copy(512, 512), AVX512, [["transposed copy"]]),
}


def applied(monkeypatch: pytest.MonkeyPatch, program: Any, target: str) -> list[list[str]]:
    """The rows that schedule each block of a program."""
    found: list[list[str]] = []

    def record(table: Sequence[Pattern | Rewrite], match: Match) -> list[str]:
        names = apply_patterns(table, match)
        found.append(names)
        return names

    monkeypatch.setattr(patterns, "apply_patterns", record)
    cpu.schedule_for_cpu(tw.Schedule(program), tw.Target(target), best=True)
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_rows_of_a_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, target, rows = EXPECTED[name]
    assert applied(monkeypatch, make(), target) == rows


def test_a_row_excludes_those_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product of bytes matches several rows: without the first one, the next one takes it."""
    taken = []
    for _ in range(3):
        (rows,) = applied(monkeypatch, bytes_product(128, 128, 128), AMX)
        taken.append(rows[-1])
        left = tuple(row for row in patterns.CONTRACTIONS if row.name != rows[-1])
        monkeypatch.setattr(patterns, "CONTRACTIONS", left)
    assert taken == ["matrix tiles", "dot products", "register tile"]


def test_names_are_unique() -> None:
    for table in (patterns.CONTRACTIONS, patterns.REDUCTIONS, patterns.ELEMENTWISE):
        assert len({row.name for row in table}) == len(table)


@pytest.mark.parametrize("name", PROGRAMS)
def test_requirements_record_no_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A requirement that recorded a step would change the traces of programs that its pattern does not match."""

    def checked(row: Pattern | Rewrite, requirement: Requirement) -> Requirement:
        def holds(match: Match) -> bool:
            before = len(match.schedule.trace.insts)
            found = requirement(match)
            assert len(match.schedule.trace.insts) == before, (
                f"the requirement {requirement.__name__} of '{row.name}' records a step in the trace, as get_loops() "
                "does: ask match.info and schedule.get() instead, or leave the question to the function that builds"
            )
            return found

        return holds

    for table in ("CONTRACTIONS", "REDUCTIONS", "ELEMENTWISE"):
        rows = getattr(patterns, table)
        changed = (
            dataclasses.replace(row, requires=tuple(checked(row, each) for each in row.requires)) for row in rows
        )
        monkeypatch.setattr(patterns, table, tuple(changed))
    cpu.schedule_for_cpu(tw.Schedule(PROGRAMS[name]), tw.Target(AVX512), best=True)


def test_order_of_a_table() -> None:
    schedule = tw.Schedule(product(8, 8, 8))
    info = block_info(schedule, schedule.get_block("C"))
    assert info is not None
    changed = dataclasses.replace(info, parts=1)
    match = Match(schedule, info, tw.Target(AVX512), Sampler(schedule, best=True))
    calls: list[str] = []

    def build(name: str, result: Any) -> Callable[[Match], Any]:
        def call(match: Match) -> Any:
            calls.append(f"{name} {match.info.parts}")
            return result

        return call

    table = (
        Pattern("not matched", (lambda _: False,), build("not matched", True)),
        Pattern("not built", (), build("not built", False)),
        Rewrite("same", (), build("same", info)),
        Rewrite("changed", (), build("changed", changed)),
        Pattern("first", (lambda match: match.info.parts == 1,), build("first", True)),
        Pattern("second", (), build("second", True)),
    )
    assert apply_patterns(table, match) == ["changed", "first"]
    assert calls == ["not built 0", "same 0", "changed 0", "first 1"]
    assert apply_patterns(table[:1], match) == []
