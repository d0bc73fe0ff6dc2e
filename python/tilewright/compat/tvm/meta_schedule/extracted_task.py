"""tvm.meta_schedule.extracted_task."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.extracted_task import ExtractedTask

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.extracted_task")

__all__ = ["ExtractedTask"]
