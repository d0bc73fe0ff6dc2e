"""Sets up what measures on a cluster, for both drivers of a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import _core
from tilewright.cluster.connection import Cluster
from tilewright.cluster.job import describe
from tilewright.cluster.labels import target_key
from tilewright.cluster.measurer import ClusterMeasurer
from tilewright.search.expectations import Expectations

__all__ = ["measurer_for"]


def measurer_for(
    cluster: Cluster, expectations: Expectations, target: _core.Target, options: Mapping[str, Any]
) -> ClusterMeasurer:
    """Return what builds and measures candidates of one program on a cluster.

    Args:
        cluster: where they are built and measured.
        expectations: arguments of the program, and the judge of its results.
        target: what candidates are compiled for; its number of cores is that of threads.
        options: options of ``_core.PipelineOptions``, see :func:`tilewright.cluster.job.describe`.
    """
    task = expectations.task
    return ClusterMeasurer(
        cluster,
        describe(task, expectations.inputs, expectations.seed, target.num_cores, options),
        target_key(target),
        [(p.name, p.dtype, p.shape) for p in task.parameters if p.role != "input"],
        task.reduction_length,
        lambda: expectations.check.extra_tolerance if expectations.check is not None else {},
        expectations.judge,
    )
