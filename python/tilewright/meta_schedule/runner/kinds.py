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
    """The runner of that kind: "local", "dask", or "rpc", which refuses. One that is there already is given back.

    Raises:
        tilewright.ArgumentError: there is no such kind.
    """
    if isinstance(kind, Runner):
        return kind
    made = limits.of_kind("runner", kind, _KINDS, "runner/kind")
    if kind == "local":
        kwargs.pop("max_workers", None)  # one kernel at a time, or they disturb one another
    return made(*args, **kwargs)


Runner.create = create
