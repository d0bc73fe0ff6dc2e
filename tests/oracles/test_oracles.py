"""The tool itself: digests are the same again, and what changes is named. That the tracked digests are those of now is
asked by `scripts/oracles compare`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import tilewright as tw
from oracles import __main__ as command_line
from oracles import candidates, digests, programs
from tilewright.heuristics import cpu
from tilewright.testing.requires import host_features


def test_names_are_unique_and_tracked() -> None:
    entries = digests.entries_of([*digests.KINDS])
    assert set(Counter(entries).values()) == {1}
    assert set(digests.read(digests.TRACKED, [*digests.KINDS])) == set(entries)


def test_other_processes_compute_the_same() -> None:
    entries = [
        *(("heuristics", "avx512 product 5x7x3"), ("heuristics", "avx2 GMM-0")),
        *(("lowered", "avx512 by rules product 16x16x16"), ("lowered", "avx2 as written matmul")),
        *(("lowered", "avx2 random 1"), ("candidates", "tasks whole softmax, replay-trace, seed 0")),
    ]
    assert digests.computed(entries) == {entry: digests.digest_of(entry) for entry in entries}


def test_steps_of_another_rule_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ("heuristics", "avx2 relu 1000x1000")
    before = {entry: digests.digest_of(entry)}
    monkeypatch.setattr(cpu, "schedule_single_block", lambda *_: None)
    assert [*digests.differences(before, {entry: digests.digest_of(entry)})] == [f"changed: {entry[0]} {entry[1]!r}"]


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(digests, "computed", lambda entries: dict.fromkeys(entries, "0"))
    monkeypatch.setattr(digests, "entries_of", lambda kinds: [(kind, "a b") for kind in kinds])
    assert command_line.main(["record", str(tmp_path / "one")]) == 0
    assert command_line.main(["compare", str(tmp_path / "one")]) == 0
    digests.write(tmp_path / "two", {("lowered", "a b"): "1", ("lowered", "c"): "1"})
    capsys.readouterr()
    assert command_line.main(["compare", str(tmp_path / "one"), str(tmp_path / "two"), "--only", "lowered"]) == 1
    assert capsys.readouterr().out == "changed: lowered 'a b'\nnew: lowered 'c'\n2 of 1 digests differ\n"
    assert command_line.main(["show", "lowered", "avx2 as written matmul"]) == 0
    assert "@I.ir_module" in capsys.readouterr().out


needs_avx2 = pytest.mark.skipif("avx2" not in host_features(), reason="the search of a session runs what it builds")


@pytest.mark.parametrize("kind", [pytest.param("session", marks=needs_avx2), "tasks"])
def test_a_search_that_was_interrupted_has_the_same_candidates(kind: str) -> None:
    """The times that it is told are those of the candidates, whole or in parts."""
    search = "product, tiles" if kind == "session" else "softmax, replay-trace"
    whole, parts, other = (
        candidates.text(f"{kind} {how}, seed {seed}").splitlines()
        for how, seed in ((f"whole {search}", 0), (f"resumed {search}", 0), (f"whole {search}", 1))
    )
    count = min(len(whole), len(parts))
    assert count >= candidates.TRIALS - candidates.BATCH and whole[:count] == parts[:count] and whole != other


def test_targets_say_all_that_differs_from_machine_to_machine() -> None:
    for text in programs.TARGETS.values():
        for field in ("-mcpu=", "-num-cores=", "-l1-bytes=", "-l2-bytes=", "-l3-bytes="):
            assert field in text
        assert tw.Target(text).num_cores == 2
