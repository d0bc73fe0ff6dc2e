"""Databases of records are put together, pruned, counted, exported and imported."""

from __future__ import annotations

import base64
import contextlib
import importlib.metadata
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.programs import scale, tiles
from typer.testing import CliRunner

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.database.origins import HOST_FACTS, Origin, facts_of, library_versions, this_host
from tilewright.database.records import best_schedule, open_database, read_database, workload_key
from tilewright.report.database_report import report_on
from tilewright.script.scripts import from_source
from tilewright.task.task import program_keys
from tilewright.testing.workloads import matmul

TARGET = str(_core.Target("llvm -num-cores=1"))


def commit(path: Path, size: int, times: list[float], *, failed: int = 0) -> str:
    store = open_database(path)
    module = tw.ir.IRModule({"main": matmul(size, size, size)})
    key = _core.structural_hash(module)
    store.commit_workload(key, f"product {size}", module.script())
    for seconds in times:
        store.commit(_core.Record(workload=key, target=TARGET, trace="[[], []]", seconds=[seconds]))
    for _ in range(failed):
        store.commit(
            _core.Record(workload=key, target=TARGET, trace="[[], []]", outcome="run_crash", error="signal 11")
        )
    return key


def medians(path: Path, key: str) -> list[float]:
    return [row.median for row in read_database(path).top_k(key, "", 100)]


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["db", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_merge(tmp_path: Path) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    key = commit(one, 16, [3.0, 1.0])
    assert commit(two, 16, [1.0, 2.0], failed=1) == key
    other = commit(two, 32, [5.0])
    merged = run(str(one), "--merge", str(two))
    assert "3 records and 1 programs" in merged.stdout  # 1.0 was there
    assert medians(one, key) == [1.0, 2.0, 3.0] and medians(one, other) == [5.0]
    assert "0 records and 0 programs" in run(str(one), "--merge", str(two)).stdout
    same = CliRunner().invoke(app, ["db", str(one), "--merge", str(tmp_path / ".." / tmp_path.name / "one.db")])
    assert same.exit_code == 1 and "is the same database" in same.stderr


def test_merged_records_have_the_names_of_the_program_that_they_come_to(tmp_path: Path) -> None:
    """Equal programs are one entry, whatever their blocks are called."""
    files, programs = (tmp_path / "one.db", tmp_path / "two.db"), []
    for file, block, seconds in zip(files, ("one", "two"), (2.0, 1.0), strict=True):
        program = from_source(matmul(16, 16, 16).script().replace('T.block("C")', f'T.block("{block}")'))
        sch = tw.Schedule(program)
        sch.unroll(sch.get_loops(sch.get_block(block))[-1])
        database = ms.database.SQLiteDatabase(file)
        workload = database.commit_workload(tw.ir.IRModule({"main": program}))
        database.commit_tuning_record(ms.database.TuningRecord(sch.trace, workload, [seconds], TARGET))
        programs.append(program)
    for _ in range(2):  # what is there already is not added again
        run(str(files[0]), "--merge", str(files[1]))
        (workload,) = _core.Database.open(str(files[0])).workloads()
        rows = _core.Database.open(str(files[0])).top_k(workload.hash, "", 100)
        assert [row.median for row in rows] == [1.0, 2.0] and all('"two"' not in row.trace for row in rows)
        for program in programs:
            assert "T.unroll" in best_schedule(program, files[0], TARGET).mod.script()


def test_prune(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    key = commit(path, 16, [3.0, 1.0, 2.0, 4.0], failed=2)
    other = commit(path, 32, [5.0], failed=1)
    assert "5 records deleted" in run(str(path), "--prune", "2").stdout
    assert medians(path, key) == [1.0, 2.0] and medians(path, other) == [5.0]
    missing = CliRunner().invoke(app, ["db", str(tmp_path / "missing.db"), "--prune", "2"])
    assert missing.exit_code == 1 and not (tmp_path / "missing.db").exists()


def test_a_session_that_was_pruned_goes_on(tmp_path: Path) -> None:
    def tiles(sch: tw.Schedule) -> None:
        i, j, _ = sch.get_loops(sch.get_block("C"))
        sch.split(j, factors=[None, sch.sample_categorical([2, 4, 8, 16], [0.25] * 4)])
        sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))

    program, path = matmul(16, 16, 16), tmp_path / "records.db"
    first = tw.tune(program, space=tiles, trials=5, database=path, progress=None)
    run(str(path), "--prune", "1")
    assert read_database(path).records(workload_key(first.task), "")[0].median > 0
    again = tw.tune(program, space=tiles, trials=5, database=path, progress=None)
    assert again.progress.earlier < 5 and again.progress.trials == 5 and again.record is not None


