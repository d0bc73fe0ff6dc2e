"""Searches on a cluster: the same candidates as without one, and records that say where they come from."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from tests.search.programs import scale, tiles
from typer.testing import CliRunner

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.cluster import labels
from tilewright.database.records import open_database
from tilewright.testing import workloads

from .machines import Machines


def records(path: Path) -> list[Any]:
    store = _core.Database.open(str(path), read_only=True)
    (workload,) = store.workloads()
    return [each for each in store.records(workload.hash, "") if each.index >= 0]


def test_a_search_gives_the_candidates_of_one_without_a_cluster(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "1")
    asked: dict[str, Any] = {"space": tiles, "trials": 12, "progress": None, "strategy": "draft-and-verify"}
    here = tw.tune(scale, **asked, database=tmp_path / "here.db")
    there = tw.tune(scale, **asked, database=tmp_path / "there.db", cluster=machines.address)
    assert there.progress.trials == 12 and there.stop_reason == "trials"
    assert there.record is not None and here.record is not None
    traces = [{each.index: each.trace for each in records(tmp_path / name)} for name in ("here.db", "there.db")]
    assert traces[0] == traces[1] and sorted(traces[0]) == list(range(12))
    x = np.random.default_rng(0).random((64, 96), dtype=np.float32)
    y = np.empty_like(x)
    there.kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x)

    own = json.loads(labels.host_text())["host"]
    found = records(tmp_path / "there.db")
    assert {json.loads(each.host)["host"] for each in found if each.outcome == "ok"} == {own}
    # The first one was timed alone, each later one beside the fastest before it.
    timed = sorted((each.index, each) for each in found if each.outcome == "ok")
    assert timed[0][1].incumbent_seconds == 0
    assert all(each.incumbent_seconds > 0 and each.incumbent_reference > 0 for _, each in timed[1:])
    for _, each in timed[1:]:
        ratio = np.median(each.seconds) / each.incumbent_seconds
        assert each.median == pytest.approx(ratio * each.incumbent_reference)
    assert there.hosts is not None and sum(int(row[1]) for row in there.hosts.rows) >= 12
    columns = there.hosts.columns
    assert all(float(there.hosts.rows[0][columns.index(name)]) > 0 for name in ("measuring (s)", "building (s)"))

    # What the dashboard shows: tasks by what they do, and columns of workers.
    with distributed.Client(machines.address) as client:
        tasks, (metrics,) = client.run_on_scheduler(
            lambda dask_scheduler: (
                list(dask_scheduler.task_prefixes),
                [each.metrics for each in dask_scheduler.workers.values()],
            )
        )
    assert (
        {"build", "reference", "measure", "finals"}
        <= set(tasks)
        <= {"build", "reference", "measure", "finals", "program"}
    )
    assert (metrics["host"], metrics["measures"], metrics["builds"]) == (own, 1, 1)

    # Each goes on where it stopped, or where the other one did. A cluster measures the best kernel again first.
    for name, where in (("there.db", machines.address), ("here.db", machines.address), ("there.db", None)):
        before = len(records(tmp_path / name))
        more = tw.tune(scale, **{**asked, "trials": before + 4}, database=tmp_path / name, cluster=where)
        assert (more.progress.earlier, more.progress.trials) == (before, before + 4)
        later = [each for each in records(tmp_path / name) if each.index >= before and each.outcome == "ok"]
        assert later and (where is None or all(each.incumbent_seconds > 0 for each in later))
    traces = [{each.index: each.trace for each in records(tmp_path / name)} for name in ("here.db", "there.db")]
    assert traces[0].items() <= traces[1].items() and sorted(traces[1]) == list(range(20))


def kept_batches(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as file:
        found = file.execute("select value from meta where instr(cast(key as text), 'batch ') = 1").fetchall()
    return sorted(value for (value,) in found)


def test_a_search_keeps_its_batch(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "5", "--build", "1")
    asked: dict[str, Any] = {"space": tiles, "trials": 2, "progress": None, "strategy": "draft-and-verify"}
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    tw.tune(scale, **asked, database=there, cluster=machines.address)
    tw.tune(scale, **asked, database=here)
    assert (kept_batches(there), kept_batches(here)) == (["10"], ["8"])  # for five workers, and without any
    asked["trials"] = 4
    assert tw.tune(scale, **asked, database=there).progress.earlier == 2
    assert tw.tune(scale, **asked, database=here, cluster=machines.address).progress.earlier == 2
    assert (kept_batches(there), kept_batches(here)) == (["10"], ["8"])

    # A damaged note is none.
    with contextlib.closing(sqlite3.connect(there)) as file, file:
        assert file.execute("UPDATE meta SET value = 'x' WHERE key LIKE 'batch %'").rowcount == 1
    again = tw.tune(scale, **asked, database=there)
    assert (again.progress.earlier, kept_batches(there)) == (0, ["8"])


def program_file(folder: Path) -> Path:
    file = folder / "program.py"
    A, B, C = (f"{name}: T.Buffer((64, 64), 'float32')" for name in "ABC")
    file.write_text(
        f"from tilewright.script import tir as T\n\n@T.prim_func\ndef product({A}, {B}, {C}):\n"
        "    for i, j, k in T.grid(64, 64, 64):\n        with T.block('C'):\n"
        "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
        "            with T.init():\n                C[vi, vj] = T.float32(0)\n"
        "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n"
    )
    return file


def test_the_command_line(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "0")
    machines.worker("--measure", "0", "--build", "1")
    file = program_file(tmp_path)
    command = ["tune", str(file), "--trials", "4", "--out", str(tmp_path), "--cluster", machines.address]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "where the time of the workers went" in done.output
    (found,) = {each.host for each in records(tmp_path / "tilewright.db")}
    assert found == labels.host_text()


def test_two_searches_share_workers_and_a_server(machines: Machines, tmp_path: Path, server: str) -> None:
    machines.worker("--measure", "1", "--build", "1")
    command = [sys.executable, "-m", "tilewright", "tune", str(program_file(tmp_path)), "--trials", "3"]
    command += ["--cluster", machines.address, "--database", server]
    both = [
        subprocess.Popen([*command, "--seed", str(seed), "--out", str(tmp_path / str(seed))], stderr=subprocess.PIPE)
        for seed in (0, 1)
    ]
    for search in both:
        errors = search.communicate(timeout=120)[1]
        assert search.returncode == 0, errors
    store = open_database(server)
    (workload,) = store.workloads()
    found = sorted((each.seed, each.index) for each in store.records(workload.hash, "") if each.index >= 0)
    assert found == [(seed, index) for seed in (0, 1) for index in range(3)]


def test_tune_tir(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "1")
    builder = ms.builder.DaskBuilder(machines.address)
    runner = ms.runner.DaskRunner(machines.address, evaluator_config=ms.runner.EvaluatorConfig(1, 1, 1))
    database = ms.tune_tir(
        tw.ir.IRModule({"main": scale}),
        str(_core.Target("native").with_num_cores(1)),
        work_dir=str(tmp_path),
        max_trials_global=6,
        num_trials_per_iter=3,
        builder=builder,
        runner=runner,
        cost_model="random",
        space=ms.space_generator.ScheduleFn(tiles),
    )
    builder.close()  # before the scheduler goes, which they would look for
    runner.close()
    rows = database.get_all_tuning_records()
    assert len(rows) == 6 and all(row.run_secs for row in rows)


def test_tasks_of_a_module_are_measured_side_by_side(machines: Machines, tmp_path: Path) -> None:
    machines.worker("--measure", "1", "--build", "1")
    builder, runner = ms.builder.DaskBuilder(machines.address), ms.runner.DaskRunner(machines.address)
    shapes = {"a": (64, 64, 64), "b": (32, 64, 96), "c": (96, 32, 64)}
    database = ms.tune_tir(
        tw.ir.IRModule({name: workloads.matmul(*shape) for name, shape in shapes.items()}),
        str(_core.Target("native").with_num_cores(1)),
        work_dir=str(tmp_path),
        max_trials_global=9,
        num_trials_per_iter=3,
        builder=builder,
        runner=runner,
        cost_model="random",
    )
    builder.close()
    runner.close()
    rows = database.get_all_tuning_records()
    # Each kernel was compared with its own program, so each program has some that are right.
    measured = [row for row in rows if row.run_secs and max(row.run_secs) < 1.0]
    assert len({str(row.workload.mod.script()) for row in measured}) == 3


def test_native_means_one_processor(machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch = "from tilewright.cluster import labels\nlabels.native_key = lambda: 'llvm -mcpu=haswell -num-cores=1'"
    machines.worker("--measure", "5", "--build", "1", patch=patch)
    with pytest.raises(tw.ArgumentError) as error:
        tw.tune(scale, space=tiles, trials=2, progress=None, cluster=machines.address)
    assert error.value.code == "cluster/native"
    assert "haswell" in str(error.value) and labels.native_key() in str(error.value)
    with contextlib.closing(ms.runner.DaskRunner(machines.address)) as runner:
        builder = ms.builder.DaskBuilder(machines.address)
        with contextlib.closing(builder), pytest.raises(tw.ArgumentError) as same:
            ms.tune_tir(scale, "native -num-cores=1", str(tmp_path / "work"), 4, builder=builder, runner=runner)
        assert same.value.code == "cluster/native" and str(same.value) == str(error.value)
        with contextlib.closing(builder), pytest.raises(tw.ArgumentError, match="not on 'opencl'") as device:
            ms.tune_tir(scale, "opencl", str(tmp_path / "work"), 4, builder=builder, runner=runner)
        assert device.value.code == "tune/device"

    # The limits of this machine are none of theirs. The batch follows from the workers that measure for the target.
    asked: dict[str, Any] = {"space": tiles, "trials": 2, "cluster": machines.address}
    asked |= {"progress": "plain", "database": tmp_path / "t.db"}
    with contextlib.suppress(tw.ResourceError):  # of a processor that lacks what haswell has
        tw.tune(scale, **asked, seconds=120, target="llvm -mcpu=haswell")
    text = capsys.readouterr().out
    assert "tuning scale for llvm -mcpu=haswell -num-cores=1" in text and "roof" not in text
    with contextlib.suppress(tw.ResourceError):
        tw.tune(scale, **asked, seconds=8, target="llvm -mcpu=znver3")  # waits for a worker to the end
    assert "znver3 -num-cores=1' (there are some for 'llvm -mcpu=haswell -num-cores=1')" in capsys.readouterr().out
    assert kept_batches(tmp_path / "t.db") == ["10", "8"]  # of five workers for haswell, and none for znver3
