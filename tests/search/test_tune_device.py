"""Searches for a device: candidates are measured in its memory, and what is stored is right."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms
from tilewright.report import database_report
from tilewright.report.database_report import report_on
from tilewright.report.page import page
from tilewright.script import from_source
from tilewright.search.device_times import NOT_AS_WRITTEN
from tilewright.search.expectations import Expectations
from tilewright.task.task import task_of


def product(m: int, n: int, k: int) -> Any:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r]), name="C")
    return te.create_prim_func([a, b, c])


def integers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")


def test_a_product_is_tuned(tmp_path):
    program, database = product(36, 40, 24), tmp_path / "records.db"
    result = tw.tune(program, target="opencl", trials=2, seed=1, database=database, progress=None)
    a, b = integers(36, 24), integers(24, 40, seed=1)
    np.testing.assert_array_equal(result.kernel(a, b), a @ b)
    record = result.record
    assert record is not None and record.target.startswith("opencl") and min(record.seconds) > 0
    name, _, platform, driver = _core.opencl_devices()[_core.default_opencl_device()].split("\n")
    assert json.loads(record.host)["device"] == name
    versions = json.loads(record.versions)
    assert versions["driver"] == f"{platform} {driver}" and platform in versions["compiler"]
    assert result.progress.outcomes.get("ok", 0) >= 1
    check_report(result, name, f"{platform} {driver}")
    stored = tw.compile(program, target="opencl", database=database)
    device = tw.device("opencl")
    np.testing.assert_array_equal(stored(device.array(a), device.array(b)).numpy(), a @ b)


def check_report(result: Any, name: str, driver: str) -> None:
    """All times are of the device, and so is the limit that they are compared with."""
    table, times = str(result.table()), result.times()
    assert result.runs_here and list(times) == ["by rules", "best found"]
    assert result.speedup == times["by rules"] / times["best found"]
    assert f"opencl:0 ({name}, {driver})" in table and NOT_AS_WRITTEN in table
    assert " %" in table and any(f"of {limit}" in table for limit in ("arithmetic", "cache", "memory"))
    assert "on all cores" not in table and "vector ports" not in table
    there = dataclasses.replace(result, record=SimpleNamespace(target="cuda", median=1e-3), _cache={})
    assert not there.runs_here and there.times() == {"best found": 1e-3} and there.speedup is None


def test_a_search_of_meta_schedule(tmp_path):
    program = product(16, 16, 8)
    database = ms.tune_tir(program, "opencl", str(tmp_path), 1, num_trials_per_iter=1, seed=3)
    times = [float(s) for record in database.get_all_tuning_records() for s in record.run_secs]
    assert times and min(times) < 1e9
    schedule = ms.tir_integration.compile_tir(database, program, "opencl")
    a, b = integers(16, 8), integers(8, 16, seed=1)
    np.testing.assert_array_equal(tw.compile(schedule, target="opencl")(a, b), a @ b)
    with pytest.raises(tw.ResourceError) as raised:
        ms.tune_tir(program, "cuda", str(tmp_path / "cuda"), 1)
    assert raised.value.code == "measure/no-device"


SCALED = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            {store}
"""
WRITTEN = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in range(64):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * T.float32(2)
"""
GOOD = SCALED.format(store="B[v] = A[v] * T.float32(2)")
ENDLESS = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        B[i] = A[i]
        for k in range(1000000):
            for l in range(1000000):
                B[i] = B[i] * A[63 - i] + T.cast(k + l, "float32")
"""
CROWDED = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in T.thread_binding(16384, thread="threadIdx.x"):
        if i < 64:
            B[i] = A[i] * T.float32(2)
