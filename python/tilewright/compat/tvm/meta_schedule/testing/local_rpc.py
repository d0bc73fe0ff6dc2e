"""tvm.meta_schedule.testing.local_rpc."""

from __future__ import annotations

from typing import Any

from tilewright.meta_schedule.runner.rpc import refuse

__all__ = ["LocalRPC"]


class LocalRPC:
    """Class without instances: Tilewright has no RPC."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse()
