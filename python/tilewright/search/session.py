"""Tuning one program over one space."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir, limits, machine, named_functions, notes, te
from tilewright.arguments import aligned, make_arrays
from tilewright.errors import ArgumentError, Error, ResourceError, ScheduleError, ScriptError
from tilewright.kernel import compile_task
from tilewright.machine import rate_unit
from tilewright.origins import library_versions, this_host
from tilewright.records import (
    PLACES,
    keep_refusals,
    keep_times,
    open_database,
    reference_seconds,
    schedule_of,
    sizes_text,
    workload_key,
)
from tilewright.schedule import Schedule, Trace
from tilewright.search import deadline
from tilewright.search.expectations import REFERENCE_DEADLINE, Expectations
from tilewright.search.interrupts import Interrupts
from tilewright.search.modules import ModuleResult, function_called, main_of, public_functions, tune_functions
from tilewright.search.reference_check import Verdict
from tilewright.search.relatives import traces_of_relatives
from tilewright.search.space import Space, space_called, space_for_cpu
from tilewright.tables import Table
from tilewright.task import Task, by_buffer, check_inputs, sizes_of, task_of
from tilewright.timing import KernelCalls, company, compare, format_seconds
from tilewright.user_lines import place_of

if TYPE_CHECKING:
    from tilewright.kernel import Kernel
    from tilewright.meta_schedule import Database

#: seconds that a user's space may take for one candidate
SPACE_DEADLINE = 10.0
#: a run of it is overdue when it takes so many times as long as the slowest that came through, and so many seconds
_SLOWER, _LEAST_DEADLINE = 20.0, 1.0
#: draws until one comes through; of those that do not return
FIRST_DRAWS, MOST_OVERDUE = 16, 3
#: of the candidates that a seed gives; another one where strategies change, so that old sessions are not gone on with
_STREAM = 3
#: searches of so many trials end near the limits of the machine
LEAST_TRIALS_FOR_ROOFS = 32
LEAST_SECONDS_FOR_ROOFS = 10.0
#: seconds of a call that is timed again to be shown
_SHORT_CALL_SECONDS = 0.1
#: of a search with a limit of time, what is left for the finals at most, and of all of it (src/search/tuner.cc)
_FINALS_SECONDS, _FINALS_SHARE = 5.0, 0.1
#: seconds between two looks at progress, and at signals
STEP_SECONDS = 0.1


@dataclass(frozen=True)
class Record:
    """The best measured candidate, as the database holds it.

    Attributes:
        trace: its schedule as JSON.
        seconds: per call, one number a slice.
        index: of the candidate in its session.
        verification: the tolerance of the result check, and the share of it that was used.
    """

    trace: str
    seconds: tuple[float, ...]
    index: int
    verification: dict[str, Any]
    target: str

    @property
    def median(self) -> float:
        """Seconds per call."""
        return float(np.median(self.seconds))


@dataclass(frozen=True)
class Progress:
    """Where a search is. Times in seconds; `failures` maps a code to how often and the first message, and so does
    `refusals` for the draws among them that the schedule or the compiler refused, which are no trials.

    Attributes:
        reference_seconds: of one call of the program as it was written; 0 when it was not run.
        seconds: that the tuner itself spent "drawing", "lowering", "learning".
        phase: "reference" (that program runs), "search", "finals" (the best are timed against one another), "done".
        budget_left: of the seconds that the search may take; infinity where these are not limited.
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
    budget_left: float = float("inf")

    @property
    def rate(self) -> float:
        """Candidates per second of this session."""
        return (self.trials - self.earlier) / self.elapsed if self.elapsed > 0 else 0.0

    @property
    def time_left(self) -> float:
        """Seconds, by the rate so far, and at most what is left of those that the search may take; infinity where
        neither is known."""
        by_rate = (self.total - self.trials) / self.rate if self.rate > 0 else float("inf")
        return max(min(by_rate, self.budget_left), 0.0)


