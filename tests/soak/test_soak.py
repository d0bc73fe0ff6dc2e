"""Some rounds of the soak, and that it finds what it looks for."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from soak.soak import DEEDS, Soak

pytestmark = pytest.mark.crashes


def test_some_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faulty kernels, and three of the families, with everything that is done to them."""
    for number, deed in enumerate(DEEDS):
        monkeypatch.setattr("soak.soak.DEEDS", (deed,))
        soak = Soak(tmp_path)
        assert soak.next_round == number
        soak.run(60, most=1)
        assert soak.findings == []
    assert soak.records > 40 and soak.counts["kernels checked"] == len(DEEDS)
    assert sum(count for name, count in soak.counts.items() if name.startswith("kernels: ")) == 16
    assert json.loads((tmp_path / "state.json").read_text())["next_round"] == len(DEEDS)


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
