"""Some rounds of the soak, and that it finds what it looks for."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from soak.soak import DEEDS, Soak
from soak.tuner import FAMILIES, run
from tilewright import te
from tilewright.testing import formulas

pytestmark = pytest.mark.crashes


def test_some_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faulty kernels, and three of the families, with everything that is done to them; then on as the soak does."""
    for number, deed in enumerate(DEEDS):
        monkeypatch.setattr("soak.soak.DEEDS", (deed,))
        soak = Soak(tmp_path)
        assert soak.next_round == number
        soak.run(60, most=1)
        assert soak.findings == []
    assert soak.records > 40 and soak.counts["kernels checked"] == len(DEEDS)
    assert sum(count for name, count in soak.counts.items() if name.startswith("kernels: ")) == 16
    monkeypatch.undo()
    soak = Soak(tmp_path)
    assert soak.next_round == len(DEEDS) and soak.seconds > 0
    soak.run(60, most=1)
    assert soak.findings == []
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["next_round"] == len(DEEDS) + 1 and state["seconds"] == soak.seconds
    assert soak.counts["kernels checked"] == state["next_round"]


def test_kernels_that_fail_in_a_search_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on knows each of them, also those that no step tells apart."""
    monkeypatch.setattr("soak.soak.DEEDS", ("kill the tuner",))
    soak = Soak(tmp_path)
    soak.next_round = 30
    soak.run(60, most=1)
    assert soak.findings == [] and soak.counts["kernels: right"] == 5


def test_a_search_that_goes_on_after_its_last_trial(tmp_path: Path) -> None:
    """It draws nothing, and says all the same which kernels are wrong."""
    answers = [run(str(tmp_path / "soak.db"), 30) for _ in range(2)]
    assert answers[0]["faults"] == answers[1]["faults"] and len(answers[0]["faults"]) == 11
    assert [answer["trials"] for answer in answers] == [16, 16]


def test_all_families_are_searched() -> None:
    """Those that compilers are compared by, small enough for the interpreter."""
    assert set(FAMILIES) == set(formulas.CONFIGS)
    for family, (formula, shape) in FAMILIES.items():
        assert formula == formulas.CONFIGS[family][0]
        program = te.create_prim_func(getattr(formulas, formula)(*shape))
        assert sum(np.prod([int(n) for n in buffer.shape]) for buffer in program.buffer_map.values()) < 10_000


def test_lost_records_and_wrong_kernels_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soak.soak.DEEDS", ("nothing",))
    soak = Soak(tmp_path)
    soak.run(60, most=1)
    assert soak.findings == []
    with contextlib.closing(sqlite3.connect(tmp_path / "soak.db")) as connection:
        connection.execute("DELETE FROM finals")
        connection.execute("DELETE FROM record WHERE outcome != 'ok'")
        connection.execute("UPDATE record SET outcome = 'ok', position = 100 - position")
        connection.commit()
    monkeypatch.setattr("soak.soak.wrong", lambda script, trace: "everything")
    soak._check_records(0)
    assert any("records are lost" in text for text in soak.findings)
    assert any("a wrong kernel was kept" in text for text in soak.findings)