@dataclass(frozen=True)
class TuneResult:
    """What a search found.

    Attributes:
        record: the best candidate; None when none was correct.
        stop_reason: "trials", "seconds", "patience", "target", "roofline" (no kernel is faster on this machine by more
            than 3 %), "exhausted" or "canceled".
        verdict: how the untuned program, against which results are compared, was itself checked.
        inputs: arguments that were given where random ones make no sense, by name.
    """

    task: Task
    record: Record | None
    progress: Progress
    stop_reason: str
    threads: int
    verdict: Verdict | None
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _object: bytes | None = field(default=None, repr=False, compare=False)
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        best = "no correct candidate" if self.record is None else f"best {format_seconds(self.record.median)}"
        return f"<TuneResult of {self.task.entry}: {best}, {self.progress.trials} trials ({self.stop_reason})>"

    def table(self) -> Table:
        """What was found against the program as it was written, timed in turn when this is first asked for; where a
        call of that takes long, as the search measured them. Notebooks show it too."""
        work = self.task.work
        columns = ("", "time", rate_unit(work.dtype), "GB/s", "against as written")
        found = self.times()
        first = found["as written"]
        rows = [
            (
                what,
                format_seconds(seconds),
                f"{work.flops / seconds / 1e9:.1f}",
                f"{work.bytes / seconds / 1e9:.1f}",
                f"{first / seconds:.2f} x" if first else "",
            )
            for what, seconds in found.items()
            if seconds > 0
        ]
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}{', cold caches' * self.task.cold}"
        beside = company(self._cache["disturbed"]) if "disturbed" in self._cache else ""
        tried = f"{self.progress.trials} trial{'' if self.progress.trials == 1 else 's'}"
        if self.stop_reason == "exhausted":
            tried += ": all that the space holds"
        return Table(f"{self.task.entry}, {threads}, {tried}{beside}", columns, tuple(rows))

    def times(self) -> dict[str, float]:
        """Seconds of a call "as written" and as "best found", as :meth:`table` shows them."""
        if "times" not in self._cache:
            # The search ran the program as it was written once, with cold caches.
            times = {"as written": self.progress.reference_seconds}
            if self.record is not None:
                times["best found"] = self.record.median
                if 0 < times["as written"] < _SHORT_CALL_SECONDS:
                    arrays = make_arrays(self.task, self.inputs, seed=0)
                    values = [*self.task.call({name: aligned(array) for name, array in arrays.items()}).values()]
                    kernels = {"as written": compile_task(self.task), "best found": self.kernel}
                    calls = {what: KernelCalls(kernel, values) for what, kernel in kernels.items()}
                    timed = compare(calls, self.task.work, threads=self.threads, cold=self.task.cold)
                    times = {what: timing.median for what, timing in timed.items()}
                    self._cache["disturbed"] = max(timing.disturbed for timing in timed.values())
            self._cache["times"] = times
        known: dict[str, float] = self._cache["times"]
        return known

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def schedule(self) -> Schedule:
        """The best schedule, rebuilt.

        Raises:
            tilewright.ResourceError: no candidate was correct.
        """
        if "schedule" not in self._cache:
            self._cache["schedule"] = schedule_of(self.task.module, self.best_record().trace)
        schedule: Schedule = self._cache["schedule"]
        return schedule

    @property
    def kernel(self) -> Kernel:
        """The best schedule, compiled for the target of the search; what the finals checked and timed."""
        if "kernel" not in self._cache:
            kernel = compile_task(self.task, self.schedule, self.best_record().target)
            kernel.threads = 0  # what it was tuned for is no limit
            self._cache["kernel"] = kernel
        found: Kernel = self._cache["kernel"]
        return found

    def best_record(self) -> Record:
        """The best candidate.

        Raises:
            tilewright.ResourceError: no candidate was correct.
        """
        if self.record is None:
            raise self.without_record()
        return self.record

    def without_record(self) -> ResourceError:
        """What is said where no candidate was correct."""
        progress = self.progress
        reasons = "".join(f"\n  {n} x {code}: {text}" for code, (n, text) in progress.failures.items())
        if progress.trials == 0 and progress.refused:
            code = "tune/no-valid-point"
            text = f"the space has no valid point: {progress.refused} of {progress.attempts} draws were refused"
            hint = "apply it to tw.Schedule(program, seed=1), and look at the program where it is refused"
        else:
            code = "tune/no-correct-candidate"
            counts = ", ".join(f"{n} {name}" for name, n in sorted(progress.outcomes.items()))
            text = f"no candidate was correct and fast enough to be kept ({progress.trials} trials: {counts or 'none'})"
            hint = "look at the first message of each kind of failure, or try tw.compile on one sample"
        error = ResourceError(f"{text}{reasons}\n  hint: {hint}")
        error.code, error.message, error.hint = code, text, hint
        return error


