"""Databases of one's own under tw.tune and tw.compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.database.origins import Origin
from tilewright.database.records import read_database
from tilewright.script.scripts import from_source
from tilewright.testing.workloads import matmul

TARGET = "llvm -num-cores=1"


class Mine(ms.Database):
    """As somebody writes one: two lists; programs are equal where their structure is."""

    def __init__(self) -> None:
        self.programs: list[ms.Workload] = []
        self.kept: list[ms.TuningRecord] = []

    def has_workload(self, mod: tw.ir.IRModule) -> bool:
        return any(tw.ir.structural_equal(known.mod, mod) for known in self.programs)

    def commit_workload(self, mod: tw.ir.IRModule) -> ms.Workload:
        for known in self.programs:
            if tw.ir.structural_equal(known.mod, mod):
                return known
        self.programs.append(ms.Workload(mod))
        return self.programs[-1]

    def commit_tuning_record(self, record: ms.TuningRecord) -> None:
        self.kept.append(record)

    def get_top_k(self, workload: ms.Workload, top_k: int) -> list[ms.TuningRecord]:
        return sorted((r for r in self.kept if r.workload is workload and r.is_valid()), key=lambda r: r.mean())[:top_k]

    def get_all_tuning_records(self) -> list[ms.TuningRecord]:
        return self.kept

    def __len__(self) -> int:
        return len(self.kept)


def tune(program: Any, database: Any, trials: int = 3, **options: Any) -> Any:
    return tw.tune(program, trials=trials, database=database, target=TARGET, progress=None, **options)


def databases(folder: Path) -> dict[str, Any]:
    return {
        "memory": ms.MemoryDatabase,
        "json": lambda: ms.JSONDatabase(work_dir=folder),
        "sqlite": lambda: ms.SQLiteDatabase(folder / "records.db"),
        "mine": Mine,
    }


@pytest.mark.parametrize("kind", ["memory", "json", "sqlite", "mine"])
def test_what_is_measured_goes_there_and_is_compiled_from_there(kind: str, tmp_path: Path) -> None:
    program, database = matmul(16, 16, 16), databases(tmp_path)[kind]()
    with pytest.raises(tw.ResourceError, match="holds no record of this program") as error:
        tw.compile(program, TARGET, database=database)
    assert kind == "sqlite" or error.value.code == "database/no-record"
    found = tune(program, database)
    assert found.progress.trials == 3 and found.kernel is not None
    records = [record for record in database.get_all_tuning_records() if record.trace.insts]
    assert len(records) == 3
    assert {str(record.target) for record in records} == {str(_core.Target(TARGET))}
    assert all(record.origin == Origin.here() for record in records) or kind == "json"
    assert tw.compile(program, TARGET, database=database).schedule == "recorded"
    assert ms.compile_tir(database, program, TARGET) is not None
    with pytest.raises(tw.ResourceError, match="for llvm"):
        tw.compile(program, "llvm -mcpu=nehalem -num-cores=1", database=database)
    # Another session knows what was measured before, and adds to it.
    tune(program, database, trials=2, seed=1)
    assert len([record for record in database.get_all_tuning_records() if record.trace.insts]) == 5


def test_a_session_in_tables_is_gone_on_with(tmp_path: Path) -> None:
    program, path = matmul(16, 16, 16), tmp_path / "records.db"
    tune(program, ms.SQLiteDatabase(path), trials=2)
    assert tune(program, path, trials=3).progress.earlier == 2
    assert tune(program, ms.SQLiteDatabase(path), trials=4).progress.earlier == 3
    assert tune(program, ms.MemoryDatabase(), trials=2).progress.earlier == 0


def test_the_best_of_tables_is_that_of_the_finals(tmp_path: Path) -> None:
    program, path = matmul(16, 16, 16), tmp_path / "records.db"
    found = tune(program, path, trials=4)
    store = read_database(path)
    (workload,) = store.workloads()
    rows = [row for row in store.records(workload.hash, "") if row.outcome == "ok" and row.index >= 0]
    slowest = max(rows, key=lambda row: row.median)
    _core.Database.open(str(path)).commit_finals(
        workload.hash, slowest.target, slowest.id, [1e-12], max(row.id for row in rows)
    )
    by_path = tw.compile(program, TARGET, database=path)
    by_object = tw.compile(program, TARGET, database=ms.SQLiteDatabase(path))
    assert by_path.inspect("tir") == by_object.inspect("tir") and found is not None
    best = ms.SQLiteDatabase(path).best_schedule(program, TARGET)
    assert best.trace.as_json() == tw.Trace.from_json(slowest.trace).as_json()


def test_programs_that_the_database_calls_otherwise() -> None:
    program, database = matmul(16, 16, 16), ms.MemoryDatabase()
    other = from_source(program.script().replace('T.block("C")', 'T.block("product")'))
    workload = database.commit_workload(tw.ir.IRModule({"main": other}))

    def space(sch: tw.Schedule) -> None:
        sch.vectorize(sch.split(sch.get_loops(sch.get_block("C"))[1], factors=[None, 4])[1])

    tune(program, database, space=space, trials=1)
    (record,) = database.get_top_k(workload, 5)
    assert "T.vectorized" in record.schedule().mod.script()  # by the names that stand there
    assert tw.compile(program, TARGET, database=database).schedule == "recorded"


def test_modules_of_several_functions() -> None:
    functions = {"one": matmul(16, 16, 16).with_attr("global_symbol", "one")}
    functions["two"] = matmul(8, 8, 8).with_attr("global_symbol", "two")
    database = ms.MemoryDatabase()
    for function in functions.values():
        tune(function, database, trials=1)
    kernels = tw.compile(tw.ir.IRModule(functions), TARGET, database=database)
    assert [kernels[name].schedule for name in functions] == ["recorded", "recorded"]


def test_a_function_is_a_database_for_the_compiler() -> None:
    def vectorized(sch: tw.Schedule) -> bool:
        sch.vectorize(sch.split(sch.get_loops(sch.get_block("C"))[1], factors=[None, 4])[1])
        return True

    database = ms.Database.create(vectorized)
    kernel = tw.compile(matmul(16, 16, 16), TARGET, database=database)
    assert kernel.schedule == "recorded"


@pytest.mark.parametrize("database", [ms.Database.create(lambda sch: True), ms.UnionDatabase(ms.MemoryDatabase())])
def test_where_nothing_can_be_kept(database: ms.Database) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        tune(matmul(16, 16, 16), database)
    assert error.value.code in ("database/only-queries", "database/read-only")


def test_other_things_are_no_databases() -> None:
    for use in (lambda: tune(matmul(16, 16, 16), 3), lambda: tw.compile(matmul(16, 16, 16), database=3)):
        with pytest.raises(tw.ArgumentError, match=r"a Database of tilewright\.meta_schedule") as error:
            use()
        assert error.value.code == "arguments/kind"
