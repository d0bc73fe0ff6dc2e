"""A candidate on its way through a cluster, and the description of its program for workers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
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
    name: str = ""  #: of its current task; the worker reports it when the task starts
    build: Any = None
    run: Any = None
    compared_with: float = 0.0  #: time on the first host of the incumbent that it is timed with
    lost: list[str] = dataclasses.field(default_factory=list)  #: names of workers that were lost with it
    likely_lost: list[str] = dataclasses.field(default_factory=list)  #: names of lost workers that it was the next for
    late: list[str] = dataclasses.field(default_factory=list)  #: names of workers that work, and gave no result in time
    avoid: frozenset[str] = frozenset()  #: addresses of workers that it should not run on again
    worker: str = ""  #: where its task runs
    allowed: frozenset[str] = frozenset()  #: the only workers that its task may run on; empty for all
    deadline: float = math.inf
    since: float = 0.0  #: when its task was given to Dask

    @property
    def has_lost_enough(self) -> bool:
        """Whether the candidate is to blame: several workers were lost with it, or one repeatedly.

        Being the next one to run counts beside a loss that is certain: the task before it may have ended unreported.
        A search ends with its reference, so that is tried longer: it may have run beside a candidate that is to blame.
        Being late says less: the machine may be busy.
        """
        if self.reference:
            return len(set(self.lost)) >= 2 * MOST_LOST or len(self.late) > 2 * MOST_LOST
        if len(self.late) > MOST_LOST:
            return True
        lost, likely_lost = len(self.lost), len(self.likely_lost)
        is_lost_twice = len(set(self.lost)) >= MOST_LOST or (lost > 0 and likely_lost > 0)
        return is_lost_twice or lost > MOST_LOST or likely_lost > MOST_LOST

    def leave(self) -> None:
        """Forget the current task."""
        self.name = self.worker = ""
        self.allowed, self.deadline = frozenset(), math.inf
