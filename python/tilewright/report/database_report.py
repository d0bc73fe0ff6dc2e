"""The report on a database: progress of the best time, comparison with the unscheduled program and its heuristic
schedule, failures with reasons, distance to the limits of this machine, the best schedules, and the time breakdown."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright import _core, ir
from tilewright._core import Record
from tilewright.database.damage import check_intact
from tilewright.database.origins import origin_of, origin_table
from tilewright.database.records import (
    is_cold,
    read_database,
    records_by_target,
    schedule_of,
    serves,
    sizes_of,
    steps_of,
    title_of,
)
from tilewright.database.session_notes import Finals, load_finals, load_refusals, load_times, update_reference_seconds
from tilewright.errors import Error
from tilewright.kernel.device_roofs import device_roofs
from tilewright.kernel.kernel import compile_task
from tilewright.report.charts import short
from tilewright.report.profiler import PartTimes, time_table
from tilewright.report.target_names import short_targets
from tilewright.script.scripts import from_source
from tilewright.support import machine
from tilewright.support.json_text import parse_json
from tilewright.tables import Table
from tilewright.task.task import Task, task_of
from tilewright.timing import NO_WORK, Work, format_seconds, format_share

__all__ = ["Baseline", "BestSchedule", "DatabaseReport", "Roofline", "TaskReport", "Trial", "report_on"]

#: outcome of correct candidates that were stopped because they were slow
STOPPED = "slow_stopped"
#: outcome of records of other programs whose seconds are none
NO_TIME = "no time"
#: least seconds of a call: a fraction of a cycle
LEAST_SECONDS = 1e-12
ORDINALS = {1: "best", 2: "second-best", 3: "third-best"}
#: message for a database without records
EMPTY = "It holds no records: `tilewright tune FILE` and tw.tune(program, database=...) add some."
WRITTEN, HEURISTIC = "as written", "heuristic schedule"
#: series of measurements: only times of the same series are compared
FINALS = "timed alternately"
SEARCH = "in the search"
#: series of the unscheduled program's time, if no other series has it
ONE_CALL = "one call, before the search"


@dataclass(frozen=True)
class Trial:
    """One record: `seconds` of a call, None for failures; `since`: seconds since the first record of its task."""

    number: int
    seconds: float | None
    since: float
    outcome: str
    error: str


@dataclass(frozen=True)
class BestSchedule:
    """One of the best records.

    Attributes:
        number: number of its trial; 0 for the unscheduled program.
        seconds: seconds of a call, in the same series of measurements as the others and at least the seconds of the
            best record; None if that series lacks it, as in finals of earlier versions.
        is_as_fast: whether the finals show no clear difference from the best record; `seconds` are then those of the
            best.
        steps: the schedule's steps as Python.
        script: the scheduled program.
        assembly: assembly, for the best record only; "" if it cannot be compiled here.
    """

    number: int
    seconds: float | None
    is_as_fast: bool
    steps: tuple[str, ...]
    script: str
    assembly: str


@dataclass(frozen=True)
class Baseline:
    """The performance without a search.

    Attributes:
        name: "as written" or "heuristic schedule".
        seconds: seconds of a call.
        series: series of measurements that the time belongs to.
        number: number of the trial with the same program; 0 if there is none.
    """

    name: str
    seconds: float
    series: str
    number: int = 0


@dataclass(frozen=True)
class Roofline:
    """The best record in relation to the limits of this machine.

    Attributes:
        work: operations and traffic of one call.
        seconds: seconds of a call with the best record.
        roofs: measured limits for the same number of threads.
        binding: the limit that binds.
    """

    work: Work
    seconds: float
    roofs: machine.Roofs
    binding: machine.Roof

    @property
    def intensity(self) -> float:
        """Return the operations per byte of compulsory traffic."""
        return self.work.flops / max(self.work.bytes, 1.0)

    @property
    def rate(self) -> float:
        """Return the operations per second."""
        return self.work.flops / self.seconds

    @property
    def share(self) -> float:
        """Return the speed as a fraction of the binding limit."""
        return self.binding.seconds / self.seconds


@dataclass(frozen=True)
class TaskReport:
    """One program on one target.

    Attributes:
        stopped: number of correct trials that were stopped early because they were slow; not failures.
        failures: count and first message by outcome.
        refusals: count and first message by code, for samples that were refused before they were built; not trials.
        winner: trial of the best record; None if that is the unscheduled program, which is not a trial.
        best_seconds: seconds of the best record, from the finals if there were any; None without a best record.
        best: the best records, the best first.
        series: series of measurements of their times: the finals, or the search.
        baselines: the unscheduled program and its heuristic schedule, if they were timed.
        source: script of the unscheduled program.
        heuristic: steps of the heuristic schedule and the scheduled program; None without a heuristic schedule.
        roofline: None if the program is unknown, has no operations or traffic, or was measured on another machine.
        origins: table of machines and versions that measured; None if no record has an origin.
        remark: why something is missing, or "".
    """

    name: str
    hash: str
    target: str
    work: Work
    trials: tuple[Trial, ...]
    stopped: int
    failures: dict[str, tuple[int, str]]
    refusals: dict[str, tuple[int, str]]
    winner: Trial | None
    best_seconds: float | None
    best: tuple[BestSchedule, ...]
    series: str
    baselines: tuple[Baseline, ...]
    source: str
    heuristic: tuple[str, str] | None
    roofline: Roofline | None
    origins: Table | None
    remark: str

    @property
    def facts(self) -> str:
        """Return a description of a call's work."""
        if not self.work.flops and not self.work.bytes:
            return "its work is unknown"
        unit = "floating-point operations" if "float" in self.work.dtype else "operations"
        return f"{short(self.work.flops)} {unit}, {short(self.work.bytes)} bytes of compulsory traffic a call"

    def progress(self) -> list[tuple[Trial, float]]:
        """Return the trials that were better than all earlier ones, each with its seconds."""
        found: list[tuple[Trial, float]] = []
        for trial in self.trials:
            if trial.seconds is not None and (not found or trial.seconds < found[-1][1]):
                found.append((trial, trial.seconds))
        return found

    def progress_table(self) -> Table:
        """Return the progress of the best time; the last row is the best record, timed in the finals if there were
        any."""
        unit = machine.rate_unit(self.work.dtype)
        rows = [
            (str(trial.number), f"{trial.since:.0f} s", format_seconds(seconds), _rate(self.work, seconds))
            for trial, seconds in self.progress()
        ]
        if self.had_finals and self.best_seconds is not None:
            number = f"{WRITTEN}, " if self.winner is None else f"{self.winner.number}, "
            row = (f"{number}{FINALS}", "", format_seconds(self.best_seconds), _rate(self.work, self.best_seconds))
            rows.append(row)
        return Table("how the best time fell", ("trial", "after", "time", unit), tuple(rows))

    @property
    def had_finals(self) -> bool:
        """Return whether the time of the best record is from the finals, in which the best few are timed
        alternately."""
        return self.series == FINALS

    @property
    def gain(self) -> float | None:
        """Return the speed-up of the best record over the unscheduled program; None if they were not timed
        alternately."""
        written = [each.seconds for each in self.baselines if each.name == WRITTEN and each.series == FINALS]
        return written[0] / self.best_seconds if written and self.best_seconds and self.had_finals else None

    @property
    def advice(self) -> str:
        """Return the advice that follows from the baselines, or ""."""
        for each in self.baselines:
            is_faster = each.series == FINALS and self.had_finals and each.seconds < 0.95 * (self.best_seconds or 0.0)
            if is_faster and each.name == HEURISTIC:
                return f"the {HEURISTIC} is faster than what this space holds, as far as it was searched"
        return ""

    def comparison_table(self) -> Table:
        """Return a comparison of the best schedules with the baselines."""
        written = next((each.seconds for each in self.baselines if each.name == WRITTEN), None)

        def row(name: str, seconds: float | None, series: str) -> tuple[str, ...]:
            if seconds is None:
                return (name, "not kept", "", "", series)
            gain = f"{written / seconds:.2f} x" if written else ""
            return (name, format_seconds(seconds), _rate(self.work, seconds), gain, series)

        rows = [
            row(each.name + (f" (trial {each.number})" if each.number else ""), each.seconds, each.series)
            for each in self.baselines
        ]
        for number, best in enumerate(self.best, 1):
            series = "no clear difference from the best" if best.is_as_fast else self.series
            rows.append(row(f"{_ordinal(number)} ({_trial(best.number)})", best.seconds, series))
        columns = ("", "time", machine.rate_unit(self.work.dtype), "speed-up", "measured")
        return Table(f"the best against the baselines; speed-up over the program {WRITTEN}", columns, tuple(rows))

    def failure_table(self) -> Table:
        """Return the failures, most frequent first."""
        return Table("what failed", ("outcome", "trials", "first message"), _by_count(self.failures))

    def refusal_table(self) -> Table:
        """Return the refusals, most frequent first."""
        return Table(
            "samples that were refused, no trials", ("rule", "samples", "first message"), _by_count(self.refusals)
        )

    def texts(self) -> Iterable[tuple[str, str]]:
        """Yield title and text of the best schedules, the unscheduled program and its heuristic schedule."""
        for number, best in enumerate(self.best, 1):
            name = f"{_ordinal(number)} schedule ({_trial(best.number)})"
            if best.is_as_fast:
                name += ", no clear difference from the best"
            elif best.seconds is not None:
                name += f", {format_seconds(best.seconds)}"
            yield f"{name}: its steps", "\n".join(best.steps) or "pass"
            yield f"{name}: the program that they lead to", best.script
            if best.assembly:
                yield f"{name}: its assembly", best.assembly
        times = {each.name: f", {format_seconds(each.seconds)}" for each in self.baselines}
        yield f"the program {WRITTEN}, without a schedule{times.get(WRITTEN, '')}", self.source
        if self.heuristic is not None:
            name = f"{HEURISTIC}{times.get(HEURISTIC, '')}"
            yield f"{name}: its steps", self.heuristic[0]
            yield f"{name}: the program that they lead to", self.heuristic[1]

    def tables(self) -> Iterable[Table]:
        """Yield the tables about this task."""
        if self.best:
            yield self.comparison_table()
        if self.progress():
            yield self.progress_table()
        if self.failures:
            yield self.failure_table()
        if self.refusals:
            yield self.refusal_table()
        if self.origins is not None:
            yield self.origins


