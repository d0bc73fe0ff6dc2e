"""What a session is: the same candidates for the same seed, going on where it stopped, finals, spaces and time."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.database.records import title_of
from tilewright.script import tir as T
from tilewright.script.scripts import from_source
from tilewright.search import session, space_samples
from tilewright.search.relatives import operator_of, traces_of_relatives
from tilewright.task.arguments import aligned
from tilewright.task.task import module_of
from tilewright.testing import workloads
from tilewright.timing import KernelCalls

from .test_database_faults import scale, tiles


def traces(database: Path) -> dict[int, Any]:
    """The traces of the trials: without the program as written, which has a record where it is the fastest."""
    store = _core.Database.open(str(database), read_only=True)
    (workload,) = store.workloads()
    return {record.index: record.trace for record in store.records(workload.hash, "") if record.index >= 0}


def test_the_same_seed_gives_the_same_candidates_whatever_the_threads(tmp_path: Path) -> None:
    for name, options in {"one": {"threads": 1}, "two": {"threads": 2}, "other": {"seed": 1}}.items():
        result = tw.tune(scale, space=tiles, trials=12, database=tmp_path / name, progress=None, **options)
        assert result.progress.trials == 12
    one, two, other = (traces(tmp_path / name) for name in ("one", "two", "other"))
    assert sorted(one) == list(range(12))
    assert one == two and one != other


def test_the_same_results_give_the_same_candidates(tmp_path: Path) -> None:
    """Later candidates depend on results, but on nothing else: a session that lost its last part finds it again."""
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=40, database=file, progress=None)
    whole = traces(file)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM finals")
        connection.execute("DELETE FROM record WHERE position >= 30")
        connection.commit()
    again = tw.tune(scale, space=tiles, trials=40, database=file, progress=None)
    assert (again.progress.earlier, again.progress.trials) == (30, 40)
    # Candidate n is drawn from the results of those up to n - 8.
    assert [traces(file)[i] for i in range(38)] == [whole[i] for i in range(38)]


def test_more_trials_go_on_with_the_same_candidates(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=11, database=file, progress=None)
    some = traces(file)
    again = tw.tune(scale, space=tiles, trials=24, database=file, progress=None)
    assert (again.progress.earlier, again.progress.trials) == (11, 24)
    more = traces(file)
    assert sorted(more) == list(range(24)) and {i: more[i] for i in some} == some
    assert len(set(more.values())) == 24


def test_more_trials_by_rules_go_on_with_the_same_candidates(tmp_path: Path) -> None:
    """The first batch of such a search is a short one."""
    program, file = workloads.matmul(64, 96, 48), tmp_path / "t.db"
    tw.tune(program, trials=8, database=file, progress=None)
    some = traces(file)
    again = tw.tune(program, trials=20, database=file, progress=None)
    more = traces(file)
    assert (again.progress.earlier, again.progress.trials) == (8, 20)
    assert sorted(more) == list(range(20)) and {i: more[i] for i in range(8)} == {i: some[i] for i in range(8)}
    assert len(set(more.values())) == 20


def test_what_was_measured_in_another_order_is_not_measured_again(tmp_path: Path) -> None:
    """As by a version that draws otherwise: records keep their numbers, new candidates get others."""
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=10, database=file, progress=None)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM finals")
        connection.execute("UPDATE record SET position = 100 WHERE position = 2")
        connection.execute("UPDATE record SET position = 2 WHERE position = 5")
        connection.execute("UPDATE record SET position = 5 WHERE position = 100")
        connection.commit()
    before = traces(file)
    again = tw.tune(scale, space=tiles, trials=16, database=file, progress=None)
    after = traces(file)
    assert (again.progress.earlier, again.progress.trials) == (10, 16)
    assert len(after) == 16 and {i: after[i] for i in before} == before and len(set(after.values())) == 16


def test_times_of_another_host_stop_no_kernel(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=8, database=file, progress=None)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM finals")
        connection.execute("UPDATE record SET seconds = '[1e-9]', median = 1e-9 WHERE outcome = 'ok'")
        connection.execute("UPDATE host SET text = '{}'")
        connection.commit()
    tw.tune(scale, space=tiles, trials=16, database=file, progress=None)
    store = _core.Database.open(str(file), read_only=True)
    (workload,) = store.workloads()
    outcomes = [each.outcome for each in store.records(workload.hash, "") if each.index >= 8]
    assert len(outcomes) == 8 and "ok" in outcomes


def test_the_same_operator_at_another_shape_is_where_a_search_begins(tmp_path: Path) -> None:
    @T.prim_func
    def larger(X: T.Buffer((128, 192), "float32"), Y: T.Buffer((128, 192), "float32")):
        T.func_attr({"global_symbol": "scale"})
        for i, j in T.grid(128, 192):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(2)

    def decisions(trace: str) -> list[Any]:
        return [*tw.schedule.Trace.from_json(trace).decisions.values()]

    def of(hash_of: str) -> dict[int, str]:
        # The program as written, at -1, is kept where it is the fastest.
        return {record.index: record.trace for record in store.records(hash_of, "") if record.index >= 0}

    file = tmp_path / "t.db"
    first = tw.tune(scale, space=tiles, trials=16, database=file, progress=None)
    tw.tune(larger, space=tiles, trials=8, seed=3, database=file, progress=None)
    store = _core.Database.open(str(file), read_only=True)
    known, new = store.workloads()
    assert first.record is not None
    best, begun = decisions(first.record.trace), [decisions(of(new.hash)[index]) for index in range(2)]
    # All factors but the outermost, which takes what the larger extent has more.
    assert [tile[1:] for tile in best] in [[tile[1:] for tile in point] for point in begun]
    # A session goes on with what it began with, whatever was found elsewhere since.
    before = of(new.hash)
    tw.tune(scale, space=tiles, trials=24, seed=5, database=file, progress=None)
    tw.tune(larger, space=tiles, trials=16, seed=3, database=file, progress=None)
    after = of(new.hash)
    assert len(after) == 16 and {index: after[index] for index in before} == before
    assert known.hash != new.hash


def scaled(rows: int, by: float, dtype: str = "float32", block: str = "Y") -> tw.ir.IRModule:
    @T.prim_func
    def main(X: T.Buffer((rows, 96), dtype), Z: T.Buffer((rows, 96), dtype)):
        T.func_attr({"global_symbol": block, "tir.noalias": True})
        for i, j in T.grid(rows, 96):
            with T.block(block):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi, vj] * T.cast(T.float32(by), dtype)

    return module_of(main)


def test_sizes_and_names_are_no_part_of_an_operator() -> None:
    operator = operator_of(scaled(64, 2.0))
    assert operator == operator_of(scaled(100, 2.0)) == operator_of(scaled(1, 2.0, block="Other"))
    assert operator != operator_of(scaled(64, 3.0)) and operator != operator_of(scaled(64, 2.0, "float64"))


def test_the_schedule_of_a_relative_goes_by_the_names_of_the_program() -> None:
    program, other = scaled(64, 2.0), scaled(128, 2.0, block="Other")
    store = _core.Database.in_memory()
    for number, module in enumerate((scaled(64, 3.0), other)):
        key = _core.structural_hash(module)
        store.commit_workload(key, "a", module.script())
        sch = tw.Schedule(module)
        sch.split(sch.get_loops(sch.get_block(["Y", "Other"][number]))[0], factors=[None, 4])
        store.commit(_core.Record(workload=key, target="t", seconds=[1.0], trace=json.dumps(sch.trace.as_json())))
    (trace,) = traces_of_relatives(store, _core.structural_hash(program), program, "t")
    sch = tw.Schedule(program)
    tw.schedule.Trace.from_json(trace).apply_to_schedule(sch)
    assert len(sch.get_loops(sch.get_block("Y"))) == 3
    assert traces_of_relatives(store, _core.structural_hash(other), other, "t") == []


def test_what_ends_a_search(tmp_path: Path) -> None:
    def tuned(trials: int = 60, **options: Any) -> tw.TuneResult:
        return tw.tune(scale, space=tiles, trials=trials, progress=None, **options)

    # Noise may make a late candidate the fastest so far.
    patient = tuned(400, patience=12, database=tmp_path / "t.db")
    assert patient.stop_reason == "patience" and 12 < patient.progress.trials < 400
    # With more patience it goes on.
    on = tuned(patient.progress.trials + 8, database=tmp_path / "t.db")
    assert on.stop_reason == "trials" and on.progress.earlier == patient.progress.trials
    fast_enough = tuned(target_seconds=1.0)
    assert fast_enough.stop_reason == "target" and fast_enough.progress.trials < 60


def test_a_search_ends_within_three_percent_of_what_the_machine_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tuned(trials: int, bound: float) -> tw.TuneResult:
        monkeypatch.setattr(session, "roofline_bound", lambda task, target: bound)
        return tw.tune(scale, space=tiles, trials=trials, database=tmp_path / "t.db", progress=None)

    first = tuned(32, 1e-12)
    assert first.stop_reason == "trials"
    store = _core.Database.open(str(tmp_path / "t.db"), read_only=True)
    (workload,) = store.workloads()
    best = min(row.median for row in store.records(workload.hash, "") if row.outcome == "ok" and row.index >= 0)
    near = tuned(60, best / 1.029)
    assert (near.stop_reason, near.progress.trials) == ("roofline", 32)
    farther = tuned(33, best / 1.5)
    assert (farther.stop_reason, farther.progress.trials) == ("trials", 33)
    # What is faster than that by far is no bound: terms that are left out count in it, or data lie nearer.
    beaten = tuned(34, best * 1.5)
    assert (beaten.stop_reason, beaten.progress.trials) == ("trials", 34)


def test_a_space_that_reads_what_it_draws_never_repeats_itself() -> None:
    runs = []

    def reads(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        outer = int(sch.sample_categorical([2, 4, 8], [0.9, 0.05, 0.05]))
        sch.split(i, factors=[None, outer])
        if outer > 2:
            sch.split(j, factors=[None, int(sch.sample_categorical([3, 6, 12], [0.98, 0.01, 0.01]))])
        runs.append(sch.trace.decisions)

    result = tw.tune(scale, space=reads, trials=64, progress=None)
    assert result.stop_reason == "exhausted" and result.progress.trials == 7
    # Before the search its first draws tell it from other spaces.
    assert len(runs) <= 9 + space_samples.DIGESTED_SAMPLES and result.progress.duplicates <= 1


@pytest.mark.parametrize("reads", [False, True])
def test_later_candidates_are_neighbors_of_good_ones(tmp_path: Path, reads: bool) -> None:
    """Also where the space looks at what it has drawn, and is run anew for each candidate."""

    def wide(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        # 100 million points, and nothing that can be had by chance.
        for _ in range(4):
            value = sch.sample_categorical(list(range(100)), [0.01] * 100)
            sch.annotate(i, f"a{_}", int(value) if reads else value)
        sch.split(j, factors=[None, 8])

    result = tw.tune(scale, space=wide, trials=40, database=tmp_path / "t.db", progress=None)
    assert result.progress.trials == 40
    read = {i: tw.schedule.Trace.from_json(trace) for i, trace in traces(tmp_path / "t.db").items()}
    decisions = {i: [*trace.decisions.values()] for i, trace in read.items()}

    def is_neighbor(index: int) -> bool:
        return any(sum(a != b for a, b in zip(decisions[index], decisions[k], strict=True)) == 1 for k in range(index))

    assert not any(is_neighbor(index) for index in range(16))
    assert sum(is_neighbor(index) for index in range(16, 40)) >= 8


def test_the_best_are_timed_against_one_another(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    phases = []
    result = tw.tune(scale, space=tiles, trials=8, database=file, progress=lambda p: phases.append(p.phase))
    assert phases[-1] == "done" and phases.index("search") < len(phases) - 1
    store = _core.Database.open(str(file), read_only=True)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        ((winner, last),) = connection.execute("SELECT position, last_record FROM finals, record WHERE id = winner")
    assert result.record is not None and result.record.index == winner
    assert last == 8 + (winner == -1)  # the program as written is no trial
    (workload,) = store.workloads()
    assert store.top_k(workload.hash, "", 1)[0].index == winner
    # Another seed: its best meets the best so far, so the winner of the second finals beats that of the first.
    other = tw.tune(scale, space=tiles, trials=8, seed=1, database=file, progress=None)
    assert other.progress.earlier == 0 and other.record is not None


def test_the_environment_bounds_the_slices_of_a_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the machine does: disturbed slices count, too."""
    monkeypatch.setenv("TILEWRIGHT_MEASURE_SLICES", "3")
    tw.tune(scale, space=tiles, trials=4, database=tmp_path / "t.db", progress=None)
    store = _core.Database.open(str(tmp_path / "t.db"), read_only=True)
    (workload,) = store.workloads()
    first, *others = (record for record in store.records(workload.hash, "") if record.index >= 0)
    assert len(first.seconds) == 3 and all(len(record.seconds) <= 3 for record in others)
    finals = store.finals(workload.hash, first.target)
    assert finals is not None and len(finals.seconds) <= 3


