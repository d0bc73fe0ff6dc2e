"""Builder and runner in one: the measuring pipeline of ``tw.tune``, for sessions over several tasks.

A candidate is built while the one before it is being measured. Kernels race against the fastest so far, are compared
with the unscheduled program, and share processes that are replaced after crashes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright import _core, ir
from tilewright.database.origins import Origin
from tilewright.errors import Error
from tilewright.meta_schedule.builder import Builder, BuilderInput, BuilderResult, DaskBuilder, LocalBuilder
from tilewright.meta_schedule.cluster_pipeline import ClusterPipeline
from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.meta_schedule.runner.local_runner import LocalRunner
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from tilewright.search.expectations import REFERENCE_DEADLINE, Expectations
from tilewright.task.task import task_of

__all__ = ["MeasuringPipeline"]

_PREFIX = "pipeline:"
#: seconds between two checks for finished candidates
_LOOK = 0.02
#: outcomes with times; stopped candidates have times that show that they are slow
_TIMED = ("ok", "slow_stopped")
#: a builder and a runner that call no code of the user
_Parts = tuple[LocalBuilder, LocalRunner] | tuple[DaskBuilder, DaskRunner]


class MeasuringPipeline(Builder, Runner):  # type: ignore[misc]  # two factories named create
    """Builder and runner for the programs that :meth:`work_on` selects. Programs that it cannot call, such as those
    with symbolic sizes, go to a :class:`LocalBuilder` and a :class:`LocalRunner`.

    Args:
        max_workers: number of processes that build programs outside of the pipeline.
        seconds: maximum seconds of the session; None for no limit.
        parts: a builder and a runner that call no code of the user: the pipeline measures as often and as long as they
            would, instead of racing candidates against the fastest, and passes them programs outside of the pipeline.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        seconds: float | None = None,
        parts: _Parts | None = None,
    ) -> None:
        self._max_workers, self._seconds, self._parts = max_workers, seconds, parts
        self._lanes: dict[int, _Lane | None] = {}  # by the identity of their contexts
        self._contexts: list[Any] = []  # keeps contexts alive, so that identities are not reused
        self._current: _Lane | None = None
        self._plain: tuple[LocalBuilder, LocalRunner] | None = None

    @classmethod
    @contextlib.contextmanager
    def over(cls, builder: Builder, runner: Runner, seconds: float | None) -> Iterator[tuple[Builder, Runner]]:
        """Yield the builder and the runner, or a pipeline that replaces both and is closed with the context."""
        parts: Any = builder, runner
        is_pair = isinstance(builder, DaskBuilder) == isinstance(runner, DaskRunner)
        if is_pair and all(getattr(part, "is_plain", False) for part in parts):
            with contextlib.closing(cls(seconds=seconds, parts=parts)) as both:
                yield both, both
        else:
            yield builder, runner

    @property
    def plain(self) -> _Parts:
        """Return the builder and the runner for programs outside of the pipeline."""
        if self._parts is not None:
            return self._parts
        if self._plain is None:
            self._plain = LocalBuilder(max_workers=self._max_workers), LocalRunner()
        return self._plain

    def work_on(self, context: Any) -> bool:
        """Select the program of the next candidates; return whether they go through the pipeline.

        Raises:
            tilewright.InternalError: the compiled unscheduled program computes wrong results.
        """
        if id(context) not in self._lanes:
            self._lanes[id(context)] = _lane_of(context, self._seconds, self._parts)
            self._contexts.append(context)
        self._current = self._lanes[id(context)]
        return self._current is not None

    def failure_of(self, context: Any) -> Error | None:
        """Return the error because of which a program can no longer be measured; None if it can."""
        lane = self._lanes.get(id(context))
        return None if lane is None else lane.error

    def beside(self) -> dict[str, float]:
        """Return the seconds that the processes spent "building" (all together), "checking" and "measuring"."""
        found: dict[str, float] = {}
        for lane in self._lanes.values():
            for name, seconds in (lane.beside() if lane is not None else {}).items():
                found[name] = found.get(name, 0.0) + seconds
        return found

    def leave(self, context: Any) -> None:
        """End the processes of a program that is measured no more; running candidates fail."""
        lane = self._lanes.get(id(context))
        if lane is not None:
            lane.close()

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Submit the candidates; later errors are in the runner's results."""
        lane = self._current
        return self.plain[0].build(build_inputs) if lane is None else [lane.submit(each.mod) for each in build_inputs]

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Return one future for each candidate."""
        if self._current is None:
            return self.plain[1].run(runner_inputs)
        return [self._current.future(int(each.artifact_path.removeprefix(_PREFIX))) for each in runner_inputs]

    def close(self) -> None:
        """End all processes; running candidates fail."""
        for lane in self._lanes.values():
            if lane is not None:
                lane.close()
        self._lanes.clear()
        for part in self._plain or ():
            part.close()
        self._plain = self._current = None


class _Lane:
    """The candidates of one program."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.done: dict[int, RunnerResult] = {}
        self.failure = ""  #: why candidates are no longer measured
        self._beside: dict[str, float] = {}  #: seconds of a closed pipeline
        self.error: Error | None = None  #: error that ended the pipeline, if it was not closed

    def submit(self, mod: ir.IRModule) -> BuilderResult:
        if self.failure:
            return BuilderResult(None, self.failure)
        try:
            return BuilderResult(f"{_PREFIX}{self.pipeline.submit(mod)}", None)
        except Error as error:
            return BuilderResult(None, str(error))

    def future(self, number: int) -> RunnerFuture:
        def done() -> bool:
            self._look(0.0)
            return number in self.done or bool(self.failure)

        def result() -> RunnerResult:
            while number not in self.done and not self.failure:
                self._look(_LOOK)
            return self.done.pop(number, RunnerResult(None, self.failure))

        return RunnerFuture(done, result)

    def _look(self, seconds: float) -> None:
        if self.failure:
            return
        try:
            results = self.pipeline.poll(seconds)
        except Error as error:  # the reference cannot be run, or no helper can be started
            self.error = error
            self.failure = str(error)
            self.close()
            return
        for number, outcome, times, message, *host in results:
            timed = outcome in _TIMED and times
            answer = (times, None) if timed else (None, f"{outcome}: {message}")
            origin = Origin.here()
            self.done[number] = RunnerResult(*answer, origin=origin._replace(host=host[0]) if host else origin)

    def beside(self) -> dict[str, float]:
        return self.pipeline.beside or self._beside

    def close(self) -> None:
        self._beside = self.beside()
        self.failure = self.failure or "the pipeline was closed"
        self.pipeline.close()


