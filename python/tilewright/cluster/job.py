"""Candidates that a cluster builds and measures, their tasks, and the description of their program for workers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from tilewright import ir
from tilewright.task.task import Task

#: lost workers after which a candidate is recorded as a failure
MOST_LOST = 2


def describe(
    task: Task, inputs: Mapping[str, Any], seed: int, threads: int, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a worker needs to call kernels of a program. Random inputs are generated there.

    Args:
        task: the program.
        inputs: arrays given by the user.
        seed: seed of the random inputs.
        threads: number of threads of kernels.
        options: options of :class:`_core.PipelineOptions`; `steady` has the arguments of
            :meth:`_core.RaceRules.steady`.
    """
    import numpy as np

    arrays = {name: np.asarray(value, order="C") for name, value in inputs.items()}
    return {
        "module": ir.save_json(task.sparse or task.module),  # its sparse axes say which sizes may be 0
        "sizes": dict(task.sizes),
        "cold": task.cold,
        "entry": task.entry,
        "inputs": {name: [str(a.dtype), list(a.shape), a.tobytes()] for name, a in arrays.items()},
        "seed": seed,
        "threads": threads,
        "options": dict(options),
    }


@dataclasses.dataclass(eq=False)
class Build:
    """The object of a candidate: its place in the result of a task that builds a chunk."""

    future: Any
    place: int
    worker: str = ""  #: address of the worker that has built it; "" while that is not known
    allowed: frozenset[str] = frozenset()  #: the only workers that may build it, again too; empty for all

    def is_failed(self) -> bool:
        """Return whether a worker was lost while it built this."""
        return bool(self.future.status == "error")

    def is_lost(self, workers: Collection[str]) -> bool:
        """Return whether Dask will not build this again: the build failed, or only workers that have left may run it.

        Args:
            workers: addresses of the workers that are there.
        """
        is_stranded = bool(self.allowed) and self.allowed.isdisjoint(workers) and self.future.status != "finished"
        return self.is_failed() or is_stranded


@dataclasses.dataclass(eq=False)
class Job:
    """A candidate between submit() and poll() of the measurer."""

    number: int
    module: bytes
    options: bytes
    reference: bool = False
    check_only: bool = False
    is_baseline: bool = False
    known_seconds: float = 0.0
    kernels: Any = None  #: of finals
    batch: int = 0  #: number of the batch with which it was submitted
    chunk: Chunk | None = None  #: the task that builds or measures it now
    build: Build | None = None
    compared_with: float = 0.0  #: time on the first host of the incumbent that it is timed with
    lost: list[str] = dataclasses.field(default_factory=list)  #: names of workers that were lost with it
    lost_at: set[str] = dataclasses.field(default_factory=set)  #: addresses of those that were lost with it
    likely_lost: list[str] = dataclasses.field(default_factory=list)  #: names of lost workers that may have run it
    is_suspect: bool = False  #: whether it was queued on a worker that was lost, and may have been running
    late: list[str] = dataclasses.field(default_factory=list)  #: names of workers that work, and gave no result in time
    avoid: frozenset[str] = frozenset()  #: addresses of workers that it should not run on again
    only: str = ""  #: address of the worker that measures it again
    bad_builds: dict[str, str] = dataclasses.field(default_factory=dict)
    """Failures of the objects that workers built of it before, by address of the worker."""

    @property
    def goes_alone(self) -> bool:
        """Return whether the candidate has a task of its own: the reference, finals, and what failed before."""
        return self.reference or self.kernels is not None or bool(self.losses or self.bad_builds)

    @property
    def losses(self) -> str:
        """Return the workers that were lost with the candidate, as text; empty if there were none."""
        names = [*self.lost, *self.likely_lost, *self.late]
        return f"workers were lost with this candidate: {', '.join(names)}" if names else ""

    @property
    def has_lost_enough(self) -> bool:
        """Return whether the candidate is to blame: several workers were lost with it, or one repeatedly.

        Being in a chunk that was lost, or in the next one, counts beside a loss that is certain: another candidate of
        the chunk may be to blame, and the task before may have ended unreported.
        A search ends with its reference, so that is tried longer: it may have run beside a candidate that is to blame.
        Being late is weaker evidence: the machine may be busy. A worker that was restarted under its name is another
        one.
        """
        if self.reference:
            return len(set(self.lost)) >= 2 * MOST_LOST or len(self.late) > 2 * MOST_LOST
        if len(self.late) > MOST_LOST:
            return True
        lost, likely_lost = len(self.lost), len(self.likely_lost)
        workers = max(len(set(self.lost)), len(self.lost_at))
        is_lost_twice = workers >= MOST_LOST or (lost > 0 and likely_lost > 0)
        return is_lost_twice or lost > MOST_LOST or likely_lost > MOST_LOST


@dataclasses.dataclass(eq=False)
class Chunk:
    """A Dask task that builds or measures several candidates, one after the other."""

    name: str  #: the worker reports it when the task starts
    builds: bool  #: otherwise it measures
    jobs: list[Job]
    since: float  #: when the task was given to Dask
    allowed: frozenset[str] = frozenset()  #: the only workers that it may run on; empty for all
    needs: list[Build] = dataclasses.field(default_factory=list)  #: objects that it measures, or needs to measure
    future: Any = None
    worker: str = ""  #: where it runs
    deadline: float = math.inf
    is_killed: bool = False  #: whether its worker is gone, which the event of that worker will say

    def blame(self, name: str, losses: str) -> None:
        """Record in a list of each job that a worker of this name was lost: which one is to blame is not known."""
        for job in self.jobs:
            getattr(job, "likely_lost" if losses == "lost" and len(self.jobs) > 1 else losses).append(name)
