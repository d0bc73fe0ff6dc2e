"""The workers that build for a search.

Excluded are workers that sent invalid objects, or an object that failed where another worker's object worked.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.cluster.connection import Cluster, WorkerFacts
from tilewright.cluster.job import MOST_LOST, Job
from tilewright.cluster.worker_states import WorkerStates
from tilewright.support.notes import PerformanceWarning

__all__ = ["BAD_BUILD", "Builders", "is_unloadable"]

#: code of what a worker has sent instead of objects
BAD_BUILD = "cluster/bad-build"
#: codes of objects that cannot be loaded, or lack the kernel
_UNLOADABLE = ("codegen/load", "measure/entry")


def is_unloadable(facts: Mapping[str, Any]) -> bool:
    """Return whether a result is the failure to load an object."""
    return facts["code"] in _UNLOADABLE


class Builders:
    """The workers that build for one search.

    Args:
        cluster: where they are.
        states: the workers of the search.
    """

    def __init__(self, cluster: Cluster, states: WorkerStates) -> None:
        self._cluster, self._states = cluster, states

    def able(self, workers: Mapping[str, WorkerFacts]) -> list[WorkerFacts]:
        """Return the workers that build: those whose measurements are trusted, or all if none are."""
        able = [w for w in workers.values() if w.build and not w.is_silent and not self._states.builds_badly(w.address)]
        return [w for w in able if not self._states.is_distrusted(w.address)] or able

    def allowed(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Return the addresses of the only workers that may build these jobs; empty for all."""
        bad = {address for job in jobs for address in job.bad_builds}
        if not bad and not self._states.distrusted:
            return frozenset()
        able = [w.address for w in self.able(self._cluster.workers())]
        return frozenset([address for address in able if address not in bad] or able)

    def suspect(self, job: Job, why: str) -> bool:
        """Have another worker build a job, if there is one; return whether there is.

        Its object may be to blame for a failure, or the worker that measured it, or the candidate. Whether it is the
        object shows when the other one was measured, see :meth:`settle`.
        """
        builder = job.build.worker if job.build is not None else ""
        if not builder or len(job.bad_builds) + 1 >= MOST_LOST:
            return False
        if all(w.address == builder for w in self.able(self._cluster.workers(now=True))):
            return False
        job.bad_builds[builder] = why
        job.build = None
        return True

    def settle(self, job: Job) -> None:
        """Record that an object of this job is fine: workers whose objects of it failed get no more builds."""
        for builder, why in job.bad_builds.items():
            if job.build is not None and builder != job.build.worker:
                self.distrust(builder, f"another worker's object of the same program is fine, and with its own, {why}")

    def distrust(self, worker: str, why: str) -> None:
        """Give no more builds to a worker."""
        self._states.heard(worker, self._cluster.workers())
        if self._states.distrust_builds(worker, why):
            text = f"worker {self._states.name(worker)} builds no more candidates of this search: {why}"
            warnings.warn(text, PerformanceWarning, stacklevel=2)
