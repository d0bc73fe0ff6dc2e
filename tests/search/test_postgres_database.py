"""The database on a PostgreSQL server: a real one, started here in a folder and on a port of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.search.programs import Product
from typer.testing import CliRunner

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.database.origins import library_versions, this_host
from tilewright.database.postgres_store import without_password
from tilewright.database.records import open_database, read_database
from tilewright.report.database_report import report_on

TARGET = tw.Target("llvm -num-cores=1")


def record_of(workload: ms.Workload, seconds: list[float] | None, error: str = "") -> ms.TuningRecord:
    sch = tw.Schedule(workload.mod)
    i, *_ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 4])
    return ms.TuningRecord(sch.trace, workload, seconds, TARGET, ms.ArgInfo.from_entry_func(workload.mod), error=error)


def test_records_are_kept_for_others(server: str) -> None:
    program = ms.normalize_module(Product)
    one = ms.Database.create("postgres", server)
    assert not one.has_workload(program) and len(one) == 0
    workload = one.commit_workload(program)
    for seconds in ([2.0], [1.0, 1.5], None):
        one.commit_tuning_record(record_of(workload, seconds, error="" if seconds else "wrong_result: Y[0]"))
    one.commit_workload(program)
    other = ms.Database.create("postgres", server)
    assert other.has_workload(program) and len(other) == 3
    best, second = other.get_top_k(other.commit_workload(program), 5)
    assert (best.run_secs, second.run_secs) == ([1.0, 1.5], [2.0])
    found = other.query_schedule(program, TARGET)
    assert found is not None and len(found.get_loops(found.get_block("C"))) == 4
    outcomes = [row.outcome for row in other._store.records(other._store.workloads()[0].hash, "")]
    assert outcomes == ["ok", "ok", "wrong_result"]
    for database in (one, other):
        database.close()


def test_programs_are_compared_there_as_elsewhere(server: str) -> None:
    from tests.search.test_module_equality import ProductWithEpilogue

    database = ms.Database.create(server, module_equality="anchor-block")
    assert isinstance(database, ms.PostgresDatabase)
    database.commit_tuning_record(record_of(database.commit_workload(Product), [1.0]))
    assert database.has_workload(ProductWithEpilogue) and database.query(ProductWithEpilogue, TARGET) is not None
    strict = ms.PostgresDatabase(server)
    assert strict.has_workload(Product) and not strict.has_workload(ProductWithEpilogue)
    for each in (database, strict):
        each.close()


def test_a_session_writes_there(server: str, tmp_path: Path) -> None:
    database = ms.Database.create("postgres", server)
    before = len(database)
    ms.tune_tir(Product, TARGET, tmp_path, 8, num_trials_per_iter=4, database=server, cost_model="none", seed=1)
    assert len(database) == before + 8
    assert ms.compile_tir(database, Product, TARGET) is not None
    database.close()


WRITER = """
import sys
from tests.search.test_postgres_database import *
database = ms.Database.create("postgres", sys.argv[1])
workload = database.commit_workload(ms.normalize_module(Product))
for number in range(20):
    database.commit_tuning_record(record_of(workload, [3.0 + number]))
