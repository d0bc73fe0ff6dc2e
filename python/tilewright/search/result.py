"""The result of a search, and its progress while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright._core import Record
from tilewright.cluster.labels import native_key, target_key
from tilewright.database.records import schedule_of
from tilewright.errors import ResourceError
from tilewright.kernel.device import device
from tilewright.kernel.kernel import compile_task
from tilewright.report.profiler import time_table
from tilewright.schedule import Schedule
from tilewright.search.device_times import NOT_AS_WRITTEN, times_on_device
from tilewright.search.progress import elsewhere, refused_text
from tilewright.support.machine import is_for_device, rate_unit
from tilewright.support.notes import note_heuristics
from tilewright.tables import Table
from tilewright.task.arguments import aligned, make_arrays
from tilewright.task.task import Task
from tilewright.timing import KernelCalls, Timing, compare, contention_label, format_seconds, format_share

if TYPE_CHECKING:
    from tilewright.kernel.kernel import Kernel
    from tilewright.search.reference_check import Verdict

#: seconds of a call of the program as it was written that is timed again to be shown, and of one that takes its turns
#: with the best one
_LONG_CALL_SECONDS, _SHORT_CALL_SECONDS = 1.0, 0.1


@dataclass(frozen=True)
class Progress:
    """Where a search is. Times in seconds; `failures` maps a code to how often and the first message, and so does
    `refusals` for samples that the schedule or the compiler refused, which are no trials.

    Attributes:
        reference_seconds: seconds of a call of the unscheduled program; 0 if it was not run.
        seconds: where the time went since the tuner began. What it did itself: "inputs" (arguments for kernels),
            "sampling", "lowering", "learning" (the cost model), "reporting" (results to the strategy), "judging"
            (whether the program as it was written is right), "recording"; and what helper processes did while it had
            nothing to do but wait: "starting", "reference", "building", "checking", "measuring", "finals", or
            "nothing".
        beside: what helper processes did in all: "building", of all of them together, "checking" and "measuring". It
            overlaps with all else.
        phase: "preparing" (of a search that was canceled before it began), "reference" (that program runs), "search",
            "finals" (the best are timed against one another), "done".
        budget_left: remaining seconds of the search's time limit; infinity without a limit.
        waiting_for: on a cluster, what the search waits for: a worker that measures, the scheduler; else "".
    """

    trials: int
    total: int
    earlier: int
    best_seconds: float
    best_index: int
    elapsed: float
    outcomes: dict[str, int]
    failures: dict[str, tuple[int, str]]
    attempts: int
    refused: int
    refusals: dict[str, tuple[int, str]]
    duplicates: int
    reference_seconds: float
    median_build_seconds: float
    seconds: dict[str, float]
    phase: str
    beside: dict[str, float] = field(default_factory=dict)
    budget_left: float = float("inf")
    waiting_for: str = ""

    @property
    def rate(self) -> float:
        """Return the candidates per second of this session."""
        return (self.trials - self.earlier) / self.elapsed if self.elapsed > 0 else 0.0

    @property
    def time_left(self) -> float:
        """Return the remaining seconds at the present rate, at most what remains of the time limit; infinity if neither
        is known."""
        by_rate = (self.total - self.trials) / self.rate if self.rate > 0 else float("inf")
        return max(min(by_rate, self.budget_left), 0.0)


@dataclass(frozen=True)
class TuneResult:
    """The result of a search.

    Attributes:
        record: the best candidate; None when none was correct.
        stop_reason: "trials", "seconds", "patience", "target", "roofline" (no kernel is faster on this machine by more
            than 3 %), "exhausted" or "canceled".
        verdict: how the unscheduled program, against which results are compared, was itself checked.
        inputs: arguments that were given where random ones make no sense, by name.
        seconds: where the time of the search went; see :attr:`Progress.seconds`. "preparing" is what came before the
            tuner, "showing" the progress, "other" the rest; these add up to all of it. What helper processes did
            meanwhile, of which only the waiting is among these, has names such as "beside/building".
        hosts: for a search on a cluster, the time breakdown of each worker; otherwise None.
    """

    task: Task
    record: Record | None
    progress: Progress
    stop_reason: str
    threads: int
    verdict: Verdict | None
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    _object: bytes | None = field(default=None, repr=False, compare=False)
    _failed: str = field(default="", repr=False, compare=False)  # with what a heuristic failed, if it did
    hosts: Table | None = field(default=None, repr=False, compare=False)
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        best = "no correct candidate" if self.record is None else f"best {format_seconds(self.record.median)}"
        return f"<TuneResult of {self.task.entry}: {best}, {self.progress.trials} trials ({self.stop_reason})>"

    def table(self) -> Table:
        """Compare what was found with the program as it was written, timed alternately when this is first called. If
        a call of that takes long, the times are those of the search. Notebooks show it too.

        On a device, the program as it was written does not run, and the heuristic schedule takes its place. All times
        are of the device, and compared with the limit of the device.
        """
        work = self.task.work
        columns: tuple[str, ...] = ("", "time", rate_unit(work.dtype), "GB/s", "speedup")
        found = self.times()
        first = next(iter(found.values()), 0.0)
        roof = self._cache.get("roof")
        rows = [
            (
                what,
                format_seconds(seconds),
                f"{work.flops / seconds / 1e9:.1f}",
                f"{work.bytes / seconds / 1e9:.1f}",
                f"{first / seconds:.2f} x" if first else "",
                *([] if roof is None else [format_share(roof.seconds / seconds, work)]),
            )
            for what, seconds in found.items()
            if seconds > 0
        ]
        where, runs = f"{self.threads} thread{'' if self.threads == 1 else 's'}", ""
        if self._is_for_device:
            where = elsewhere(self.best_record().target, self.threads, is_on_cluster=False)
            runs = f"; {NOT_AS_WRITTEN}"
            columns = (*columns, *([] if roof is None else [f"of {roof.name}"]))
        else:
            runs = "; result.kernel runs on as many threads, kernels of tw.compile on all cores"
        where += ", cold caches" * self.task.cold
        beside = contention_label(self._cache["disturbed"]) if "disturbed" in self._cache else ""
        tried = f"{self.progress.trials} trial{'' if self.progress.trials == 1 else 's'}"
        if self.stop_reason == "exhausted":
            tried += ": all that the space holds"
        if self.progress.refused:
            tried += f"; refused: {refused_text(self.progress)}"
        return Table(f"{self.task.entry}, {where}, {tried}{beside}{runs}", columns, tuple(rows))

    @property
    def runs_here(self) -> bool:
        """Return whether the best kernel runs on this machine: a cluster may measure for another processor, and a
        result may be read where its device is missing."""
        if self.record is not None and self._is_for_device:
            return device(self.record.target).exist
        if self.hosts is None or self.record is None:
            return True
        return target_key(_core.Target(self.record.target)) == native_key()

    def time_table(self) -> Table:
        """Return the time breakdown of the search."""
        return time_table(f"where the time of the search of {self.task.entry} went", [self.seconds])

    def times(self) -> dict[str, float]:
        """Return the seconds of a call "as written" and as "best found", as in :meth:`table`. On a device, the former
        is replaced by "by rules" if there is a heuristic schedule."""
        if "times" not in self._cache and self._is_for_device:
            self._cache["times"] = self._times_on_device()
        if "times" not in self._cache:
            # The search ran the program as it was written once, with cold caches and beside builds.
            times = {"as written": self.progress.reference_seconds}
            if self.record is not None:
                times["best found"] = self.record.median
                if self.runs_here and 0 < times["as written"] < _LONG_CALL_SECONDS:
                    times = self._timed(together=times["as written"] < _SHORT_CALL_SECONDS)
            self._cache["times"] = times
        known: dict[str, float] = self._cache["times"]
        return known

    @property
    def speedup(self) -> float | None:
        """Return the speedup of the best schedule over the unscheduled program, or over the heuristic schedule if a
        device does not run the former; None if these were not timed."""
        times = self.times()
        name, first = next(iter(times.items()), ("", 0.0))
        best = times.get("best found")
        return first / best if best and first and name != "best found" else None

    @property
    def _is_for_device(self) -> bool:
        return self.record is not None and is_for_device(self.record.target)

    def _times_on_device(self) -> dict[str, float]:
        best = self.best_record()
        if not self.runs_here:
            return {"best found": best.median}
        timed = times_on_device(self, make_arrays(self.task, self.inputs, seed=0), {})
        roof = timed["best"].roof
        self._cache["roof"] = roof if roof.name else None
        self._cache["disturbed"] = max(timing.disturbed for timing in timed.values())
        names = {"rules": "by rules", "best": "best found"}
        return {what: timed[name].median for name, what in names.items() if name in timed}

    def _timed(self, together: bool) -> dict[str, float]:
        """Time both alternately, or one after the other if the unscheduled program takes long, with few calls of it."""
        arrays = make_arrays(self.task, self.inputs, seed=0)
        values = [*self.task.call({name: aligned(array) for name, array in arrays.items()}).values()]
        calls = {
            "as written": KernelCalls(compile_task(self.task), values),
            "best found": KernelCalls(self.kernel, values),
        }
        parts = [calls] if together else [{what: call} for what, call in calls.items()]
        timed: dict[str, Timing] = {}
        for part in parts:
            rounds = 15 if "best found" in part else 3
            timed |= compare(part, self.task.work, threads=self.threads, cold=self.task.cold, rounds=rounds)
        self._cache["disturbed"] = max(timing.disturbed for timing in timed.values())
        return {what: timing.median for what, timing in timed.items()}

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @cached_property
    def schedule(self) -> Schedule:
        """Return the best schedule, replayed from its trace.

        Raises:
            tilewright.ResourceError: no candidate was correct.
        """
        return schedule_of(self.task.module, self.best_record().trace, sparse=self.task.sparse)

    @cached_property
    def kernel(self) -> Kernel:
        """Return the best schedule, compiled for the target of the search: the kernel that the finals checked and
        timed.

        It runs on the threads that it was tuned for, where :func:`tilewright.compile` gives kernels that run on all
        cores; ``kernel.threads = 0`` lets it do so, too.
        """
        kernel = compile_task(self.task, self.schedule, self.best_record().target)
        kernel.threads = self.threads
        if self._failed:
            note_heuristics([kernel], {kernel.name: self._failed})
        return kernel

    def best_record(self) -> Record:
        """Return the best candidate.

        Raises:
            tilewright.ResourceError: no candidate was correct.
        """
        if self.record is None:
            raise self.without_record()
        return self.record

    def without_record(self) -> ResourceError:
        """Return the error for a search without a correct candidate."""
        progress = self.progress
        if self.stop_reason == "canceled" and progress.trials == 0:
            return ResourceError.of(
                "tune/canceled", "the search was interrupted before its first trial", "the same call begins it again"
            )
        reasons = "".join(f"\n  {n} x {code}: {text}" for code, (n, text) in progress.failures.items())
        if progress.trials == 0 and progress.refused:
            code = "tune/no-valid-point"
            text = f"the space has no valid point: {progress.refused} of {progress.attempts} samples were refused"
            hint = "apply it to tw.Schedule(program, seed=1), and look at the program where it is refused"
        else:
            code = "tune/no-correct-candidate"
            counts = ", ".join(f"{n} {name}" for name, n in sorted(progress.outcomes.items()))
            text = f"no candidate was correct and fast enough to be kept ({progress.trials} trials: {counts or 'none'})"
            hint = "look at the first message of each kind of failure, or try tw.compile on one sample"
        error = ResourceError(f"{text}{reasons}\n  hint: {hint}")
        error.code, error.message, error.hint = code, text, hint
        return error


def without_a_trial(task: Task, trials: int, threads: int, inputs: Mapping[str, Any], seconds: float) -> TuneResult:
    """Return the result of a search that was canceled before it began."""
    nothing: dict[str, Any] = {"outcomes": {}, "failures": {}, "refusals": {}, "seconds": {}}
    nothing |= dict.fromkeys(("trials", "earlier", "attempts", "refused", "duplicates"), 0)
    nothing |= dict.fromkeys(("elapsed", "reference_seconds", "median_build_seconds"), 0.0)
    nothing |= {"best_seconds": float("inf"), "best_index": -1}
    progress = Progress(total=trials, phase="preparing", **nothing)
    return TuneResult(task, None, progress, "canceled", threads, None, inputs, {"preparing": seconds})
