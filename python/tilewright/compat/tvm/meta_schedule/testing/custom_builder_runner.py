"""tvm.meta_schedule.testing.custom_builder_runner."""

from __future__ import annotations

from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.runner.rpc import refuse

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.testing.custom_builder_runner")

__all__ = ["run_module_via_rpc"]


def run_module_via_rpc(*args: Any, **kwargs: Any) -> Any:
    """Refuses."""
    refuse()
