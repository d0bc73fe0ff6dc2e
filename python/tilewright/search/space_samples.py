"""Sample a user's space: the first candidate, those that identify the space, and those that strategies request."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from tilewright import _core, ir
from tilewright.database.records import begins_sparse
from tilewright.errors import Error, ResourceError, ScheduleError
from tilewright.heuristics import failures
from tilewright.schedule import Schedule, Trace
from tilewright.search import deadline
from tilewright.search.candidate_programs import check_parameters
from tilewright.search.interrupts import Interrupts
from tilewright.search.spaces import Space
from tilewright.support import limits, notes
from tilewright.support.user_lines import last_raise, place_of, with_place
from tilewright.task.task import Task

__all__ = ["SpaceSamples", "run_space"]

#: seconds that a user's space may take for one candidate
SPACE_DEADLINE = 10.0
#: a run of a space is overdue if it takes `_SLOWER` times as long as the slowest successful one, and at least
#: `_LEAST_DEADLINE` seconds
_SLOWER, _LEAST_DEADLINE = 20.0, 1.0
#: maximum number of samples until one is valid, and of overdue ones among them
FIRST_SAMPLES, MOST_OVERDUE = 16, 3
#: number of candidates that identify a space whose function reads sampled values
DIGESTED_SAMPLES = 16
#: share of the remaining time that these candidates may take; a slower space is identified by its first trace alone
_DIGEST_SHARE = 0.1


def run_space(space: Space, schedule: Schedule, *, first: bool = False, seconds: float | None = None) -> None:
    """Apply the user's function; exceptions in it become Tilewright errors that name the user's line.

    Args:
        first: whether to sample the space's own first candidate.
        seconds: time limit in seconds; ten by default.

    Raises:
        tilewright.ScheduleError: a primitive refused, or the function raised.
        tilewright.ResourceError: the function did not return in time.
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


