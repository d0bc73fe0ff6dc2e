"""What builders, runners, strategies and task schedulers of somebody's own give, looked at before a session uses it."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tilewright.errors import ArgumentError
from tilewright.meta_schedule.builder import BuilderResult
from tilewright.meta_schedule.runner import RunnerFuture, RunnerResult

__all__ = ["MOST_EMPTY", "built_by", "candidates_of", "futures_of", "is_done", "list_from", "result_of", "task_of"]

Item = TypeVar("Item")
#: batches without a candidate, one after the other, that a strategy may give before it counts as out of candidates
MOST_EMPTY = 100


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def list_from(give: Callable[[], Any], who: str, what: str, count: int) -> tuple[list[Any], str]:
    """The items that it gives, and what is wrong with them; "" where there are so many as there should be."""
    try:
        given = give()
        items = [] if given is None or isinstance(given, str) else list(given)
    except Exception:
        return [], f"the {who} raised\n{traceback.format_exc()}"
    if given is None or isinstance(given, str):
        return [], f"the {who} gave {_kind(given)}, no list of {what}s"
    if len(items) != count:
        return [], f"the {who} gave {len(items)} {what}s for {count} inputs"
    return items, ""


def built_by(result: Any) -> BuilderResult:
    """The result of a builder; a failed one that says so where it is none."""
    path, error = getattr(result, "artifact_path", None), getattr(result, "error_msg", None)
    if not hasattr(result, "artifact_path") or not hasattr(result, "error_msg"):
        return BuilderResult(None, f"the builder gave {_kind(result)}, no BuilderResult")
    if path is None and error is None:
        return BuilderResult(None, "the builder gave neither a file nor an error")
    return result  # type: ignore[no-any-return]


def futures_of(future: Any) -> RunnerFuture:
    """The future of a runner; one that says so where it is none."""
    if callable(getattr(future, "done", None)) and callable(getattr(future, "result", None)):
        return future  # type: ignore[no-any-return]
    failed = RunnerResult(None, f"the runner gave {_kind(future)}, no RunnerFuture")
    return RunnerFuture(lambda: True, lambda: failed)


def is_done(future: RunnerFuture) -> bool:
    """Whether its result is there; one that cannot say so is waited for."""
    try:
        return bool(future.done())
    except Exception:
        return True


def result_of(future: RunnerFuture) -> RunnerResult:
    """The result of a future, waited for; a failed one that says so where it is none, or where a time is no time."""
    try:
        result = future.result()
    except Exception:
        return RunnerResult(None, f"the runner raised\n{traceback.format_exc()}")
    if not hasattr(result, "run_secs") or not hasattr(result, "error_msg"):
        return RunnerResult(None, f"the runner gave {_kind(result)}, no RunnerResult")
    if result.error_msg is not None:
        return result if isinstance(result.error_msg, str) else RunnerResult(None, str(result.error_msg))
    seconds = result.run_secs
    if not isinstance(seconds, Sequence) or isinstance(seconds, str) or not seconds:
        return RunnerResult(None, "the runner gave neither times nor an error")
    wrong = next((s for s in seconds if not isinstance(s, int | float) or not (s > 0 and math.isfinite(s))), None)
    if wrong is not None:
        return RunnerResult(None, f"the runner gave {wrong!r} as the seconds of a call")
    return result


def candidates_of(given: Any) -> list[Any] | None:
    """The candidates of a strategy; None: there are no more.

    Raises:
        tilewright.ArgumentError: they are none.
    """
    if given is None:
        return None
    wrong = None if isinstance(given, Sequence) and not isinstance(given, str) else given
    items = list(given) if wrong is None else []
    wrong = next((item for item in items if not hasattr(item, "sch") or not hasattr(item, "args_info")), wrong)
    if wrong is not None:
        raise ArgumentError.of(
            "tune/candidates",
            f"generate_measure_candidates() gave {_kind(wrong)}",
            "it gives a list of MeasureCandidate, or None where there are no more",
        )
    return items


def task_of(given: Any, tasks: Sequence[Any]) -> int:
    """The number of a task that a scheduler chose; -1: none is left.

    Raises:
        tilewright.ArgumentError: there is no such task, or its turn cannot be now.
    """
    if isinstance(given, bool) or not isinstance(given, int) or not -1 <= given < len(tasks):
        raise ArgumentError.of(
            "tune/task",
            f"next_task_id() gave {given!r}",
            f"tasks are 0 to {len(tasks) - 1}; -1 says that all have ended",
        )
    if given >= 0 and tasks[given].runner_futures is not None:
        raise ArgumentError.of(
            "tune/task",
            f"next_task_id() gave {given}, of which a batch is under way",
            "join_running_task() before, as in docs/own-parts.md",
        )
    return given
