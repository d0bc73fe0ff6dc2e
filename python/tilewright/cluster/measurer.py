"""Implements ``search::Measurer`` (measure/pipeline.h) with the workers of a cluster.

    submit -> waiting -> build task -> built -> measure task -> poll
                 ^                        |          |
                 +------ a worker was lost, silent or wrong: elsewhere, with another task

A task builds or measures a chunk of candidates (chunks.py). Those with which a worker was lost go on alone.

All decisions are made under the lock of the connection, by its pump (pump.py) at each event. Callbacks on Dask's
threads only add events to a queue. Tasks in flight are bounded, so sessions that share workers take turns: Dask runs
equal tasks in the order in which they came.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster import processors
from tilewright.cluster.activities import Activity, activity_of
from tilewright.cluster.answers import decoded
from tilewright.cluster.builders import BAD_BUILD, Builders, is_unloadable
from tilewright.cluster.chunks import ChunkSizes, next_chunk, unbuilt_batches
from tilewright.cluster.connection import SILENT_SECONDS, Cluster, WorkerFacts
from tilewright.cluster.deadlines import Deadlines
from tilewright.cluster.fetcher import FETCH_SECONDS, Fetcher
from tilewright.cluster.job import Build, Chunk, Job
from tilewright.cluster.losses import lost_with, missing_workers, why_failed
from tilewright.cluster.references import References, disagreement
from tilewright.cluster.submission import Submission
from tilewright.cluster.worker_states import WorkerStates
from tilewright.errors import ResourceError
from tilewright.support.notes import PerformanceWarning

#: tasks of a session per slot of a worker: one that runs, and the next one
_AHEAD = 2
#: in the place of a worker's name, where it is not known which one was lost
_BUILDER = "a worker that builds"
#: workers whose reference is wrong or fails after which the program itself is to blame
MOST_REFERENCES = 3
#: a worker whose last heartbeat is not so many seconds ago works: a task that is late there waits for a busy machine
HEARTBEAT = 5.0
#: seconds to wait for a scheduler that is not reachable
RECONNECT_SECONDS = 120.0
#: seconds in which the event of a worker that left follows the failure of its tasks
_LEFT_SECONDS = 2.0
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
        self._deadlines = Deadlines(program["options"])
        self._submission = Submission(cluster, program, key, self._deadlines.build)
        self._fetcher = Fetcher(lambda: cluster.client, cluster.pump.pause_seconds, self._on_result)
        self._jobs: dict[int, Job] = {}  # outstanding, by number
        self._chunks: dict[str, Chunk] = {}  # tasks that Dask has, by name
        self._waiting: deque[Job] = deque()  # for a build
        self._built: deque[Job] = deque()  # for a measurement
        self._done: list[tuple[Any, ...]] = []
        self._reference: Build | None = None  # of the program as it was written
        self._reference_job: Job | None = None
        self._references = References(outputs, reduction_length, rounding, judge)
        self._wrong_references: list[str] = []
        self._judged = False  # whether the reference is right, and how far results may differ from it is known
        self._incumbent: tuple[Build, float] | None = None  # and what its time counts as
        self._incumbent_job: Job | None = None
        self._first: Job | None = None  # what others will be compared with
        self._finals: Job | None = None
        self._finals_answer: tuple[Any, ...] | None = None
        self._failure: ResourceError | None = None
        self._defect: Exception | None = None  # raised by the next poll(); as on the thread of the pump
        self._lost_since: float | None = None  # the scheduler
        self._connection = cluster.connection
        self._looked, self._closed = 0.0, False
        self.states = WorkerStates()
        self._builders = Builders(cluster, self.states)
        self.task_seconds = 0.0  #: the shortest time that a candidate was measured so far; 0 before there is one
        self._chunk_sizes = ChunkSizes()
        self._batch, self._in_batch = 0, 0  # number of the batch that is being submitted, and its candidates so far
        self._batch_size = 1  # of the batch before
        self._size_of_builds = 1  # candidates of a task that builds
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
            job.batch = self._batch
            self._in_batch += 1
            self._jobs[number] = job
            if reference:
                self._reference_job = job
            if known_seconds:
                self._first = job
                self._waiting.appendleft(job)
            else:
                self._waiting.append(job)
            is_chunk = len(self._waiting) % self._size_of_builds == 0
        if is_chunk:  # poll() submits what is left
            self._cluster.pump.events.put((self, ("submitted",)))

    def poll(self, seconds: float) -> list[tuple[Any, ...]]:
        """Return finished candidates: number, result, object code, host, time of the incumbent, note, outputs."""
        with self._lock:
            if self._in_batch > 0:
                self._batch, self._batch_size, self._in_batch = self._batch + 1, self._in_batch, 0
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
            self._incumbent = self._reference = None
            self._submission.forget_program()
        self._cluster.pump.leave(self)
        self._fetcher.close()

    # ---- threads of Dask

    def _on_done(self, chunk: Chunk, future: Any) -> None:
        status = future.status
        if status == "finished" and not chunk.builds:
            self._fetcher.add(chunk, future)
            return
        if status == "error":
            status = why_failed(chunk, future, FETCH_SECONDS)
        self._cluster.pump.events.put((self, ("ended", chunk, status, None, "")))

    def _on_result(self, chunk: Chunk, result: bytes | BaseException, worker: str) -> None:
        status, answer = "finished", None
        if isinstance(result, OSError | TimeoutError | concurrent.futures.CancelledError):
            status = "lost"  # the worker is gone, or the scheduler
        elif isinstance(result, BaseException):  # it sent what would have to be unpickled
            status = f"refused: {result}"
        else:
            job = chunk.jobs[0]
            kernels = None if job.kernels is None else len(job.kernels[0])
            candidates = 0 if job.reference or job.kernels is not None else len(chunk.jobs)
            try:
                answer = decoded(result, self._references.sizes, kernels=kernels, candidates=candidates)
                worker = answer["worker"]
                if worker != chunk.worker:  # it is false, or the task began so late that its event comes later
                    worker = self._fetcher.holder(chunk.future) or chunk.worker or worker
            except ValueError as error:
                status = f"refused: answered with bytes that are not a result: {error}"
                worker = worker or self._fetcher.holder(chunk.future)
        self._cluster.pump.events.put((self, ("ended", chunk, status, answer, worker)))

    # ---- under the lock

    def _wait(self, seconds: float, enough: Callable[[], bool]) -> None:
        with processors.off_kernels():  # as the pump, which wakes this thread up often
            self._cluster.pump.advance()
            self._lock.wait_for(lambda: self._defect or self._failure or enough(), seconds)
        if self._defect is not None:
            raise self._defect

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
                if (begun := self._chunks.get(name)) is not None:
                    seconds = self._deadlines.seconds(begun, is_ready=self.states.is_ready(worker))
                    begun.worker, begun.deadline = worker, time.monotonic() + seconds
                    self.states.heard(worker, self._cluster.workers())
                elif (build := self._build_of(name)) is not None:  # its object was lost
                    build.worker = worker
            case ("removed", worker, names, ended):
                self._lose_worker(worker, names, ended=ended)
            case ("ended", chunk, status, answer, worker):
                if chunk.name in self._chunks:  # else it was given up
                    self._finish_task(chunk, status, answer, worker)

    def _lose_worker(self, worker: str, names: list[str], *, ended: bool) -> None:
        """Queue again what a worker had that has left: it was ended by its user, or is lost with what it ran."""
        had = [chunk for chunk in self._chunks.values() if chunk.worker == worker or chunk.name in names]
        if not ended:
            lost = lost_with(worker, names, self._chunks, self._cluster.slots(worker))
            for losses, chunks in zip(("lost", "likely_lost"), lost, strict=True):
                for chunk in chunks:
                    self._retry_elsewhere(chunk, worker, losses)
        for chunk in reversed([chunk for chunk in had if chunk.name in self._chunks]):
            self._requeue(chunk, is_suspect=not ended)
        self.states.forget(worker)

    def _build_of(self, name: str) -> Build | None:
        """Return the object of a task of this name, while it is needed."""
        needed = [self._reference, self._incumbent and self._incumbent[0], *(job.build for job in self._jobs.values())]
        return next((build for build in needed if build is not None and build.future.key == name), None)

    def _leave(self, chunk: Chunk) -> list[Job]:
        """Forget a task; return its jobs, which are in no task then."""
        self._chunks.pop(chunk.name, None)
        chunk.future = None
        for job in chunk.jobs:
            job.chunk = None
        return chunk.jobs

    def _finish_task(self, chunk: Chunk, status: str, answer: dict[str, Any] | None, worker: str) -> None:
        """Process the end of a task."""
        worker = worker or chunk.worker
        if status == "finished" and answer is None:  # a build, whose result stays where it is
            worker = worker or self._cluster.holder(chunk.name)  # of a worker that did not say that it begins
            for job in self._leave(chunk):
                if job.build is not None:
                    job.build.worker = worker
                if job.reference:
                    self._reference = job.build
                    self._built.appendleft(job)
                else:
                    self._built.append(job)
        elif answer is not None:
            self._take_answer(chunk, worker, answer)
        elif status == "killed":  # the event of the worker says what else it had
            chunk.is_killed, chunk.deadline = True, time.monotonic() + _LEFT_SECONDS
        elif status == "unbuilt":
            self._replace_lost_builds(chunk)
        elif status.startswith("error"):
            if len(chunk.jobs) > 1:
                self._retry_elsewhere(chunk, worker, "likely_lost")
            else:
                (job,) = self._leave(chunk)
                self._fail(job, status)
        elif status.startswith("refused"):
            self._distrust(worker, status)
            self._retry_elsewhere(chunk, worker, "lost")
        else:  # canceled or lost: the scheduler went away
            self._requeue(chunk)

    def _take_answer(self, chunk: Chunk, worker: str, answer: dict[str, Any]) -> None:
        """Process the answer of a task that measures."""
        if answer.get("error") is not None:
            self._take_error(chunk, worker, answer["host"], *answer["error"])
        elif answer.get("lost_build") is not None:
            self._build_reference_again(chunk, answer["lost_build"])
        elif chunk.jobs[0].reference:
            self._take_reference(chunk, worker, answer)
        elif answer.get("outputs") is not None and not self._takes_outputs(worker, answer["outputs"]):
            self._requeue(chunk)  # the candidates are not to blame
        elif chunk.jobs[0].kernels is not None:
            self._leave(chunk)
            factor = self.states.factor(worker)
            seconds = [[each * factor for each in kernel] for kernel in answer["seconds"]]
            failed = answer.get("failed")
            self._end_finals(answer["host"], seconds, answer["disturbed"], failed and tuple(failed))
        elif any(each.get("result") is None and each.get("lost_build") is None for each in answer["answers"]):
            self._distrust(worker, "the program as it was written fails there")  # and not here
            self._requeue(chunk)
        else:
            for job, result in zip(self._leave(chunk), answer["answers"], strict=True):
                facts = _core.measured_facts(result.get("result") or b"")
                if result.get("lost_build") is not None:
                    self._build_again(job, result["lost_build"])
                elif is_unloadable(facts) and self._builders.suspect(job, facts["message"]):
                    self._queue_again(job)
                else:
                    self._finish(job, result["result"], result | {"host": answer["host"]}, worker)

    def _take_error(self, chunk: Chunk, worker: str, host: str, code: str, message: str, hint: str) -> None:
        """Process what a task says that went wrong with it."""
        if code in ("cluster/canceled", "cluster/busy-host"):
            # Dask has canceled it on the worker without notice here; another process has the processors.
            self._requeue(chunk)
        elif code == "cluster/wrong-host":  # no candidate was touched
            self._distrust(worker, message)
            self._requeue(chunk)
        elif code.startswith("cluster/"):
            self._distrust(worker, message)
            self._retry_elsewhere(chunk, worker, "lost")
        elif len(chunk.jobs) > 1:
            self._retry_elsewhere(chunk, worker, "likely_lost")
        else:
            (job,) = self._leave(chunk)
            if job.kernels is not None:
                self._end_finals("", [], [], (code, message, hint))
            else:
                self._finish(job, _core.failed_measurement("run_error", code, message, hint), {"host": host})

    def _take_reference(self, chunk: Chunk, worker: str, answer: dict[str, Any]) -> None:
        (job,), outputs = chunk.jobs, answer.get("outputs")
        if self._goes_elsewhere(job, worker, answer):
            self._requeue(chunk)
        elif job.number not in self._jobs:  # workers disagree
            self._leave(chunk)
        elif outputs is not None and not self._takes_outputs(worker, outputs):
            self._requeue(chunk)
        else:
            self._leave(chunk)
            self._finish(job, answer.get("reference") or b"", answer, worker)

    def _goes_elsewhere(self, job: Job, worker: str, answer: dict[str, Any]) -> bool:
        """Have another worker call the reference, if it fails or is wrong on this one, or if only its agreement with
        another one shows that the results are right. The program itself is to blame only if the reference fails on
        several workers, or if there is no other one."""
        facts = _core.measured_facts(answer.get("reference") or b"")
        if facts["outcome"].startswith("build"):
            return is_unloadable(facts) and self._builders.suspect(job, facts["message"])
        able = [each.address for each in self._able(self._cluster.workers(now=True))]
        if facts["outcome"] == "ok":
            why = self._references.check_with_interpreter(answer["outputs"])
            if not why:
                return not self._references.is_checked and self._needs_witness(job, worker, answer["outputs"], able)
        else:
            why = f"the program as it was written fails there: {facts['message']}"
        if self._builders.suspect(job, why):
            job.only = worker  # if the object of another builder is fine there, this worker is
            return True
        job.only = ""
        job.bad_builds.clear()
        if able in ([], [worker]) or len(self._wrong_references) + 1 >= MOST_REFERENCES:
            return False
        self._wrong_references.append(worker)
        self._distrust(worker, why)
        return True

    def _needs_witness(self, job: Job, worker: str, outputs: list[bytes], able: list[str]) -> bool:
        """Have another worker call the reference, until two agree. Workers that compute something else than those two
        get no candidates."""
        differing = self._references.record_worker(worker, outputs)
        if differing is not None:
            for other, problem in differing.items():
                self._distrust(other, f"computes something else than two other workers: {problem}")
            return False
        heard = set(self._references.recorded)
        if heard.issuperset(able):
            if len(heard) > 1:
                names = " and ".join(map(self.states.name, sorted(heard)))
                self._finish(job, disagreement(names), {})
            return False  # or it is the only worker
        job.avoid = frozenset(heard)
        return True

    def _takes_outputs(self, worker: str, outputs: list[bytes]) -> bool:
        """Check the outputs of the reference against those of the first host. A host with other results is not used:
        it would reject correct candidates."""
        problem = self._references.compare_or_set_reference(outputs)
        if problem:
            self._distrust(worker, f"computes something else than the first host: {problem}")
            return False
        self.states.ready(worker)
        return True

    def _finish(self, job: Job, result: bytes, answer: Mapping[str, Any], worker: str = "") -> None:
        facts = _core.measured_facts(result)
        note = ""
        times = answer.get("times") or {}
        if (seconds := times.get("measuring", 0.0)) > 0.0:
            self.task_seconds = min(seconds, self.task_seconds or seconds)
        self._chunk_sizes.note("measuring", times)
        if worker:
            note = self.states.measured(worker, facts, times, job.compared_with)
            if not is_unloadable(facts):
                self._builders.settle(job)
        if built_by := answer.get("built_by"):
            builder, times = built_by
            self._chunk_sizes.note("building", times)
            self.states.built(builder, times, self._cluster.workers())
        if job.reference and facts["outcome"] == "ok":
            self._judged = True
            self._deadlines.judged(facts["median"])
        reference = self.states.reference(worker, facts["incumbent_seconds"], job.compared_with)
        if facts["outcome"] == "ok" and not job.check_only and not job.reference:
            self._consider(job, facts, worker, reference)
        if job is self._first:
            self._first = None
        outputs = answer.get("outputs") if job.reference else None
        del self._jobs[job.number]
        code = answer.get("object")
        self._done.append((job.number, result, code, answer.get("host", ""), reference, note, outputs))
        job.build = None

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
            assert job.build is not None
            self._incumbent, self._incumbent_job = (job.build, counts), job

    # ---- giving tasks to Dask

    def _submit_tasks(self) -> None:
        if self._closed or not self._cluster.is_connected or self._lost_since is not None:
            return
        workers = self._cluster.workers()
        builders = self._builders.able(workers)
        measuring = self._able(workers)
        if self._jobs or self._finals is not None:  # not of a search that is canceled while it waits
            targets = {w.target for w in workers.values() if w.measure}
            self.waiting_for = missing_workers(bool(builders or not self._waiting), measuring, self._key, targets)
        self._submit_builds(sum(w.build for w in builders), sum(w.measure for w in measuring))
        self._submit_runs(measuring)

    def _submit_builds(self, slots: int, measuring: int) -> None:
        under_way = [chunk for chunk in self._chunks.values() if chunk.builds]
        # What is built and waits need not be more than what is about to be measured.
        size = self._size_of_builds = self._chunk_size(measuring)
        ahead = sum(len(chunk.jobs) for chunk in under_way) + len(self._built)
        room = min(_AHEAD * slots - len(under_way), -(-(2 * _AHEAD * max(1, measuring) * size - ahead) // size))
        if slots and not self._chunks:
            room = max(room, 1)  # all others may wait for the reference, which is built again
        chunks: list[Chunk] = []
        idle = slots - len(under_way)
        sampled = {self._batch} if self._in_batch else set[int]()
        while room > 0 and (jobs := next_chunk(self._waiting, size, 0 if sampled else idle - len(chunks), sampled)):
            chunks.append(self._begin_task("build", jobs, self._builders.allowed(jobs)))
            room -= 1
        for _, group in itertools.groupby(chunks, lambda chunk: chunk.allowed):
            self._submission.build(same := list(group))
            self._listen(same)

    def _submit_runs(self, measuring: list[WorkerFacts]) -> None:
        slots = sum(w.measure for w in measuring)
        under_way = sum(not chunk.builds for chunk in self._chunks.values())
        chunks: list[Chunk] = []
        for number in range(under_way, _AHEAD * slots):
            jobs = self._next_run(self._chunk_size(slots), slots - number)
            if not jobs:
                break
            what = "reference" if jobs[0].reference else "measure" if jobs[0].kernels is None else "finals"
            chunks.append(self._begin_task(what, jobs, self._allowed(jobs, measuring)))
        for _, group in itertools.groupby(chunks, lambda chunk: (chunk.jobs[0].kernels is None, chunk.allowed)):
            self._submit_group(list(group))

    def _chunk_size(self, slots: int) -> int:
        return 1 if self._incumbent is None else self._chunk_sizes.size(self._batch_size, slots)

    def _able(self, workers: Mapping[str, WorkerFacts]) -> list[WorkerFacts]:
        return [
            w
            for w in workers.values()
            if w.measure and w.target == self._key and not w.is_silent and not self.states.is_distrusted(w.address)
        ]

    def _next_run(self, size: int, idle: int) -> list[Job]:
        """Return the jobs that are measured next: the reference first, then the candidate that becomes the incumbent;
        for the arguments, see :func:`next_chunk`."""
        if self._reference is None:
            return []
        if self._finals is not None and self._finals.chunk is None and not self._chunks:
            return [self._finals]
        if not self._judged:
            return self._taken(next((job for job in self._built if job.reference), None))
        if self._incumbent is not None or all(job.check_only for job in self._built):
            growing = unbuilt_batches(self._waiting, self._chunks.values()) | {self._batch}
            return next_chunk(self._built, size, idle, growing)
        if self._first is not None and self._first not in self._built:
            return []
        self._first = self._first or next(each for each in self._built if not each.check_only)
        return self._taken(self._first)

    def _taken(self, job: Job | None) -> list[Job]:
        if job is None:
            return []
        self._built.remove(job)
        return [job]

    def _begin_task(self, what: str, jobs: list[Job], allowed: frozenset[str] = frozenset()) -> Chunk:
        chunk = Chunk(self._cluster.new_name(what), what == "build", jobs, time.monotonic(), allowed)
        self._chunks[chunk.name] = chunk
        for job in jobs:
            job.chunk = chunk
        return chunk

    def _allowed(self, jobs: Sequence[Job], measuring: Sequence[WorkerFacts]) -> frozenset[str]:
        """Return the addresses of the only workers that may measure these jobs; empty for all."""
        if (only := {job.only for job in jobs if job.only}) and only <= {w.address for w in measuring}:
            return frozenset(only)
        before = {name for job in jobs for name in (*job.lost, *job.likely_lost, *job.late)}
        avoid = {address for job in jobs for address in job.avoid}
        if not before and not avoid and not self.states.distrusted:
            return frozenset()
        others = [w.address for w in measuring if w.name not in before and w.address not in avoid]
        return frozenset(others or [w.address for w in measuring])

    def _submit_group(self, chunks: list[Chunk]) -> None:
        """Submit tasks of one function that may run on the same workers."""
        assert self._reference is not None
        incumbent = self._incumbent
        for job in (job for chunk in chunks for job in chunk.jobs):
            job.compared_with = 0.0 if incumbent is None or job.check_only else incumbent[1]
        rounding = self._rounding() if self._judged else {}
        self._submission.measure(chunks, self._reference, incumbent and incumbent[0], rounding)
        self._listen(chunks)

    def _listen(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            chunk.future.add_done_callback(functools.partial(self._on_done, chunk))

    # ---- what goes wrong

    def _requeue(self, chunk: Chunk, *, is_suspect: bool = False) -> None:
        """Cancel a task and queue its jobs again; as suspects if they may have been running on a lost worker."""
        with contextlib.suppress(Exception):
            chunk.future.cancel()
        for job in reversed(self._leave(chunk)):
            job.build = None if chunk.builds else job.build
            job.is_suspect |= is_suspect
            self._queue_again(job)

    def _queue_again(self, job: Job) -> None:
        """Queue a job again, unless too many workers were lost with it."""
        if job.has_lost_enough:
            self._fail(job)
        elif job.kernels is not None:
            pass  # given again by _next_run()
        elif job.build is not None and job.build.future.status == "finished":
            self._built.appendleft(job)
        else:
            job.build = None
            self._waiting.appendleft(job)

    def _build_again(self, job: Job, code: str) -> None:
        """Queue a job again whose build did not come to an end."""
        job.lost += [_BUILDER] if self._is_to_blame(job.build, code) else []
        job.build = None
        self._queue_again(job)

    def _build_reference_again(self, chunk: Chunk, code: str) -> None:
        """Queue jobs again whose task found that the build of the reference had not come to an end."""
        if self._is_to_blame(chunk.jobs[0].build if chunk.jobs[0].reference else self._reference, code):
            chunk.blame(_BUILDER, "lost")
        if chunk.jobs[0].reference:
            chunk.jobs[0].build = None
        elif self._reference_job is not None:
            self._reference = self._submission.build_again(self._reference_job)
        self._requeue(chunk)

    def _is_to_blame(self, build: Build | None, code: str) -> bool:
        """Return whether a candidate may be to blame for the loss of a build; a worker that sent no objects is."""
        if code == BAD_BUILD and build is not None and build.worker:
            self._builders.distrust(build.worker, "what it sent are no objects")
            return False
        return code not in ("cluster/canceled", "cluster/busy-host")

    def _replace_lost_builds(self, chunk: Chunk) -> None:
        """Queue jobs again whose task needs an object that was lost, and then a worker with it that built it again."""
        workers = self._cluster.workers()
        for job in chunk.jobs:
            if job.build is not None and job.build.is_lost(workers):
                job.likely_lost += [_BUILDER] if job.build.is_failed() else []
                job.build = None
        if self._reference is not None and self._reference.is_lost(workers):
            self._build_reference_again(chunk, "cluster/canceled")
            return
        if self._incumbent is not None and self._incumbent[0].is_lost(workers) and self._incumbent_job:
            self._incumbent = (self._submission.build_again(self._incumbent_job), self._incumbent[1])
        self._requeue(chunk)

    def _retry_elsewhere(self, chunk: Chunk, worker: str, losses: str) -> None:
        """Count a worker as lost or late with a task, and queue the jobs of the task again."""
        chunk.blame(self.states.name(worker), losses)
        if worker and losses != "likely_lost":
            self.states.lost(worker)
            if losses == "lost" and len(chunk.jobs) == 1:
                chunk.jobs[0].lost_at.add(worker)
        self._requeue(chunk)

    def _end_finals(self, host: str, seconds: Any, disturbed: Any, error: tuple[str, str, str] | None) -> None:
        self._finals, self._finals_answer = None, (host, seconds, disturbed, error)

    def _fail(self, job: Job, why: str = "") -> None:
        message = job.losses or f"its task failed on the workers: {why}"
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
        for chunk in list(self._chunks.values()):
            if now > chunk.deadline:
                is_there = (host := workers.get(chunk.worker)) is not None and host.quiet < HEARTBEAT
                self._retry_elsewhere(chunk, chunk.worker, "late" if is_there and not chunk.is_killed else "lost")
        self.states.look(workers)
        if self._chunks:
            for silent in [each for each in workers.values() if each.is_silent]:
                self._remove(silent)
        for chunk in [each for each in self._chunks.values() if not each.worker]:  # Dask waits for workers that left
            if chunk.allowed and chunk.allowed.isdisjoint(workers):
                self._requeue(chunk)
            elif any(build.is_lost(workers) for build in chunk.needs):
                self._replace_lost_builds(chunk)

    def _remove(self, silent: WorkerFacts) -> None:
        """Remove a silent worker from the scheduler. Dask itself waits for minutes, and others wait for what it holds:
        tasks that are queued there, and objects that it has built."""
        if self._cluster.unregister(silent.address):
            text = f"worker {silent.name} has been silent for {SILENT_SECONDS:.0f} s and was removed from the cluster"
            warnings.warn(text, PerformanceWarning, stacklevel=2)

    def _check_scheduler(self, now: float) -> None:
        """Wait for a scheduler that is gone or does not answer; the search ends if it stays away."""
        is_connected = self._cluster.is_connected or self._cluster.reconnect()
        silent = self._cluster.silent_since if is_connected else now
        if silent is None:
            self._lost_since = None
            if self._connection != self._cluster.connection:
                self._connection = self._cluster.connection
                self._resubmit_all()
            return
        if self._lost_since is None:
            self._lost_since = silent
        self.waiting_for = f"the scheduler {self._cluster.address} to {'answer' if is_connected else 'come back'}"
        if now - self._lost_since > RECONNECT_SECONDS:
            what = "does not answer, for" if is_connected else "went away and has not come back for"
            self._failure = ResourceError.of(
                "cluster/lost-scheduler",
                f"the scheduler {self._cluster.address} {what} {RECONNECT_SECONDS:.0f} s",
                "start it again; what was measured is kept, and the same command continues from it",
            )
            self._cancel_all("the scheduler went away")

    def _resubmit_all(self) -> None:
        """Submit everything again: all futures are lost."""
        given = [job for chunk in list(self._chunks.values()) for job in self._leave(chunk) if job.kernels is None]
        jobs = sorted({*given, *self._built, *self._waiting}, key=lambda job: (not job.reference, job.number))
        self._built.clear()
        self._waiting = deque(jobs)
        for job in jobs:
            job.build = None
        self._submission.forget_program()
        self.states.forget_all()
        written = self._reference_job
        if written is not None and written.number not in self._jobs:
            self._reference = self._submission.build_again(written)
        else:
            self._reference = None
        if self._incumbent is not None and self._incumbent_job is not None:
            self._incumbent = (self._submission.build_again(self._incumbent_job), self._incumbent[1])

    def _cancel_all(self, why: str) -> None:
        canceled = _core.failed_measurement("canceled", "measure/canceled", why)
        for chunk in list(self._chunks.values()):
            with contextlib.suppress(Exception):
                chunk.future.cancel()
            self._leave(chunk)
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
        chunks = self._chunks.values()
        self._seconds[activity_of(chunks)] += passed
        self._seconds[Activity.BUILDS] += passed * sum(chunk.builds for chunk in chunks if chunk.worker)
