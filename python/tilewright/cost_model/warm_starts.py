"""Train cost models from the records of a database."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

__all__ = ["warm_start"]


def warm_start(model: Any, context: Any, records: Iterable[Any]) -> int:
    """Train a cost model on records of the task before anything is measured. Return the number of records.

    Args:
        model: a cost model.
        context: the task.
        records: records of one workload; they have ``as_measure_candidate()`` and ``run_secs``.
    """
    known = [record for record in records if record.run_secs]
    if known:
        candidates = [record.as_measure_candidate() for record in known]
        results = [SimpleNamespace(run_secs=list(record.run_secs), error_msg=None) for record in known]
        model.update(context, candidates, results)
    return len(known)