@T.prim_func
def take(X: T.Buffer((1000,), "float32"), I: T.Buffer((300,), "int32"), Y: T.Buffer((300,), "float32")):
    for i in range(300):
        with T.block("Y"):
            vi = T.axis.spatial(300, i)
            Y[vi] = X[I[vi]]


def chunks(sch: tw.Schedule) -> None:
    (i,) = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2))


def test_inputs_supply_indices() -> None:
    indices = np.random.default_rng(3).integers(0, 1000, 300).astype(np.int32)
    result = tw.tune(take, space=chunks, trials=3, inputs={"I": indices}, progress=None)
    assert result.record is not None and set(result.progress.outcomes) <= {"ok", "slow_stopped"}
    assert result.verdict is not None and result.verdict.checked
    x, y = np.random.default_rng(4).random(1000, dtype=np.float32), np.empty(300, np.float32)
    result.kernel(x, indices, y)
    np.testing.assert_array_equal(y, x[indices])


def test_other_indices_are_another_search(tmp_path: Path) -> None:
    """What is fast depends on where a kernel reads: times of other arrays say nothing."""
    near = np.arange(300, dtype=np.int32)
    far = np.random.default_rng(3).integers(0, 1000, 300).astype(np.int32)

    def search(indices: np.ndarray) -> tw.TuneResult:
        inputs = {"I": indices}
        return tw.tune(take, space=chunks, trials=3, inputs=inputs, database=tmp_path / "t.db", progress=None)

    assert search(near).progress.earlier == 0 and search(near).progress.earlier == 3
    assert search(far).progress.earlier == 0 and search(near).progress.earlier == 3
    store = _core.Database.open(str(tmp_path / "t.db"), read_only=True)
    titles = {title_of(workload) for workload in store.workloads()}
    assert len(titles) == 2 and all(title.startswith("take (given integers ") for title in titles)
    kernel = tw.compile(take, database=tmp_path / "t.db")  # of the latest ones
    assert kernel.schedule == "recorded"
    # Of values nothing depends but the results.
    first = np.random.default_rng(4).random(1000, dtype=np.float32)
    assert (
        tw.tune(
            take, space=chunks, trials=3, inputs={"I": near, "X": first}, database=tmp_path / "t.db", progress=None
        ).progress.earlier
        == 3
    )


