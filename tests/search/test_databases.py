"""Databases of records: what they keep, what they answer, and what happens to their files."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.search.filled_records import fields_of, filled
from tests.search.programs import AddOne, Product

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.database.records import best_schedule
from tilewright.meta_schedule import (
    AddToDatabase,
    ArgInfo,
    BuilderResult,
    Database,
    JSONDatabase,
    MemoryDatabase,
    OrderedUnionDatabase,
    RunnerResult,
    ScheduleFnDatabase,
    SQLiteDatabase,
    TuningRecord,
    UnionDatabase,
    Workload,
)
from tilewright.meta_schedule.database.record_rows import row_of
from tilewright.script import tir as T
from tilewright.script.scripts import from_source
from tilewright.task.task import one_program, program_keys
from tilewright.testing.workloads import matmul

LLVM = tw.Target("llvm -num-cores=1")
OTHER = tw.Target("llvm -mcpu=skylake -num-cores=1")


def split(module: tw.ir.IRModule, factor: int) -> tw.Trace:
    sch = tw.Schedule(module)
    name = "B" if module is AddOne else "C"
    sch.split(sch.get_loops(sch.get_block(name))[0], factors=[None, factor])
    return sch.trace


def commit(database: Database, module: tw.ir.IRModule, seconds, factor=2, target=LLVM) -> TuningRecord:
    workload = database.commit_workload(module)
    record = TuningRecord(split(module, factor), workload, seconds, target, ArgInfo.from_entry_func(module))
    database.commit_tuning_record(record)
    return record


def makers(tmp_path):
    return {
        "memory": MemoryDatabase,
        "json": lambda: JSONDatabase(work_dir=tmp_path),
        "sqlite": lambda: SQLiteDatabase(tmp_path / "records.db"),
    }


@pytest.fixture(params=["memory", "json", "sqlite"])
def make(request, tmp_path):
    return makers(tmp_path)[request.param]


@pytest.fixture
def database(make):
    return make()


def test_the_best_comes_first(database):
    assert not database.has_workload(Product)
    commit(database, Product, [3.0, 1.0], factor=2)
    commit(database, Product, [1.0], factor=4)
    commit(database, Product, [1e10], factor=8)
    commit(database, AddOne, [0.5], factor=2)
    assert database.has_workload(Product) and len(database) == 4
    workload = database.commit_workload(Product)
    best = database.get_top_k(workload, 5)
    assert [record.mean() for record in best] == [1.0, 2.0]
    assert len(database.get_top_k(workload, 1)) == 1 and database.get_top_k(workload, 0) == []
    with pytest.raises(tw.ArgumentError) as error:
        database.get_top_k(workload, -1)
    assert error.value.code == "database/top-k"
    with pytest.raises(tw.ArgumentError, match="top_k is '3'; it is a whole number") as error:
        database.get_top_k(workload, "3")
    assert error.value.code == "arguments/kind"
    assert len(database.get_all_tuning_records()) == 4


def test_queries(database):
    record = commit(database, Product, [1.0], factor=4)
    found = database.query(Product, LLVM, kind="record")
    assert found.trace.as_json() == record.trace.as_json()
    assert (found.run_secs, str(found.target)) == ([1.0], str(LLVM))
    assert found.args_info == record.args_info
    schedule = database.query(Product, LLVM)
    tw.ir.assert_structural_equal(schedule.mod, record.schedule().mod)
    tw.ir.assert_structural_equal(database.query(Product, LLVM, kind="ir_module"), schedule.mod)
    assert database.query(AddOne, LLVM) is None
    with pytest.raises(tw.ArgumentError) as error:
        database.query(Product, LLVM, kind="song")
    assert error.value.code == "database/query-kind"


def test_functions_are_no_modules(database):
    for ask in (database.has_workload, database.commit_workload, lambda f: database.query(f, LLVM)):
        with pytest.raises(tw.ArgumentError, match="it is a module") as error:
            ask(Product["main"])
        assert error.value.code == "arguments/kind"


def named(program: tw.ir.PrimFunc, block: str) -> tw.ir.PrimFunc:
    """The product, whose block is called otherwise."""
    return from_source(program.script().replace('T.block("C")', f'T.block("{block}")'))


@pytest.mark.parametrize("other", ["the function", "a module", "a promise", "another block"])
def test_one_program_has_one_entry(database, other):
    function = matmul(16, 16, 16)
    others = {
        "the function": tw.ir.IRModule({"main": function}),
        "a module": tw.ir.IRModule({"matmul": function}),
        "a promise": ms.normalize_module(function),
        "another block": tw.ir.IRModule({"main": named(function, "product")}),
    }
    first = database.commit_workload(tw.ir.IRModule({"main": function}))
    sch = tw.Schedule(first.mod)
    block = sch.get_block("C")
    copy = sch.cache_write(block, 0, "global")
    sch.vectorize(sch.get_loops(sch.get_block("C_global"))[-1])
    sch.unroll(sch.get_loops(block)[-1])
    assert sch.get_block("C_global") is not None and copy is not None
    database.commit_tuning_record(TuningRecord(sch.trace, first, [1.0], LLVM))
    asked = others[other]
    assert database.has_workload(asked) and len(database.get_top_k(database.commit_workload(asked), 5)) == 1
    found = database.query(asked, LLVM)
    for schedule in (found, ms.compile_tir(database, asked, LLVM)):
        tw.ir.assert_structural_equal(one_program(schedule.mod), one_program(sch.mod))


def test_a_record_is_kept_by_the_names_of_the_first(tmp_path):
    """Traces of programs that are equal stand beside one another, and each replays on both."""
    path = tmp_path / "records.db"
    one, other = (tw.ir.IRModule({"main": f}) for f in (matmul(16, 16, 16), named(matmul(16, 16, 16), "product")))
    for module, block, seconds in ((one, "C", 2.0), (other, "product", 1.0)):
        sch = tw.Schedule(module)
        sch.unroll(sch.get_loops(sch.get_block(block))[-1])
        database = SQLiteDatabase(path)
        database.commit_tuning_record(TuningRecord(sch.trace, Workload(module), [seconds], LLVM))
    assert len(_core.Database.open(str(path)).workloads()) == 1
    for module in (one, other):
        best = SQLiteDatabase(path).query(module, LLVM)
        assert "T.unroll" in best.mod.script()
        tw.ir.assert_structural_equal(best_schedule(module, path, LLVM).mod, best.mod)
    assert {record.mean() for record in SQLiteDatabase(path).get_all_tuning_records()} == {1.0, 2.0}


def test_a_record_is_found_by_its_program_not_by_the_object_that_says_it(database):
    """In an entry of an equal program, whose block may have another name."""
    function = matmul(16, 16, 16)
    first, second = (tw.ir.IRModule({"main": f}) for f in (function, named(function, "product")))
    entry = database.commit_workload(first)
    sch = tw.Schedule(second)
    sch.unroll(sch.get_loops(sch.get_block("product"))[-1])
    database.commit_tuning_record(TuningRecord(sch.trace, Workload(second), [1.0], LLVM))
    assert len(database.get_top_k(entry, 5)) == len(database.get_top_k(Workload(second), 5)) == 1
    for module in (first, second):
        assert "T.unroll" in database.query(module, LLVM).mod.script()


def test_a_session_keeps_records_by_the_names_of_an_equal_program(database):
    function = matmul(16, 16, 16)
    first, second = (tw.ir.IRModule({"main": f}) for f in (function, named(function, "product")))
    database.commit_workload(first)
    sch = tw.Schedule(second)
    sch.unroll(sch.get_loops(sch.get_block("product"))[-1])
    task = SimpleNamespace(ctx=SimpleNamespace(mod=second, target=LLVM))
    measured = [SimpleNamespace(sch=sch, args_info=[])], [BuilderResult("a.o", None)], [RunnerResult([1.0], None)]
    AddToDatabase().apply(SimpleNamespace(database=database, tasks=[task]), 0, *measured)
    for module in (first, second):
        assert "T.unroll" in database.query(module, LLVM).mod.script()


def test_programs_whose_arguments_cannot_be_described_have_records(tmp_path):
    """They take a number, or a tensor whose size is symbolic."""

    @T.prim_func
    def shifted(A: T.Buffer((64,), "float32"), n: T.int32, B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.Cast("float32", n)

    tw.tune(shifted, trials=1, sizes={"n": 3}, database=tmp_path / "records.db", progress=None)
    database = SQLiteDatabase(tmp_path / "records.db")
    records = database.get_all_tuning_records()
    assert len(records) == len(database) > 0
    assert all(record.args_info is None and record.is_valid() for record in records)


@pytest.mark.parametrize("earlier", ["a promise", "a module"])
def test_entries_of_earlier_versions_are_found_and_gone_on_with(earlier, tmp_path):
    """Whose keys said whether buffers overlap, and what a module calls its function."""
    path, function = tmp_path / "records.db", matmul(16, 16, 16)
    module = ms.normalize_module(function) if earlier == "a promise" else tw.ir.IRModule({"matmul": function})
    sch = tw.Schedule(module)
    name = "main" if earlier == "a promise" else "matmul"
    sch.unroll(sch.get_loops(sch.get_block("C", func_name=name))[-1])
    store = _core.Database.open(str(path)) if path.exists() else tw.records.open_database(path)
    store.commit_workload(_core.structural_hash(module), "main", module.script())
    steps = json.dumps(sch.trace.as_json())
    store.commit(_core.Record(workload=_core.structural_hash(module), target=str(LLVM), trace=steps, seconds=[1.0]))
    assert "T.unroll" in best_schedule(function, path, LLVM).mod.script()
    database = SQLiteDatabase(path)
    assert "T.unroll" in ms.compile_tir(database, function, LLVM).mod.script()
    commit(database, ms.normalize_module(function), [2.0], factor=8)
    tw.tune(function, trials=1, database=path, target=str(LLVM), progress=None)
    (workload,) = store.workloads()
    outcomes = [row.outcome for row in store.records(workload.hash, "")]
    assert len(outcomes) >= 3


@pytest.mark.parametrize("kind", ["memory", "json", "sqlite"])
def test_ways_to_compare(kind, tmp_path):
    from tests.search.test_module_equality import ProductWithEpilogue, with_constant

    kinds = {
        "memory": MemoryDatabase,
        "json": lambda mode: JSONDatabase(work_dir=tmp_path / mode, module_equality=mode),
        "sqlite": lambda mode: SQLiteDatabase(tmp_path / f"{mode}.db", module_equality=mode),
    }
    ones, twos = with_constant(np.ones(4, "float32")), with_constant(np.full(4, 2, "float32"))
    for mode, same_constants, same_anchor in (
        ("structural", False, False),
        ("ignore-ndarray", True, False),
        ("anchor-block", True, True),
    ):
        database = kinds[kind](mode)
        database.commit_workload(ones)
        commit(database, Product, [1.0], factor=4)
        for _ in range(1 if kind == "memory" else 2):
            assert database.module_equality == mode
            assert database.has_workload(twos) == same_constants
            assert database.has_workload(ProductWithEpilogue) == same_anchor
            found = database.query(ProductWithEpilogue, LLVM)
            assert (found is not None) == same_anchor
            if found is not None:
                assert len(found.get_loops(found.get_block("C"))) >= 3 and "D" in found.mod.script()
            assert len(database.get_top_k(Workload(ProductWithEpilogue), 5)) == (1 if same_anchor else 0)
            database = kinds[kind](mode) if kind != "memory" else database  # as it is read again
        commit(database, ProductWithEpilogue, [2.0])
        assert len(database.get_top_k(database.commit_workload(Product), 5)) == (2 if same_anchor else 1)


def test_what_was_not_measured_comes_back_as_such(database):
    workload = database.commit_workload(Product)
    for seconds, error in ((None, ""), ([1e10], "LocalRunner: Timeout, killed")):
        database.commit_tuning_record(TuningRecord(split(Product, 2), workload, seconds, LLVM, error=error))
    assert [record.run_secs for record in database.get_all_tuning_records()] == [None, [1e10]]


def test_targets_do_not_mix(database):
    commit(database, Product, [1.0], factor=4, target=OTHER)
    assert database.query(Product, LLVM) is None
    commit(database, Product, [2.0], factor=2, target=LLVM)
    assert database.query(Product, LLVM, kind="record").run_secs == [2.0]
    assert database.query(Product, OTHER, kind="record").run_secs == [1.0]
    assert database.query(Product, None, kind="record").run_secs == [1.0]
    assert database.query(Product, LLVM.with_num_cores(4), kind="record").run_secs == [2.0]


def test_what_does_not_count(database):
    workload = database.commit_workload(Product)
    empty = tw.Schedule(Product)
    postproc = tw.Schedule(Product)
    postproc.enter_postproc()
    postproc.split(postproc.get_loops(postproc.get_block("C"))[0], factors=[None, 2])
    for trace in (empty.trace, postproc.trace):
        database.commit_tuning_record(TuningRecord(trace, workload, [1.0], LLVM))
    database.commit_tuning_record(TuningRecord(split(Product, 2), workload, None, LLVM))
    assert database.get_top_k(workload, 10) == []
    assert len(database) == 3


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_files_are_read_again(kind, tmp_path):
    first = makers(tmp_path)[kind]()
    commit(first, Product, [2.0], factor=2)
    commit(first, AddOne, [3.0], factor=4)
    second = makers(tmp_path)[kind]()
    assert len(second) == 2
    assert second.query(Product, LLVM, kind="record").run_secs == [2.0]
    best = second.query(AddOne, LLVM)
    tw.ir.assert_structural_equal(best.mod, first.query(AddOne, LLVM).mod)
    assert {record.workload.shash for record in second.get_all_tuning_records()} == {
        Workload(Product).shash,
        Workload(AddOne).shash,
    }


def test_pruned(make):
    source, pruned = MemoryDatabase(), make()
    for seconds, factor, target in (([3.0], 2, LLVM), ([1.0], 4, LLVM), ([2.0], 8, OTHER), ([1e10], 16, LLVM)):
        commit(source, Product, seconds, factor, target)
    source.dump_pruned(pruned)
    assert sorted(record.mean() for record in pruned.get_all_tuning_records()) == [1.0, 2.0]


def test_what_other_databases_keep_goes_along(make, tmp_path):
    """Columns for which a TuningRecord has no attribute of its own, such as the time of the incumbent."""
    source = SQLiteDatabase(tmp_path / "source.db")
    commit(source, Product, [2.0])
    store = source.store_for_search()
    (program,) = store.workloads()
    trace = json.dumps(split(Product, 4).as_json(), separators=(",", ":"))
    said = {"workload": program.hash, "target": str(LLVM), "trace": trace, "seconds": [1.0], "error": ""}
    kept = filled(**said, outcome="ok")
    store.commit(kept)
    source.dump_pruned(pruned := make())
    (record,) = pruned.get_all_tuning_records()
    assert fields_of(row_of(record, program.hash)) == fields_of(kept)


def test_a_fifth_entry_of_another_type_is_refused():
    record = TuningRecord(split(Product, 4), Workload(Product), [1.5], LLVM)
    with pytest.raises(tw.ArgumentError, match="seed is of another type") as error:
        TuningRecord.from_json([*record.as_json(), {"seed": "x"}], record.workload)
    assert error.value.code == "database/record"


def test_the_current_one():
    outer, inner = MemoryDatabase(), MemoryDatabase()
    assert Database.current() is None
    with outer as entered:
        assert entered is outer
        with inner:
            assert Database.current() is inner
        assert Database.current() is outer
    assert Database.current() is None


def test_json_of_records():
    record = TuningRecord(split(Product, 4), Workload(Product), [1.5, 2.5], LLVM, ArgInfo.from_entry_func(Product))
    text = json.loads(json.dumps(record.as_json()))
    assert len(text) == 4 and text[1] == [1.5, 2.5] and text[2]["kind"] == "llvm"
    assert text[3][0] == ["TENSOR", "float32", [32, 32]]
    again = TuningRecord.from_json(text, record.workload)
    assert again.as_json() == record.as_json()
    bare = TuningRecord.from_json(TuningRecord(split(Product, 4), Workload(Product)).as_json(), Workload(Product))
    assert (bare.run_secs, bare.target, bare.args_info, bare.mean()) == (None, None, None, 1e10)
    for wrong in (None, [], [[], "fast", None, None], [1, 2]):
        with pytest.raises(tw.Error):
            TuningRecord.from_json(wrong, Workload(Product))
    with pytest.raises(tw.ArgumentError) as error:
        TuningRecord.from_json({}, Workload(Product))
    assert error.value.code == "database/record"


def test_json_of_workloads():
    workload = Workload(Product)
    shash, text = workload.as_json()
    assert int(shash) == workload.shash
    tw.ir.assert_structural_equal(Workload.from_json([shash, text]).mod, Product)
    script = [shash, {"tvmscript": Product.script(), "name": "product"}]
    assert Workload.from_json(script).shash == workload.shash
    foreign = base64.b64encode(json.dumps({"root": 1, "nodes": [], "attrs": {"tvm_version": "0.20.0"}}).encode())
    with pytest.raises(tw.ArgumentError, match="a graph of TVM's own objects") as error:
        Workload.from_json([shash, foreign.decode()])
    assert error.value.code == "database/foreign-workload"
    for wrong in (None, [shash], [shash, "%%%"], [shash, base64.b64encode(b"{").decode()]):
        with pytest.raises(tw.ArgumentError) as error:
            Workload.from_json(wrong)
        assert error.value.code == "database/workload"


def files_of(folder: Path) -> tuple[Path, Path]:
    return folder / "database_workload.json", folder / "database_tuning_record.json"


def test_a_bad_line_is_named(tmp_path):
    commit(JSONDatabase(work_dir=tmp_path), Product, [1.0])
    workloads, records = files_of(tmp_path)
    good = records.read_text()
    unknown_step = '[0, [[[["Fly", [], [], []]], []], [1], null, null]]\n'
    endless = good.replace("[32,32]", "[32,Infinity]", 1)
    huge = good.replace("[1.0]", f"[{10**400}]")
    assert good not in (endless, huge)
    for bad in ("[0, []]\n", "[7, [[], null, null, null]]\n", "nonsense\n", unknown_step, endless, huge):
        records.write_text(good + bad + good)
        with pytest.raises(tw.ResourceError, match=rf"{records}:2: ") as error:
            JSONDatabase(work_dir=tmp_path)
        assert error.value.code == "database/json-line"
    records.write_text(good)
    workloads.write_text('["1", "?"]\n' + workloads.read_text())
    with pytest.raises(tw.ResourceError, match=rf"{workloads}:1: "):
        JSONDatabase(work_dir=tmp_path)


def test_records_that_cannot_be_applied_are_passed_over(database):
    """Their lines are whole, but a step of them names what the program does not have."""
    commit(database, Product, [2.0], factor=4)
    workload = database.commit_workload(Product)
    for seconds, damage in ((1.0, ('"C"', '"D"')), (3.0, ("32", "33"))):
        sch = tw.Schedule(Product)
        loop = sch.get_loops(sch.get_block("C"))[0]
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, decision=[32, 1]))
        trace = tw.Trace.from_json(json.dumps(sch.trace.as_json()).replace(*damage))
        database.commit_tuning_record(TuningRecord(trace, workload, [seconds], LLVM))
        with pytest.warns(UserWarning, match="a record of 1 s cannot be applied .*: it is passed over"):
            found = database.query(Product, LLVM)
        assert found.get(found.get_loops(found.get_block("C"))[1]).extent == 4
    only = commit_damaged_alone(database)
    with pytest.warns(UserWarning), pytest.raises(tw.ScheduleError, match="Cannot find a block"):
        database.query(only, LLVM)


def commit_damaged_alone(database):
    trace = tw.Trace.from_json(json.dumps(split(AddOne, 2).as_json()).replace('"B"', '"D"'))
    database.commit_tuning_record(TuningRecord(trace, database.commit_workload(AddOne), [1.0], LLVM))
    return AddOne


def test_a_line_that_was_cut_off(tmp_path):
    database = JSONDatabase(work_dir=tmp_path)
    commit(database, Product, [1.0])
    _, records = files_of(tmp_path)
    whole = records.read_text()
    records.write_text(whole + whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match=":2: the last line was cut off"):
        database = JSONDatabase(work_dir=tmp_path)
    assert len(database) == 1
    commit(database, Product, [2.0], factor=4)
    assert len(database) == 2
    assert [record.run_secs for record in JSONDatabase(work_dir=tmp_path).get_all_tuning_records()] == [[1.0], [2.0]]
    # Of this one only the end of the line is missing: it counts.
    records.write_text(records.read_text().rstrip("\n"))
    database = JSONDatabase(work_dir=tmp_path)
    assert len(database) == 2
    commit(database, Product, [3.0], factor=8)
    assert len(database) == 3
    assert len(JSONDatabase(work_dir=tmp_path)) == 3


def test_a_refused_line_is_refused_again_and_shifts_no_other(tmp_path):
    reader, writer = JSONDatabase(work_dir=tmp_path), JSONDatabase(work_dir=tmp_path)
    commit(writer, Product, [1.0])
    programs, records = files_of(tmp_path)
    with programs.open("a") as file:
        file.write('["1", {"tvmscript": "of a later version"}]\n')
    for _ in range(2):
        with pytest.raises(tw.ResourceError, match=r"database_workload.json:2"):
            reader.refresh()
    programs.write_text(programs.read_text().splitlines(keepends=True)[0])
    commit(writer := JSONDatabase(work_dir=tmp_path), AddOne, [2.0])
    with records.open("a") as file:
        file.write("[-1, [[], [3.0], null, null]]\n")
    for _ in range(2):
        with pytest.raises(tw.ResourceError, match=r"record.json:3: names workload -1"):
            reader.refresh()
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:2]))
    reader.refresh()
    assert [record.run_secs for record in reader.get_all_tuning_records()] == [[1.0], [2.0]]
    for module, seconds in ((Product, [1.0]), (AddOne, [2.0])):
        record = reader.query_tuning_record(module, LLVM)
        assert record is not None and record.run_secs == seconds


def test_files_that_are_missing_or_cannot_be_made(tmp_path):
    with pytest.raises(tw.ResourceError) as error:
        JSONDatabase(work_dir=tmp_path, allow_missing=False)
    assert error.value.code == "database/missing-file"
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.ResourceError) as error:
        JSONDatabase(work_dir=tmp_path / "file")
    assert error.value.code == "database/json-file"
    JSONDatabase(tmp_path / "a.json", tmp_path / "b.json")
    assert (tmp_path / "a.json").exists() and (tmp_path / "b.json").exists()


WRITER = """
import sys
sys.path.insert(0, {root!r})
from tests.search.test_databases import *
mine = JSONDatabase(work_dir={folder!r})
for n in range(20):
    commit(mine, [Product, AddOne][(n + {number}) % 2], [{number} + n / 100], factor=2)