def _lane_of(context: Any, seconds: float | None, parts: _Parts | None = None) -> _Lane | None:
    function = next(iter(context.mod.functions.values())) if len(context.mod.functions) == 1 else None
    # If the layout of parameters may change, kernels have other arguments than the unscheduled program.
    kind = None if context.target is None else context.target.kind
    if function is None or "layout_free_buffers" in function.attrs or kind not in ("llvm", "opencl", "cuda"):
        return None
    try:
        task = task_of(context.mod)
    except Error:
        return None
    if parts is not None and isinstance(parts[1], DaskRunner):
        if kind != "llvm":
            return None
        return _Lane(ClusterPipeline(parts[1].cluster, task, context.target, _as_these(*parts), seconds=seconds))
    expectations = Expectations(task, {}, seed=0, seconds=seconds)
    pipeline = _core.MeasurePipeline(
        written=task.module,
        function=task.entry,
        arguments=expectations.arguments(),
        judge=expectations.judge,
        reduction_length=task.reduction_length,
        target=context.target,
        options=_core.PipelineOptions(
            threads=context.target.num_cores if kind == "llvm" else 1,
            device=kind != "llvm",
            reference_timeout=min(REFERENCE_DEADLINE, REFERENCE_DEADLINE if seconds is None else seconds),
            **({} if parts is None else _options_of(_as_these(*parts))),
        ),
    )
    return _Lane(pipeline)


def _as_these(builder: LocalBuilder | DaskBuilder, runner: LocalRunner | DaskRunner) -> dict[str, Any]:
    """Return pipeline options with which it measures as often and as long as a builder and a runner."""
    config, seconds = runner.evaluator_config, runner.timeout_sec
    return {
        **({"builders": builder.max_workers} if isinstance(builder, LocalBuilder) else {}),
        "build_timeout": builder.timeout_sec,
        "run_timeout": seconds,
        "cold": config.enable_cpu_cache_flush,
        "steady": [config.repeat, config.number, config.min_repeat_ms * 1e-3, seconds / 2],
    }


def _options_of(asked: dict[str, Any]) -> dict[str, Any]:
    steady = asked.pop("steady")
    return {**asked, "race": _core.RaceRules.steady(*steady)}