def test_the_time_is_limited() -> None:
    def slow(sch: tw.Schedule) -> None:
        time.sleep(0.05)
        int(sch.sample_categorical([1, 2], [0.5, 0.5]))
        tiles(sch)

    start = time.monotonic()
    result = tw.tune(scale, space=slow, trials=10_000, seconds=1.5, progress=None)
    assert result.stop_reason == "seconds" and result.record is not None
    assert 0 < result.progress.trials < 10_000
    assert time.monotonic() - start < 30


def test_a_kernel_for_two_threads() -> None:
    def in_parallel(sch: tw.Schedule) -> None:
        i, _ = sch.get_loops(sch.get_block("Y"))
        out, _ = sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
        sch.parallel(out)

    result = tw.tune(scale, space=in_parallel, trials=4, threads=2, progress=None)
    assert result.record is not None and result.threads == 2
    assert "-num-cores=2" in result.record.target
    assert result.kernel.threads == 2 and repr(result.kernel).endswith(", on 2 threads>")


def test_a_kernel_runs_on_the_threads_that_it_was_tuned_for() -> None:
    result = tw.tune(scale, space=lambda sch: None, trials=1, threads=1, progress=None)
    assert result.kernel.threads == 1 and repr(result.kernel).endswith(", on 1 thread>")
    assert "result.kernel runs on as many threads, kernels of tw.compile on all cores" in str(result.table())
    compiled = tw.compile(scale)
    assert compiled.threads == 0 and repr(compiled).endswith(", on all cores>")
    assert "runs on all cores" in (tw.compile.__doc__ or "")