"""


def test_writers_at_the_same_time(tmp_path):
    root = str(Path(__file__).parents[2])
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER.format(root=root, folder=str(tmp_path), number=number)])
        for number in range(3)
    ]
    for writer in writers:
        assert writer.wait(timeout=120) == 0
    database = JSONDatabase(work_dir=tmp_path)
    records = database.get_all_tuning_records()
    assert len(records) == 60
    workloads, _ = files_of(tmp_path)
    assert len(workloads.read_text().splitlines()) == 2
    for record in records:
        record.schedule()  # each belongs to its program
    assert len(database.get_top_k(database.commit_workload(Product), 100)) == 30


SQLITE_WRITER = WRITER.replace("JSONDatabase(work_dir=", "SQLiteDatabase(work_dir=")


def test_writers_of_one_sqlite_file(tmp_path):
    SQLiteDatabase(work_dir=tmp_path)
    root = str(Path(__file__).parents[2])
    texts = [SQLITE_WRITER.format(root=root, folder=str(tmp_path), number=number) for number in range(3)]
    writers = [subprocess.Popen([sys.executable, "-c", text]) for text in texts]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    database = SQLiteDatabase(work_dir=tmp_path)
    assert len(database.get_all_tuning_records()) == len(database) == 60


def test_failures_in_sqlite_have_their_reasons(tmp_path):
    database = SQLiteDatabase(tmp_path / "records.db")
    workload = database.commit_workload(Product)
    died = "An exception occurred\nthe worker process died of SIGSEGV"
    traceback = (
        "LocalRunner: An exception occurred\nTraceback (most recent call last):\n  File x\nValueError: y\n  hint: z"
    )
    wrong = traceback.replace("ValueError: y", "E: it computes something else than the program: C[0]")
    errors = ["LocalBuilder: Timeout, killed after 1 seconds", f"LocalBuilder: {died}", "LocalBuilder: An exception"]
    errors += ["LocalRunner: Timeout, killed after 1 seconds", f"LocalRunner: {died}", wrong, traceback, ""]
    for error in errors:
        database.commit_tuning_record(TuningRecord(split(Product, 2), workload, [1e10], LLVM, error=error))
    store = _core.Database.open(str(tmp_path / "records.db"), read_only=True)
    rows = store.records(program_keys(Product)[0], "")
    assert [row.outcome for row in rows] == [
        "build_timeout",
        "build_crash",
        "build_error",
        "run_timeout",
        "run_crash",
        "wrong_result",
        "run_error",
        "run_error",
    ]
    assert rows[6].error == "ValueError: y" and rows[7].error == "not measured"
    assert rows[4].error == "the worker process died of SIGSEGV"


def test_what_others_added_is_seen(tmp_path):
    first, second = JSONDatabase(work_dir=tmp_path), JSONDatabase(work_dir=tmp_path)
    commit(first, Product, [1.0])
    commit(second, AddOne, [2.0])
    first.refresh()
    assert len(first) == len(second) == 2


def test_unions():
    first, second, empty = MemoryDatabase(), MemoryDatabase(), MemoryDatabase()
    commit(first, Product, [2.0], factor=2)
    commit(second, Product, [1.0], factor=4)
    commit(second, AddOne, [3.0], factor=4)
    best, ordered = UnionDatabase(empty, first, second), OrderedUnionDatabase(empty, first, second)
    assert best.query(Product, LLVM, kind="record").run_secs == [1.0]
    assert ordered.query(Product, LLVM, kind="record").run_secs == [2.0]
    for union, source in ((best, second), (ordered, first)):
        tw.ir.assert_structural_equal(union.query(Product, LLVM).mod, source.query(Product, LLVM).mod)
        assert union.query(AddOne, LLVM, kind="record").run_secs == [3.0]
        assert union.has_workload(AddOne) and len(union) == 3 and len(union.get_all_tuning_records()) == 3
        assert [r.mean() for r in union.get_top_k(Workload(Product), 5)] == [1.0, 2.0]
        assert union.query(Product, OTHER) is None
        for refused in (lambda u=union: u.commit_workload(Product), lambda u=union: commit(u, Product, [1.0])):
            with pytest.raises(tw.ArgumentError) as error:
                refused()
            assert error.value.code == "database/read-only"


def test_functions_as_databases():
    names = []

    def fn(sch: tw.Schedule) -> bool:
        names.append(sch.mod.attrs["task_name"])
        if "C" not in [b.name_hint for b in sch.mod["main"].body.block.writes] and "C[" not in sch.mod.script():
            return False
        sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, 4])
        return True

    database = Database.create(fn)
    assert isinstance(database, ScheduleFnDatabase)
    record = database.query(Product, LLVM, kind="record", workload_name="mine")
    assert record.run_secs == [0.0] and len(record.args_info) == 3
    assert database.query(AddOne, LLVM) is None
    assert len(database.query(Product, LLVM).trace) == len(record.trace)
    assert set(names) == {"mine", "main"}
    for refused in (lambda: database.commit_workload(Product), lambda: len(database)):
        with pytest.raises(tw.ArgumentError) as error:
            refused()
        assert error.value.code == "database/only-queries"


def test_own_databases():
    class Mine(Database):
        def __init__(self):  # ours is not called
            self.kept = []

        def has_workload(self, mod):
            return True

        def commit_workload(self, mod):
            return Workload(mod)

        def commit_tuning_record(self, record):
            self.kept.append(record)

        def get_top_k(self, workload, top_k):
            return self.kept[:top_k]

        def get_all_tuning_records(self):
            return self.kept

        def __len__(self):
            return len(self.kept)

    mine = Mine()
    for factor, target in ((2, OTHER), (4, OTHER), (8, LLVM)):
        commit(mine, Product, [1.0], factor=factor, target=target)
    assert mine.query(Product, LLVM, kind="record") is mine.kept[2]
    tw.ir.assert_structural_equal(mine.query(Product, LLVM).mod, mine.kept[2].schedule().mod)


def test_kinds(tmp_path):
    memory = Database.create("memory")
    assert isinstance(memory, MemoryDatabase) and Database.create(memory) is memory
    assert isinstance(Database.create("json", work_dir=tmp_path), JSONDatabase)
    assert isinstance(Database.create("sqlite"), SQLiteDatabase)
    assert isinstance(Database.create("union", memory), UnionDatabase)
    assert isinstance(Database.create("ordered_union", memory), OrderedUnionDatabase)
    assert isinstance(Database.create(tmp_path), JSONDatabase)  # a folder of a session
    place = Database.create(str(tmp_path / "records.db"), module_equality="anchor-block")
    assert isinstance(place, SQLiteDatabase) and place.path == str(tmp_path / "records.db")
    assert place.module_equality == "anchor-block"
    for wrong, code in (("stone", "database/database-kind"), ("postgres", "database/server-address")):
        with pytest.raises(tw.ArgumentError) as error:
            Database.create(wrong)
        assert error.value.code == code


def test_the_folder_of_a_session_has_the_files_that_were_written_last(tmp_path):
    commit(SQLiteDatabase(work_dir=tmp_path), Product, [2.0])
    assert isinstance(Database.create(tmp_path), SQLiteDatabase)
    commit(JSONDatabase(work_dir=tmp_path), Product, [1.0])
    os.utime(tmp_path / "database.db", (1, 1))
    assert isinstance(Database.create(tmp_path), JSONDatabase)
