"""Builder and runner in one: the measuring pipeline of ``tw.tune``, for sessions over several tasks.

A candidate is built while the one before it is being measured. Kernels race against the fastest so far, are compared
with the program as it was written, and share processes that are replaced when they are lost.
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
#: seconds between two looks at what is done
_LOOK = 0.02
#: of candidates that were stopped, their times show that they are slow
_TIMED = ("ok", "slow_stopped")
#: a builder and a runner that call nothing of the user's
_Parts = tuple[LocalBuilder, LocalRunner] | tuple[DaskBuilder, DaskRunner]


class MeasuringPipeline(Builder, Runner):  # type: ignore[misc]  # two factories named create
    """Both of them for the programs that :meth:`work_on` names; those that it cannot call on its own, such
    as ones of symbolic sizes, go to a :class:`LocalBuilder` and a :class:`LocalRunner`.

    Args:
        max_workers: processes that build what does not go through the pipeline.
        seconds: that the session may take; None for no limit.
        parts: a builder and a runner that call nothing of the user's: it measures as often and as long as these would,
            instead of racing candidates against the fastest, and hands them what does not go through the pipeline.
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
        self._contexts: list[Any] = []  # kept, so that no other one has the identity of one that is gone
        self._current: _Lane | None = None
        self._plain: tuple[LocalBuilder, LocalRunner] | None = None

    @classmethod
    @contextlib.contextmanager
    def over(cls, builder: Builder, runner: Runner, seconds: float | None) -> Iterator[tuple[Builder, Runner]]:
        """A builder and a runner, or the pipeline that does what they would do, which ends with the body."""
        parts: Any = builder, runner
        is_pair = isinstance(builder, DaskBuilder) == isinstance(runner, DaskRunner)
        if is_pair and all(getattr(part, "is_plain", False) for part in parts):
            with contextlib.closing(cls(seconds=seconds, parts=parts)) as both:
                yield both, both
        else:
            yield builder, runner

    @property
    def plain(self) -> _Parts:
        """What the other programs are built and measured with."""
        if self._parts is not None:
            return self._parts
        if self._plain is None:
            self._plain = LocalBuilder(max_workers=self._max_workers), LocalRunner()
        return self._plain

    def work_on(self, context: Any) -> bool:
        """Says which program the next candidates are of, and whether they go through the pipeline.

        Raises:
            tilewright.InternalError: the program as it was written computes something else than it should.
        """
        if id(context) not in self._lanes:
            self._lanes[id(context)] = _lane_of(context, self._seconds, self._parts)
            self._contexts.append(context)
        self._current = self._lanes[id(context)]
        return self._current is not None

    def failure_of(self, context: Any) -> Error | None:
        """Why nothing of this program can be measured any more; None where that is not so."""
        lane = self._lanes.get(id(context))
        return None if lane is None else lane.error

    def beside(self) -> dict[str, float]:
        """Seconds that its processes were "building" (all together), "checking" and "measuring"."""
        found: dict[str, float] = {}
        for lane in self._lanes.values():
            for name, seconds in (lane.beside() if lane is not None else {}).items():
                found[name] = found.get(name, 0.0) + seconds
        return found

    def leave(self, context: Any) -> None:
        """Ends the processes of a program of which nothing more is measured; what is under way fails."""
        lane = self._lanes.get(id(context))
        if lane is not None:
            lane.close()

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Hands them on; what fails later is in the runner's result."""
        lane = self._current
        return self.plain[0].build(build_inputs) if lane is None else [lane.submit(each.mod) for each in build_inputs]

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """One future for each."""
        if self._current is None:
            return self.plain[1].run(runner_inputs)
        return [self._current.future(int(each.artifact_path.removeprefix(_PREFIX))) for each in runner_inputs]

    def close(self) -> None:
        """Ends all processes; what is being measured fails."""
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
        self.failure = ""  #: why nothing more is measured
        self._beside: dict[str, float] = {}  #: of a pipeline that was closed
        self.error: Error | None = None  #: why it ended, where nobody has ended it

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
        except Error as error:  # there is nothing to compare with, or no helper can be started
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
    # Programs whose parameters may get another layout are called otherwise than as they were written.
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
    """How a pipeline measures as often and as long as a builder and a runner."""
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