def _ordinal(number: int) -> str:
    return ORDINALS.get(number, f"{number}th-best")


def _trial(number: int) -> str:
    return f"trial {number}" if number else WRITTEN


def _by_count(reasons: dict[str, tuple[int, str]]) -> tuple[tuple[str, ...], ...]:
    rows = sorted(reasons.items(), key=lambda item: -item[1][0])
    return tuple((name, str(count), message) for name, (count, message) in rows)


@dataclass(frozen=True)
class DatabaseReport:
    """The complete report.

    Attributes:
        times: for each session that reported it, its name and its time breakdown in seconds.
    """

    path: str
    tasks: tuple[TaskReport, ...]
    times: tuple[tuple[str, dict[str, float]], ...]

    @functools.cached_property
    def short_targets(self) -> dict[str, str]:
        """Return the short names of the targets."""
        return short_targets(task.target for task in self.tasks)

    def title(self, task: TaskReport) -> str:
        """Return the name of the program, followed by the beginning of its hash if another program has the same
        name."""
        hashes = {other.hash for other in self.tasks if other.name == task.name}
        return task.name if len(hashes) == 1 else f"{task.name} {task.hash[:6]}"

    def heading(self, task: TaskReport) -> str:
        """Return the title of a task, with its target if the program has several."""
        alike = sum(other.hash == task.hash and other.name == task.name for other in self.tasks)
        return self.title(task) if alike == 1 else f"{self.title(task)} on {self.short_targets[task.target]}"

    def overview(self) -> Table:
        """Return a table with one row for each task."""
        rows = []
        for task in self.tasks:
            best, failed = task.best_seconds, sum(count for count, _ in task.failures.values())
            cells = ("", "", "", "")
            if best is not None:
                share = "" if task.roofline is None else _share(task.roofline)
                gain = "" if task.gain is None else f"{task.gain:.2f} x"
                cells = (format_seconds(best), _rate(task.work, best), gain, share)
            counts = (str(len(task.trials)), str(task.stopped), str(failed))
            rows.append((self.title(task), self.short_targets[task.target], *counts, *cells))
        columns = (
            "program",
            "target",
            "trials",
            "stopped early",
            "failed",
            "best",
            "Gop/s",
            "speed-up",
            "of the limit",
        )
        return Table(f"records in {self.path}", columns, tuple(rows))

    def time_table(self) -> Table:
        """Return the time breakdown of all sessions."""
        sessions = f"{len(self.times)} session{'' if len(self.times) == 1 else 's'}"
        return time_table(f"where the time of {sessions} went", [seconds for _, seconds in self.times])

    def tables(self) -> Iterable[Table]:
        """Yield the tables that are printed in a terminal."""
        yield self.overview()
        for task in self.tasks:
            for table in task.tables():
                yield Table(f"{self.heading(task)}: {table.title}", table.columns, table.rows)
        if self.times:
            yield self.time_table()


