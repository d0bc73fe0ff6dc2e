"""Runners on other machines: only the names exist, so that files that mention them can be imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tilewright.errors import ResourceError
from tilewright.meta_schedule.runner.runner import EvaluatorConfig, Runner, RunnerFuture, RunnerInput

__all__ = ["RPCConfig", "RPCRunner"]


def refuse() -> NoReturn:
    """Report that trackers are not supported.

    Raises:
        tilewright.ResourceError: always.
    """
    raise ResourceError.of(
        "runner/rpc",
        "Tilewright has no tracker of RPC; it measures on other machines as workers of a Dask cluster",
        'runner=ms.runner.DaskRunner("tcp://head:8786"), and see docs/cluster.md; or on this machine: runner="local"',
    )


@dataclass(frozen=True)
class RPCConfig:
    """The address of a tracker; by default from TVM_TRACKER_HOST, _PORT and _KEY."""

    tracker_host: str | None = None
    tracker_port: int | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    def __post_init__(self) -> None:
        for name, kind in (("tracker_host", str), ("tracker_port", int), ("tracker_key", str)):
            value = os.environ.get(f"TVM_{name.upper()}")
            if getattr(self, name) is None and value is not None:
                object.__setattr__(self, name, kind(value))

    def connect_tracker(self) -> Any:
        """Raise an error: Tilewright has no RPC."""
        refuse()

    def connect_server(self) -> Any:
        """Raise an error: Tilewright has no RPC."""
        refuse()

    def count_num_servers(self, allow_missing: bool = True) -> int:
        """Return 0, the number of machines; refuse if that is an error."""
        if not allow_missing:
            refuse()
        return 0


class RPCRunner(Runner):
    """A runner that cannot be constructed: Tilewright has no RPC."""

    def __init__(
        self,
        rpc_config: RPCConfig | None = None,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_create_session: Any = None,
        f_upload_module: Any = None,
        f_alloc_argument: Any = None,
        f_run_evaluator: Any = None,
        f_cleanup: Any = None,
        max_workers: int | None = None,
        initializer: Any = None,
    ) -> None:
        refuse()

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Raise an error: Tilewright has no RPC."""
        refuse()
