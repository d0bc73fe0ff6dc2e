"""Validate the results of user-defined builders, runners, strategies and task schedulers before a session uses them."""

from __future__ import annotations

import itertools
import logging
import math
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.meta_schedule.builder import Builder, BuilderInput, BuilderResult
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from tilewright.support import limits
from tilewright.support.user_lines import error_text, last_raise

__all__ = [
    "WrongAnswers",
    "candidates_of",
    "designs_of",
    "from_builder",
    "from_runner",
    "is_done",
    "refused",
    "result_of",
    "task_of",
]

_LOGGER = logging.getLogger("tilewright.meta_schedule")
_BUILDS = "build() gives a BuilderResult(artifact_path, error_msg) for each input, in their order"
_RUNS = "run() gives a RunnerFuture for each input, in their order"
_RESULT = "the result() of a RunnerFuture is a RunnerResult(run_secs, error_msg), and one of both is None"


@dataclass(frozen=True)
class _NotBuilt(BuilderResult):
    """Replaces an invalid result of a builder."""

    wrong: ArgumentError | None = None


class _NotRun(RunnerResult):
    """Replaces an invalid result of a runner."""

    def __init__(self, message: str, wrong: ArgumentError) -> None:
        super().__init__(None, message)
        self.wrong = wrong


class WrongAnswers:
    """Invalid results of a session's builders and runners: the first of each kind is logged, the others are in the log
    of their task."""

    def __init__(self) -> None:
        self._codes: set[str] = set()
        self._failed: dict[str, dict[str, tuple[int, str]]] = {}  # by task and step: count and first message

    def look_at(self, name: str, built: BuilderResult, result: RunnerResult | None = None) -> None:
        """Warn if a candidate of the task `name` failed because of an invalid result."""
        wrong: ArgumentError | None = getattr(built, "wrong", None) or getattr(result, "wrong", None)
        if wrong is not None and wrong.code not in self._codes:
            self._codes.add(wrong.code)
            _LOGGER.warning("%s: %s: such candidates fail: %s", name, wrong.code, wrong)
        error = built.error_msg or getattr(result, "error_msg", None)
        if wrong is None and error is not None:
            steps = self._failed.setdefault(name, {})
            step = "not built" if built.error_msg is not None else "not measured"
            count, first = steps.get(step, (0, str(error).strip()))
            steps[step] = count + 1, first

    def report_failures(self, name: str) -> None:
        """Warn of a task without measured candidates: the number of failures by step, and the first message of each."""
        failures = [f"{count} x {step}: {first}" for step, (count, first) in self._failed.get(name, {}).items()]
        if failures:
            _LOGGER.warning("%s: no candidate was measured, and none is kept: %s", name, "\n".join(failures))

    def look_at_refusals(self, name: str, strategy: Any) -> None:
        """Warn if a part of the space, such as a mutator, raised an error or returned an invalid result; the first of
        each kind is logged."""
        refusals = getattr(strategy, "refusals", None)
        for code, count in sorted(refusals.items()) if isinstance(refusals, dict) else ():
            key = f"{name}: {code}"
            if code.endswith(("/exception", "/answer")) and key not in self._codes:
                self._codes.add(key)
                text = refused(code, count, strategy.first_refusals.get(code, ""))
                _LOGGER.warning("%s: samples that fail are omitted, up to now %s", name, text)


def refused(code: str, count: int, message: str) -> str:
    """Return how often something was refused, and its message; the user's line that the message shows follows."""
    first, newline, place = message.partition("\n")
    return f"{count} x {code}" + (f" ({first}){newline}{place}" if message else "")


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _not_built(summary: str, message: str = "") -> BuilderResult:
    return _NotBuilt(None, message or summary, ArgumentError.of("builder/answer", summary, _BUILDS))


def _not_run(summary: str, hint: str = _RESULT, message: str = "") -> RunnerResult:
    return _NotRun(message or summary, ArgumentError.of("runner/answer", summary, hint))


def _raised(who: str, error: BaseException) -> tuple[str, str]:
    """Return a short text with the user's line, and the complete traceback."""
    return f"the {who} raised {error_text(error)}", f"the {who} raised\n{traceback.format_exc()}"


def _list_from(give: Callable[[], Any], who: str, what: str, count: int) -> tuple[list[Any], str, str]:
    """Return the items that a function gives, and what is wrong with them, in short and in full; "" if their number is
    correct."""
    try:
        given = give()
        # One more item than expected shows that there are too many, even if __len__() is wrong.
        items = [] if given is None or isinstance(given, str) else list(itertools.islice(iter(given), count + 1))
    except Exception as error:
        return [], *_raised(who, last_raise(error))
    if given is None or isinstance(given, str):
        summary = f"the {who} gave {_kind(given)}, no list of {what}s"
    elif len(items) != count:
        many = f"more than {count}" if len(items) > count else str(len(items))
        summary = f"the {who} gave {many} {what}s for {count} inputs"
    else:
        return items, "", ""
    return [], summary, summary