def test_statistics(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    commit(path, 16, [3e-3, 1e-3], failed=2)
    text = " ".join(run(str(path), "--statistics").stdout.split())
    assert "1 programs" in text and "1 ms" in text and "product 16" in text
    assert "│ 4 │ 2 │ 0 │ 2 │" in text  # records, right, stopped, failed


def test_json_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    key = commit(one, 16, [3.0, 1.0], failed=1)
    assert "3 records of 1 programs" in run(str(one), "--export", str(tmp_path / "lines")).stdout
    assert (tmp_path / "lines" / "database_workload.json").exists()
    assert "3 records and 1 programs" in run(str(two), "--import", str(tmp_path / "lines")).stdout
    assert medians(two, key) == [1.0, 3.0]


def test_a_folder_is_read_and_written_by_one_rule(tmp_path: Path) -> None:
    """Tables in it are what is read and written; lines of JSON are written by their own database alone."""
    session, lines, empty, new = (tmp_path / name for name in ("session", "lines", "empty", "new"))
    session.mkdir()
    empty.mkdir()
    key = commit(session / "database.db", 16, [3.0, 1.0])
    assert commit(session, 16, [2.0]) == key and medians(session, key) == [1.0, 2.0, 3.0]
    run(str(session), "--export", str(lines))
    assert len(list(read_database(lines).workloads())) == 1
    for folder in (lines, empty):
        with pytest.raises(tw.ResourceError, match="only read") as raised:
            tw.tune(scale, trials=1, progress=None, database=folder)
        assert raised.value.code == "database/not-a-database" and f"work_dir='{folder}'" in str(raised.value)
    assert ms.JSONDatabase(work_dir=lines).store_for_search() is not None
    commit(new, 16, [1.0])
    assert new.is_file() and len(list(read_database(new).workloads())) == 1


def lines_of(folder: Path) -> tuple[list[Any], list[Any]]:
    files = (folder / "database_workload.json", folder / "database_tuning_record.json")
    workloads, records = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    return workloads, records


def test_both_write_one_format_of_lines_that_both_read(tmp_path: Path) -> None:
    module = ms.normalize_module(matmul(16, 16, 16))
    sch = tw.Schedule(module)
    sch.unroll(sch.get_loops(sch.get_block("C"))[-1])

    def fill(database: ms.Database) -> ms.Database:
        workload = database.commit_workload(module)
        args = ms.ArgInfo.from_entry_func(module)
        for seconds, error in (([2.0], ""), ([1e10], "run_crash: signal 11"), (None, ""), ([1.0], "")):
            database.commit_tuning_record(
                ms.TuningRecord(sch.trace, workload, seconds, TARGET, args, error=error, origin=Origin.here())
            )
        return database

    json_folder, exported = tmp_path / "json", tmp_path / "exported"
    fill(ms.JSONDatabase(work_dir=json_folder))
    fill(ms.SQLiteDatabase(tmp_path / "one.db"))
    run(str(tmp_path / "one.db"), "--export", str(exported))
    for folder in (json_folder, exported):
        workloads, records = lines_of(folder)
        ((number, text),) = workloads
        assert number.isdecimal() and json.loads(base64.b64decode(text))["tilewright"]
        assert [record[1][1] for record in records] == [[2.0], [1e10], None, [1.0]]
        assert {record[1][2]["kind"] for record in records} == {"llvm"}
        assert records[1][1][4]["outcome"] == "run_crash"
        # The command reads what the database in Python wrote, and the other way round.
        path = tmp_path / f"{folder.name}.db"
        assert "4 records and 1 programs" in run(str(path), "--import", str(folder)).stdout
        database = ms.JSONDatabase(work_dir=folder)
        for each in (database, ms.SQLiteDatabase(path)):
            found = each.get_all_tuning_records()
            assert [record.run_secs for record in found] == [[2.0], [1e10], None, [1.0]]
            assert {record.origin for record in found} == {Origin.here()} and "signal 11" in found[1].error
            assert {str(record.target) for record in found} == {TARGET}
            assert each.query(module, TARGET, kind="record").run_secs == [1.0]
        assert "0 records and 0 programs" in run(str(tmp_path / "one.db"), "--import", str(folder)).stdout
        outcomes = [row.outcome for row in read_database(path).records(program_keys(module)[0], "")]
        assert outcomes == ["ok", "run_crash", "not_measured", "ok"]
        # A folder can be asked as a file is.
        assert tw.compile(matmul(16, 16, 16), TARGET, database=folder).schedule == "recorded"
        report = report_on(folder)
        assert report.path == str(folder) and [task.name for task in report.tasks] == ["matmul"]
        assert "matmul" in run(str(folder)).stdout


def test_what_earlier_versions_exported_is_read(tmp_path: Path) -> None:
    program = matmul(16, 16, 16)
    (tmp_path / "database_workload.json").write_text(
        json.dumps(["0" * 32, {"tvmscript": program.script(), "name": "mine"}]) + "\n"
    )
    (tmp_path / "database_tuning_record.json").write_text(f'[0, [[[], []], [0.5], "{TARGET}", null]]\n')
    run(str(tmp_path / "one.db"), "--import", str(tmp_path))
    (workload,) = read_database(tmp_path / "one.db").workloads()
    assert workload.name == "mine" and workload.hash == program_keys(program)[0]
    run(str(tmp_path / "one.db"), "--export", str(tmp_path / "new"))
    ((_, _, told),) = lines_of(tmp_path / "new")[0]
    assert told == {"name": "mine"}
    run(str(tmp_path / "two.db"), "--import", str(tmp_path / "new"))
    assert [each.name for each in read_database(tmp_path / "two.db").workloads()] == ["mine"]


def test_sizes_of_calls_go_along(tmp_path: Path) -> None:
    program, path = scaled(), tmp_path / "one.db"
    for n in (64, 128):
        tw.tune(program, sizes={"n": n}, trials=1, database=path, progress=None)
    run(str(path), "--export", str(tmp_path / "lines"))
    assert [line[2]["sizes"] for line in lines_of(tmp_path / "lines")[0]] == ['{"n": 64}', '{"n": 128}']
    run(str(tmp_path / "two.db"), "--import", str(tmp_path / "lines"))
    one, two = (
        [(each.hash, each.sizes) for each in read_database(file).workloads()] for file in (path, tmp_path / "two.db")
    )
    assert one == two
    database = ms.JSONDatabase(work_dir=tmp_path / "lines")
    assert len({id(record.workload) for record in database.get_all_tuning_records()}) == 2
    assert not database.has_workload(tw.ir.IRModule({"main": program}))


def test_programs_that_this_version_cannot_read_are_written_as_they_are(tmp_path: Path) -> None:
    store = open_database(tmp_path / "one.db")
    store.commit_workload("0" * 31 + "a", "later", "def later(): words of later versions")
    run(str(tmp_path / "one.db"), "--export", str(tmp_path / "lines"))
    ((number, told),) = lines_of(tmp_path / "lines")[0]
    assert number == "10" and told == {"tvmscript": "def later(): words of later versions", "name": "later"}


GRAPH = json.dumps({"root_index": 1, "nodes": [{"type": "None"}, {"type": "ir.IRModule", "data": {}}]}).encode()


@pytest.mark.parametrize("before", [b"", len(GRAPH).to_bytes(8, "little")])
def test_graphs_of_tvm_are_refused_and_nothing_is_made(before: bytes, tmp_path: Path) -> None:
    """Releases up to v0.20 wrote the text alone, those of today how long it is before it."""
    text = base64.b64encode(before + GRAPH).decode()
    (tmp_path / "database_workload.json").write_text(json.dumps(["9593177933350849261", text]) + "\n")
    (tmp_path / "database_tuning_record.json").write_text("")
    result = CliRunner().invoke(app, ["db", str(tmp_path / "new.db"), "--import", str(tmp_path)])
    assert result.exit_code == 1 and not (tmp_path / "new.db").exists()
    assert "database_workload.json:1: the program is a graph of TVM's own objects" in result.stderr
    assert '{"tvmscript": mod.script()}' in result.stderr


def test_a_folder_of_a_session_with_tables(tmp_path: Path) -> None:
    commit(tmp_path / "database.db", 16, [1.0])
    assert report_on(tmp_path).path == str(tmp_path / "database.db")
    (tmp_path / "nothing").mkdir()
    result = CliRunner().invoke(app, ["report", str(tmp_path / "nothing")])
    assert result.exit_code == 1 and "database_workload.json: cannot be read" in result.stderr


def test_an_empty_database_and_one_without_records(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    open_database(path)
    assert run(str(path)).stdout == f"{path} holds no records\n"
    commit(path, 16, [])
    text = run(str(path)).stdout
    assert "product 16" in text and "outcomes: no records yet" in text and "target" not in text
    assert report_on(path).tasks == ()


def test_nothing_lies_beside_a_database_that_was_only_read(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    commit(path, 16, [1.0])
    for command in ([], ["--statistics"], ["--json"]):
        run(str(path), *command)
    report_on(path)
    assert [each.name for each in tmp_path.iterdir()] == ["records.db"]
    store = read_database(path)
    with pytest.raises(tw.ResourceError) as caught:
        store.set_meta("a", "b")
    assert caught.value.code == "database/read-only"


def test_who_measured_goes_along(tmp_path: Path) -> None:
    one, two, folder = tmp_path / "one.db", tmp_path / "two.db", tmp_path / "lines"
    tw.tune(scale, space=tiles, trials=3, database=one, progress=None)
    (workload,) = read_database(one).workloads()

    def origins(path: Path) -> set[tuple[str, str]]:
        return {(row.host, row.versions) for row in read_database(path).records(workload.hash, "")}

    assert origins(one) == {(this_host(), library_versions())}
    host, versions = facts_of(this_host()), facts_of(library_versions())
    assert set(HOST_FACTS) == set(host) and host["cores"] == _core.Target("native").num_cores
    assert versions["tilewright"] == tw.__version__ and versions["numpy"] == np.__version__
    assert versions["xgboost"] == importlib.metadata.version("xgboost-cpu")
    run(str(two), "--merge", str(one))
    run(str(one), "--export", str(folder))
    run(str(tmp_path / "three.db"), "--import", str(folder))
    assert origins(two) == origins(tmp_path / "three.db") == origins(one)
    run(str(two), "--prune", "1")
    with contextlib.closing(sqlite3.connect(two)) as connection:
        found = connection.execute(
            "SELECT h.processor, h.cores, l.tilewright, l.python FROM record r JOIN host h ON h.id = r.host_id "
            "JOIN libraries l ON l.id = r.libraries_id"
        ).fetchall()
    assert found == [(host["processor"], host["cores"], versions["tilewright"], versions["python"])]
    (table,) = [table for table in report_on(one).tables() if table.title.endswith("where it was measured")]
    ((where, what, count),) = table.rows
    assert host["processor"] in where and f"llvm {versions['llvm']}" in what and int(count) >= 3
    entry = json.loads(run(str(one), "--json").stdout.splitlines()[0])
    assert entry["host"]["processor"] == host["processor"] and entry["versions"] == versions


def scaled() -> tw.ir.PrimFunc:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * np.float32(2), name="B")])


