"""One measurer, one codec, one store: a fault in one of them breaks every way to search."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import tilewright.compat.tvm  # isort: skip
import tvm
from tests.search.programs import scale, tiles
from tvm import meta_schedule as of_tvm

import tilewright as tw
from tilewright import meta_schedule as ms

LLVM = "llvm -num-cores=1"
Search = Callable[[Path], object]


def by_tune(file: Path) -> object:
    return tw.tune(scale, space=tiles, trials=4, database=file, progress=None)


def by_tune_tir(file: Path) -> object:
    return ms.tune_tir(scale, LLVM, file.parent / "session", 4, space=tiles, cost_model="none", database=file)


def by_alias(file: Path) -> object:
    space = of_tvm.space_generator.ScheduleFn(tiles)
    options = {"strategy": "replay-trace", "cost_model": "none", "space": space, "database": str(file)}
    return of_tvm.tune_tir(scale, tvm.target.Target(LLVM), str(file.parent / "session"), 4, **options)


def schedules(file: Path) -> int:
    """How many records of right candidates can be read."""
    records = ms.SQLiteDatabase(file).get_all_tuning_records()
    return sum(record.is_valid() and len(record.schedule().trace) > 0 for record in records)


def run(search: Search, file: Path) -> None:
    with contextlib.suppress(tw.Error, tvm.error.TVMError):
        search(file)


#: damaged records are said
pytestmark = pytest.mark.filterwarnings("ignore:.*is damaged")
EVERY_WAY = pytest.mark.parametrize("search", [by_tune, by_tune_tir, by_alias])


@EVERY_WAY
def test_candidates_are_stored(search: Search, tmp_path: Path) -> None:
    run(search, tmp_path / "records.db")
    assert schedules(tmp_path / "records.db") >= 2


@EVERY_WAY
def test_a_fault_in_submit(search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HELPER", "/bin/false")  # what is submitted comes back from no helper
    run(search, tmp_path / "records.db")
    assert schedules(tmp_path / "records.db") == 0


@EVERY_WAY
@pytest.mark.parametrize(
    "fault",
    [
        "BEFORE INSERT ON record BEGIN SELECT RAISE(ABORT, 'a fault'); END",
        "AFTER INSERT ON record BEGIN UPDATE record SET trace = '[[[\"x\"' WHERE id = NEW.id; END",
    ],
    ids=["write", "codec"],
)
def test_a_fault_in_the_store(search: Search, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "records.db"
    ms.SQLiteDatabase(file).flush()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TRIGGER fault {fault}")
        connection.commit()
    run(search, file)
    assert schedules(file) == 0
