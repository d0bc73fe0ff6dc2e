"""Files of records of which texts were harmed: what is damaged is told and left out, all else stays usable, nothing is
lost."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.programs import scale, tiles
from typer.testing import CliRunner

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.database.records import best_schedule, open_database, read_database, sizes_of
from tilewright.database.upkeep import merge, prune
from tilewright.report.database_report import report_on
from tilewright.report.page import page
from tilewright.script import tir as T

TRIALS = 4
#: column -> what is written there: bytes that are no UTF-8, text that is no JSON
HARM = {"trace": b"[[\xff\xfe", "decisions": b"\xff", "seconds": "[0.001,", "verification": "{"}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("tuned") / "t.db"
    tw.tune(scale, space=tiles, trials=TRIALS, database=file, progress=None, seed=3)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        # On a machine with other work most candidates may be stopped early.
        connection.execute("UPDATE record SET outcome = 'ok', seconds = '[0.5]', median = 0.5 WHERE median IS NULL")
        # Or the program as written wins, which is no candidate.
        written, best = "SELECT id FROM record WHERE position < 0", "SELECT id FROM record WHERE position >= 0"
        connection.execute(f"UPDATE finals SET winner = ({best} ORDER BY median LIMIT 1) WHERE winner IN ({written})")
        connection.execute("DELETE FROM record WHERE position < 0")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.read_bytes()


@pytest.fixture
def file(tuned: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    path.write_bytes(tuned)
    return path


def harm(file: Path, table: str, column: str, value: Any, where: str = "1") -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        if isinstance(value, bytes):
            connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {where}", [value])
        else:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", [value])


def rows_of(file: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.text_factory = bytes
        return connection.execute(
            "SELECT id, trace, decisions, seconds, verification FROM record ORDER BY id"
        ).fetchall()


def best_of(file: Path) -> int:
    store = read_database(file)
    (workload,) = store.workloads()
    return int(store.top_k(workload.hash, "", 1)[0].id)


def check(kernel: Any) -> None:
    x = np.random.default_rng(0).standard_normal((64, 96), dtype=np.float32)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("column", HARM)
def test_the_others_stay_usable(column: str, file: Path, tmp_path: Path) -> None:
    best = best_of(file)
    harm(file, "record", column, HARM[column], f"id = {best}")
    if column == "seconds":  # those of the winner are in another table
        harm(file, "finals", column, HARM[column])
    before = rows_of(file)
    with pytest.warns(UserWarning, match=f"record {best} of program .* is damaged .*: it is ignored") as told:
        check(tw.compile(scale, database=file))
    assert "--forget-damaged" in str(told[0].message) and len(told) == 1
    with pytest.warns(UserWarning, match=f"record {best}"):
        assert best_of(file) != best
    with pytest.warns(UserWarning, match=f"record {best}"):
        (task,) = report_on(file).tasks
    assert task.failures["damaged"][0] == 1 and task.best_seconds is not None
    for options in (["--json"], ["--statistics"], [], ["--export", str(tmp_path / "out")]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = CliRunner().invoke(app, ["db", str(file), *options])
        assert shown.exit_code == 0, shown.output
    with pytest.warns(UserWarning, match=f"record {best}"):
        found = ms.SQLiteDatabase(file).get_all_tuning_records()
    assert sum(record.is_valid() for record in found) >= 1
    assert rows_of(file) == before


@pytest.mark.parametrize("column", ["trace", "verification"])
def test_lists_that_nest_too_deep(column: str, file: Path) -> None:
    """Readers of such a text would need a stack frame for each list."""
    best = best_of(file)
    harm(file, "record", column, "[" * 100_000 + "]" * 100_000, f"id = {best}")
    with pytest.warns(UserWarning, match=f"record {best} of program .* is damaged"):
        check(tw.compile(scale, database=file))
    with pytest.warns(UserWarning, match=f"record {best}"):
        found = ms.SQLiteDatabase(file).get_all_tuning_records()
    assert sum(record.is_valid() for record in found) >= 1


def test_notes_and_sizes_that_nest_too_deep(file: Path) -> None:
    """A trace has its decisions, too, so a list of them that cannot be read is no damage."""
    deep = "[" * 100_000 + "]" * 100_000
    harm(file, "record", "decisions", deep)
    assert len(ms.SQLiteDatabase(file).get_all_tuning_records()) == len(rows_of(file))
    for table, column in (("meta", "value"), ("session", "state")):
        harm(file, table, column, deep, "key LIKE '%/%'" if table == "meta" else "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(tw.compile(scale, database=file))
        report_on(file)
        tw.tune(scale, space=tiles, trials=TRIALS, database=file, progress=None, seed=3)
    harm(file, "workload", "sizes", deep)
    with warnings.catch_warnings(), pytest.raises(tw.ResourceError, match="damaged"):
        warnings.simplefilter("ignore")
        sizes_of(read_database(file).workloads()[0])


def test_messages_may_quote_anything(file: Path) -> None:
    harm(file, "record", "error", b"killed by \xc3( signal 11")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(tw.compile(scale, database=file))
        store = read_database(file)
        (workload,) = store.workloads()
        rows = store.records(workload.hash, "")
    assert {row.error for row in rows} == {"killed by \ufffd( signal 11"}


def test_times_that_no_call_takes(file: Path) -> None:
    """The speed of such a record would be infinite."""
    best = best_of(file)
    for seconds in ("1e-320", "1e-30"):
        harm(file, "record", "seconds", f"[{seconds}]", f"id = {best}")
        harm(file, "record", "median", float(seconds), f"id = {best}")
        found = report_on(file)
        assert found.tasks[0].failures["no time"][0] == 1
        assert "<svg" in page(found)


def test_messages_with_brackets_are_printed_as_they_are(file: Path) -> None:
    message = "C[i, j] is wrong [/usr/lib/x.so] [bold]:smile:"
    harm(file, "record", "outcome", "run_error", f"id != {best_of(file)}")
    harm(file, "record", "error", message)
    shown = CliRunner().invoke(app, ["report", str(file), "--out", str(file.with_suffix(".html"))])
    assert shown.exit_code == 0, shown.output
    assert message in " ".join(shown.output.split())


def test_a_session_measures_it_again_and_keeps_both(file: Path) -> None:
    best = best_of(file)
    harm(file, "record", "trace", b"[[\xff", f"id = {best}")
    with pytest.warns(UserWarning, match=f"record {best}"):
        result = tw.tune(scale, space=tiles, trials=TRIALS, database=file, progress=None, seed=3)
    assert result.progress.earlier == TRIALS - 1 and result.progress.trials == TRIALS
    after = rows_of(file)
    assert (best, b"[[\xff") in [row[:2] for row in after] and len(after) > TRIALS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = tw.tune(scale, space=tiles, trials=TRIALS, database=file, progress=None, seed=3)
    assert again.progress.earlier == TRIALS


def test_where_nothing_else_is_there(file: Path) -> None:
    harm(file, "record", "trace", "no json")
    with pytest.warns(UserWarning), pytest.raises(tw.ResourceError, match="of this program is damaged") as error:
        best_schedule(scale, file)
    assert error.value.code == "database/damaged-records" and "from before" in str(error.value)


def test_they_can_be_forgotten(file: Path, tmp_path: Path) -> None:
    best = best_of(file)
    harm(file, "record", "trace", b"\xff", f"id = {best}")
    result = CliRunner().invoke(app, ["db", str(file), "--forget-damaged"])
    assert result.exit_code == 0 and "1 damaged records deleted" in result.stdout
    assert best not in [row[0] for row in rows_of(file)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(tw.compile(scale, database=file))


def test_neither_merging_nor_pruning_touches_them(file: Path, tmp_path: Path) -> None:
    best = best_of(file)
    harm(file, "record", "trace", b"\xff", f"id = {best}")
    store = open_database(tmp_path / "other.db")
    with pytest.warns(UserWarning, match=f"record {best}"):
        assert merge(store, read_database(file))[1] == len(rows_of(file)) - 1
    with pytest.warns(UserWarning, match=f"record {best}"):
        prune(open_database(file), 1)
    assert best in [row[0] for row in rows_of(file)] and len(rows_of(file)) == 2


def test_texts_of_programs_and_notes(file: Path) -> None:
    harm(file, "workload", "name", b"sc\xff")
    harm(file, "workload", "script", b"\xff")
    harm(file, "meta", "value", "[[", "key = 'times'")
    harm(file, "meta", "value", b"\xff", "key LIKE 'refusals%'")
    harm(file, "session", "state", json.dumps({"earlier": "x", "relatives": [3]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (task,) = report_on(file).tasks
        assert "the program cannot be read" in task.remark and task.trials
        assert (
            tw.tune(scale, space=tiles, trials=TRIALS, database=file, progress=None, seed=3).progress.trials == TRIALS
        )
    check(tw.compile(scale, database=file))


def test_steps_that_nobody_knows(file: Path) -> None:
    """As a newer version may write: what it knows of the program besides stays usable."""
    best = best_of(file)
    (trace,) = (trace.decode() for number, trace, *_ in rows_of(file) if number == best)
    harm(file, "record", "trace", trace.replace("Split", "Cleave"), f"id = {best}")
    with pytest.warns(UserWarning, match=f"the schedule of record {best}, which cannot be applied .*Cleave"):
        check(tw.compile(scale, database=file))
    harm(file, "record", "trace", trace.replace("Split", "Cleave"))
    with pytest.warns(UserWarning, match="Cleave"), pytest.raises(tw.ResourceError, match="can be applied") as error:
        tw.compile(scale, database=file)
    assert error.value.code == "database/damaged-records"


def test_sizes(tmp_path: Path) -> None:
    @T.prim_func
    def double(x: T.handle, y: T.handle):
        n = T.int32()
        X = T.match_buffer(x, (n,))
        Y = T.match_buffer(y, (n,))
        for i in range(n):
            with T.block("Y"):
                vi = T.axis.S(n, i)
                Y[vi] = X[vi] * T.float32(2)

    file = tmp_path / "t.db"
    tw.tune(double, sizes={"n": 1000}, trials=2, database=file, progress=None)
    harm(file, "workload", "sizes", "{")
    (task,) = report_on(file).tasks
    assert "(of damaged sizes)" in task.name and "tune the program for these sizes again" not in task.name
    assert "the sizes of program" in task.remark
    with pytest.raises(tw.ResourceError, match="tune the program for these sizes again") as error:
        sizes_of(read_database(file).workloads()[0])
    assert error.value.code == "database/sizes"
    shown = CliRunner().invoke(app, ["db", str(file), "--json"])
    assert shown.exit_code == 0 and '"sizes": null' in shown.stdout


@pytest.mark.parametrize("number", ["nan", "-nan", "inf"])
def test_numbers_that_older_versions_wrote_are_no_damage(file: Path, number: str) -> None:
    text = f'{{"tolerance": {{}}, "largest_share_of_allowed": {number}, "program": "full"}}'
    harm(file, "record", "verification", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(tw.compile(scale, database=file))
        assert report_on(file).tasks[0].failures == {}


@pytest.mark.parametrize("journal", [False, True])
def test_pages_that_were_overwritten_are_told_by_everything_that_reads(journal: bool, file: Path) -> None:
    """An index without entries: every look-up finds nothing, and SQLite has nothing to complain about."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        roots = [
            row[0]
            for row in connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index' AND rootpage > 0")
        ]
    content = bytearray(file.read_bytes())
    for root in roots:  # a leaf of an index that has no cells
        begin = (root - 1) * page_size
        empty = bytes([0x0A, 0, 0, 0, 0]) + (page_size % 65536).to_bytes(2, "big") + b"\0"
        content[begin : begin + page_size] = empty.ljust(page_size, b"\0")
    file.write_bytes(content)
    if journal:
        Path(f"{file}-wal").touch()
    with pytest.raises(tw.ResourceError, match="the database is damaged") as caught:
        best_schedule(scale, file)
    assert caught.value.code == "database/damaged" and "tune it first" not in str(caught.value)
    with pytest.raises(tw.ResourceError, match="the database is damaged"):
        report_on(file)
    for command in ("db", "report"):
        result = CliRunner().invoke(app, [command, str(file)])
        assert result.exit_code == 1 and "the database is damaged" in result.stderr
    assert not file.with_suffix(".html").exists()


def test_a_file_that_is_intact_and_lacks_a_program_says_so(file: Path) -> None:
    other = tw.testing.workloads.matmul(8, 8, 8)
    with pytest.raises(tw.ResourceError, match="holds no record of this program"):
        best_schedule(other, file)
    assert not Path(f"{file}-wal").exists()
