"""The measuring pipeline of a session over several tasks, on a cluster."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from tilewright import _core, ir
from tilewright.cluster.activities import Activity
from tilewright.cluster.connection import Cluster
from tilewright.search.cluster_measurer import measurer_for
from tilewright.search.expectations import REFERENCE_DEADLINE, Expectations
from tilewright.task.task import Task

__all__ = ["ClusterPipeline"]

_LOGGER = logging.getLogger("tilewright.meta_schedule")
#: number of the unscheduled program
_REFERENCE = -1


class ClusterPipeline:
    """The candidates of one program on a cluster, with the interface of ``_core.MeasurePipeline``.

    Args:
        cluster: the cluster that builds and measures.
        task: the program.
        target: target of the candidates.
        options: options of ``_core.PipelineOptions``.
        seconds: maximum seconds of the session.
    """

    def __init__(
        self, cluster: Cluster, task: Task, target: _core.Target, options: dict[str, Any], *, seconds: float | None
    ) -> None:
        task = dataclasses.replace(task, cold=options.pop("cold", False))
        self._task, self._target = task, target
        self._expectations = expectations = Expectations(task, {}, seed=0, seconds=seconds)
        expectations.arguments()  # validates the program before anything is measured
        longest = REFERENCE_DEADLINE if seconds is None else min(REFERENCE_DEADLINE, seconds)
        options = options | {"reference_timeout": longest}
        self._measurer = measurer_for(cluster, expectations, target, options)
        self._next = 0
        self._reported = ""
        self.pids: list[int] = []  #: of helper processes on this machine; always empty
        module, build = _core.candidate_parts(task.module, target, as_written=True)
        self._measurer.submit(_REFERENCE, module, build, task.entry, reference=True)

    def submit(self, scheduled: ir.IRModule) -> int:
        """Submit a candidate; return its number."""
        module, options = _core.candidate_parts(scheduled, self._target)
        number, self._next = self._next, self._next + 1
        self._measurer.submit(number, module, options, self._task.entry)
        return number

    def poll(self, seconds: float) -> list[tuple[int, str, list[float], str, str]]:
        """Return (number, outcome, seconds, error, host) of finished candidates; times are relative to the first host.

        Raises:
            tilewright.Error: nothing can be measured any more.
        """
        results = []
        for number, result, _, host, reference, _, outputs in self._measurer.poll(seconds):
            if number == _REFERENCE:
                self._judge(result, outputs)
                continue
            facts = _core.measured_facts(result)
            factor = reference / facts["incumbent_seconds"] if reference and facts["incumbent_seconds"] else 1.0
            times = [each * factor for each in facts["seconds"]]
            results.append((number, facts["outcome"], times, facts["message"], host))
        if (failure := self._measurer.failure()) is not None:
            raise failure
        if self._measurer.waiting_for != self._reported:
            self._reported = self._measurer.waiting_for
            _LOGGER.warning(
                "%s: %s", self._task.entry, f"waiting for {self._reported}" if self._reported else "continues"
            )
        return results

    def _judge(self, result: bytes, outputs: list[bytes] | None) -> None:
        facts = _core.measured_facts(result)
        if facts["outcome"] == "canceled":
            return
        if facts["outcome"] != "ok" or outputs is None:
            _core.raise_reference_failure(self._task.entry, result)
        names = [p.name for p in self._task.parameters if p.role != "input"]
        self._expectations.judge(dict(zip(names, outputs, strict=True)))

    @property
    def beside(self) -> dict[str, float]:
        """Return the seconds that workers spent building, checking and measuring."""
        seconds = self._measurer.activities()
        return {
            "building": seconds[Activity.BUILDS],
            "checking": seconds[Activity.REFERENCE] + seconds[Activity.CHECKING],
            "measuring": seconds[Activity.MEASURING] + seconds[Activity.FINALS],
        }

    def close(self) -> None:
        """Cancel all work on the cluster."""
        self._measurer.close()