class SpaceSamples:
    """Runs of one space in one search, each within a limit of time.

    Args:
        space: the space.
        task: the program.
        seed: seed of the search.
        end: end of the search, by ``time.monotonic()``; infinity without a limit.
        reserved: seconds before `end` that runs leave to the finals.
        interrupts: interrupts of the search.

    Attributes:
        program: the module that candidates are schedules of.
        sample: the first sample, if the space defines no first candidate.
        failed: the error of heuristics that failed, after which the unscheduled program is searched; else "".
    """

    def __init__(
        self, space: Space, task: Task, *, seed: int, end: float, reserved: float, interrupts: Interrupts
    ) -> None:
        self._space, self._task, self._seed, self._interrupts = space, task, seed, interrupts
        self._end, self._end_of_samples = end, end - reserved
        self.program: ir.Module = task.module
        self.sample: Schedule | None = None
        self.failed = ""
        self._slowest = 0.0  # seconds of the slowest successful run
        self._overdue: list[float] = []  # time limits, in seconds, of the runs that did not return
        self._refused: dict[str, tuple[int, str]] = {}  # refused samples before the first valid one

    def generator(self) -> tuple[_core.SpaceGenerator, list[Trace | str]]:
        """Return the space in the form that strategies use: the recorded steps, or the function itself if it reads
        sampled values. Also return the traces that identify the space (:func:`space_hash`)."""
        if self._task.sparse is not None and self._begins_sparse(self._task.sparse):
            self.program = self._task.sparse
        first = self._first_or_unscheduled()
        if not self._space.first:
            self.sample = first
        if not first.decisions_read:
            return _core.ScheduleFn(lambda _: first), [json.dumps(first.trace.as_json()[0])]
        return _core.FunctionSpace(self.apply), self._digested()

    def apply(self, schedule: Schedule, first: bool) -> None:
        """Schedule a candidate of a space that reads sampled values, with the decisions in `schedule`."""
        if first and self.sample is not None:
            schedule.take_decisions([*self.sample.trace.decisions.values()])
        with self._interrupts.raised():
            self._run(schedule, first=first)

    def _run(self, schedule: Schedule, *, first: bool = False) -> None:
        """Run the space with a deadline. A run that takes much longer than successful ones is assumed not to end."""
        begin = time.monotonic()
        if begin >= self._end:
            raise ResourceError.of(
                "space/deadline",
                "the time of the search is over",
                "give it more seconds: what it needs before its first candidate, such as the limits of this machine, "
                "takes one or two",
            )
        usual = max(_LEAST_DEADLINE, _SLOWER * self._slowest) if self._slowest else SPACE_DEADLINE
        left = max(self._end_of_samples - begin, 0.5 * (self._end - begin))
        limit = min(SPACE_DEADLINE, usual, left)
        try:
            run_space(self._space, schedule, first=first, seconds=limit)
        except ResourceError as error:
            if error.code == "space/deadline":
                self._overdue.append(limit)
            raise
        self._slowest = max(self._slowest, time.monotonic() - begin)
        check_parameters(self._task, self._space, schedule)

    def _begins_sparse(self, program: ir.Module) -> bool:
        """Return whether the space lowers or changes sparse iterations by itself, found by running it."""
        schedule = Schedule(program, seed=self._seed)
        if not self._space.is_heuristic:
            with contextlib.suppress(Error):
                self._run(schedule)
        return begins_sparse(schedule.trace)

    def _first(self) -> Schedule:
        """Return a sample of the space. Refused samples are counted; if all are refused, the first error is raised."""
        refusal: Error | None = None
        overdue = 0
        for number in range(FIRST_SAMPLES):
            # Seeds that no candidate of the search uses.
            schedule = Schedule(self.program, seed=(self._seed + 1 + number * 1_000_003) % limits.MOST)
            try:
                self._run(schedule)
                return schedule
            except (ScheduleError, ResourceError) as error:
                overdue += error.code == "space/deadline"
                if isinstance(error, ResourceError) and error.code != "space/deadline":
                    raise
                refusal = refusal or error
                count, message = self._refused.get(error.code, (0, error.message or str(error)))
                self._refused[error.code] = (count + 1, message)
                if overdue == MOST_OVERDUE or not schedule.trace.decisions:  # without sampling it is always the same
                    break
        assert refusal is not None
        if isinstance(refusal, ScheduleError) and refusal.code != "space/exception":  # which names the space already
            refusal.args = (with_place(refusal, within=f"the space '{self._space.name}'"),)
        raise refusal

    def _first_or_unscheduled(self) -> Schedule:
        """Return a sample of the space; if heuristics fail, the unscheduled program."""
        try:
            return self._first()
        except Error as error:
            if not self._space.is_heuristic or error.code == "space/deadline":
                raise
            failures.raise_where_refused(self._task.module, error)
            cause = error.__cause__ or error
        failures.raise_in_tests(cause)
        self.failed = failures.description(cause)
        notes.warn_of_failed_heuristic(self._task.entry, self.failed)
        return Schedule(self._task.module)

    def _digested(self) -> list[Trace | str]:
        """Return the traces of the first candidates that a function samples by itself; all searches use the same seeds
        for them."""
        traces: list[Trace | str] = []
        begin = time.monotonic()
        end = begin + _DIGEST_SHARE * (self._end - begin)
        for seed in range(DIGESTED_SAMPLES):
            if time.monotonic() > end:
                return traces[:1]
            schedule = Schedule(self.program, seed=seed)
            try:
                self._run(schedule)
                traces.append(schedule.trace)
            except ScheduleError as error:
                traces.append(f"{error.code} after {len(schedule.trace.insts)} steps")
            except ResourceError as error:
                if error.code != "space/deadline":
                    raise
                traces.append(error.code)
                break
        return traces

    def add_refusals(self, facts: dict[str, Any]) -> None:
        """Add the samples that were refused before the session began to what ``TuningSession.progress()`` returned."""
        for code, (count, message) in self._refused.items():
            facts["attempts"] += count
            facts["refused"] += count
            for reasons in (facts["refusals"], facts["failures"]):
                reasons[code] = (reasons.get(code, (0, ""))[0] + count, message)
        if len(limits_had := sorted({f"{seconds:.3g}": seconds for seconds in self._overdue}.values())) > 1:
            # The message has the time limit of the first space; others had less time, or more.
            had = f"{limits_had[0]:.3g} to {limits_had[-1]:.3g} s"
            for reasons in (facts["refusals"], facts["failures"]):
                if "space/deadline" in reasons:
                    message = f"the space '{self._space.name}' did not return within {had} and was interrupted"
                    reasons["space/deadline"] = (reasons["space/deadline"][0], message)