def record_of(row: Mapping[str, Any]) -> Record:
    """A row of the database."""
    checked = json.loads(row["verification"] or "null") or {}
    return Record(row["trace"], tuple(row["seconds"]), row["index"], checked, row["target"])


def run_space(space: Space, schedule: Schedule, *, first: bool = False, seconds: float | None = None) -> None:
    """Applies the user's function; what goes wrong in it becomes one of our errors and names the user's line.

    Args:
        first: make the candidate that the space wants to be tried first.
        seconds: that it may take; ten by default.

    Raises:
        tilewright.ScheduleError: a primitive refused, or the function raised.
        tilewright.ResourceError: it did not come back in time.
    """
    try:
        with deadline.limit(seconds or SPACE_DEADLINE, f"the space '{space.name}' did not return"):
            answer = ((first and space.first) or space.function)(schedule)
    except Error:
        raise
    except Exception as error:
        place = place_of(error)
        raise ScheduleError.of(
            "space/exception",
            f"the space '{space.name}' raised {type(error).__name__}: {error}" + (f"\n{place}" if place else ""),
            "try it alone: sch = tw.Schedule(program); space(sch); print(sch.mod.script())",
        ) from error
    if answer is not None:
        raise ScheduleError.of(
            "space/exception",
            f"the space '{space.name}' returned {type(answer).__name__}; it must change the schedule in place and "
            "return None",
        )


def space_hash(space: Space, trace: Trace, replayable: bool, strategy: _core.SearchStrategy) -> str:
    """What tells this space, and the way through it, from another: its steps, or where Python decides between them, its
    source."""
    text = json.dumps(trace.as_json()[0]) if replayable else space.identity or inspect.getsource(space.function)
    return _hash_of(text, strategy)


def generator_hash(spaces: Sequence[Schedule], strategy: _core.SearchStrategy) -> str:
    """Likewise of several ways to say a program: the steps of each."""
    return _hash_of(json.dumps([space.trace.as_json()[0] for space in spaces]), strategy)


