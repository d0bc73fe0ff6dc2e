"""Other traces of heuristic schedules need another version: sessions are continued by it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.heuristics.cpu.programs import PROGRAMS

import tilewright as tw
from oracles import digests
from oracles.programs import TARGETS
from tilewright.heuristics import cpu

VERSIONS = Path(__file__).with_name("versions.txt")
#: shapes of benchmarks that are scheduled again here, one for each pattern
SHAPES = (
    *("GMM-0", "C2D-1", "C1D-2", "DEP-1", "GRP 1x29x31x36x36x3x1x1x1x12", "T2D-3", "CAP-1", "NRM-1", "SFM 1000x10"),
    *("C3D-2", "channels first 29x17x33x3x2x1", "vector x matrix 1024", "product 3x3x10000", "product 512x3x512"),
    *("argmax", "relu 1000x1000", "transpose 1000x777", "rotary embedding", "blur in two passes, clamped"),
    *("attention 1x2048x128", "layer 16x1024x2048", "i8 x i8 33x64x1000", "float16 512"),
)


def sampled() -> str:
    """A digest of sampled schedules of small programs."""
    digest = hashlib.sha256()
    for name, program in sorted(PROGRAMS.items()):
        for target in TARGETS.values():
            schedule = tw.Schedule(program, seed=1)
            cpu.schedule_for_cpu(schedule, tw.Target(target), best=False)
            digest.update(f"{name} {schedule.trace}\n".encode())
    return digest.hexdigest()[:16]


def tracked() -> str:
    """A digest of the tracked digests of all benchmark shapes."""
    return hashlib.sha256((digests.TRACKED / "heuristics.txt").read_bytes()).hexdigest()[:16]


def test_a_version_has_its_traces() -> None:
    """Fails where `scripts/oracles record` found other traces, or a search samples others: then VERSION of
    python/tilewright/heuristics/cpu/__init__.py becomes the next number, and versions.txt gets the line below."""
    lines = VERSIONS.read_text().splitlines()
    numbers = [int(line.split()[0]) for line in lines]
    assert numbers == list(range(1, cpu.VERSION + 1))
    assert len({line.split(maxsplit=1)[1] for line in lines}) == len(lines)
    assert lines[-1] == f"{cpu.VERSION} {tracked()} {sampled()}"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tracked_traces_are_those_of_now(shape: str) -> None:
    known = digests.read(digests.TRACKED, ["heuristics"])
    for target in TARGETS:
        entry = ("heuristics", f"{target} {shape}")
        assert digests.digest_of(entry) == known[entry], "run scripts/oracles record --only heuristics, then see above"
