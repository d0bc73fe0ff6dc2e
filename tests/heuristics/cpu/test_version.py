"""Other traces of heuristic schedules need another version: sessions are continued by it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.heuristics.cpu.programs import PROGRAMS

import tilewright as tw
from oracles import digests, programs
from oracles.programs import TARGETS
from tilewright.heuristics import cpu
from tilewright.heuristics.cpu import patterns
from tilewright.heuristics.pattern import Match, Pattern, Rewrite, apply_patterns

AMX = "llvm -mcpu=sapphirerapids -num-cores=2 -l1-bytes=49152 -l2-bytes=2097152 -l3-bytes=62914560"
VERSIONS = Path(__file__).with_name("versions.txt")
#: shapes of benchmarks that are scheduled again here, one for each pattern
SHAPES = (
    *("GMM-0", "C2D-1", "C1D-2", "DEP-1", "GRP 1x29x31x36x36x3x1x1x1x12", "T2D-3", "CAP-1", "NRM-1", "SFM 1000x10"),
    *("C3D-2", "channels first 29x17x33x3x2x1", "vector x matrix 1024", "product 3x3x10000", "product 512x3x512"),
    *("argmax", "relu 1000x1000", "transpose 1000x777", "rotary embedding", "blur in two passes, clamped"),
    *("attention 1x2048x128", "layer 16x1024x2048", "i8 x i8 33x64x1000", "float16 512"),
)


def sampled(program: Any) -> str:
    """A digest of sampled schedules of a program."""
    digest = hashlib.sha256()
    for target in (*TARGETS.values(), AMX):
        schedule = tw.Schedule(program, seed=1)
        cpu.schedule_for_cpu(schedule, tw.Target(target), best=False)
        digest.update(f"{schedule.trace}\n".encode())
    return digest.hexdigest()[:16]


def tracked() -> str:
    """A digest of the tracked digests of all benchmark shapes."""
    return hashlib.sha256((digests.TRACKED / "heuristics.txt").read_bytes()).hexdigest()[:16]


def missing_lines(known: Iterable[str], found: Mapping[str, str], version: int) -> tuple[int, list[str]]:
    """The version that the heuristics should have, and the lines that `versions.txt` lacks.

    Args:
        known: the lines that it has.
        found: digests of traces by program, as they are now.
        version: of the heuristics now.
    """
    last = {name: (int(number), digest) for number, digest, name in (line.split(maxsplit=2) for line in known)}
    changed = {name: digest for name, digest in found.items() if name not in last or last[name][1] != digest}
    needed = max([version, *(last[name][0] + 1 for name in changed if name in last)])
    return needed, [f"{needed} {digest} {name}" for name, digest in changed.items()]


def test_a_version_has_its_traces() -> None:
    """Fails where `scripts/oracles record` found other traces, or a search samples others."""
    known = VERSIONS.read_text().splitlines()
    found = {"benchmarks": tracked()} | {name: sampled(program) for name, program in PROGRAMS.items()}
    version, lines = missing_lines(known, found, cpu.VERSION)
    assert version == cpu.VERSION, (
        f"traces have changed: set VERSION = {version} in python/tilewright/heuristics/cpu/__init__.py, and append to "
        f"{VERSIONS.name}:\n" + "\n".join(lines)
    )
    assert not lines, f"append to {VERSIONS.name}:\n" + "\n".join(lines)
    numbers = sorted({int(line.split()[0]) for line in known})
    assert numbers == list(range(1, cpu.VERSION + 1)), "each version changes a trace: add a program that shows it"


def test_what_is_missing() -> None:
    known = ["1 aa benchmarks", "1 bb product", "2 cc product"]
    assert missing_lines(known, {"benchmarks": "aa", "product": "cc"}, 2) == (2, [])
    assert missing_lines(known, {"product": "cc", "a new one": "dd"}, 2) == (2, ["2 dd a new one"])
    assert missing_lines(known, {"product": "bb"}, 2) == (3, ["3 bb product"])
    assert missing_lines(known, {"product": "bb"}, 3) == (3, ["3 bb product"])
    assert missing_lines(known, {"benchmarks": "bb"}, 2) == (2, ["2 bb benchmarks"])


def test_each_row_has_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row does is guarded if it schedules one of these programs: add one to PROGRAMS for a new row."""
    applied: set[str] = set()

    def record(table: Sequence[Pattern | Rewrite], match: Match) -> list[str]:
        names = apply_patterns(table, match)
        applied.update(names)
        return names

    monkeypatch.setattr(patterns, "apply_patterns", record)
    for program in PROGRAMS.values():
        sampled(program)
    for shape in SHAPES:
        module = programs.as_module(programs.benchmarks()[shape]())
        for target in TARGETS.values():
            cpu.schedule_for_cpu(tw.Schedule(module), tw.Target(target), best=True)
    rows = [row.name for table in (patterns.CONTRACTIONS, patterns.REDUCTIONS, patterns.ELEMENTWISE) for row in table]
    assert [name for name in rows if name not in applied] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tracked_traces_are_those_of_now(shape: str) -> None:
    known = digests.read(digests.TRACKED, ["heuristics"])
    for target in TARGETS:
        entry = ("heuristics", f"{target} {shape}")
        assert digests.digest_of(entry) == known[entry], "run scripts/oracles record --only heuristics, then see above"
