"""Descending from the best records: one decision after the other is changed a little, as long as that is faster."""

from __future__ import annotations

import math
import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tilewright import _core
from tilewright.database.origins import Origin
from tilewright.errors import ArgumentError, Error
from tilewright.meta_schedule import answers
from tilewright.meta_schedule.arg_info import ArgInfo
from tilewright.meta_schedule.builder import Builder, BuilderInput, LocalBuilder, remove_build_dir
from tilewright.meta_schedule.database import FAILED, Database, TuningRecord, Workload, record_in, records_in
from tilewright.meta_schedule.database_kinds import database_in
from tilewright.meta_schedule.evaluator import EvaluatorConfig
from tilewright.meta_schedule.local_runner import LocalRunner
from tilewright.meta_schedule.runner import Reference, Runner, RunnerInput
from tilewright.meta_schedule.task_scheduler import build_reference
from tilewright.schedule import Schedule, Trace
from tilewright.support.machine import TargetLike

__all__ = ["PostOpt", "descend", "is_faster", "neighbors"]

#: samples of each candidate: enough for the test below
SAMPLES = EvaluatorConfig(number=1, repeat=10, min_repeat_ms=3)
#: how likely a difference as large as the one that was seen may be where there is none
P_VALUE = 0.05


class PostOpt:
    """Descends from the best record of each program of a folder in which a session was.

    Args:
        work_dir: the folder, with the files of a :class:`JSONDatabase` or of a :class:`SQLiteDatabase`.
        target: of the records.
        trials: candidates to measure, of each program.
    """

    def __init__(self, work_dir: str | os.PathLike[str], target: TargetLike, trials: int = 100) -> None:
        if trials < 1:
            raise ArgumentError.of("tune/descent", f"trials is {trials}", "at least 1 candidate has to be measured")
        self.database = database_in(work_dir)
        self.target, self.trials = _core.Target(target), trials

    def run(self) -> None:
        """All programs; what is measured is kept in the database."""
        workloads: dict[int, Workload] = {}
        for record in records_in(self.database):
            workloads.setdefault(id(record.workload), record.workload)
        builder, runner = LocalBuilder(), LocalRunner(evaluator_config=SAMPLES)
        try:
            for workload in workloads.values():
                descend(self.database, workload, self.target, self.trials, builder, runner)
        finally:
            builder.close()
            runner.close()


def descend(
    database: Database, workload: Workload, target: TargetLike, trials: int, builder: Builder, runner: Runner
) -> TuningRecord | None:
    """The best record after changing one decision after the other of the best one that was there.

    A change is kept where it is faster beyond chance, in samples taken side by side. Each decision has its turn until
    none of them helps, or `trials` candidates were measured. None where there is no record to begin with.
    """
    best = record_in(database, workload.mod, target)
    if best is None:
        return None
    chosen = _core.Target(target)
    reference = None
    if isinstance(runner, LocalRunner) and runner.compares:
        reference = build_reference(builder, workload.mod, chosen)
    try:
        return _descend(database, best, chosen, trials, builder, runner, reference)
    finally:
        if reference is not None:
            shutil.rmtree(Path(reference.artifact_path).parent, ignore_errors=True)


def _descend(
    database: Database,
    best: TuningRecord,
    target: _core.Target,
    trials: int,
    builder: Builder,
    runner: Runner,
    reference: Reference | None,
) -> TuningRecord:
    workload, told = best.workload, answers.Told()
    left, fruitless, number = trials, 0, 0
    while left > 0 and fruitless < len(best.trace.decisions):
        step = list(best.trace.decisions)[number % len(best.trace.decisions)]
        number, fruitless = number + 1, fruitless + 1
        changed = list(_changed(best, step))[:left]
        if not changed:
            continue
        left -= len(changed)
        incumbent, *results = _measure([best.schedule(), *changed], target, builder, runner, reference, told)
        fastest = min(range(len(changed)), key=lambda i: statistics.median(results[i].seconds))
        records = [
            TuningRecord(sch.trace, workload, seconds, target, ArgInfo.from_entry_func(sch.mod), origin=origin)
            for sch, (seconds, origin) in zip(changed, results, strict=True)
        ]
        for record in records:
            database.commit_tuning_record(record)
        if is_faster(results[fastest].seconds, incumbent.seconds):
            best, fruitless = records[fastest], 0
    return best


def _changed(record: TuningRecord, step: Any) -> Iterator[Schedule]:
    for decision in neighbors(record.trace.decisions[step]):
        trace: Trace = record.trace.with_decision(step, decision)
        schedule = Schedule(record.workload.mod)
        try:
            trace.apply_to_schedule(schedule)
        except Error:  # the space has no such point
            continue
        yield schedule


def neighbors(decision: Any) -> Iterator[Any]:
    """The decisions next to one: a factor of a tile moved to another one; the next choice in the list."""
    if isinstance(decision, int):
        yield from (other for other in (decision - 1, decision + 1) if other >= 0)
        return
    tiles = list(decision)
    for source, extent in enumerate(tiles):
        factor = next((f for f in range(2, math.isqrt(max(extent, 0)) + 1) if extent % f == 0), extent)
        if factor < 2:
            continue
        for to in range(len(tiles)):
            if to != source:
                other = list(tiles)
                other[source] //= factor
                other[to] *= factor
                yield other


def is_faster(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the first samples are smaller beyond chance, by the rank test of Mann and Whitney (1947)."""
    pairs = len(first) * len(second)
    if not pairs or statistics.median(first) >= statistics.median(second):
        return False
    smaller = sum((a < b) + 0.5 * (a == b) for a in first for b in second)
    deviation = math.sqrt(pairs * (len(first) + len(second) + 1) / 12)
    return 0.5 * math.erfc((smaller - pairs / 2) / deviation / math.sqrt(2)) < P_VALUE


class _Measured(NamedTuple):
    seconds: list[float]  #: [1e10] where it failed
    origin: Origin = Origin()


def _measure(
    schedules: Sequence[Schedule],
    target: _core.Target,
    builder: Builder,
    runner: Runner,
    reference: Reference | None,
    told: answers.Told,
) -> list[_Measured]:
    built = answers.from_builder(builder, [BuilderInput(schedule.mod, target) for schedule in schedules])
    inputs = [
        RunnerInput(result.artifact_path, str(target.kind), ArgInfo.from_entry_func(schedule.mod), reference)
        for schedule, result in zip(schedules, built, strict=True)
        if result.artifact_path is not None
    ]
    futures = iter(answers.from_runner(runner, inputs))
    measured = []
    for build in built:
        result = None if build.artifact_path is None else answers.result_of(next(futures))
        told.look_at("descent", build, result)
        if build.artifact_path is None or result is None:
            measured.append(_Measured([FAILED]))
            continue
        measured.append(_Measured(result.run_secs or [FAILED], getattr(result, "origin", Origin())))
        remove_build_dir(build.artifact_path)
    return measured