def _hash_of(text: str, strategy: _core.SearchStrategy) -> str:
    text += f" {type(strategy).__name__} {_STREAM}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tune(
    program: ir.PrimFunc | ir.Module | Space | te.Tensor | Sequence[te.Tensor],
    *,
    function: str | None = None,
    space: Space | _core.SpaceGenerator | Callable[[Schedule], object] | str | None = None,
    trials: int = 64,
    seconds: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    sizes: Mapping[str, float] | None = None,
    cold: bool = False,
    database: str | os.PathLike[str] | Database | None = None,
    target: str = "native",
    fresh: bool = False,
    strategy: _core.SearchStrategy | str = "guided",
    cost_model: _core.CostModel | str | None = None,
    patience: int | None = None,
    target_seconds: float | None = None,
    progress: Callable[[Progress], None] | str | None = "auto",
) -> TuneResult | ModuleResult:
    """Searches a space of schedules and keeps the fastest correct one.

    >>> result = tw.tune(matmul, trials=64)
    >>> kernel = result.kernel

    Of a module of several functions, each public one is tuned that nobody has scheduled, and the result has one for
    each by its name: :class:`ModuleResult`. A module with a function called "main" stands for that one.

    >>> results = tw.tune(module, trials=64, seconds=60)
    >>> results["dense"].table()
    >>> kernels = results.compile()

    A strategy says which candidates are measured. By default many are drafted, and an estimate of what limits the
    processor keeps the promising ones; from the 17th trial on, half of them change a single decision of the best. At
    the end the best are timed against one another.

    Args:
        program: a function, a module, or what :func:`tilewright.te.program_of` takes: the tensors of a formula, or its
            output alone. A :class:`Space` brings its own program.
        function: the one of a module that is to be tuned, by its name; None for each of them.
        space: a function that schedules, with ``sch.sample_*`` where it leaves something open; a
            :class:`tilewright.meta_schedule.SpaceGenerator`, several as one by its ``SpaceGeneratorUnion``; or a name,
            "post-order-apply" or "cpu-rules". The last is what None means: tiles for registers and caches, packed
            operands, vectors, parallel loops, made from the program.
        trials: candidates to measure, failed ones included; of a module, for each function.
        seconds: stop after so much wall time: all of it, from the check of the program as written to the finals. The
            functions of a module share it evenly; what one of them does not need is left to those after it.
        seed: the same seed gives the same candidates.
        threads: of the kernel; 1 by default.
        inputs: arguments where random ones make no sense, by the name of the parameter.
        sizes: what a program that leaves sizes open, or has scalar parameters, is tuned for, by their names; what
            `inputs` says need not be here. The kernel is right for all sizes and scalars.
        cold: measure calls before which the caches hold other data, as where a kernel runs once in a while; records of
            such calls stand apart.
        database: file of records, made if it is not there, "postgresql://user@host/name", or a database of
            :mod:`tilewright.meta_schedule`; in memory by default. What is in tables is gone on with.
        target: "native", or a target such as "llvm -mcpu=skylake-avx512".
        strategy: which candidates are measured: "guided", "draft-and-verify", "descent", "replay-trace",
            "evolutionary", or a :class:`tilewright.meta_schedule.SearchStrategy`.
        cost_model: learns from what was measured, also by earlier sessions, and ranks drafts: a
            :class:`tilewright.meta_schedule.CostModel`, or "xgb", "residual", "mlp", "analytical", "random"; None, or
            "none", for the estimate.
        patience: stop after so many trials without a faster candidate.
        target_seconds: stop at a candidate that is so fast.
        fresh: measure again what an earlier session of the same seed measured.
        progress: "auto" shows it as fits the output, None nothing; a function is called with each :class:`Progress`.

    Raises:
        tilewright.ArgumentError: the arguments make no sense.
        tilewright.ScheduleError: the space fails on its very first sample.
        tilewright.ResourceError: the database or the helper processes fail.
    """
    started = time.monotonic()
    if isinstance(program, Space):
        space = space or program
    program = _program_of(program)
    trials = limits.whole("trials", trials, 1, "at least 1 candidate has to be measured")
    threads = 1 if threads is None else limits.whole("threads", threads, 1, "a kernel needs at least 1")
    seed = limits.seed(seed)
    seconds, target_seconds = limits.positive("seconds", seconds), limits.positive("target_seconds", target_seconds)
    if patience is not None:
        patience = limits.whole("patience", patience, 1, "it is a number above 0, or None for no limit")
    _check_kinds(space, inputs, sizes, cold, fresh, strategy, cost_model, database)
    given = {**(space.inputs if isinstance(space, Space) else {}), **by_buffer(program, inputs or {})}
    if isinstance(cost_model, str):
        cost_model = cost_model_called(cost_model, seed)
    notes.warn_of_threads(threads)
    asked = {
        **{"space": space, "trials": trials, "seconds": seconds, "seed": seed, "threads": threads, "inputs": given},
        **{"sizes": sizes or {}, "cold": cold, "database": database, "target": target, "fresh": fresh},
        **{"strategy": strategy, "cost_model": cost_model, "patience": patience, "target_seconds": target_seconds},
        "progress": progress,
    }
    return _tune_all(program, function, asked, started)


