"""tvm.meta_schedule.builder.local_builder."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.builder import LocalBuilder, default_build, default_export

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.builder.local_builder")

__all__ = ["LocalBuilder", "default_build", "default_export"]
