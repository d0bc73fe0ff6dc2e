"""What earlier versions have written is opened, brought up to date, and its schedules replay.

`databases/` holds two records of `scale`, the second one faster, as each version of the schema kept them: files (as
SQL), tables of a server, and lines. A new version adds one, which `python -m tests.search.databases.record` writes;
those that are there never change.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.search.databases import record
from tests.search.programs import scale
from typer.testing import CliRunner

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.database.records import best_schedule, open_database, read_database

FOLDER = Path(__file__).with_name("databases")
TARGET = "llvm -mcpu=znver3 -num-cores=1"
FILES, SERVERS, LINES = (sorted(FOLDER.glob(f"{kind}-*")) for kind in ("sqlite", "postgres", "lines"))


def name_of(path: Path) -> str:
    return path.stem


def replays(database: Any) -> None:
    """The faster of both: what it made of the program is said by hand."""
    sch = tw.Schedule(scale)
    i, j = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=[8, 4, 2])
    sch.split(j, factors=[6, 1, 16])
    tw.ir.assert_structural_equal(best_schedule(scale, database, TARGET).mod, sch.mod)


def has_both_records(store: Any, machine: str = "x86_64", versions: str = "0.1.0") -> None:
    (workload,) = store.workloads()
    assert (workload.name, workload.sizes) == ("scale", "")
    assert workload.hash == _core.structural_hash(tw.ir.IRModule({"main": scale}))
    rows = store.records(workload.hash, TARGET)
    assert [(row.outcome, row.median) for row in rows] == [("ok", 6e-07), ("ok", 4e-07)]
    assert [json.loads(row.host or "{}").get("machine", "") for row in rows] == [machine] * 2
    assert [json.loads(row.versions or "{}").get("tilewright", "") for row in rows] == [versions] * 2


def file_of(source: Path, folder: Path) -> Path:
    path = folder / "records.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(source.read_text())
    return path


def version_of(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_every_version_of_the_schema_is_here(tmp_path: Path) -> None:
    open_database(tmp_path / "new.db").flush()
    versions = []
    for file in FILES:
        (tmp_path / file.stem).mkdir()
        versions.append(version_of(file_of(file, tmp_path / file.stem)))
    assert versions == list(range(1, version_of(tmp_path / "new.db") + 1))


def test_the_file_of_a_new_version_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest one is made of the one before, with the same rows."""
    for file in FILES[:-1]:
        shutil.copy(file, tmp_path)
    assert record.main(tmp_path) == 0 and record.main(tmp_path) == 1
    assert capsys.readouterr().out.startswith(f"wrote {FILES[-1].name}\n{FILES[-1].name} is already there")
    written, tracked = tmp_path / FILES[-1].name, FILES[-1]
    for number, file in enumerate((written, tracked)):
        (tmp_path / str(number)).mkdir()
        has_both_records(read_database(file_of(file, tmp_path / str(number))))
    assert written.read_text().splitlines()[:2] == tracked.read_text().splitlines()[:2]


@pytest.mark.parametrize("source", FILES, ids=name_of)
def test_a_file(source: Path, tmp_path: Path) -> None:
    path = file_of(source, tmp_path)
    has_both_records(read_database(path))
    replays(path)
    assert "measured on x86_64; tilewright 0.1.0: 2 records" in CliRunner().invoke(app, ["db", str(path)]).stdout
    store = open_database(path)
    has_both_records(store)
    store.commit_workload("0" * 32, "another", "")
    assert len(read_database(path).workloads()) == 2
    replays(ms.SQLiteDatabase(path))


@pytest.mark.parametrize("source", SERVERS, ids=name_of)
def test_tables_of_a_server(source: Path, server: str) -> None:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{source.stem}"')
    where = server.removesuffix("postgres") + source.stem
    with psycopg.connect(where) as connection:
        connection.execute(source.read_text())
    store = open_database(where)
    has_both_records(store, **({"machine": "", "versions": ""} if source.stem == "postgres-1" else {}))
    store.close()
    replays(where)


@pytest.mark.parametrize("source", LINES, ids=name_of)
def test_lines(source: Path, tmp_path: Path) -> None:
    folder, path = shutil.copytree(source, tmp_path / "lines"), tmp_path / "new.db"
    replays(ms.JSONDatabase(work_dir=folder))
    result = CliRunner().invoke(app, ["db", str(path), "--import", str(folder)])
    assert result.exit_code == 0, result.output
    # Lines have never said the machine apart from the versions, before those of now.
    said = {"lines-1": {"machine": "", "versions": ""}, "lines-2": {"machine": ""}}.get(source.stem, {})
    has_both_records(read_database(path), **said)
    replays(path)
