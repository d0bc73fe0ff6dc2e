"""Runners by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.meta_schedule.runner.dask_runner import DaskRunner
from tilewright.meta_schedule.runner.local_runner import LocalRunner
from tilewright.meta_schedule.runner.rpc import RPCRunner
from tilewright.meta_schedule.runner.runner import Runner
from tilewright.support import limits

__all__ = ["create"]

_KINDS: dict[str, Callable[..., Runner]] = {"local": LocalRunner, "dask": DaskRunner, "rpc": RPCRunner}


def create(kind: Runner | str = "local", *args: Any, **kwargs: Any) -> Runner:
    """Return the runner of a kind: "local", "dask", or "rpc", which is refused. An existing runner is returned
    unchanged.

    Raises:
        tilewright.ArgumentError: the kind does not exist.
    """
    if isinstance(kind, Runner):
        return kind
    made = limits.of_kind("runner", kind, _KINDS, "runner/kind")
    if kind == "local":
        kwargs.pop("max_workers", None)  # one kernel at a time, since concurrent ones disturb each other
    return made(*args, **kwargs)
