"""``tw.tune``: prepares the search of one program over one space, and drives ``_core.TuningSession``.

The other driver is ``meta_schedule/task_scheduler.py``, which has many tasks. What both decide is decided in
``src/search/session/task_progress.h``; ``src/search/README.md`` lists what they share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright import _core, ir, te
from tilewright.cluster.connection import Cluster
from tilewright.cluster.labels import target_key
from tilewright.cluster.measurer import ClusterMeasurer
from tilewright.database.origins import origin_of
from tilewright.database.records import (
    PLACES,
    begins_sparse,
    keep_finals,
    keep_refusals,
    keep_times,
    open_database,
    reference_seconds,
    sizes_text,
    workload_key,
)
from tilewright.errors import ArgumentError, Error, ResourceError, ScheduleError, ScriptError
from tilewright.heuristics import failures
from tilewright.report.spending import BESIDE, PartTimes, Profiler
from tilewright.schedule import Schedule, Trace
from tilewright.search import deadline, formats, modules
from tilewright.search.candidate_programs import check_parameters, fitting_postprocs, heuristic_trace
from tilewright.search.cluster_measurer import measurer_for
from tilewright.search.expectations import REFERENCE_DEADLINE, Expectations
from tilewright.search.interrupts import Interrupts
from tilewright.search.modules import ModuleResult, Steps, main_of, public_functions
from tilewright.search.progress import elsewhere, reporter
from tilewright.search.relatives import traces_of_relatives
from tilewright.search.result import Progress, TuneResult, without_a_trial
from tilewright.search.space import Space, design_spaces, space_of
from tilewright.support import limits, machine, notes
from tilewright.support.early_interrupts import recognized
from tilewright.support.machine import is_for_device
from tilewright.support.user_lines import last_raise, place_of, users_level, with_place
from tilewright.support.wrong_arguments import no_program, suggests_keywords
from tilewright.task.arguments import digest_of_integers
from tilewright.task.roofline import roofline_bound
from tilewright.task.task import Task, by_buffer, check_inputs, sizes_of, task_of

if TYPE_CHECKING:
    from tilewright.meta_schedule import Database

#: seconds that a user's space may take for one candidate
SPACE_DEADLINE = 10.0
#: a run of it is overdue when it takes so many times as long as the slowest that came through, and so many seconds
_SLOWER, _LEAST_DEADLINE = 20.0, 1.0
#: samples until one is valid; of those that do not return
FIRST_SAMPLES, MOST_OVERDUE = 16, 3
#: candidates that identify a function that reads sampled values
DIGESTED_SAMPLES = 16
#: Of the time that is left, what they may take; a space that is slower is identified by its first trace alone.
_DIGEST_SHARE = 0.1
#: of the candidates that a seed gives; another one where strategies change, so that old sessions are not gone on with
_STREAM = 4
#: candidates that are sampled at a time (SessionOptions of session/session.h)
DEFAULT_BATCH = 8
#: searches of so many trials end near the limits of the machine
LEAST_TRIALS_FOR_ROOFS = 32
LEAST_SECONDS_FOR_ROOFS = 10.0
#: of a search with a limit of time, what is left for the finals at most, and of all of it (session/session.cc)
_FINALS_SECONDS, _FINALS_SHARE = 5.0, 0.1
#: seconds between two looks at progress, and at signals
STEP_SECONDS = 0.1


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
    except Error as error:
        last_raise(error)
        raise
    except Exception as error:
        place = place_of(last_raise(error))
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


def space_hash(space: Space, traces: Sequence[Trace | str], strategy: _core.SearchStrategy) -> str:
    """Identify this space, and the order in which it is searched. It says which random stream a search goes on with;
    measurements belong to programs, and are kept whatever it is.

    Args:
        traces: its steps alone, where its function does not read sampled values; else the first candidates that it
            gives, with their decisions, or why it gives none. Nothing that a function may depend on (closures,
            arguments, other functions, files) is looked at, but what it does.
    """
    sampled = [trace if isinstance(trace, str) else trace.as_json() for trace in traces]
    return _hash_of(json.dumps([space.identity, sampled]), strategy)


def generator_hash(spaces: Sequence[Schedule], strategy: _core.SearchStrategy) -> str:
    """Identify a space of several schedules by the steps of each."""
    return _hash_of(json.dumps([space.trace.as_json()[0] for space in spaces]), strategy)


def _hash_of(text: str, strategy: _core.SearchStrategy) -> str:
    text += f" {type(strategy).__name__} {_STREAM}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@suggests_keywords
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
    cluster: Any = None,
    batch: int | None = None,
    fresh: bool = False,
    strategy: _core.SearchStrategy | str = "guided",
    cost_model: _core.CostModel | str | None = None,
    patience: int | None = None,
    target_seconds: float | None = None,
    progress: Callable[[Progress], None] | str | None = "auto",
) -> TuneResult | ModuleResult | formats.FormatsResult:
    """Search a space of schedules for the fastest correct one.

    >>> result = tw.tune(matmul, trials=64)
    >>> kernel = result.kernel

    In a module of several functions, each public function without a schedule is tuned; the result is a
    :class:`ModuleResult`, which maps names to results. If one function is called "main", only that one is tuned. A
    space that decomposes a sparse tensor gives a :class:`FormatsResult`.

    >>> results = tw.tune(module, trials=64, seconds=60)
    >>> results["dense"].table()
    >>> kernels = results.compile()

    The strategy selects the candidates to measure. The default drafts many candidates and ranks them by an analytical
    cost estimate; from the 17th trial on, half of the candidates mutate a single decision of the best. The finalists
    are timed alternately at the end.

    Args:
        program: a function, a module, or what :func:`tilewright.te.program_of` takes: an output tensor of te, or the
            list of all parameters. A :class:`Space` has its own program.
        function: the name of the function of a module to tune; None for all.
        space: a function that schedules, and samples decisions with ``sch.sample_*``; a
            :class:`tilewright.meta_schedule.SpaceGenerator` (``SpaceGeneratorUnion`` joins several); or a name,
            "post-order-apply" or "cpu-rules". None means "cpu-rules", derived from the program (register and cache
            tiles, packed operands, vectorization, parallel loops); for devices "post-order-apply".
        trials: candidates to measure, including failed ones; in a module, for each function.
        seconds: limit of the wall time in seconds, from the check of the unscheduled program to the finals. The
            functions of a module share it evenly, unused time goes to the next ones; on a cluster all run at once.
        seed: the same seed gives the same candidates.
        threads: threads of the kernel; 1 by default, whatever number of cores the target has. ``result.kernel`` uses
            this number; kernels of :func:`tilewright.compile` use all cores, also with ``database=``.
        inputs: arguments for which random values make no sense, by parameter name.
        sizes: values of symbolic sizes and scalar parameters to tune for, by name; those that follow from `inputs` may
            be omitted. The kernel is correct for all sizes and scalars.
        cold: evict the caches before each measured call, as for a kernel that runs rarely; such records are kept apart.
        database: file of records, created if it does not exist, "postgresql://user@host/name", or a database of
            :mod:`tilewright.meta_schedule`; in memory by default. A search continues from existing records.
        target: "native", or a target that this machine can run, such as "llvm -mcpu=skylake-avx512" or "opencl".
        cluster: the address of a Dask scheduler, "tcp://host:8786", or a ``distributed.Client``: builds and
            measurements run on its workers, see docs/cluster.md. "native" has to be one target on all of them.
        batch: candidates that are sampled at a time; 8 by default, with `cluster` twice the number of measuring
            workers, or what the search had that is continued. Another batch gives other candidates.
        strategy: which candidates are measured: "guided", "draft-and-verify", "descent", "replay-trace",
            "evolutionary", or a :class:`tilewright.meta_schedule.SearchStrategy`.
        cost_model: model that learns from measurements, also those of earlier searches, and ranks drafts: a
            :class:`tilewright.meta_schedule.CostModel`, or "xgb", "residual", "mlp", "analytical", "random"; None, or
            "none", for the analytical estimate.
        patience: stop after so many trials without a faster candidate.
        target_seconds: stop at a candidate that is at least this fast.
        fresh: repeat the measurements of an earlier search with the same seed.
        progress: "auto" shows the progress, None shows nothing; a function is called with each :class:`Progress`.

    Raises:
        tilewright.ArgumentError: an argument is out of range or contradicts another one.
        tilewright.ScheduleError: the space fails on its first sample.
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
    patience, batch = _count("patience", patience, "no limit"), _count("batch", batch, "the default")
    _check_kinds(space, inputs, sizes, cold, fresh, strategy, cost_model, database)
    given = {**(space.inputs if isinstance(space, Space) else {}), **by_buffer(program, inputs or {})}
    model = cost_model_called(cost_model, seed) if isinstance(cost_model, str) else cost_model
    notes.warn_of_threads(threads)
    asked = _Asked(
        *(space, trials, seconds, seed, threads, given, sizes or {}, cold, database, target, fresh, strategy),
        *(model, patience or 0, target_seconds or 0.0, progress, None, batch),
        model_name=cost_model if isinstance(cost_model, str) else "",
    )
    return _tune_on(cluster, program, function, asked, started)


