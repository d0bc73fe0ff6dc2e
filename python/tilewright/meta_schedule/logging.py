"""Loggers with TVM's names."""

from __future__ import annotations

import logging
from typing import Any

from tilewright.meta_schedule.session_logs import SessionLogs

__all__ = ["get_logger", "get_loggers_from_work_dir", "get_logging_func"]

get_logger = logging.getLogger


def get_logging_func(logger: logging.Logger) -> Any:
    """Return a function of a level and a text that logs."""
    return logger.log


def get_loggers_from_work_dir(work_dir: str, task_names: list[str]) -> list[logging.Logger]:
    """Return a logger for each task, with its own file in `work_dir`/logs."""
    return SessionLogs(work_dir, task_names).__enter__().tasks
