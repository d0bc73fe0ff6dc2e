"""``tw.tune``: prepares the search of one program over one space, and drives ``_core.TuningSession``.

The other driver is ``meta_schedule/task_session.py``, which has many tasks. What both decide is decided in
``src/search/session/task_progress.h``; ``src/search/README.md`` lists what they share.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright import _core, ir, te
from tilewright.cluster.labels import target_key
from tilewright.database.origins import origin_of
from tilewright.database.records import (
    PLACES,
    open_database,
    recorded_program,
    sizes_text,
    workload_key,
)
from tilewright.database.session_notes import store_finals, store_refusals, store_times, update_reference_seconds
from tilewright.errors import ArgumentError, ResourceError, ScriptError
from tilewright.kernel.roofline import roofline_bound
from tilewright.report.profiler import CONCURRENT, PartTimes, Profiler
from tilewright.schedule import Schedule, Trace
from tilewright.search import formats, modules
from tilewright.search.candidate_programs import fitting_postprocs, heuristic_trace
from tilewright.search.expectations import REFERENCE_DEADLINE, Expectations
from tilewright.search.interrupts import Interrupts
from tilewright.search.modules import ModuleResult, Steps, main_of, public_functions
from tilewright.search.progress import elsewhere, reporter
from tilewright.search.relatives import traces_of_relatives
from tilewright.search.request import SearchRequest
from tilewright.search.result import Progress, TuneResult, without_a_trial
from tilewright.search.space_samples import SpaceSamples, run_space
from tilewright.search.spaces import Space, design_spaces, space_of
from tilewright.support import limits, machine, notes
from tilewright.support.early_interrupts import recognized
from tilewright.support.machine import is_for_device
from tilewright.support.user_lines import users_level
from tilewright.support.wrong_arguments import no_program, suggests_keywords
from tilewright.task.arguments import digest_of_integers
from tilewright.task.task import Task, by_buffer, check_inputs, sizes_of, task_of

if TYPE_CHECKING:
    from tilewright.cluster.connection import Cluster
    from tilewright.cluster.measurer import ClusterMeasurer
    from tilewright.meta_schedule import Database

#: version of the candidates that follow from a seed; changed with the strategies, so that old sessions are not resumed
_STREAM = 4
#: searches of so many trials end near the limits of the machine
LEAST_TRIALS_FOR_ROOFS = 32
LEAST_SECONDS_FOR_ROOFS = 10.0
#: seconds between two looks at progress, and at signals
STEP_SECONDS = 0.1


def space_hash(space: Space, traces: Sequence[Trace | str], strategy: _core.SearchStrategy) -> str:
    """Identify this space, and the order in which it is searched. It determines the random stream that a search
    continues with; measurements belong to programs, and are kept whatever it is.

    Args:
        traces: its steps alone, where its function does not read sampled values; else the first candidates that it
            gives, with their decisions, or why it gives none. Nothing that a function may depend on (closures,
            arguments, other functions, files) is looked at, but what it does.
    """
    sampled = [trace if isinstance(trace, str) else trace.as_json() for trace in traces]
    return _hash_of(json.dumps([space.identity, sampled]), strategy)


def default_batch(measuring: int) -> int:
    """Return the default batch: two candidates for each kernel that the cluster measures at a time, and at least as
    many as without a cluster (decision 0098)."""
    return max(_core.DEFAULT_BATCH, 2 * measuring)


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
        batch: number of candidates that are sampled at a time. A search that is continued keeps its batch; the default
            for others is 8, or twice the number of measuring workers of `cluster` if that is more. Another batch gives
            other candidates.
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
    space, program = space or (program if isinstance(program, Space) else None), _program_of(program)
    trials = limits.whole("trials", trials, 1, "at least 1 candidate has to be measured")
    threads = 1 if threads is None else limits.whole("threads", threads, 1, "a kernel needs at least 1")
    seed = limits.seed(seed)
    seconds, target_seconds = limits.positive("seconds", seconds), limits.positive("target_seconds", target_seconds)
    patience, batch = _count("patience", patience, "no limit"), _count("batch", batch, "the default")
    _check_kinds(space, inputs, sizes, cold, fresh, strategy, cost_model, database)
    given = {**(space.inputs if isinstance(space, Space) else {}), **by_buffer(program, inputs or {})}
    request = SearchRequest(space=space, inputs=given, sizes=sizes or {}, cold=cold, threads=threads, target=target)
    request = replace(request, trials=trials, seconds=seconds, patience=patience, target_seconds=target_seconds)
    request = replace(request, seed=seed, strategy=strategy, batch=batch, fresh=fresh, database=database)
    if isinstance(cost_model, str):
        request = replace(request, model_name=cost_model)
        cost_model = cost_model_called(cost_model, seed)
    with _machines_of(cluster, target) as machines:
        request = replace(request, cost_model=cost_model, progress=progress, cluster=machines)
        return _dispatch(program, function, request, started)


@contextlib.contextmanager
def _machines_of(cluster: Any, target: str) -> Iterator[Cluster | None]:
    """Connect with a cluster for as long as a search takes; None is this machine."""
    if cluster is None:
        yield None
        return
    if is_for_device(target):
        hint = "search on the machine of the device, without cluster="
        raise ArgumentError.of("tune/device", f"a cluster measures on processors, not on '{target}'", hint)
    from tilewright.cluster.connection import Cluster

    with contextlib.closing(Cluster(cluster)) as machines:
        machines.check_native(target)
        yield machines


def _count(name: str, value: int | None, none: str) -> int | None:
    return None if value is None else limits.whole(name, value, 1, f"it is a number above 0, or None for {none}")


def _program_of(given: Any) -> ir.PrimFunc | ir.Module:
    """Return the program of formulas or of a space."""
    program = te.program_of(given) if isinstance(given, te.Tensor | list | tuple) else given
    program = program.program if isinstance(program, Space) else program
    if not isinstance(program, ir.PrimFunc | ir.IRModule):
        raise no_program("a function under @T.prim_func can be tuned", program)
    return program


def _dispatch(
    program: ir.PrimFunc | ir.Module, function: str | None, request: SearchRequest, started: float
) -> TuneResult | ModuleResult | formats.FormatsResult:
    """Search one function, its formats, or the functions of a module."""
    notes.warn_of_threads(request.threads)
    if (in_formats := formats.tune_in_formats(program, request, _tune_function, run_space)) is not None:
        return in_formats
    if isinstance(program, ir.IRModule) and not isinstance(request.space, Space):
        return _tune_module(program, function, request, started)
    if function is not None:
        raise ArgumentError.of(
            "tune/function",
            f"function is {function!r}, and the program is not a module of several functions",
            "omit it, or pass the module",
        )
    return _tune_function(program, request, started)


def _tune_module(
    module: ir.Module, function: str | None, request: SearchRequest, started: float
) -> TuneResult | ModuleResult:
    """Tune the function that is meant, or each of them."""
    public = public_functions(module)
    one: ir.PrimFunc | ir.Module | None = None
    if function is not None:
        one = modules.function_called(module, function)
    elif main_of(module) is not None:
        one = module
    elif len(public) == 1:
        (one,) = public.values()
    if one is not None:
        return _tune_function(one, request, started)
    space, strategy = request.space, request.strategy
    if space is not None and not isinstance(space, _core.SpaceGenerator | str):
        raise ArgumentError.of(
            "tune/which-function",
            f"the module has the functions {', '.join(public)}; which one is to be tuned? A space schedules one",
            'say it: tw.tune(module, function="name", space=...)',
        )
    store = _core.Database.in_memory() if request.database in (None, "memory") else request.database

    at_once = request.cluster is not None  # on one machine, searches would disturb what the others measure

    def search(each: ir.PrimFunc, **its: Any) -> Steps:
        own = strategy if isinstance(strategy, str) else strategy.clone()
        if at_once and request.model_name:  # a shared one would learn from the others in the order of their results
            its["cost_model"] = cost_model_called(request.model_name, request.seed)
        its |= {"database": store, "strategy": own}
        return _search_function(each, replace(request, **its), time.monotonic(), interrupts)

    with Interrupts() as interrupts:
        return modules.tune_functions(
            module,
            search,
            at_once=at_once,
            seconds=request.seconds,
            inputs=request.inputs,
            sizes=request.sizes,
        )


def cost_model_called(name: str, seed: int) -> _core.CostModel | None:
    """Return the cost model with a name; its random numbers follow from the seed.

    Raises:
        tilewright.ArgumentError: there is no cost model with this name.
    """
    options = {"seed": seed} if name == "random" else {}
    from tilewright.cost_model import create

    return create(name, **options)


def _tune_function(program: ir.PrimFunc | ir.Module, request: SearchRequest, started: float) -> TuneResult:
    """Search one function."""
    with Interrupts() as interrupts:
        return modules.result_of(_search_function(program, request, started, interrupts))


def _search_function(
    program: ir.PrimFunc | ir.Module, request: SearchRequest, started: float, interrupts: Interrupts
) -> Steps:
    """Yield the steps of the search of one function. Only its own next step waits for a step."""
    inputs, threads = request.inputs, request.threads
    with contextlib.ExitStack() as shown:
        check_inputs(program, inputs)
        task = task_of(program, {**sizes_of(program, inputs), **request.sizes}, cold=request.cold)
        task = replace(task, given=digest_of_integers(inputs))
        try:
            with recognized(), interrupts.raised():
                interrupts.check()
                space, generator = space_of(request.space, program, task, threads, request.target)
                search = _Search(request, space, generator, task, started, interrupts)
                named = elsewhere(request.target, threads, is_on_cluster=request.cluster is not None)
                others = request.among_others
                described = reporter(
                    request.progress, task, threads, among_others=others, device=named, target=request.target
                )
                report = shown.enter_context(described)
                prepared = search.prepare(request.database)
        except KeyboardInterrupt:
            return without_a_trial(task, request.trials, threads, inputs, time.monotonic() - started)
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
    """The inputs of a tuner. The search itself does not keep them, because their parts refer to one another and are
    freed late: a database that the search opened is closed as soon as it ends.

    Attributes:
        identity: identifies the space.
        script: script of the program.
        relatives: traces of programs that differ in sizes.
        heuristic: the trace of the heuristic schedule, a baseline of the finals; "" where there is none.
        entry: the program of the database's entry, whose names its records have; None if it is the searched one.
    """

    context: _core.TuneContext
    identity: str
    store: Any
    script: str
    relatives: Any
    heuristic: str
    entry: ir.Module | None


class _Search:
    """The state of one call of :func:`tune`."""

    def __init__(
        self,
        request: SearchRequest,
        space: Space,
        generator: _core.SpaceGenerator | None,
        task: Task,
        started: float,
        interrupts: Interrupts,
    ) -> None:
        seconds, threads, strategy = request.seconds, request.threads, request.strategy
        self.space, self.task, self.threads, self.seed = space, task, threads, request.seed
        self.target = _core.Target(request.target).with_num_cores(threads)
        is_device = is_for_device(self.target)
        self.key = workload_key(task)
        self.strategy = _core.SearchStrategy.create(strategy) if isinstance(strategy, str) else strategy
        self.cost_model = request.cost_model
        # A look at the limits of the machine takes a second, so short searches go without.
        is_short = request.trials < LEAST_TRIALS_FOR_ROOFS or (seconds or np.inf) < LEAST_SECONDS_FOR_ROOFS
        self.cluster, self.batch = request.cluster, request.batch
        self.step_seconds = STEP_SECONDS / max(1, request.among_others)
        self.measurer: ClusterMeasurer | None = None
        bound = 0.0 if is_short or request.cluster is not None else roofline_bound(task, self.target)
        self.expectations = Expectations(task, {**space.inputs, **request.inputs}, request.seed, seconds=seconds)
        self.interrupts = interrupts
        self.generator = generator  # instead of the function of the space
        self.times: dict[str, float] = {}  # seconds by what they went to, beside what the tuner knows
        self.reference = 0.0  # seconds of the unscheduled program, in an earlier session where this one did not run it
        self.started = started
        self.end = float("inf") if seconds is None else started + seconds
        # A run of the space that hangs leaves the finals their time.
        reserved = 0.0 if seconds is None else _core.seconds_for_finals(seconds)
        self.samples = SpaceSamples(
            space, task, seed=request.seed, end=self.end, reserved=reserved, interrupts=interrupts
        )
        origin = origin_of(self.target)
        self.options: dict[str, Any] = {
            "trials": request.trials,
            "seed": request.seed,
            "target": self.target,
            "pipeline": _core.PipelineOptions(
                threads=threads, cold=task.cold, reference_timeout=REFERENCE_DEADLINE, device=is_device
            ),
            "fresh": request.fresh,
            # Other hosts say who they are; times of this one do not compare with theirs.
            "host": "" if request.cluster is not None else origin.host,
            "versions": origin.versions,
            "stops": _core.StopRules(
                patience=request.patience or 0, target_seconds=request.target_seconds or 0.0, bound_seconds=bound
            ),
        }

    def prepare(self, database: Any) -> _Prepared:
        """Do everything before the tuner; an exception may interrupt it at any point."""
        context, identity = self._space_of_search()
        store = database if isinstance(database, _core.Database) else open_database(database)
        program = self.task.sparse or self.task.module  # of which the text lowers to the same again
        self.key = workload_key(self.task, store)
        identity = self._with_batch(identity, store)
        relatives = traces_of_relatives(store, self.key, program, str(self.target))
        heuristic = heuristic_trace(self.task, self.samples.program, self.target)
        entry = next((each for each in store.workloads() if each.hash == self.key), None)
        recorded = None if entry is None or self.task.sparse else recorded_program(entry, unless=program)
        return _Prepared(context, identity, store, program.script(), relatives, heuristic, recorded)

    def _with_batch(self, identity: str, store: Any) -> str:
        """Set the batch size, and return the identity of the search with it. The batch size decides which candidates
        are sampled, so it is stored: with another number of workers, or without any, the candidates stay the same."""
        name = f"batch {self.key} {self.target} {identity} {self.seed}"
        kept = store.meta(name) or ""
        if self.batch is None:
            is_kept = re.fullmatch("[1-9][0-9]{0,8}", kept)  # a damaged note is none
            self.batch = int(kept) if is_kept else default_batch(self._measuring_workers())
        if kept != str(self.batch):
            store.set_meta(name, str(self.batch))
        self.options["batch"] = self.batch
        if self.batch == _core.DEFAULT_BATCH:
            return identity
        return hashlib.blake2b(f"{identity} {self.batch}".encode(), digest_size=16).hexdigest()

    def _measuring_workers(self) -> int:
        """Return how many kernels the workers of the cluster can measure at a time; 0 without a cluster."""
        there = () if self.cluster is None else self.cluster.workers(now=True).values()
        return sum(worker.measure for worker in there if worker.target == target_key(self.target))

    def _measurer(self) -> ClusterMeasurer:
        """Return the measurer of a cluster."""
        from tilewright.search.cluster_measurer import measurer_for

        assert self.cluster is not None
        options = {"reference_timeout": REFERENCE_DEADLINE}
        self.measurer = measurer_for(self.cluster, self.expectations, self.target, options)
        return self.measurer

    def run(self, prepared: _Prepared, report: Callable[[Progress], None]) -> Steps:
        """Run the search."""
        self.times["preparing"] = time.monotonic() - self.started
        store = prepared.store
        task = _core.TuneTask(
            module=self.samples.program,
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
            entry=prepared.entry,
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
                self.reference = update_reference_seconds(store, self.key, str(self.target), measured)
                store_times(store, f"tune {self.task.entry}", self._spent(tuner.progress()))
                self._keep_refusals(store, self._progress(tuner))
                store_finals(store, self.key, str(self.target), tuner.result(), prepared.heuristic)
            with contextlib.suppress(ResourceError):
                store.flush()  # a caller that keeps an error keeps the store, too
        store.warn_of_damage()
        for remark in () if self.measurer is None else self.measurer.states.remarks():
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
            self.samples.failed,
            hosts=None if self.measurer is None else self.measurer.states.table(),
        )

    def _spent(self, facts: Mapping[str, Any]) -> dict[str, float]:
        """Return the time breakdown so far."""
        parts = {**self.times, **facts["seconds"]}
        parts["other"] = max(time.monotonic() - self.started - sum(parts.values()), 0.0)
        beside = facts["beside"] if self.measurer is None else facts["beside"] | self.measurer.states.seconds()
        return PartTimes(parts | {f"{CONCURRENT}{name}": seconds for name, seconds in beside.items()})

    def _keep_refusals(self, store: Any, progress: Progress) -> None:
        if progress.attempts:  # a session that was done before samples nothing
            store_refusals(store, self.key, str(self.target), progress.refusals)

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

    def _progress(self, tuner: Any) -> Progress:
        """Return the progress of the search, including samples that were refused before the tuner began."""
        facts = tuner.progress()
        facts["reference_seconds"] = facts["reference_seconds"] or self.reference
        self.samples.add_refusals(facts)
        waiting = "" if self.measurer is None else self.measurer.waiting_for
        return Progress(**facts, budget_left=self.end - time.monotonic(), waiting_for=waiting)

    def _space_of_search(self) -> tuple[_core.TuneContext, str]:
        """Return the space as strategies take it, and its identity. If the space samples by itself, the context holds
        its function, else the schedules that it generated."""
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
        generator, traces = self.samples.generator()
        generator.schedule_rules, generator.postprocs = [], []
        if not isinstance(self.strategy, _core.EvolutionarySearch):  # which changes points by mutators of the target
            generator.mutators = []
        return self._context(generator), space_hash(self.space, traces, self.strategy)

    def _context(self, generator: _core.SpaceGenerator) -> _core.TuneContext:
        context = _core.TuneContext()
        context.module, context.target = self.samples.program, self.target
        context.space_generator, context.search_strategy = generator, self.strategy
        context.task_name, context.seed = self.task.entry, self.seed
        context.num_threads = machine.cpu_count()
        context.initialize()
        return context