def _rate(work: Work, seconds: float) -> str:
    return f"{work.flops / seconds / 1e9:.1f}" if work.flops else ""


def _share(roofline: Roofline) -> str:
    return f"{format_share(roofline.share, roofline.work)} ({roofline.binding.name})"


def report_on(path: str | os.PathLike[str], *, top: int = 3) -> DatabaseReport:
    """Report on the records of a file or server, which is not changed. Measures the limits of this machine, and
    compiles the best schedules.

    Args:
        path: the file, or "postgresql://...".
        top: number of best schedules to show for each task.

    Raises:
        tilewright.ResourceError: the file does not exist or is not a Tilewright database.
    """
    store = read_database(path)
    check_intact(path)
    tasks = []
    for workload, by_target in records_by_target(store):
        known, remark = _known_task(workload)
        for target, rows in sorted(by_target.items()):
            best = [row for row in store.top_k(workload.hash, target, sys.maxsize) if _has_time(row)] if target else []
            refusals = load_refusals(store, workload.hash, target)
            won = store.finals(workload.hash, target)
            finals = load_finals(store, workload.hash, target)
            ranking = _ranked(rows, best, won, finals, top)
            baselines = _baselines(store, workload.hash, target, rows, finals, ranking)
            heuristic = finals.heuristic if finals is not None else ""
            tasks.append(_task_report(workload, target, rows, ranking, baselines, heuristic, refusals, known, remark))
    times = tuple((session, PartTimes(seconds)) for session, seconds in load_times(store))
    return DatabaseReport(store.path, tuple(tasks), times)