def _count(name: str, value: int | None, none: str) -> int | None:
    return None if value is None else limits.whole(name, value, 1, f"it is a number above 0, or None for {none}")


def _tune_on(
    cluster: Any, program: ir.PrimFunc | ir.Module, function: str | None, asked: _Asked, started: float
) -> TuneResult | ModuleResult | formats.FormatsResult:
    """On the workers of a cluster; None: on this machine."""
    if cluster is None:
        return _tune_all(program, function, asked, started)
    if is_for_device(asked.target):
        hint = "search on the machine of the device, without cluster="
        raise ArgumentError.of("tune/device", f"a cluster measures on processors, not on '{asked.target}'", hint)
    with contextlib.closing(Cluster(cluster)) as machines:
        machines.check_native(asked.target)
        return _tune_all(program, function, dataclasses.replace(asked, cluster=machines), started)


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What a search is asked for, looked at; `database` may be an open one."""

    space: Space | _core.SpaceGenerator | Callable[[Schedule], object] | str | None
    trials: int
    seconds: float | None
    seed: int
    threads: int
    inputs: Mapping[str, Any]
    sizes: Mapping[str, float]
    cold: bool
    database: Any
    target: str
    fresh: bool
    strategy: _core.SearchStrategy | str
    cost_model: _core.CostModel | None
    patience: int
    target_seconds: float
    progress: Callable[[Progress], None] | str | None
    cluster: Cluster | None = None
    batch: int | None = None
    model_name: str = ""  #: of `cost_model`, where that was given by name
    among_others: int = 0  #: how many searches run at the same time; 0: this one alone


def _program_of(given: Any) -> ir.PrimFunc | ir.Module:
    """What formulas and spaces are of."""
    program = te.program_of(given) if isinstance(given, te.Tensor | list | tuple) else given
    program = program.program if isinstance(program, Space) else program
    if not isinstance(program, ir.PrimFunc | ir.IRModule):
        raise no_program("a function under @T.prim_func can be tuned", program)
    return program


def _tune_all(
    program: ir.PrimFunc | ir.Module, function: str | None, asked: _Asked, started: float
) -> TuneResult | ModuleResult | formats.FormatsResult:
    """One function, or each of a module."""
    if (in_formats := formats.tune_in_formats(program, asked, _tune, run_space)) is not None:
        return in_formats
    if isinstance(program, ir.IRModule) and not isinstance(asked.space, Space):
        return _tune_module(program, function, asked, started)
    if function is not None:
        raise ArgumentError.of(
            "tune/function",
            f"function is {function!r}, and the program is no module of several functions",
            "leave it away, or pass the module",
        )
    return _tune(program, asked, started)


def _tune_module(module: ir.Module, function: str | None, asked: _Asked, started: float) -> TuneResult | ModuleResult:
    """The function that is meant, or each of them."""
    public = public_functions(module)
    one: ir.PrimFunc | ir.Module | None = None
    if function is not None:
        one = modules.function_called(module, function)
    elif main_of(module) is not None:
        one = module
    elif len(public) == 1:
        (one,) = public.values()
    if one is not None:
        return _tune(one, asked, started)
    space, strategy = asked.space, asked.strategy
    if space is not None and not isinstance(space, _core.SpaceGenerator | str):
        raise ArgumentError.of(
            "tune/which-function",
            f"the module has the functions {', '.join(public)}; which one is to be tuned? A space schedules one",
            'say it: tw.tune(module, function="name", space=...)',
        )
    store = _core.Database.in_memory() if asked.database in (None, "memory") else asked.database

    at_once = asked.cluster is not None  # on one machine, searches would disturb what the others measure

    def search(each: ir.PrimFunc, **its: Any) -> Steps:
        own = strategy if isinstance(strategy, str) else strategy.clone()
        if at_once and asked.model_name:  # a shared one would learn from the others in the order of their results
            its["cost_model"] = cost_model_called(asked.model_name, asked.seed)
        its |= {"database": store, "strategy": own}
        return _steps(each, dataclasses.replace(asked, **its), time.monotonic(), interrupts)

    with Interrupts() as interrupts:
        return modules.tune_functions(
            module,
            search,
            at_once=at_once,
            seconds=asked.seconds,
            inputs=asked.inputs,
            sizes=asked.sizes,
        )


def cost_model_called(name: str, seed: int) -> _core.CostModel | None:
    """What "xgb" and others stand for; its random numbers follow from the seed.

    Raises:
        tilewright.ArgumentError: there is none of that name.
    """
    options = {"seed": seed} if name == "random" else {}
    from tilewright.cost_model import create

    return create(name, **options)


def _tune(program: ir.PrimFunc | ir.Module, asked: _Asked, started: float) -> TuneResult:
    """One function."""
    with Interrupts() as interrupts:
        return modules.result_of(_steps(program, asked, started, interrupts))


def _steps(program: ir.PrimFunc | ir.Module, asked: _Asked, started: float, interrupts: Interrupts) -> Steps:
    """The search of one function, a step at a time. Nothing waits for its next step but itself."""
    inputs, threads = asked.inputs, asked.threads
    with contextlib.ExitStack() as shown:
        check_inputs(program, inputs)
        task = task_of(program, {**sizes_of(program, inputs), **asked.sizes}, cold=asked.cold)
        task = dataclasses.replace(task, given=digest_of_integers(inputs))
        try:
            with recognized(), interrupts.raised():
                interrupts.check()
                space, generator = space_of(asked.space, program, task, threads, asked.target)
                search = _Search(asked, space, generator, task, started, interrupts)
                named = elsewhere(asked.target, threads, is_on_cluster=asked.cluster is not None)
                others = asked.among_others
                described = reporter(
                    asked.progress, task, threads, among_others=others, device=named, target=asked.target
                )
                report = shown.enter_context(described)
                prepared = search.prepare(asked.database)
        except KeyboardInterrupt:
            return without_a_trial(task, asked.trials, threads, inputs, time.monotonic() - started)
        yield  # all are prepared before one measures, so that none begins with what another one finds
        result = yield from search.run(prepared, report)
    if "tune/cost-model" in result.progress.failures:
        warnings.warn(result.progress.failures["tune/cost-model"][1], notes.CostModelWarning, users_level())
    wanted = space.reference is not None and result.record is not None and result.stop_reason != "canceled"
    if wanted and result.runs_here:
        _warn_of_peer(result, space)
    return result


def _warn_of_peer(result: TuneResult, space: Space) -> None:
    from tilewright.search.report import check_peer

    try:
        text = check_peer(result, space)
    except ScriptError as error:
        text = str(error)
    if text:
        warnings.warn(text, notes.ReferenceWarning, users_level())


def _check_kinds(
    space: Any, inputs: Any, sizes: Any, cold: Any, fresh: Any, strategy: Any, cost_model: Any, database: Any
) -> None:
    what = "a function of a schedule, a SpaceGenerator, the name of a space, or None for the heuristic space"
    limits.kind("space", space, Callable | _core.SpaceGenerator | str | None, what)
    limits.kind("inputs", inputs, Mapping | None, "a dict of arrays by the names of parameters, or None")
    limits.kind("sizes", sizes, Mapping | None, "a dict of numbers by the names of sizes, or None")
    limits.kind("cold", cold, bool, "True or False")
    limits.kind("fresh", fresh, bool, "True or False")
    limits.kind("strategy", strategy, str | _core.SearchStrategy, "the name of a strategy, or a SearchStrategy")
    hint = 'such as "residual", or tilewright.meta_schedule.ResidualModel()'
    what = "a CostModel of tilewright.meta_schedule, the name of one, or None"
    limits.kind("cost_model", cost_model, _core.CostModel | str | None, what, hint)
    for part in (space, strategy, cost_model, database):
        _core.require_begun(part)
    if not hasattr(database, "store_for_search"):
        limits.kind("database", database, str | os.PathLike | None, f"{PLACES}, or None")


class _Prepared(NamedTuple):
    """What a tuner begins with. The search itself does not keep it, whose parts refer to one another and go late: a
    database of our own is closed as soon as it ends.

    Attributes:
        identity: identifies the space.
        script: of the program.
        relatives: traces of programs that differ in sizes.
        heuristic: the trace of the heuristic schedule, a baseline of the finals; "" where there is none.
    """

    context: _core.TuneContext
    identity: str
    store: Any
    script: str
    relatives: Any
    heuristic: str


class _Search:
    """The state of one call of :func:`tune`."""

    def __init__(
        self,
        asked: _Asked,
        space: Space,
        generator: _core.SpaceGenerator | None,
        task: Task,
        started: float,
        interrupts: Interrupts,
    ) -> None:
        seconds, threads, strategy = asked.seconds, asked.threads, asked.strategy
        self.space, self.task, self.threads, self.seed = space, task, threads, asked.seed
        self.target = _core.Target(asked.target).with_num_cores(threads)
        is_device = is_for_device(self.target)
        self.key = workload_key(task)
        self.strategy = _core.SearchStrategy.create(strategy) if isinstance(strategy, str) else strategy
        self.cost_model = asked.cost_model
        # A look at the limits of the machine takes a second, so short searches go without.
        is_short = asked.trials < LEAST_TRIALS_FOR_ROOFS or (seconds or np.inf) < LEAST_SECONDS_FOR_ROOFS
        self.cluster, self.batch = asked.cluster, asked.batch
        self.step_seconds = STEP_SECONDS / max(1, asked.among_others)
        self.measurer: ClusterMeasurer | None = None
        bound = 0.0 if is_short or asked.cluster is not None else roofline_bound(task, self.target)
        self.expectations = Expectations(task, {**space.inputs, **asked.inputs}, asked.seed, seconds=seconds)
        self.interrupts = interrupts
        self.generator = generator  # instead of the function of the space
        self.start = task.module  # what candidates are schedules of
        self.sample: Schedule | None = None  # the first one, which came through
        self.times: dict[str, float] = {}  # seconds by what they went to, beside what the tuner knows
        self.reference = 0.0  # seconds of the unscheduled program, in an earlier session where this one did not run it
        self.started = started
        self.end = float("inf") if seconds is None else started + seconds
        # A run of the space that hangs leaves the finals their time.
        self.end_of_samples = self.end if seconds is None else self.end - min(_FINALS_SECONDS, _FINALS_SHARE * seconds)
        self.overdue: list[float] = []  # how many seconds the runs of the space had that did not come back
        self.failed = ""  # with what heuristics failed, so that the unscheduled program is what is searched
        self.slowest = 0.0  # run of the space that came through, in seconds
        self.refused_first: dict[str, tuple[int, str]] = {}  # refused samples before the first valid one
        origin = origin_of(self.target)
        self.options: dict[str, Any] = {
            "trials": asked.trials,
            "seed": asked.seed,
            "target": self.target,
            "pipeline": _core.PipelineOptions(
                threads=threads, cold=task.cold, reference_timeout=REFERENCE_DEADLINE, device=is_device
            ),
            "fresh": asked.fresh,
            # Other hosts say who they are; times of this one do not compare with theirs.
            "host": "" if asked.cluster is not None else origin.host,
            "versions": origin.versions,
            "stops": _core.StopRules(patience=asked.patience, target_seconds=asked.target_seconds, bound_seconds=bound),
        }

    def prepare(self, database: Any) -> _Prepared:
        """What comes before the tuner, all of which may be left at any moment."""
        context, identity = self._space_of_search()
        store = database if isinstance(database, _core.Database) else open_database(database)
        program = self.task.sparse or self.task.module  # of which the text lowers to the same again
        self.key = workload_key(self.task, store)
        identity = self._with_batch(identity, store)
        relatives = traces_of_relatives(store, self.key, program, str(self.target))
        heuristic = heuristic_trace(self.task, self.start, self.target)
        return _Prepared(context, identity, store, program.script(), relatives, heuristic)

    def _with_batch(self, identity: str, store: Any) -> str:
        """How many candidates are sampled at a time. This number decides which candidates they are, so it is part of
        the identity of a search, and is kept: with another number of workers, the candidates stay the same."""
        name = f"batch {self.key} {self.target} {identity} {self.seed}"
        if self.batch is None and self.cluster is not None:
            kept = store.meta(name)
            there = self.cluster.workers(now=True).values()
            measuring = sum(worker.measure for worker in there if worker.target == target_key(self.target))
            self.batch = int(kept) if kept else 2 * measuring or DEFAULT_BATCH
        if self.batch is None or self.batch == DEFAULT_BATCH:
            return identity
        self.options["batch"] = self.batch
        if self.cluster is not None:
            store.set_meta(name, str(self.batch))
        return hashlib.blake2b(f"{identity} {self.batch}".encode(), digest_size=16).hexdigest()

    def _measurer(self) -> ClusterMeasurer:
        """What measures on a cluster."""
        assert self.cluster is not None
        options = {"reference_timeout": REFERENCE_DEADLINE}
        self.measurer = measurer_for(self.cluster, self.expectations, self.target, options)
        return self.measurer

    def run(self, prepared: _Prepared, report: Callable[[Progress], None]) -> Steps:
        """The search itself."""
        self.times["preparing"] = time.monotonic() - self.started
        store = prepared.store
        task = _core.TuneTask(
            module=self.start,
            function=self.task.entry,
            name=self.task.entry,
            script=prepared.script,
            workload=self.key,
            sizes=sizes_text(self.task),
            space=prepared.identity,
            context=prepared.context,
            cost_model=self.cost_model,
            relatives=prepared.relatives,
            arguments=self.expectations.arguments,
            judge_reference=self.expectations.judge,
            reduction_length=self.task.reduction_length,
            heuristic=prepared.heuristic,
            measurer=None if self.cluster is None else self._measurer,
        )
        # What is left; 0 would be no limit.
        seconds = 0.0 if self.end == np.inf else max(self.end - time.monotonic(), 1e-3)
        tuner = _core.TuningSession(task, _core.SessionOptions(seconds=seconds, **self.options), store)
        try:
            yield from self._run_to_the_end(tuner, report)
        finally:
            tuner.close()
            with contextlib.suppress(ResourceError):  # the search itself is what matters
                measured = tuner.progress()["reference_seconds"]
                self.reference = reference_seconds(store, self.key, str(self.target), measured)
                keep_times(store, f"tune {self.task.entry}", self._spent(tuner.progress()))
                self._keep_refusals(store, self._progress(tuner))
                keep_finals(store, self.key, str(self.target), tuner.result(), prepared.heuristic)
            with contextlib.suppress(ResourceError):
                store.flush()  # a caller that keeps an error keeps the store, too
        store.warn_of_damage()
        for remark in () if self.measurer is None else self.measurer.hosts.remarks():
            warnings.warn(remark, notes.PerformanceWarning, users_level())
        spent = self._spent(tuner.progress())
        if (profiler := Profiler.current()) is not None:
            for name, seconds in spent.items():
                profiler.add(name, seconds)
        result = tuner.result()
        record = result["best"]
        return TuneResult(
            self.task,
            record,
            self._progress(tuner),
            "canceled" if self.interrupts.seen else result["stop_reason"],
            self.threads,
            self.expectations.verdict,
            self.expectations.inputs,
            spent,
            result["object"],
            self.failed,
            hosts=None if self.measurer is None else self.measurer.hosts.table(),
        )

    def _spent(self, facts: Mapping[str, Any]) -> dict[str, float]:
        """Where the time went so far."""
        parts = {**self.times, **facts["seconds"]}
        parts["other"] = max(time.monotonic() - self.started - sum(parts.values()), 0.0)
        beside = facts["beside"] if self.measurer is None else facts["beside"] | self.measurer.hosts.seconds()
        return PartTimes(parts | {f"{BESIDE}{name}": seconds for name, seconds in beside.items()})

    def _keep_refusals(self, store: Any, progress: Progress) -> None:
        if progress.attempts:  # a session that was done before samples nothing
            keep_refusals(store, self.key, str(self.target), progress.refusals)

    def _run_to_the_end(self, tuner: Any, report: Callable[[Progress], None]) -> Iterator[None]:
        canceled = False
        if tuner.finished:  # an earlier run did it all
            report(self._progress(tuner))
        while not tuner.finished:
            try:
                before = time.monotonic()
                report(self._progress(tuner))
                self.times["showing"] = self.times.get("showing", 0.0) + time.monotonic() - before
                tuner.step(self.step_seconds)
                if tuner.finished:
                    report(self._progress(tuner))
            except KeyboardInterrupt:  # in the user's space or progress function, or for the second time
                if canceled:
                    raise
                self.interrupts.seen = True
            if self.interrupts.seen and not canceled:
                canceled = True
                tuner.cancel()
            yield

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
        left = max(self.end_of_samples - begin, 0.5 * (self.end - begin))
        limit = min(SPACE_DEADLINE, usual, left)
        try:
            run_space(self.space, schedule, first=first, seconds=limit)
        except ResourceError as error:
            if error.code == "space/deadline":
                self.overdue.append(limit)
            raise
        self.slowest = max(self.slowest, time.monotonic() - begin)
        check_parameters(self.task, self.space, schedule)

    def _begins_sparse(self, program: ir.Module) -> bool:
        """Whether the space lowers or changes iterations over sparse axes by itself, by a run of it."""
        schedule = Schedule(program, seed=self.seed)
        if not self.space.is_heuristic:
            with contextlib.suppress(Error):
                self._run_space(schedule)
        return begins_sparse(schedule.trace)

    def _first(self) -> Schedule:
        """A sample of the space. Refused samples are counted; if all are refused, the first error is raised."""
        why: Error | None = None
        overdue = 0
        for number in range(FIRST_SAMPLES):
            # Others than those of the next seeds.
            schedule = Schedule(self.start, seed=(self.seed + 1 + number * 1_000_003) % limits.MOST)
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
                if overdue == MOST_OVERDUE or not schedule.trace.decisions:  # without sampling it is always the same
                    break
        assert why is not None
        if isinstance(why, ScheduleError) and why.code != "space/exception":  # which names the space already
            why.args = (with_place(why, within=f"the space '{self.space.name}'"),)
        raise why

    def _first_or_unscheduled(self) -> Schedule:
        """A sample of the space; if heuristics fail, the unscheduled program."""
        try:
            return self._first()
        except Error as error:
            if not self.space.is_heuristic or error.code == "space/deadline":
                raise
            failures.raise_where_refused(self.task.module, error)
            cause = error.__cause__ or error
        failures.raise_in_tests(cause)
        self.failed = failures.description(cause)
        notes.warn_of_failed_heuristic(self.task.entry, self.failed)
        return Schedule(self.task.module)

    def _digested(self) -> list[Trace | str]:
        """The traces of the first candidates that a function samples by itself: of the same seeds in each search."""
        traces: list[Trace | str] = []
        begin = time.monotonic()
        end = begin + _DIGEST_SHARE * (self.end - begin)
        for seed in range(DIGESTED_SAMPLES):
            if time.monotonic() > end:
                return traces[:1]
            schedule = Schedule(self.start, seed=seed)
            try:
                self._run_space(schedule)
                traces.append(schedule.trace)
            except ScheduleError as error:
                traces.append(f"{error.code} after {len(schedule.trace.insts)} steps")
            except ResourceError as error:
                if error.code != "space/deadline":
                    raise
                traces.append(error.code)
                break
        return traces

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
        waiting = "" if self.measurer is None else self.measurer.waiting_for
        return Progress(**facts, budget_left=self.end - time.monotonic(), waiting_for=waiting)

    def _space_of_search(self) -> tuple[_core.TuneContext, str]:
        """The space as strategies take it: what it did to a schedule, or where it decides as it goes, itself; and what
        identifies it."""
        if self.generator is not None:
            takes_defaults = self.generator.postprocs is None
            context = self._context(self.generator)
            if (fitting := fitting_postprocs(self.generator, self.task, context, takes_defaults)) is not None:
                self.generator.postprocs = fitting
            spaces = design_spaces(self.generator, self.task.module)
            if not spaces:
                raise ArgumentError.of(
                    "space/empty",
                    f"{self.space.name} gives no schedule of '{self.task.entry}'",
                    "generate_design_space() returns at least one, such as [tw.Schedule(module)]",
                )
            return context, generator_hash(spaces, self.strategy)
        if self.task.sparse is not None and self._begins_sparse(self.task.sparse):
            self.start = self.task.sparse
        first = self._first_or_unscheduled()
        if not self.space.first:
            self.sample = first
        if first.decisions_read:
            generator: _core.SpaceGenerator = _core.FunctionSpace(self._apply)
        else:
            generator = _core.ScheduleFn(lambda _: first)
        generator.schedule_rules, generator.postprocs = [], []
        if not isinstance(self.strategy, _core.EvolutionarySearch):  # which changes points by mutators of the target
            generator.mutators = []
        traces = self._digested() if first.decisions_read else [json.dumps(first.trace.as_json()[0])]
        return self._context(generator), space_hash(self.space, traces, self.strategy)

    def _context(self, generator: _core.SpaceGenerator) -> _core.TuneContext:
        context = _core.TuneContext()
        context.module, context.target = self.start, self.target
        context.space_generator, context.search_strategy = generator, self.strategy
        context.task_name, context.seed = self.task.entry, self.seed
        context.num_threads = machine.cpu_count()
        context.initialize()
        return context