def test_two_spaces_of_one_program_are_two_sessions(tmp_path: Path) -> None:
    file = tmp_path / "t.db"

    def columns(sch: tw.Schedule) -> None:
        _, j = sch.get_loops(sch.get_block("Y"))
        sch.split(j, factors=sch.sample_perfect_tile(j, n=2))

    tw.tune(scale, space=tiles, trials=4, database=file, progress=None)
    second = tw.tune(scale, space=columns, trials=4, database=file, progress=None)
    assert second.progress.earlier == 0 and second.progress.trials == 4
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (2,)


def test_equal_programs_with_other_names_share_their_records(tmp_path: Path) -> None:
    """Records have the names of the entry, whatever the blocks of the tuned program are called."""
    file = tmp_path / "t.db"

    def program(block: str) -> tw.ir.PrimFunc:
        return from_source(scale.script().replace('T.block("Y")', f'T.block("{block}")'))

    def in_tiles(block: str) -> Callable[[tw.Schedule], None]:
        def space(sch: tw.Schedule) -> None:
            i, j = sch.get_loops(sch.get_block(block))
            sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
            sch.vectorize(sch.split(j, factors=[None, 8])[1])

        return space

    first, second = program("first"), program("second")
    tw.tune(first, space=in_tiles("first"), trials=2, database=file, progress=None, seed=1)
    before = _core.Database.open(str(file)).records(_only_workload(file), "")
    found = tw.tune(second, space=in_tiles("second"), trials=6, database=file, progress=None, seed=2)
    records = _core.Database.open(str(file)).records(_only_workload(file), "")
    assert found.progress.trials == 3  # of five points, two are known
    assert len(records) > len(before)
    assert all("second" not in record.trace for record in records)
    assert found.schedule.get_block("second") is not None  # of all records, with the names of the tuned program
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none is damaged
        for asked, block in ((first, "first"), (second, "second")):
            assert tw.records.best_schedule(asked, file).get_block(block) is not None
    # It goes on with its session, and measures nothing of it again.
    again = tw.tune(second, space=in_tiles("second"), trials=6, database=file, progress=None, seed=2)
    assert again.progress.earlier == again.progress.trials == 3
    assert len(_core.Database.open(str(file)).records(_only_workload(file), "")) == len(records)