def _known_task(workload: _core.Workload) -> tuple[Task | None, str]:
    try:
        program = from_source(workload.script)
        module = ir.IRModule({"main": program}) if isinstance(program, ir.PrimFunc) else program
        return task_of(module, sizes_of(workload), cold=is_cold(workload)), ""
    except Error as error:
        return None, f"the program cannot be read: {str(error).partition(chr(10))[0]}"


class _Ranking(NamedTuple):
    """The best records, the best first: each row with its seconds and whether it is as fast as the best; and the series
    of measurements of all seconds."""

    best: Sequence[tuple[Record, float | None, bool]]
    series: str


def _ranked(
    rows: list[Record], best: list[Record], won: _core.Finals | None, finals: Finals | None, top: int
) -> _Ranking:
    """Return the records that can be compared with the best one: those of the same finals, or else of the search.

    Args:
        rows: all records, with the times of the search.
        best: the correct records, in the order of the database.
        won: the record that won the finals, or None.
        finals: the measurements of the finals, or None if unknown.
        top: maximum number of records to return.
    """
    if not best:
        return _Ranking([], SEARCH)
    first = best[0]
    # There were no finals, or a later record is faster than their winner.
    if won is None or first.id != won.winner:
        times = {row.id: row.median for row in rows}
        others = sorted((row for row in best[1:]), key=lambda row: times[row.id])
        slower = ((row, times[row.id], False) for row in others if times[row.id] >= first.median)
        return _Ranking([(first, first.median, False), *slower][:top], SEARCH)
    if finals is None:
        return _Ranking([(first, first.median, False), *((row, None, False) for row in best[1:])][:top], FINALS)
    known = {row.id: row for row in best}
    timed = [each for each in finals.times[1:] if each.kind == "trial" and each.record in known]
    found = [(first, first.median, False)]
    for each in sorted(timed, key=lambda each: (each.is_clearly_slower, each.seconds)):
        seconds = max(each.seconds, first.median) if each.is_clearly_slower else first.median
        found.append((known[each.record], seconds, not each.is_clearly_slower))
    return _Ranking(found[:top], FINALS)


def _baselines(
    store: Any, workload: str, target: str, rows: list[Record], finals: Finals | None, ranking: _Ranking
) -> tuple[Baseline, ...]:
    """Return the baselines with times in the series of the best record; for the unscheduled program at least one
    call."""
    numbers = {row.id: number for number, row in enumerate((row for row in rows if row.index >= 0), 1)}
    found = {}
    if finals is not None and ranking.series == FINALS:
        names = {"written": WRITTEN, "heuristic": HEURISTIC}
        for each in finals.times:
            if each.kind in names:
                name = names[each.kind]
                found[name] = Baseline(name, each.seconds, FINALS, numbers.get(each.record, 0))
    # For a device, this one call ran on the host.
    if (
        WRITTEN not in found
        and not _is_for_device(target)
        and (seconds := update_reference_seconds(store, workload, target, 0.0)) > 0
    ):
        found[WRITTEN] = Baseline(WRITTEN, seconds, ONE_CALL)
    return tuple(found[name] for name in (WRITTEN, HEURISTIC) if name in found)