def test_sizes_of_calls_are_kept_apart(tmp_path: Path) -> None:
    program, path = scaled(), tmp_path / "records.db"
    small = tw.tune(program, sizes={"n": 64}, trials=2, database=path, progress=None)
    large = tw.tune(program, sizes={"n": 100_000}, trials=2, database=path, progress=None)
    assert small.record is not None and large.record is not None
    # Not the times of the other: those of the small calls would win, and be no news for large ones.
    assert large.progress.earlier == 0 and large.record.median > small.record.median
    again = tw.tune(program, sizes={"n": 64}, trials=2, database=path, progress=None)
    assert again.progress.earlier == small.progress.trials and again.record == small.record
    workloads = read_database(path).workloads()
    assert sorted(each.sizes for each in workloads) == ['{"n": 100000}', '{"n": 64}']
    assert {task.name for task in report_on(path).tasks} == {"B (n=64)", "B (n=100000)"}
    # Without sizes: those that it was tuned for last.
    assert str(best_schedule(program, path).trace) == str(large.schedule.trace)
    kernel = tw.compile(program, database=path)
    values = np.arange(37, dtype=np.float32)
    np.testing.assert_array_equal(kernel(values), 2 * values)


def test_the_record_that_is_compiled_stands_first(tmp_path: Path) -> None:
    """It won when the best were timed alternately; pruning keeps what the list shows first."""
    path = tmp_path / "t.db"
    key = commit(path, 16, [2e-5, 3e-5, 4e-5, 5e-5])
    store = open_database(path)
    ids = [record.id for record in store.records(key, TARGET)]
    store.commit_finals(key, TARGET, ids[1], [2.5e-5, 2.5e-5], ids[3])
    assert medians(path, key) == [2.5e-5, 2e-5, 4e-5, 5e-5]
    shown = run(str(path)).stdout
    lines = [line for line in shown.splitlines() if " us " in line]
    assert "25 us" in lines[0] and "alternately" in lines[0] and not any("alternately" in line for line in lines[1:])
    assert "tw.compile uses the first row" in shown
    run(str(path), "--prune", "2")
    assert medians(path, key) == [2.5e-5, 2e-5]
