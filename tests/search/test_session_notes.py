"""Notes of sessions that end at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilewright import _core
from tilewright.database.postgres_store import open_server
from tilewright.database.session_notes import load_times, store_times


class Interrupted:
    """A database that another session changes each time after a note was read."""

    def __init__(self, store: _core.Database, changes: list[Any]) -> None:
        self._store, self._changes = store, changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def meta(self, key: str) -> str | None:
        known: str | None = self._store.meta(key)
        if self._changes:
            self._changes.pop()()
        return known


def test_the_times_of_all_sessions_are_kept(tmp_path: Path) -> None:
    one, other = (_core.Database.open(str(tmp_path / "t.db")) for _ in range(2))
    changes = [lambda n=n: store_times(other, f"other {n}", {"Total": 2.0}) for n in range(4)]
    for name in ("first", "second"):
        store_times(Interrupted(one, changes), name, {"Total": 1.0})
    sessions = [session for session, _ in load_times(one)]
    assert sorted(sessions) == ["first", *(f"other {n}" for n in range(4)), "second"]
    assert sessions[-1] == "second"


def test_a_damaged_note_is_replaced(tmp_path: Path) -> None:
    store = _core.Database.open(str(tmp_path / "t.db"))
    store.set_meta("times", "no JSON")
    with pytest.warns(UserWarning, match="is damaged and ignored"):
        store_times(store, "tune f", {"Total": 1.0})
    assert load_times(store) == (("tune f", {"Total": 1.0}),)


def test_the_times_on_a_server(server: str) -> None:
    one, other = open_server(server), open_server(server)
    changes = [lambda n=n: store_times(other, f"other {n}", {"Total": 2.0}) for n in range(3)]
    for name in ("first", "second"):
        store_times(Interrupted(one, changes), name, {"Total": 1.0})
    found = [session for session, _ in load_times(one)]  # those of other tests on this server, too
    assert [found.count(name) for name in ("first", "other 0", "other 1", "other 2", "second")] == [1] * 5
    one.close()
    other.close()