def _program_of(given: Any) -> ir.PrimFunc | ir.Module:
    """What formulas and spaces are of."""
    program = te.program_of(given) if isinstance(given, te.Tensor | list | tuple) else given
    program = program.program if isinstance(program, Space) else program
    if not isinstance(program, ir.PrimFunc | ir.IRModule):
        raise ArgumentError(f"a function under @T.prim_func can be tuned, not {type(program).__name__}")
    return program


def _tune_all(
    program: ir.PrimFunc | ir.Module, function: str | None, asked: dict[str, Any], started: float
) -> TuneResult | ModuleResult:
    """One function, or each of a module."""
    if isinstance(program, ir.IRModule) and not isinstance(asked["space"], Space):
        return _tune_module(program, function, asked, started)
    if function is not None:
        raise ArgumentError.of(
            "tune/function",
            f"function is {function!r}, and the program is no module of several functions",
            "leave it away, or pass the module",
        )
    return _tune(program, **asked, started=started)


def _tune_module(
    module: ir.Module, function: str | None, asked: dict[str, Any], started: float
) -> TuneResult | ModuleResult:
    """The function that is meant, or each of them."""
    public = public_functions(module)
    one: ir.PrimFunc | ir.Module | None = None
    if function is not None:
        one = function_called(module, function)
    elif main_of(module) is not None:
        one = module
    elif len(public) == 1:
        (one,) = public.values()
    if one is not None:
        return _tune(one, **asked, started=started)
    space, strategy = asked["space"], asked["strategy"]
    if space is not None and not isinstance(space, _core.SpaceGenerator | str):
        raise ArgumentError.of(
            "tune/which-function",
            f"the module has the functions {', '.join(public)}; which one is to be tuned? A space schedules one",
            'say it: tw.tune(module, function="name", space=...)',
        )
    store = _core.Database.in_memory() if asked["database"] in (None, "memory") else asked["database"]

    def search(each: ir.PrimFunc, **its: Any) -> TuneResult:
        own = strategy if isinstance(strategy, str) else strategy.clone()
        return _tune(each, **{**asked, "database": store, "strategy": own, **its}, started=time.monotonic())

    return tune_functions(module, search, seconds=asked["seconds"], inputs=asked["inputs"], sizes=asked["sizes"])


def cost_model_called(name: str, seed: int) -> _core.CostModel | None:
    """What "xgb" and others stand for; what it draws follows from the seed.

    Raises:
        tilewright.ArgumentError: there is none of that name.
    """
    options = {"seed": seed} if name == "random" else {}
    create: Any = named_functions.find("meta_schedule.cost_model.create")
    model: _core.CostModel | None = create(name, **options)
    return model


def _tune(
    program: ir.PrimFunc | ir.Module,
    *,
    space: Space | _core.SpaceGenerator | Callable[[Schedule], object] | str | None,
    trials: int,
    seconds: float | None,
    seed: int,
    threads: int,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, float],
    cold: bool,
    database: Any,
    target: str,
    fresh: bool,
    strategy: _core.SearchStrategy | str,
    cost_model: _core.CostModel | None,
    patience: int | None,
    target_seconds: float | None,
    progress: Callable[[Progress], None] | str | None,
    started: float,
) -> TuneResult:
    """One function, of arguments that were looked at; `database` may be an open one."""
    check_inputs(program, inputs)
    task = task_of(program, {**sizes_of(program, inputs), **sizes}, cold=cold)
    space, generator = space_called(space) if isinstance(space, str) else space, None
    if space is None:
        space = space_for_cpu(program, _core.Target(target).with_num_cores(threads), task.sizes)
    elif isinstance(space, _core.SpaceGenerator):
        generator = space.clone()
        space = Space(program, lambda schedule: None, name=type(generator).__name__)
    elif not isinstance(space, Space):
        space = Space(program, space, name=getattr(space, "__name__", "space"))
    from tilewright.search.progress import reporter

    strategy = _core.SearchStrategy.create(strategy) if isinstance(strategy, str) else strategy
    stops = {"patience": patience or 0, "target_seconds": target_seconds or 0.0}
    # A look at the limits of the machine takes a second, so short searches go without.
    is_short = trials < LEAST_TRIALS_FOR_ROOFS or (seconds or np.inf) < LEAST_SECONDS_FOR_ROOFS
    stops["bound_seconds"] = 0.0 if is_short else _bound(task, threads)
    search = _Search(
        space, task, trials, seconds, seed, threads, inputs, target, fresh, strategy, cost_model, stops, started
    )
    search.generator = generator
    with reporter(progress, search.task, search.threads) as report:
        result = search.run(database, report)
    if "tune/cost-model" in result.progress.failures:
        warnings.warn(result.progress.failures["tune/cost-model"][1], notes.CostModelWarning, stacklevel=3)
    if space.reference is not None and result.record is not None and result.stop_reason != "canceled":
        _warn_of_peer(result, space)
    return result


