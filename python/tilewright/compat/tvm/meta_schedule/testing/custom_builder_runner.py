"""tvm.meta_schedule.testing.custom_builder_runner."""

from __future__ import annotations

from typing import Any

from tilewright.meta_schedule.runner.rpc import refuse

__all__ = ["run_module_via_rpc"]


def run_module_via_rpc(*args: Any, **kwargs: Any) -> Any:
    """Raise an error: Tilewright has no RPC."""
    refuse()
