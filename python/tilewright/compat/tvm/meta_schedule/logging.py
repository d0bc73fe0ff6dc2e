"""tvm.meta_schedule.logging."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.meta_schedule.logging import get_logger, get_loggers_from_work_dir, get_logging_func

__path__: list[str] = []
__getattr__ = missing("tvm.meta_schedule.logging")

__all__ = ["get_logger", "get_loggers_from_work_dir", "get_logging_func"]