def _warn_of_peer(result: TuneResult, space: Space) -> None:
    from tilewright.search.report import check_peer

    try:
        text = check_peer(result, space)
    except ScriptError as error:
        text = str(error)
    if text:
        warnings.warn(text, notes.ReferenceWarning, stacklevel=4)


def _check_kinds(
    space: Any, inputs: Any, sizes: Any, cold: Any, fresh: Any, strategy: Any, cost_model: Any, database: Any
) -> None:
    what = "a function of a schedule, a SpaceGenerator, the name of a space, or None for a space by rules"
    limits.kind("space", space, Callable | _core.SpaceGenerator | str | None, what)
    limits.kind("inputs", inputs, Mapping | None, "a dict of arrays by the names of parameters, or None")
    limits.kind("sizes", sizes, Mapping | None, "a dict of numbers by the names of sizes, or None")
    limits.kind("cold", cold, bool, "True or False")
    limits.kind("fresh", fresh, bool, "True or False")
    limits.kind("strategy", strategy, str | _core.SearchStrategy, "the name of a strategy, or a SearchStrategy")
    hint = 'such as "residual", or tilewright.meta_schedule.ResidualModel()'
    what = "a CostModel of tilewright.meta_schedule, the name of one, or None"
    limits.kind("cost_model", cost_model, _core.CostModel | str | None, what, hint)
    if not hasattr(database, "store_for_search"):
        limits.kind("database", database, str | os.PathLike | None, f"{PLACES}, or None")


def _bound(task: Task, threads: int) -> float:
    """Seconds that the limits of this machine leave a call."""
    work = task.work
    return machine.roofs(threads).binding(work.flops, work.bytes, work.dtype, cold=task.cold).seconds