def from_builder(builder: Builder, inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
    """Return a result for each input; a failed one with a message if the builder's result is invalid."""
    items, summary, message = _list_from(lambda: builder.build(inputs), "builder", "result", len(inputs))
    return [_not_built(summary, message)] * len(inputs) if summary else [_built(item) for item in items]


def from_runner(runner: Runner, inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
    """Return a future for each input; a failed one with a message if the runner's result is invalid."""
    if not inputs:
        return []
    items, summary, message = _list_from(lambda: runner.run(inputs), "runner", "future", len(inputs))
    if summary:
        failed = _not_run(summary, _RUNS, message)
        return [RunnerFuture(lambda: True, lambda: failed)] * len(inputs)
    return [_future(item) for item in items]


def _built(result: Any) -> BuilderResult:
    path, error = getattr(result, "artifact_path", None), getattr(result, "error_msg", None)
    if not hasattr(result, "artifact_path") or not hasattr(result, "error_msg"):
        return _not_built(f"the builder gave {_kind(result)}, no BuilderResult")
    if path is None and error is None:
        return _not_built("the builder gave neither a file nor an error")
    return result  # type: ignore[no-any-return]


def _future(future: Any) -> RunnerFuture:
    if callable(getattr(future, "done", None)) and callable(getattr(future, "result", None)):
        return future  # type: ignore[no-any-return]
    failed = _not_run(f"the runner gave {_kind(future)}, no RunnerFuture", _RUNS)
    return RunnerFuture(lambda: True, lambda: failed)


def is_done(future: RunnerFuture) -> bool:
    """Return whether a result is available; a future that does not know counts as done and is waited for."""
    try:
        return bool(future.done())
    except Exception as error:
        last_raise(error)
        return True


def result_of(future: RunnerFuture) -> RunnerResult:
    """Wait for the result of a future; return a failed result if it is invalid or has an invalid time."""
    try:
        result = future.result()
    except Exception as error:
        summary, message = _raised("runner", last_raise(error))
        return _not_run(summary, message=message)
    if not hasattr(result, "run_secs") or not hasattr(result, "error_msg"):
        return _not_run(f"the runner gave {_kind(result)}, no RunnerResult")
    if result.error_msg is not None:
        return result if isinstance(result.error_msg, str) else RunnerResult(None, str(result.error_msg))
    seconds = result.run_secs
    if not isinstance(seconds, Sequence) or isinstance(seconds, str) or not seconds:
        return _not_run("the runner gave neither times nor an error")
    wrong = next((s for s in seconds if not isinstance(s, int | float) or not (s > 0 and math.isfinite(s))), None)
    if wrong is not None:
        return _not_run(f"the runner gave {wrong!r} as the seconds of a call", "they are numbers above 0")
    return result


def candidates_of(given: Any) -> list[Any] | None:
    """Return the candidates of a strategy, or None if it has no more.

    Raises:
        tilewright.ArgumentError: the value is not a list of candidates.
    """
    if given is None:
        return None
    wrong = None if isinstance(given, Sequence) and not isinstance(given, str) else given
    items = limits.items("candidates", given, "candidates") if wrong is None else []
    wrong = next((item for item in items if not hasattr(item, "sch") or not hasattr(item, "args_info")), wrong)
    if wrong is not None:
        raise ArgumentError.of(
            "tune/candidates",
            f"generate_measure_candidates() gave {_kind(wrong)}",
            "it gives a list of MeasureCandidate, or None where there are no more",
        )
    return items


def designs_of(context: Any) -> list[Any]:
    """Return the schedules of a task's space, at least one.

    Raises:
        tilewright.ArgumentError: the space returns no schedules.
    """
    designs: list[Any] = context.generate_design_space()
    if not designs:
        raise ArgumentError.of(
            "space/empty",
            f"{type(context.space_generator).__name__} gives no schedule of '{context.task_name}'",
            "generate_design_space() returns at least one, such as [tw.Schedule(module)]",
        )
    return designs


def task_of(given: Any, tasks: Sequence[Any]) -> int:
    """Return the number of the task that a scheduler chose; -1 if no task is left.

    Raises:
        tilewright.ArgumentError: the task does not exist, or is not available now.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not -1 <= given < len(tasks):
        raise ArgumentError.of(
            "tune/task",
            f"next_task_id() gave {given!r}",
            f"tasks are 0 to {len(tasks) - 1}; -1 means that all have ended",
        )
    if given >= 0 and tasks[given].runner_futures is not None:
        raise ArgumentError.of(
            "tune/task",
            f"next_task_id() gave {given}, of which a batch is under way",
            "join_running_task() before, as in docs/own-parts.md",
        )
    return given
