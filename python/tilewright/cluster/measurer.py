"""Implements ``search::Measurer`` (measure/pipeline.h) with the workers of a cluster.

    submit -> waiting -> build task -> built -> measure task -> poll
                 ^                        |          |
                 +------ a worker was lost, silent or wrong: elsewhere, with another task

All decisions are made under the lock of the connection, by its pump (pump.py) at each event. Callbacks on Dask's
threads only add events to a queue. Tasks in flight are bounded, so sessions that share workers take turns: Dask runs
equal tasks in the order in which they came.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster import labels, tasks
from tilewright.cluster.activities import Activity
from tilewright.cluster.answers import decoded
from tilewright.cluster.connection import SILENT_SECONDS, Cluster, WorkerFacts
from tilewright.cluster.fetcher import FETCH_SECONDS, Fetcher
from tilewright.cluster.job import Job
from tilewright.cluster.messages import pack
from tilewright.cluster.references import References
from tilewright.cluster.worker_states import WorkerStates
from tilewright.errors import ResourceError
from tilewright.support.notes import PerformanceWarning
from tilewright.support.numpy_dtype import numpy_dtype

#: tasks of a session per slot of a worker: one that runs, and the next one
_AHEAD = 2
#: workers whose reference is wrong or fails after which the program itself is to blame
MOST_REFERENCES = 3
#: seconds added to the time limit of a task before its worker is considered lost
GRACE = 10.0
#: a worker whose last heartbeat is not so many seconds ago works: a task that is late there waits for a busy machine
HEARTBEAT = 5.0
#: seconds to wait for a scheduler that is not reachable
RECONNECT_SECONDS = 120.0
#: seconds between two checks for silent workers
_LOOK = 1.0


class ClusterMeasurer:
    """Builds and measures candidates of one program on a cluster.

    Args:
        cluster: where.
        program: see :func:`describe`.
        key: key of the target.
        outputs: name, dtype and shape of each output and in-out argument, in their order.
        reduction_length: what the tolerance follows from.
        rounding: by how much more results may differ, by output, once the reference was judged.
        judge: raises an error if these are not the outputs of the program, by name; its first value is "unchecked" if
            it could not find out.
    """

    def __init__(
        self,
        cluster: Cluster,
        program: dict[str, Any],
        key: str,
        outputs: list[tuple[str, str, tuple[int, ...]]],
        reduction_length: int,
        rounding: Callable[[], Mapping[str, float]],
        judge: Callable[[dict[str, bytes]], tuple[str, object]] = lambda outputs: ("full", {}),
    ) -> None:
        self.threads: int = program["threads"]
        self._cluster, self._key, self._rounding = cluster, key, rounding
        self._program = pack(program)
        options = program["options"]
        self._build_timeout: float = options.get("build_timeout", 10.0)
        self._run_timeout: float = options.get("run_timeout", 10.0)
        self._reference_timeout: float = options.get("reference_timeout", 300.0)
        self._fetcher = Fetcher(lambda: cluster.client, cluster.pump.pause, self._on_result)
        self._jobs: dict[int, Job] = {}  # outstanding, by number
        self._by_name: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()  # for a build
        self._built: deque[Job] = deque()  # for a measurement
        self._done: list[tuple[Any, ...]] = []
        self._program_future: Any = None
        self._program_name = ""
        self._reference: Any = None  # the build task of the program as it was written
        self._reference_job: Job | None = None
        self._sizes = [numpy_dtype(dtype).itemsize * math.prod(shape) for _, dtype, shape in outputs]
        self._references = References(outputs, reduction_length, rounding, judge)
        self._wrong_references: list[str] = []
        self._reference_seconds = 0.0
        self._judged = False  # whether the reference is right, and how far results may differ from it is known
        self._incumbent: tuple[Any, float] | None = None  # the build task, and what its time counts as
        self._incumbent_job: Job | None = None
        self._first: Job | None = None  # what others will be compared with
        self._finals: Job | None = None
        self._finals_answer: tuple[Any, ...] | None = None
        self._failure: ResourceError | None = None
        self._defect: Exception | None = None  # raised by the next poll(); as on the thread of the pump
        self._lost_since: float | None = None  # the scheduler
        self._connection = cluster.connection
        self._looked = 0.0
        self._closed = False
        self.states = WorkerStates()
        self.task_seconds = 0.0  #: the shortest time that a candidate was measured so far; 0 before there is one
        self.waiting_for = ""  #: what nothing goes on without, in words; "" where something does
        self._seconds = [0.0] * len(Activity)
        self._accounted = time.monotonic()
        self._lock = cluster.pump.changed
        cluster.pump.join(self)

    # ---- the methods of search::Measurer

    def submit(
        self,
        number: int,
        module: bytes,
        options: bytes,
        entry: str,
        reference: bool = False,
        check_only: bool = False,
        is_baseline: bool = False,
        known_seconds: float = 0.0,
    ) -> None:
        """Accept a candidate."""
        del entry  # that of the program
        job = Job(number, module, options, reference, check_only, is_baseline, known_seconds)
        with self._lock:
            self._jobs[number] = job
            if reference:
                self._reference_job = job
            if known_seconds:
                self._first = job
                self._waiting.appendleft(job)
            else:
                self._waiting.append(job)
        self._cluster.pump.events.put((self, ("submitted",)))

    def poll(self, seconds: float) -> list[tuple[Any, ...]]:
        """Return finished candidates: number, result, object code, host, time of the incumbent, note, outputs."""
        with self._lock:
            self._wait(seconds, lambda: bool(self._done) or not self._jobs)
            done, self._done = self._done, []
            return done

    def begin_finals(
        self,
        objects: list[bytes],
        entries: list[str],
        baselines: int,
        rounds: int,
        slice_seconds: float,
        budget_seconds: float,
    ) -> None:
        """Start to time kernels alternately, on one host."""
        del entries
        how = {"baselines": baselines, "rounds": rounds, "slice_seconds": slice_seconds}
        how["budget_seconds"] = budget_seconds
        with self._lock:
            self._finals_answer = None
            self._finals = Job(-1, b"", b"", kernels=(list(objects), how))

    def poll_finals(self, seconds: float) -> tuple[Any, ...] | None:
        """Return their times; None while they run."""
        with self._lock:
            self._wait(seconds, lambda: self._finals_answer is not None)
            answer, self._finals_answer = self._finals_answer, None
            return answer

    def drop(self) -> None:
        """Cancel what runs or waits; it is returned as canceled."""
        with self._lock:
            if self.waiting_for and not self._judged:
                what = f"the time of the search was over, and there was not {self.waiting_for}"
                hint = "start one with: tilewright worker ADDRESS; or give the search more seconds, in which it waits"
                self._failure = self._failure or ResourceError.of("cluster/no-worker", what, hint)
            self._cancel_all("the time of the search is over")

    def cancel(self) -> None:
        """Cancel what runs or waits, at the end of the session."""
        with self._lock:
            self._cancel_all("the measurement was canceled")

    def failure(self) -> ResourceError | None:
        """Return the error that ends the search, if there is one."""
        return self._failure

    def activities(self) -> list[float]:
        """Return seconds by search::Activity, then the sum over all builds."""
        with self._lock:
            self._add_elapsed_time()
            return list(self._seconds)

    def close(self) -> None:
        """Release all futures of this session."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._cancel_all("the measurement was canceled")
            self._incumbent = self._reference = self._program_future = None
        self._cluster.pump.leave(self)
        self._fetcher.close()

    # ---- threads of Dask

    def _on_done(self, job: Job, name: str, future: Any) -> None:
        status = future.status
        if status == "finished" and job.run is future:
            self._fetcher.add((job, name), future)
            return
        if status == "error":
            with contextlib.suppress(Exception):
                status = f"error: {future.exception(timeout=FETCH_SECONDS)}"
        self._cluster.pump.events.put((self, ("ended", job, name, status, None, "")))

    def _on_result(self, label: tuple[Job, str], result: bytes | BaseException, worker: str) -> None:
        status, answer = "finished", None
        if isinstance(result, OSError | TimeoutError):
            status = "lost"  # the worker is gone
        elif isinstance(result, BaseException):  # it sent what would have to be unpickled
            status = f"refused: {result}"
        else:
            job = label[0]
            try:
                answer = decoded(result, self._sizes, None if job.kernels is None else len(job.kernels[0]))
                worker = answer["worker"]
            except ValueError as error:
                status = f"refused: answered with bytes that are not a result: {error}"
                worker = worker or self._fetcher.holder(job.run)
        self._cluster.pump.events.put((self, ("ended", *label, status, answer, worker)))

    # ---- under the lock

    def _wait(self, seconds: float, enough: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while True:
            self._cluster.pump.advance()
            if self._defect is not None:
                raise self._defect
            left = end - time.monotonic()
            if enough() or left <= 0 or self._failure:
                return
            self._lock.wait(min(left, 0.05))

    def step(self) -> None:
        """Check workers and scheduler, then submit tasks."""
        if self._defect is None:
            try:
                self._add_elapsed_time()
                self._check_workers()
                self._submit_tasks()
            except Exception as error:
                self._defect = error

    def take_event(self, event: tuple[Any, ...]) -> None:
        """Process an event."""
        if self._defect is None:
            try:
                self._take_event(event)
            except Exception as error:
                self._defect = error

    def _take_event(self, event: tuple[Any, ...]) -> None:
        match event:
            case ("began", name, worker):
                begun = self._by_name.get(name)
                if begun is not None:
                    begun.worker, begun.deadline = worker, time.monotonic() + self._limit(begun, worker)
                    self.states.heard(worker, self._cluster.workers())
            case ("removed", worker, names):
                surely_lost, likely_lost = self._lost_with(worker, names)
                for job in surely_lost:
                    self._retry_elsewhere(job, worker, job.lost, again=False)
                for job in likely_lost:
                    self._retry_elsewhere(job, worker, job.likely_lost, again=False)
                self.states.forget(worker)
            case ("ended", job, name, status, answer, worker):
                if self._by_name.get(name) is job:  # else it was given up
                    self._finish_task(job, status, answer, worker)

    def _lost_with(self, worker: str, names: list[str]) -> tuple[list[Job], list[Job]]:
        """Return the jobs whose tasks ran on a worker that is gone, and those that may have.

        A task that takes its worker with it at once does not report that it began, and what ended just before is not
        reported either. Workers begin tasks in the order in which they were given, so the first ones that have not
        begun count, as many as the worker runs at a time: for certain, where fewer than that have begun.
        """
        surely_lost = [job for job in self._by_name.values() if job.worker == worker]
        likely_lost: list[Job] = []
        waiting = [job for name in names if (job := self._by_name.get(name)) is not None and not job.worker]
        for slots, builds in zip(self._cluster.slots(worker), (False, True), strict=True):
            free = max(slots - sum((job.run is None) == builds for job in surely_lost), 0)
            in_order = sorted((job for job in waiting if (job.run is None) == builds), key=lambda job: job.since)
            surely_lost += in_order[:free]
            likely_lost += in_order[free:slots]
        return surely_lost, likely_lost

    def _limit(self, job: Job, worker: str) -> float:
        """Return the time limit in seconds of the current task of a job, from its start."""
        if job.run is None:
            return self._build_timeout + GRACE
        first = self._reference_seconds or self._reference_timeout
        prepare = 0.0 if self.states.is_ready(worker) else 30.0 + min(10 * first + 10.0, self._reference_timeout)
        if job.kernels is not None:
            budget: float = job.kernels[1]["budget_seconds"]
            return prepare + 2 * budget + self._run_timeout + GRACE
        return prepare + 2 * self._run_timeout + GRACE

    def _finish_task(self, job: Job, status: str, answer: dict[str, Any] | None, worker: str) -> None:
        """Process the end of the current task of a job."""
        del self._by_name[job.name]
        worker = worker or job.worker
        job.leave()
        if status == "finished" and answer is None:  # its build, whose result stays where it is
            if job.reference:
                self._reference = job.build
                self._built.appendleft(job)
            else:
                self._built.append(job)
        elif answer is not None:
            self._take_answer(job, worker, answer)
        elif status.startswith("error"):  # Dask has given up: several workers died with it
            self._fail(job, status)
        else:
            if status.startswith("refused"):
                job.lost.append(self.states.name(worker))
                self._distrust(worker, status)
            self._requeue(job)  # or canceled or lost: the scheduler went away

    def _take_answer(self, job: Job, worker: str, answer: dict[str, Any]) -> None:
        error, result = answer.get("error"), answer.get("result")
        if lost := answer.get("lost_build"):  # the task of a build did not come to an end
            self._requeue_to_build(job, *lost)
            return
        if error is not None:
            code, message, hint = error
            # Dask has canceled it on the worker without notice here; another process has the processors.
            if code in ("cluster/canceled", "cluster/busy-host"):
                self._requeue(job)
            elif code == "cluster/wrong-host":  # the candidate was not touched
                self._distrust(worker, message)
                self._requeue(job)
            elif code.startswith("cluster/"):
                self._distrust(worker, message)
                self._retry_elsewhere(job, worker, job.lost, again=True)
            elif job.kernels is not None:
                self._end_finals("", [], [], (code, message, hint))
            else:
                self._finish(job, _core.failed_measurement("run_error", code, message, hint), answer)
            return
        if job.reference and self._goes_elsewhere(job, worker, answer):
            return
        if answer.get("outputs") is not None and not self._takes_outputs(job, worker, answer):
            return
        if job.kernels is not None:
            factor = self.states.factor(worker)
            seconds = [[each * factor for each in kernel] for kernel in answer["seconds"]]
            failed = answer["failed"]
            self._end_finals(answer["host"], seconds, answer["disturbed"], failed and tuple(failed))
            return
        if job.reference:
            result = result or answer.get("reference")
        elif result is None:  # its reference failed there, and not here
            self._distrust(worker, "the program as it was written fails there")
            self._requeue(job)
            return
        self._finish(job, result or b"", answer, worker)

    def _goes_elsewhere(self, job: Job, worker: str, answer: dict[str, Any]) -> bool:
        """Have another worker call the reference, if it fails or is wrong on this one, or if only its agreement with
        another one shows that the results are right. The program itself is to blame only if the reference fails on
        several workers, or if there is no other one."""
        facts = _core.measured_facts(answer.get("reference") or b"")
        if facts["outcome"].startswith("build"):
            return False
        able = [each.address for each in self._able(self._cluster.workers(now=True))]
        if facts["outcome"] == "ok":
            why = self._references.judge(answer["outputs"])
            if not why:
                return not self._references.is_checked and self._needs_witness(job, worker, answer["outputs"], able)
        else:
            why = f"the program as it was written fails there: {facts['message']}"
        if able in ([], [worker]) or len(self._wrong_references) + 1 >= MOST_REFERENCES:
            return False
        self._wrong_references.append(worker)
        self._distrust(worker, why)
        self._requeue(job)
        return True

    def _needs_witness(self, job: Job, worker: str, outputs: list[bytes], able: list[str]) -> bool:
        """Have another worker call the reference, until two agree. Workers that compute something else than those two
        get no candidates."""
        differing = self._references.witness(worker, outputs)
        if differing is not None:
            for other, problem in differing.items():
                self._distrust(other, f"computes something else than two other workers: {problem}")
            return False
        heard = set(self._references.witnesses)
        if heard.issuperset(able):
            if len(heard) > 1:
                self._fail_reference(job, sorted(heard))
                return True
            return False  # it is the only worker
        job.avoid = frozenset(heard)
        self._requeue(job)
        return True

    def _fail_reference(self, job: Job, workers: list[str]) -> None:
        names = " and ".join(map(self.states.name, workers))
        failed = _core.failed_measurement(
            "run_error",
            "cluster/workers-disagree",
            f"workers {names} compute different results of the program as it was written, and the interpreter takes "
            "too long to decide which are right",
            "add a third worker of this kind, or remove the one that is wrong",
        )
        self._finish(job, failed, {})

    def _takes_outputs(self, job: Job, worker: str, answer: dict[str, Any]) -> bool:
        """Check the outputs of the reference against those of the first host. A host with other results is not used:
        it would reject correct candidates."""
        problem = self._references.difference(answer["outputs"])
        if problem:
            self._distrust(worker, f"computes something else than the first host: {problem}")
            self._requeue(job)  # the candidate is not to blame
            return False
        self.states.ready(worker)
        return True

    def _finish(self, job: Job, result: bytes, answer: Mapping[str, Any], worker: str = "") -> None:
        facts = _core.measured_facts(result)
        note = ""
        if (seconds := answer.get("times", {}).get("measuring", 0.0)) > 0.0:
            self.task_seconds = min(seconds, self.task_seconds or seconds)
        if worker:
            note = self.states.measured(worker, facts, answer.get("times", {}), job.compared_with)
        if built_by := answer.get("built_by"):
            builder, times = built_by
            self.states.built(builder, times, self._cluster.workers())
        if job.reference and facts["outcome"] == "ok":
            self._judged = True
            first = self._reference_seconds = facts["median"]
            # As pipelines do (pipeline_events.cc).
            self._run_timeout = min(max(self._run_timeout, 2 * first), max(1.0, 10 * first))
        reference = self.states.reference(worker, facts["incumbent_seconds"], job.compared_with)
        if facts["outcome"] == "ok" and not job.check_only and not job.reference:
            self._consider(job, facts, worker, reference)
        if job is self._first:
            self._first = None
        outputs = answer.get("outputs") if job.reference else None
        del self._jobs[job.number]
        code = answer.get("object")
        self._done.append((job.number, result, code, answer.get("host", ""), reference, note, outputs))
        job.run = job.build = None

    def _consider(self, job: Job, facts: Mapping[str, Any], worker: str, reference: float) -> None:
        """Update the incumbent: the fastest candidate so far, with which others are timed alternately.

        Args:
            job: the candidate.
            facts: properties of its result.
            worker: which measured it.
            reference: what the incumbent beside it counts as; 0 if there was none.
        """
        seconds = facts["median"]
        if self._incumbent is None:
            counts = job.known_seconds or seconds
            self.states.begin(worker, job.known_seconds / seconds)
        elif reference > 0 and facts["incumbent_seconds"] > 0:
            counts = seconds * reference / facts["incumbent_seconds"]
        else:
            counts = seconds * self.states.factor(worker)
        if self._incumbent is None or counts < self._incumbent[1]:
            self._incumbent, self._incumbent_job = (job.build, counts), job

    # ---- giving tasks to Dask

    def _submit_tasks(self) -> None:
        if self._closed or not self._cluster.is_connected:
            return
        workers = self._cluster.workers()
        builders = [w for w in workers.values() if w.build and not w.is_silent]
        measuring = self._able(workers)
        self._note_what_is_missing(builders, measuring, {w.target for w in workers.values() if w.measure})
        under_way = list(self._by_name.values())
        builds = sum(job.run is None for job in under_way)
        runs = len(under_way) - builds
        room = _AHEAD * sum(w.build for w in builders) - builds
        # What is built and waits need not be more than what is about to be measured.
        room = min(room, 2 * _AHEAD * max(1, sum(w.measure for w in measuring)) - builds - len(self._built))
        self._submit_builds([self._waiting.popleft() for _ in range(min(room, len(self._waiting)))])
        room = _AHEAD * sum(w.measure for w in measuring) - runs
        chosen = []
        while room > 0 and (job := self._next_run()) is not None:
            self._name_task(job, "reference" if job.reference else "measure" if job.kernels is None else "finals")
            chosen.append(job)
            room -= 1
        self._submit_runs(chosen, measuring)

    def _able(self, workers: Mapping[str, WorkerFacts]) -> list[WorkerFacts]:
        return [
            w
            for w in workers.values()
            if w.measure and w.target == self._key and not w.is_silent and not self.states.is_distrusted(w.address)
        ]

    def _next_run(self) -> Job | None:
        """Return the job that is measured next: the reference first, then the candidate that becomes the incumbent."""
        if self._reference is None:
            return None
        if self._finals is not None and self._finals.name not in self._by_name and not self._by_name:
            return self._finals
        if not self._built:
            return None
        if not self._judged:
            written = next((job for job in self._built if job.reference), None)
            if written is not None:
                self._built.remove(written)
            return written
        if self._incumbent is not None or all(job.check_only for job in self._built):
            return self._built.popleft()
        if self._first is not None and self._first not in self._built:
            return None
        self._first = job = self._first or next(each for each in self._built if not each.check_only)
        self._built.remove(job)
        return job

    def _name_task(self, job: Job, what: str) -> None:
        """Begin a new task of a job."""
        job.leave()
        job.name = self._cluster.new_name(what)
        job.since = time.monotonic()
        self._by_name[job.name] = job

    def _specification(self, job: Job) -> dict[str, Any]:
        return {"job": job.name, "topic": self._cluster.topic, "threads": self.threads}

    def _submit(self, function: Any, jobs: Sequence[Job], *arguments: Sequence[Any], **how: Any) -> list[Any]:
        """Submit tasks of one function in one message, whose cost hardly depends on their number. They begin in this
        order."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large arguments, which are sent once
            names = [job.name for job in jobs]
            return list(self._cluster.client.map(function, *arguments, key=names, pure=False, **how))

    def _listen(self, jobs: Sequence[Job], futures: Sequence[Any]) -> None:
        for job, future in zip(jobs, futures, strict=True):
            future.add_done_callback(functools.partial(self._on_done, job, job.name))

    def _submit_builds(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        for job in jobs:
            self._name_task(job, "build")
            job.run = None
        what = [pack(self._specification(job) | {"timeout": self._build_timeout}) for job in jobs]
        modules, options = [job.module for job in jobs], [job.options for job in jobs]
        futures = self._submit(tasks.build, jobs, what, modules, options, resources={labels.builds(): 1})
        for job, future in zip(jobs, futures, strict=True):
            job.build = future
        self._listen(jobs, futures)

    def _submit_runs(self, jobs: list[Job], measuring: list[WorkerFacts]) -> None:
        if not jobs:
            return
        if self._program_future is None:
            self._program_name = self._cluster.new_name("program")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large inputs, which are sent once
                self._program_future = self._cluster.client.submit(
                    tasks.hold, self._program, key=self._program_name, pure=False, resources={labels.present(): 1}
                )
        for job in jobs:
            if job.lost or job.late or job.avoid or self.states.distrusted:
                all_of_them = [w.address for w in measuring]
                before = (*job.lost, *job.late)
                others = [w.address for w in measuring if w.name not in before and w.address not in job.avoid]
                job.allowed = frozenset(others or all_of_them)
        for _, group in itertools.groupby(jobs, lambda job: (job.kernels is None, job.allowed)):
            self._submit_group(list(group))

    def _submit_group(self, jobs: list[Job]) -> None:
        """Submit runs of one function that may run on the same workers."""
        how: dict[str, Any] = {"resources": {labels.measures(self._key): labels.SHARE}}
        if allowed := jobs[0].allowed:
            how |= {"workers": sorted(allowed), "allow_other_workers": False}
        program, written = [self._program_future] * len(jobs), [self._reference] * len(jobs)
        about = [
            self._specification(job)
            | {
                "key": self._key,
                "program": self._program_name,
                "rounding": dict(self._rounding()) if self._judged else {},
                "check_only": job.check_only,
                "is_baseline": job.is_baseline,
            }
            for job in jobs
        ]
        if jobs[0].kernels is not None:
            what = [pack(each | {"finals": job.kernels[1]}) for each, job in zip(about, jobs, strict=True)]
            kernels = [job.kernels[0] for job in jobs]
            futures = self._submit(tasks.finals, jobs, what, program, written, kernels, **how)
        else:
            incumbent = self._incumbent
            for job in jobs:
                job.compared_with = 0.0 if incumbent is None or job.check_only else incumbent[1]
            other = [None if job.compared_with == 0.0 or incumbent is None else incumbent[0] for job in jobs]
            built = [None if job.reference else job.build for job in jobs]
            what = [pack(each) for each in about]
            futures = self._submit(tasks.measure, jobs, what, program, written, built, other, **how)
        for job, future in zip(jobs, futures, strict=True):
            job.run = future
        self._listen(jobs, futures)

    # ---- what goes wrong

    def _requeue(self, job: Job) -> None:
        """Cancel the task of a job and queue the job again, unless too many workers were lost with it."""
        self._by_name.pop(job.name, None)
        job.leave()
        if job.has_lost_enough:
            self._fail(job)
            return
        with contextlib.suppress(Exception):
            (job.run or job.build).cancel()
        build_is_there = job.run is not None and job.build is not None and job.build.status == "finished"
        job.run = None
        if job.kernels is not None:
            return  # given again by _next_run()
        if build_is_there:
            self._built.appendleft(job)
        else:
            job.build = None
            self._waiting.appendleft(job)

    def _requeue_to_build(self, job: Job, whose: str, code: str) -> None:
        """Queue a job again whose task found that a build had not come to its end: its own, or the reference's."""
        if code != "cluster/canceled":
            job.lost.append("a worker that builds")
        if whose == "reference" and not job.reference and self._reference_job is not None:
            self._reference = self._build_of(self._reference_job)
        else:
            job.build = None
        self._requeue(job)

    def _retry_elsewhere(self, job: Job, worker: str, losses: list[str], *, again: bool) -> None:
        """Record in a list of the job that a worker was lost with it. If Dask knows that, it reassigns the task."""
        losses.append(self.states.name(worker))
        if losses is not job.likely_lost:
            self.states.lost(worker)
        if again or job.has_lost_enough:
            self._requeue(job)
        else:
            job.worker, job.deadline = "", math.inf

    def _end_finals(self, host: str, seconds: Any, disturbed: Any, error: tuple[str, str, str] | None) -> None:
        self._finals, self._finals_answer = None, (host, seconds, disturbed, error)

    def _fail(self, job: Job, why: str = "") -> None:
        with contextlib.suppress(Exception):
            (job.run or job.build).cancel()
        lost = f"workers were lost with this candidate: {', '.join([*job.lost, *job.likely_lost, *job.late])}"
        message = lost if job.lost or job.likely_lost or job.late else f"its task failed on the workers: {why}"
        if job.kernels is not None:
            self._end_finals("", [], [], ("cluster/lost-workers", message, ""))
        elif job.number in self._jobs:
            failed = _core.failed_measurement(
                "run_crash", "cluster/lost-workers", message, "see the logs of these workers"
            )
            self._finish(job, failed, {})

    def _distrust(self, worker: str, why: str) -> None:
        self.states.heard(worker, self._cluster.workers())
        if self.states.distrust(worker, why):
            text = f"worker {self.states.name(worker)} gets no more candidates of this search: {why}"
            warnings.warn(text, PerformanceWarning, stacklevel=2)

    def _check_workers(self) -> None:
        """Check deadlines, workers and the scheduler."""
        now = time.monotonic()
        if now - self._looked < _LOOK / 4:
            return
        self._looked = now
        self._check_scheduler(now)
        workers = self._cluster.workers()
        for job in list(self._by_name.values()):
            if now > job.deadline:
                host = workers.get(job.worker)
                losses = job.late if host and host.quiet < HEARTBEAT else job.lost
                self._retry_elsewhere(job, job.worker, losses, again=True)
        self.states.look(workers)
        if self._by_name:
            for silent in [each for each in workers.values() if each.is_silent]:
                self._remove(silent)
        for job in list(self._by_name.values()):
            if job.allowed and not job.worker and job.allowed.isdisjoint(workers):
                self._requeue(job)  # those that it was meant for have left, and Dask would wait for them

    def _remove(self, silent: WorkerFacts) -> None:
        """Remove a silent worker from the scheduler. Dask itself waits for minutes, and others wait for what it holds:
        tasks that are queued there, and objects that it has built."""
        if self._cluster.unregister(silent.address):
            text = f"worker {silent.name} has been silent for {SILENT_SECONDS:.0f} s and was removed from the cluster"
            warnings.warn(text, PerformanceWarning, stacklevel=2)

    def _check_scheduler(self, now: float) -> None:
        if self._cluster.is_connected or self._cluster.reconnect():
            self._lost_since = None
            if self._connection != self._cluster.connection:
                self._connection = self._cluster.connection
                self._resubmit_all()
            return
        if self._lost_since is None:
            self._lost_since = now
        self.waiting_for = f"the scheduler {self._cluster.address} to come back"
        if now - self._lost_since > RECONNECT_SECONDS:
            self._failure = ResourceError.of(
                "cluster/lost-scheduler",
                f"the scheduler {self._cluster.address} went away and has not come back for {RECONNECT_SECONDS:.0f} s",
                "start it again; what was measured is kept, and the same command continues from it",
            )
            self._cancel_all("the scheduler went away")

    def _resubmit_all(self) -> None:
        """Submit everything again: all futures are lost."""
        jobs = sorted(
            {*self._by_name.values(), *self._built, *self._waiting}, key=lambda job: (not job.reference, job.number)
        )
        self._by_name.clear()
        self._built.clear()
        self._waiting = deque(job for job in jobs if job.kernels is None)
        for job in jobs:
            job.build = job.run = None
            job.leave()
        self._program_future = None
        self.states.forget_all()
        written = self._reference_job
        if written is not None and written.number not in self._jobs:
            self._reference = self._build_of(written)
        else:
            self._reference = None
        if self._incumbent is not None and self._incumbent_job is not None:
            self._incumbent = (self._build_of(self._incumbent_job), self._incumbent[1])

    def _build_of(self, job: Job) -> Any:
        """Build a finished job again. Dask waits for the result where a task depends on it."""
        return tasks.submit_build(self._cluster, job.module, job.options, self.threads, self._build_timeout)

    def _note_what_is_missing(
        self, builders: list[WorkerFacts], measuring: list[WorkerFacts], targets: set[str]
    ) -> None:
        if not self._jobs and self._finals is None:
            return  # also of a search that is canceled while it waits
        missing = []
        if not measuring:
            others = " or ".join(repr(target) for target in sorted(targets - {self._key}))
            missing.append(f"a worker that measures for {self._key!r}{others and f' (there are some for {others})'}")
        if not builders and self._waiting:
            missing.append("a worker that builds")
        self.waiting_for = " and ".join(missing)

    def _cancel_all(self, why: str) -> None:
        canceled = _core.failed_measurement("canceled", "measure/canceled", why)
        for job in [*self._by_name.values()]:
            with contextlib.suppress(Exception):
                (job.run or job.build).cancel()
        self._by_name.clear()
        self._waiting.clear()
        self._built.clear()
        for number in self._jobs:
            self._done.append((number, canceled, None, "", 0.0, "", None))
        self._jobs.clear()
        self._first = None
        if self._finals is not None:
            self._end_finals("", [], [], ("measure/canceled", why, ""))

    def _add_elapsed_time(self) -> None:
        now = time.monotonic()
        passed, self._accounted = now - self._accounted, now
        running = [job for job in self._by_name.values() if job.worker]
        builds = sum(job.run is None for job in running)
        measures = [job for job in running if job.run is not None]
        if any(job.kernels is not None for job in measures):
            activity = Activity.FINALS
        elif any(job.reference for job in measures):
            activity = Activity.REFERENCE
        elif measures:
            activity = Activity.MEASURING
        elif builds:
            activity = Activity.BUILDING
        else:
            activity = Activity.STARTING if self._by_name else Activity.NOTHING
        self._seconds[activity] += passed
        self._seconds[Activity.BUILDS] += builds * passed