class _Search:
    """The pieces of one call of :func:`tune`."""

    def __init__(
        self,
        space: Space,
        task: Task,
        trials: int,
        seconds: float | None,
        seed: int,
        threads: int,
        inputs: Mapping[str, Any] | None,
        target: str,
        fresh: bool,
        strategy: _core.SearchStrategy,
        cost_model: _core.CostModel | None,
        stops: Mapping[str, Any],
        started: float,
    ) -> None:
        self.space, self.task, self.threads, self.seed = space, task, threads, seed
        self.target = _core.Target(target).with_num_cores(threads)
        self.key = workload_key(task)
        self.strategy, self.cost_model = strategy, cost_model
        self.expectations = Expectations(task, {**space.inputs, **(inputs or {})}, seed, seconds=seconds)
        self.interrupts = Interrupts()
        self.generator: _core.SpaceGenerator | None = None  # instead of the function of the space
        self.sample: Schedule | None = None  # the first one, which came through
        self.times: dict[str, float] = {}  # seconds by phase
        self.reference = 0.0  # seconds of the program as written, of an earlier session where this one did not run it
        self.started = started
        self.end = float("inf") if seconds is None else started + seconds
        # A run of the space that hangs leaves the finals their time.
        self.end_of_draws = self.end if seconds is None else self.end - min(_FINALS_SECONDS, _FINALS_SHARE * seconds)
        self.overdue: list[float] = []  # how many seconds the runs of the space had that did not come back
        self.slowest = 0.0  # run of the space that came through, in seconds
        self.refused_first: dict[str, tuple[int, str]] = {}  # draws that were refused before the first that was not
        self.options: dict[str, Any] = {
            "trials": trials,
            "seed": seed,
            "threads": threads,
            "target": target,
            "cold": task.cold,
            "fresh": fresh,
            "reference_timeout": REFERENCE_DEADLINE,
            "host": this_host(),
            "versions": library_versions(),
            **stops,
        }

    def run(self, database: Any, report: Callable[[Progress], None]) -> TuneResult:
        context, identity = self._space_of_search()
        store = database if isinstance(database, _core.Database) else open_database(database)
        script = self.task.module.script()
        self.key = workload_key(self.task, store)
        tuner = _core.Tuner(
            module=self.task.module,
            function=self.task.entry,
            name=self.task.entry,
            script=script,
            workload=self.key,
            sizes=sizes_text(self.task),
            space=identity,
            context=context,
            cost_model=self.cost_model,
            relatives=traces_of_relatives(store, self.key, script, str(self.target)),
            arguments=self.expectations.arguments,
            judge_reference=self.expectations.judge,
            reduction_length=self.task.reduction_length,
            database=store,
            # What is left; 0 would be no limit.
            seconds=0.0 if self.end == np.inf else max(self.end - time.monotonic(), 1e-3),
            **self.options,
        )
        self.times["preparing"] = time.monotonic() - self.started
        try:
            with self.interrupts:
                self._run_to_the_end(tuner, report)
        finally:
            tuner.close()
            with contextlib.suppress(ResourceError):  # the search itself is what matters
                measured = tuner.progress()["reference_seconds"]
                self.reference = reference_seconds(store, self.key, str(self.target), measured)
                keep_times(store, f"tune {self.task.entry}", self.times)
                self._keep_refusals(store, self._progress(tuner))
        store.tell_damage()
        result = tuner.result()
        best = result["best"]
        record = None if best is None else record_of(best)
        return TuneResult(
            self.task,
            record,
            self._progress(tuner),
            result["stop_reason"],
            self.threads,
            self.expectations.verdict,
            self.expectations.inputs,
            result["object"],
        )

    def _keep_refusals(self, store: Any, progress: Progress) -> None:
        if progress.attempts:  # a session that was done before draws nothing
            keep_refusals(store, self.key, str(self.target), progress.refusals)

    def _run_to_the_end(self, tuner: Any, report: Callable[[Progress], None]) -> None:
        canceled = False
        if tuner.finished:  # an earlier run did it all
            report(self._progress(tuner))
        while not tuner.finished:
            try:
                progress = self._progress(tuner)
                report(progress)
                before = time.monotonic()
                tuner.step(STEP_SECONDS)
                self.times[progress.phase] = self.times.get(progress.phase, 0.0) + time.monotonic() - before
                if tuner.finished:
                    report(self._progress(tuner))
            except KeyboardInterrupt:  # in the user's space or progress function, or for the second time
                if canceled:
                    raise
                self.interrupts.seen = True
            if self.interrupts.seen and not canceled:
                canceled = True
                tuner.cancel()

    def _apply(self, schedule: Schedule, first: bool) -> None:
        """A candidate of a space that looks at sampled values, with the decisions that the schedule was given."""
        if first and self.sample is not None:
            schedule.take_decisions([*self.sample.trace.decisions.values()])
        with self.interrupts.raised():
            self._run_space(schedule, first=first)

    def _run_space(self, schedule: Schedule, *, first: bool = False) -> None:
        """Within the time that a run may take: much longer than those that came through, and it does not end."""
        begin = time.monotonic()
        if begin >= self.end:
            raise ResourceError.of(
                "space/deadline",
                "the time of the search is over",
                "give it more seconds: what it needs before its first candidate, such as the limits of this machine, "
                "takes one or two",
            )
        usual = max(_LEAST_DEADLINE, _SLOWER * self.slowest) if self.slowest else SPACE_DEADLINE
        left = max(self.end_of_draws - begin, 0.5 * (self.end - begin))
        limit = min(SPACE_DEADLINE, usual, left)
        try:
            run_space(self.space, schedule, first=first, seconds=limit)
        except ResourceError as error:
            if error.code == "space/deadline":
                self.overdue.append(limit)
            raise
        self.slowest = max(self.slowest, time.monotonic() - begin)

    def _first(self) -> Schedule:
        """A sample of the space. Draws that are refused are counted; where all are, the first one says why."""
        why: Error | None = None
        overdue = 0
        for attempt in range(FIRST_DRAWS):
            # Others than those of the next seeds.
            schedule = Schedule(self.task.module, seed=(self.seed + 1 + attempt * 1_000_003) % limits.MOST)
            try:
                self._run_space(schedule)
                return schedule
            except (ScheduleError, ResourceError) as error:
                overdue += error.code == "space/deadline"
                if isinstance(error, ResourceError) and error.code != "space/deadline":
                    raise
                why = why or error
                count, message = self.refused_first.get(error.code, (0, error.message or str(error)))
                self.refused_first[error.code] = (count + 1, message)
                if overdue == MOST_OVERDUE or not schedule.trace.decisions:  # without a draw it is always the same
                    break
        assert why is not None
        raise why

    def _progress(self, tuner: Any) -> Progress:
        """Where the search is, with what was refused before the tuner began."""
        facts = tuner.progress()
        facts["reference_seconds"] = facts["reference_seconds"] or self.reference
        for code, (count, message) in self.refused_first.items():
            facts["attempts"] += count
            facts["refused"] += count
            for reasons in (facts["refusals"], facts["failures"]):
                reasons[code] = (reasons.get(code, (0, ""))[0] + count, message)
        if len(limits_had := sorted({f"{seconds:.3g}": seconds for seconds in self.overdue}.values())) > 1:
            # Others than the first had less time than its message says, or more.
            had = f"{limits_had[0]:.3g} to {limits_had[-1]:.3g} s"
            for reasons in (facts["refusals"], facts["failures"]):
                if "space/deadline" in reasons:
                    message = f"the space '{self.space.name}' did not return within {had} and was interrupted"
                    reasons["space/deadline"] = (reasons["space/deadline"][0], message)
        return Progress(**facts, budget_left=self.end - time.monotonic())

    def _space_of_search(self) -> tuple[_core.TuneContext, str]:
        """The space as strategies take it: what it did to a schedule, or where it decides as it goes, itself; and what
        tells it from another one."""
        if self.generator is not None:
            context = self._context(self.generator)
            if "layout_free_buffers" in self.task.program.attrs:
                # Kernels of a search are called with arrays as the program has them.
                kept = [p for p in self.generator.postprocs or [] if not isinstance(p, _core.RewriteLayout)]
                self.generator.postprocs = kept
            spaces = self.generator.generate_design_space(self.task.module)
            if not spaces:
                raise ArgumentError.of(
                    "space/empty",
                    f"{self.space.name} gives no schedule of '{self.task.entry}'",
                    "generate_design_space() returns at least one, such as [tw.Schedule(module)]",
                )
            return context, generator_hash(spaces, self.strategy)
        first = self._first()
        if not self.space.first:
            self.sample = first
        if first.decisions_read:
            generator: _core.SpaceGenerator = _core.FunctionSpace(self._apply)
        else:
            generator = _core.ScheduleFn(lambda _: first)
        generator.schedule_rules, generator.postprocs = [], []
        if not isinstance(self.strategy, _core.EvolutionarySearch):  # which changes points by mutators of the target
            generator.mutators = []
        return self._context(generator), space_hash(self.space, first.trace, not first.decisions_read, self.strategy)

    def _context(self, generator: _core.SpaceGenerator) -> _core.TuneContext:
        context = _core.TuneContext()
        context.module, context.target = self.task.module, self.target
        context.space_generator, context.search_strategy = generator, self.strategy
        context.task_name, context.seed = self.task.entry, self.seed
        context.num_threads = machine.cpu_count()
        context.initialize()
        return context