def _only_workload(file: Path) -> str:
    (workload,) = _core.Database.open(str(file)).workloads()
    return workload.hash


@T.prim_func
def symbolic(x: T.handle, y: T.handle):
    n = T.int32()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in range(n):
        with T.block("Y"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi]


@T.prim_func
def with_scalar(X: T.Buffer((8,), "float32"), factor: T.float32, Y: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = X[vi] * factor


@T.prim_func
def strided(X: T.Buffer((8, 8), "float32", strides=(16, 1)), Y: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]


@pytest.mark.parametrize(
    ("program", "code"),
    [(symbolic, "tune/symbolic-shape"), (with_scalar, "tune/scalar-parameter"), (strided, "tune/strides")],
)
def test_programs_that_cannot_be_tuned(program: tw.ir.PrimFunc, code: str) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        tw.tune(program, space=lambda sch: None, trials=1, progress=None)
    assert caught.value.code == code and "hint:" in str(caught.value)


@T.prim_func
def short(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = A[vi] * T.float32(2) + T.float32(1)


def test_a_short_kernel_takes_as_long_in_the_search_as_it_does_later() -> None:
    arrays = [aligned(np.zeros(256, np.float32)) for _ in range(2)]

    def is_as_long() -> bool:
        result = tw.tune(short, trials=4, progress=None)
        assert result.record is not None
        later = min(KernelCalls(result.kernel, arrays).spend(100_000) / 100_000 for _ in range(20))
        # A look at the clock between two calls would double it, each time; other programs do so now and then.
        return min(result.record.seconds) < 1.4 * later + 2e-9

    assert any(is_as_long() for _ in range(6))


def test_a_session_that_goes_on_knows_the_program_as_written(tmp_path: Path) -> None:
    """Nothing is run again, and the table compares all the same."""
    first, again = (tw.tune(scale, space=tiles, trials=4, database=tmp_path / "t.db", progress=None) for _ in range(2))
    assert again.progress.earlier == 4 and again.progress.reference_seconds == first.progress.reference_seconds > 0
    assert [row[0] for row in again.table().rows] == ["as written", "best found"]


def test_a_space_of_one_point_is_told(tmp_path: Path) -> None:
    def halves(sch: tw.Schedule) -> None:
        sch.split(sch.get_loops("Y")[0], [None, 2])

    result = tw.tune(scale, space=halves, trials=4, database=tmp_path / "t.db", progress=None)
    assert result.stop_reason == "exhausted"
    assert "1 trial: all that the space holds" in result.table().title


def test_who_goes_on_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(trials: int, **more: Any) -> str:
        result = tw.tune(scale, space=tiles, trials=trials, database=tmp_path / "t.db", progress="plain", **more)
        assert result.record is not None
        return capsys.readouterr().out

    assert "earlier run" not in said(3)
    anew = "of an earlier run (fresh=True, on the command line --fresh, measures again)"
    lines = said(6).splitlines()
    assert lines[0].startswith("tuning scale") and lines[1] == f"continues from 3 trials {anew}"
    assert sum("earlier run" in line for line in lines) == 1
    assert said(6).splitlines()[1] == f"nothing is left to measure after 6 trials {anew}"
    assert "earlier run" not in said(2, fresh=True)


def records_in_a_copy(database: Path) -> int:
    """Of the file alone, without its log."""
    copy = shutil.copy(database, database.with_suffix(".copy"))
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        count: int = connection.execute("SELECT COUNT(*) FROM record WHERE position >= 0").fetchone()[0]
        return count


def test_the_file_alone_has_all_records_as_soon_as_a_search_ends(tmp_path: Path) -> None:
    """Also while the database is open in this process: as an object of the user's own, or behind an exception."""
    options: dict[str, Any] = {"space": tiles, "progress": None}
    tw.tune(scale, trials=3, database=tmp_path / "ended.db", **options)
    assert records_in_a_copy(tmp_path / "ended.db") == 3

    def fails(progress: tw.search.Progress) -> None:
        if progress.trials >= 2:
            raise LookupError

    with pytest.raises(LookupError) as kept:
        tw.tune(scale, trials=50, database=tmp_path / "raised.db", **{**options, "progress": fails})
    assert kept.value.__traceback__ is not None and records_in_a_copy(tmp_path / "raised.db") >= 2

    own = ms.SQLiteDatabase(tmp_path / "own.db")
    tw.tune(scale, trials=3, database=own, **options)
    assert records_in_a_copy(tmp_path / "own.db") == 3 and len(own) >= 3