"""


def test_several_write_at_once(server: str) -> None:
    database = ms.Database.create("postgres", server)
    before = len(database)
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), str(root / "python"), str(root / "tests")])
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, server], env={**os.environ, "PYTHONPATH": path})
        for _ in range(2)
    ]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0]
    assert len(database) == before + 40
    database.close()


def test_what_goes_wrong(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tw.ResourceError) as caught:
        ms.Database.create("postgres", server.replace("tuner@", "nobody@"))
    assert caught.value.code == "database/server" and "nobody" in str(caught.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(tw.ResourceError) as caught:
        ms.Database.create("postgres", server)
    assert caught.value.code == "database/driver" and "pip install" in str(caught.value)


def test_tune_goes_there_and_comes_back(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def tiles(sch: tw.Schedule) -> None:
        i, j, _ = sch.get_loops(sch.get_block("C"))
        sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16, 32], [0.25] * 4)])
        sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))

    place = f"{server}?application_name=tune"
    first = tw.tune(Product, space=tiles, trials=3, database=place, progress=None)
    assert first.record is not None and first.progress.trials == 3
    # Another process, or machine, goes on where it stopped.
    more = tw.tune(Product, space=tiles, trials=6, database=place, progress=None)
    assert (more.progress.earlier, more.progress.trials) == (3, 6)
    again = tw.tune(Product, space=tiles, trials=6, database=place, progress=None)
    assert (again.progress.earlier, again.record) == (6, more.record)
    anew = tw.tune(Product, space=tiles, trials=2, database=place, fresh=True, progress=None)
    assert anew.progress.earlier == 0
    kernel = tw.compile(Product, database=place)
    assert kernel.schedule != "by rules"
    report = report_on(place)
    task = max(report.tasks, key=lambda each: len(each.trials))
    assert len(task.trials) >= 8 and task.best and any(name == "tune main" for name, _ in report.times)
    runner = CliRunner()
    for command in (["db", place], ["db", place, "--statistics"], ["report", place, "--out", str(tmp_path / "r.html")]):
        result = runner.invoke(app, command)
        assert result.exit_code == 0 and "main" in result.stdout, result.output
    here = next(each for each in report.tasks if each.target.startswith(str(tw.Target("native")).partition(" -num")[0]))
    assert here.origins is not None and f"tilewright {tw.__version__}" in here.origins.rows[0][1]
    copied = runner.invoke(app, ["db", str(tmp_path / "copy.db"), "--merge", place])
    assert copied.exit_code == 0 and "records and" in copied.stdout, copied.output
    assert len(report_on(tmp_path / "copy.db").tasks) == len(report.tasks)
    for where in (place, tmp_path / "copy.db"):
        rows = read_database(where).records(here.hash, "")
        assert (this_host(), library_versions()) in {(row.host, row.versions) for row in rows}


#: as versions before schema 4 had them
EARLIER = """
CREATE TABLE tilewright_workload (
  hash text PRIMARY KEY, name text NOT NULL, script text NOT NULL, created timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE tilewright_session (
  id bigserial PRIMARY KEY, hash text NOT NULL, target text NOT NULL, space text NOT NULL, seed bigint NOT NULL,
  state text NOT NULL, UNIQUE (hash, target, space, seed)
);
CREATE TABLE tilewright_record (
  id bigserial PRIMARY KEY, hash text NOT NULL, target text NOT NULL, trace text NOT NULL,
  seconds double precision[] NOT NULL, outcome text NOT NULL, error text NOT NULL,
  created timestamptz NOT NULL DEFAULT now(), session bigint, position bigint NOT NULL DEFAULT 0,
  versions text NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX tilewright_record_trial ON tilewright_record (session, position) WHERE session IS NOT NULL;
CREATE TABLE tilewright_finals (
  hash text NOT NULL, target text NOT NULL, winner bigint NOT NULL, seconds double precision[] NOT NULL,
  last_record bigint NOT NULL, PRIMARY KEY (hash, target)
);
CREATE TABLE tilewright_meta (key text PRIMARY KEY, value text NOT NULL);
"""


def test_tables_of_an_earlier_version_keep_their_records(server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS earlier")
    place, key = f"{server}?options=-csearch_path%3Dearlier", "0" * 32
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(EARLIER)
        connection.execute("INSERT INTO tilewright_workload (hash, name, script) VALUES (%s, 'a', '')", [key])
        connection.execute(
            "INSERT INTO tilewright_session (id, hash, target, space, seed, state) VALUES (7, %s, 't', %s, 3, '{}')",
            [key, "1" * 32],
        )
        before = '{"tilewright": "0.1.0", "machine": "x86_64", "llvm": "19"}'
        for number, versions in enumerate((before, "", "[1", '"text"', '{"machine": "x86_64"}'), 10):
            connection.execute(
                "INSERT INTO tilewright_record (id, hash, target, trace, seconds, outcome, error, session, position, "
                "versions) VALUES (%s, %s, 't', '[[], []]', '{1e-7,0.5,2}', 'ok', '', 7, %s, %s)",
                [number, key, number, versions],
            )
        connection.execute("INSERT INTO tilewright_finals VALUES (%s, 't', 12, '{0.25,0.75}', 14)", [key])
        connection.execute("INSERT INTO tilewright_meta VALUES ('times', '[]')")
    for _ in range(2):  # and once more, when there is nothing left to do
        store = open_database(place)
        rows = store.records(key, "")
        assert [(row.id, row.index, row.seconds, row.outcome) for row in rows] == [
            (number, number, (1e-7, 0.5, 2.0), "ok") for number in range(10, 15)
        ]
        assert [row.host for row in rows] == ['{"machine":"x86_64"}', "", "", "", '{"machine":"x86_64"}']
        assert [row.versions for row in rows] == ['{"tilewright":"0.1.0","llvm":"19"}', "", "", '"text"', "{}"]
        finals = store.finals(key, "t")
        assert finals is not None and (finals.winner, finals.seconds, finals.last_record) == (12, (0.25, 0.75), 14)
        assert store.top_k(key, "t", 1)[0].id == 12 and store.meta("times") == "[]"
    with psycopg.connect(place) as connection:
        found = connection.execute("SELECT machine, processor FROM tilewright_host").fetchall()
        assert found == [("x86_64", None)]
        session = connection.execute("SELECT id, seed, state, encode(space, 'hex') FROM tilewright_session").fetchall()
        assert session == [(7, 3, "{}", "1" * 32)]
    assert store.commit(_core.Record(workload=key, target="t", seconds=[3.0])) == 15


def test_threads_share_a_store(server: str) -> None:
    store, key = open_database(server), "2" * 32
    store.commit_workload(key, "a", "")

    def work(number: int) -> list[int]:
        where = f"machine {number}"
        ids = [store.commit(_core.Record(workload=key, target=where, seconds=[1.0 + each])) for each in range(20)]
        assert [record.id for record in store.top_k(key, where, 3)] == ids[:3]
        return ids

    with ThreadPoolExecutor(4) as threads:
        ids = [each for part in threads.map(work, range(4)) for each in part]
    assert sorted(ids) == [record.id for record in store.records(key, "")]


def test_what_was_begun_when_a_query_failed_is_undone(server: str) -> None:
    store, key = open_database(server), "3" * 32
    store.commit_workload(key, "a", "")
    with pytest.raises(tw.ResourceError, match="the PostgreSQL server") as caught:
        store.commit(_core.Record(workload=key, target="a machine that nobody has", trace="\0", seconds=[1.0]))
    assert caught.value.code == "database/server"
    assert store.records(key, "") == [] and store.commit(_core.Record(workload=key, seconds=[1.0])) > 0


def test_a_password_is_never_shown() -> None:
    for place in ("host=/tmp password='a \\'secret' dbname=records", "host=/tmp password = a&secret dbname=records"):
        assert without_password(place) == "host=/tmp dbname=records"
    place = "postgresql://tuner@host/records?password=secret&sslmode=require&sslpassword=secret"
    assert without_password(place) == "postgresql://tuner@host/records?sslmode=require"
    assert without_password("postgresql:///records?password=secret") == "postgresql:///records"
    shown = without_password("postgresql://tuner:secret@host:5432/records?sslmode=require")
    assert shown == "postgresql://tuner@host:5432/records?sslmode=require"


def test_a_server_that_is_not_there_is_told_before_the_search() -> None:
    with pytest.raises(tw.ResourceError, match="the PostgreSQL server") as caught:
        tw.tune(Product, trials=1, database="postgresql://tuner:secret@127.0.0.1:1/none", progress=None)
    assert caught.value.code == "database/server" and "secret" not in str(caught.value)