"""


def measured(sources: list[str], target: str = "opencl -max_threads_per_block=16384", **options: Any) -> list[Any]:
    """Return (outcome, seconds, error) of each candidate."""
    task = task_of(from_source(WRITTEN))
    expectations = Expectations(task, {}, seed=0, seconds=None)
    pipeline = _core.MeasurePipeline(
        written=task.module,
        function=task.entry,
        arguments=expectations.arguments(),
        judge=expectations.judge,
        reduction_length=1,
        target=_core.Target(target),
        options=_core.PipelineOptions(device=True, race=_core.RaceRules.steady(2, 1, 1e-4, 1.0), **options),
    )
    try:
        for source in sources:
            pipeline.submit(_core.as_module(from_source(source)))
        found: dict[int, Any] = {}
        while len(found) < len(sources):
            for number, outcome, seconds, error in pipeline.poll(1.0):
                found[number] = (outcome, seconds, error)
        return [found[number] for number in range(len(sources))]
    finally:
        pipeline.close()


def test_what_fails_on_the_device_costs_one_helper_and_nobody_else():
    wrong = {
        "behind the end of B, at byte 0": SCALED.format(
            store="B[v] = A[v] * T.float32(2)\n            B[v + 1] = A[v]"
        ),
        "before the start of B, at byte -4": SCALED.format(
            store="B[v] = A[v] * T.float32(2)\n            B[v - 1] = T.float32(1)"
        ),
        "B[": SCALED.format(store="B[v] = A[v] * T.float32(3)"),
        "cannot be launched": CROWDED,
        "did not come back": ENDLESS,
    }
    sources = [source for bad in wrong.values() for source in (bad, GOOD)]
    results = measured([GOOD, *sources], build_timeout=20.0, run_timeout=5.0)
    assert [outcome for outcome, _, _ in results[0::2]] == ["ok"] * 6, results
    outcomes = ["wrong_result", "wrong_result", "wrong_result", "build_error", "run_timeout"]
    for (outcome, _, error), wanted, words in zip(results[1::2], outcomes, wrong, strict=True):
        assert outcome == wanted and words in error, (outcome, error)


def test_workspaces_begin_with_no_values():
    """What a kernel forgets to write would be zero in fresh memory."""
    forgetful = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    M = T.alloc_buffer((64,))
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("M"):
            v = T.axis.spatial(64, i)
            T.where(i < 63)
            M[v] = A[v] * T.float32(2)
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * T.float32(2) + M[v] * T.float32(0)
"""
    ((outcome, _, error),) = measured([forgetful])
    assert outcome == "wrong_result" and "B[63]" in error


def test_a_kernel_that_is_faulty_ends_its_helper():
    far = SCALED.format(store="B[v] = A[v] * T.float32(2)\n            B[v + 1000000000] = A[v]")
    results = measured([far, GOOD])
    assert [outcome for outcome, _, _ in results] == ["run_crash", "ok"], results


def test_accumulators_of_a_thread_may_need_many_registers():
    tiles = """
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        L = T.decl_buffer((2048,), scope="local")
        for j in range(2048):
            L[j] = A[i * 16 + j % 16]
        for j in range(16):
            B[i * 16 + j] = L[j] + L[j + 2032]
"""
    assert measured([tiles])[0][0] == "ok"


def test_what_cannot_be_measured_is_refused_at_once():
    with pytest.raises(tw.ResourceError) as raised:
        tw.tune(product(16, 16, 16), target="cuda", trials=1, progress=None)
    assert raised.value.code == "measure/no-device"
    with pytest.raises(tw.ArgumentError) as raised:
        tw.tune(product(16, 16, 16), target="opencl", trials=1, cluster="tcp://127.0.0.1:1", progress=None)
    assert raised.value.code == "tune/device"


def test_the_command_tunes_for_a_device(tmp_path, capsys):
    from typer.testing import CliRunner

    from tilewright.cli.commands import app

    (tmp_path / "doubled.py").write_text(f"from tilewright.script import tir as T\n\n{WRITTEN}")
    arguments = ["tune", str(tmp_path / "doubled.py"), "--target", "opencl", "--trials", "2", "--out", str(tmp_path)]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    # The rows of the table are kernels of the device, and no limit of the processor is in it.
    text = outcome.output + capsys.readouterr().out
    assert "tuning main for opencl:" in text and "; the roof is " in text and "on opencl:" in text
    assert NOT_AS_WRITTEN in text.replace("\n", " ")
    assert "by rules" in text and "best found" in text
    assert "vector ports" not in text and "as written  " not in text


def test_a_report_on_records_compares_with_the_device_that_measured(tmp_path):
    program, database = product(36, 40, 24), tmp_path / "records.db"
    tw.tune(program, target="opencl", trials=2, seed=1, database=database, progress=None)
    (task,) = report_on(database).tasks
    roofline = task.roofline
    assert roofline is not None and roofline.roofs.threads == 0 and roofline.roofs.levels[-1].name == "memory"
    # The program as it was written ran on the host.
    assert [each.name for each in task.baselines] == ["heuristic schedule"]
    text = page(report_on(database))
    assert "against the limits of the device" in text and "vector ports" not in text
    assert database_report._device_roofs("opencl", '{"device": "another"}') is None
    assert database_report._device_roofs("opencl", "harmed") is None