def _processor_roofs(target: str) -> machine.Roofs | None:
    measured = _core.Target(target)
    if not serves(measured.with_num_cores(1), _core.Target("native")):
        return None
    return machine.roofs(measured.num_cores)


def _device_roofs(target: str, host: str) -> machine.Roofs | None:
    here = json.loads(origin_of(_core.Target(target)).host).get("device")
    try:
        there = parse_json(host).get("device")
    except (ValueError, AttributeError):  # damaged, or of a version that records less
        return None
    return device_roofs(target) if here and here == there else None


def _is_for_device(target: str) -> bool:
    try:
        return machine.is_for_device(target)
    except Error:  # from a version that knows other targets
        return False


def _task_report(
    workload: _core.Workload,
    target: str,
    rows: list[Record],
    ranking: _Ranking,
    baselines: tuple[Baseline, ...],
    heuristic: str,
    refusals: dict[str, tuple[int, str]],
    task: Task | None,
    remark: str,
) -> TaskReport:
    start = min((moment for row in rows if (moment := _moment(row.created))), default=0.0)
    trials, failures, stopped = [], dict[str, tuple[int, str]](), 0
    rows = [row for row in rows if row.index >= 0]
    for number, row in enumerate(rows, 1):
        right = row.outcome == "ok" and _has_time(row)
        since = max(0.0, _moment(row.created) - start)
        trials.append(Trial(number, row.median if right else None, since, row.outcome, row.error))
        if row.outcome == STOPPED:
            stopped += 1
        elif not right:
            outcome = NO_TIME if row.outcome == "ok" else row.outcome
            count, first = failures.get(outcome, (0, row.error))
            failures[outcome] = (count + 1, first)
    by_id = {row.id: trial for trial, row in zip(trials, rows, strict=True)}
    best, seconds, _ = ranking.best[0] if ranking.best else (None, None, False)
    shown, roofline, by_heuristic = [], None, None
    if task is not None:
        for row, time, is_as_fast in ranking.best:
            trial = by_id.get(row.id)
            number = 0 if trial is None else trial.number
            try:
                shown.append(_best(task, row, number, time, is_as_fast, target, with_assembly=row is best))
            except Error as error:
                remark = remark or f"a schedule cannot be applied: {str(error).partition(chr(10))[0]}"
        roofline = _roofline(task, target, seconds, "" if best is None else best.host)
        if heuristic:
            with contextlib.suppress(Error):  # from a version with other steps
                schedule = schedule_of(task.module, heuristic, sparse=task.sparse)
                by_heuristic = ("\n".join(steps_of(schedule.trace)) or "pass", schedule.mod.script())
    work = NO_WORK if task is None else task.work
    return TaskReport(
        title_of(workload),
        workload.hash,
        target,
        work,
        tuple(trials),
        stopped,
        failures,
        refusals,
        None if best is None else by_id.get(best.id),
        seconds,
        tuple(shown),
        ranking.series,
        baselines,
        workload.script,
        by_heuristic,
        roofline,
        origin_table(rows),
        remark,
    )


def _has_time(row: Record) -> bool:
    return bool(row.seconds) and LEAST_SECONDS <= row.median < math.inf


def _moment(created: str) -> float:
    try:
        return datetime.datetime.fromisoformat(created.replace("Z", "+00:00")).timestamp()
    except ValueError:  # damaged
        return 0.0


def _best(
    task: Task,
    row: Record,
    number: int,
    seconds: float | None,
    is_as_fast: bool,
    target: str,
    *,
    with_assembly: bool,
) -> BestSchedule:
    schedule = schedule_of(task.module, row.trace, sparse=task.sparse)
    assembly = ""
    if with_assembly:
        with contextlib.suppress(Error):  # it may be for another processor
            assembly = compile_task(task, schedule, target).inspect("asm")
    return BestSchedule(number, seconds, is_as_fast, steps_of(schedule.trace), schedule.mod.script(), assembly)


def _roofline(task: Task, target: str, seconds: float | None, host: str) -> Roofline | None:
    """Return the limits to compare the best time of a task with; None if the records are from another machine.

    Args:
        host: the measuring host, as in the record.
    """
    if not seconds or not task.work.flops or not task.work.bytes:
        return None
    roofs = _device_roofs(target, host) if _is_for_device(target) else _processor_roofs(target)
    if roofs is None:
        return None
    work = task.work
    roof = roofs.binding(work.flops, work.bytes, work.dtype, cold=task.cold)
    return Roofline(work, seconds, roofs, roof)
