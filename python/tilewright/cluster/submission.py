"""Gives chunks of candidates to Dask as tasks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.cluster import labels, tasks
from tilewright.cluster.connection import Cluster, fails_with_its_worker
from tilewright.cluster.job import Build, Chunk, Job
from tilewright.cluster.messages import pack


class Submission:
    """The tasks of one search.

    Args:
        cluster: where they run.
        program: see :func:`describe <tilewright.cluster.job.describe>`.
        key: key of the target.
        build_timeout: seconds that a build may take.
    """

    def __init__(self, cluster: Cluster, program: Mapping[str, Any], key: str, build_timeout: float) -> None:
        self._cluster, self._key, self._build_timeout = cluster, key, build_timeout
        self._threads: int = program["threads"]
        self._program = pack(program)
        self._program_future: Any = None
        self._program_name = ""

    def forget_program(self) -> None:
        """Send the program again with the next task; or with none, at the end of the search."""
        self._program_future = None

    def build(self, chunks: Sequence[Chunk]) -> None:
        """Have chunks built that may run on the same workers. The program travels meanwhile: measurements need it."""
        self._held_program()
        what = [pack(self._specification(chunk) | {"timeout": self._build_timeout}) for chunk in chunks]
        modules = [[job.module for job in chunk.jobs] for chunk in chunks]
        options = [[job.options for job in chunk.jobs] for chunk in chunks]
        self._submit(tasks.build, chunks, what, modules, options, **_where(chunks, {labels.builds(): 1}))
        for chunk in chunks:
            for place, job in enumerate(chunk.jobs):
                job.build = Build(chunk.future, place, allowed=chunk.allowed)

    def build_again(self, job: Job) -> Build:
        """Build a finished job again. Dask waits for the result where a task depends on it."""
        arguments = (job.module, job.options, self._threads, self._build_timeout)
        return Build(tasks.submit_build(self._cluster, self._cluster.new_name("build"), *arguments), 0)

    def measure(
        self, chunks: Sequence[Chunk], reference: Build, incumbent: Build | None, rounding: Mapping[str, float]
    ) -> None:
        """Have chunks measured that may run on the same workers; or finals.

        Args:
            chunks: the chunks of candidates, of the reference, or finals.
            reference: the build of the unscheduled program.
            incumbent: the build of the incumbent, if there is one.
            rounding: by how much results may differ, by output.
        """
        how = _where(chunks, {labels.measures(self._key): labels.SHARE})
        for chunk in chunks:
            built = [job.build for job in chunk.jobs if job.build is not None]
            chunk.needs = [reference, *built, *([incumbent] if incumbent is not None else [])]
        about = {"key": self._key, "program": self._held_program(), "rounding": dict(rounding)}
        held = [self._program_future] * len(chunks), [reference.future] * len(chunks)
        if chunks[0].jobs[0].kernels is not None:
            kernels, finals = zip(*(chunk.jobs[0].kernels for chunk in chunks), strict=True)
            what = [
                pack(self._specification(chunk) | about | {"finals": each})
                for chunk, each in zip(chunks, finals, strict=True)
            ]
            self._submit(tasks.finals, chunks, what, *held, kernels, **how)
            return
        what, objects, beside = [], [], []
        for chunk in chunks:
            is_raced = incumbent is not None and any(job.compared_with > 0 for job in chunk.jobs)
            builds, candidates = _candidates(chunk)
            objects.append(builds)
            beside.append(incumbent.future if incumbent is not None and is_raced else None)
            more = {"candidates": candidates, "incumbent": incumbent.place if incumbent is not None else 0}
            what.append(pack(self._specification(chunk) | about | more))
        self._submit(tasks.measure, chunks, what, *held, objects, beside, **how)

    def _specification(self, chunk: Chunk) -> dict[str, Any]:
        is_suspect = any(job.is_suspect or job.losses for job in chunk.jobs)
        return {
            **{"job": chunk.name, "topic": self._cluster.topic},
            **{"threads": self._threads, "is_suspect": is_suspect},
        }

    def _held_program(self) -> str:
        """Return the name of the task that holds the program."""
        if self._program_future is None:
            self._program_name = self._cluster.new_name("program")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large inputs, which are sent once
                self._program_future = self._cluster.client.submit(
                    tasks.hold, self._program, key=self._program_name, pure=False, resources={labels.present(): 1}
                )
        return self._program_name

    def _submit(self, function: Any, chunks: Sequence[Chunk], *arguments: Sequence[Any], **how: Any) -> None:
        """Submit tasks of one function in one message, whose cost hardly depends on their number. They begin in this
        order, and fail when their worker is lost."""
        names = [chunk.name for chunk in chunks]
        with warnings.catch_warnings(), fails_with_its_worker():
            warnings.simplefilter("ignore")  # of large arguments, which are sent once
            futures = self._cluster.client.map(function, *arguments, key=names, pure=False, **how)
        for chunk, future in zip(chunks, futures, strict=True):
            chunk.future = future


def _where(chunks: Sequence[Chunk], resources: dict[str, float]) -> dict[str, Any]:
    """Return where tasks may run, for Dask."""
    how: dict[str, Any] = {"resources": resources}
    if allowed := chunks[0].allowed:
        how |= {"workers": sorted(allowed), "allow_other_workers": False}
    return how


def _candidates(chunk: Chunk) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the tasks that have built candidates, and where each candidate's object is; nothing for the reference."""
    built = {id(job.build.future): job.build.future for job in chunk.jobs if not job.reference and job.build}
    numbers = {each: number for number, each in enumerate(built)}
    candidates = [
        {
            **{"chunk": numbers[id(job.build.future)], "place": job.build.place, "beside": job.compared_with > 0},
            **{"check_only": job.check_only, "is_baseline": job.is_baseline},
        }
        for job in chunk.jobs
        if not job.reference and job.build
    ]
    return list(built.values()), candidates
