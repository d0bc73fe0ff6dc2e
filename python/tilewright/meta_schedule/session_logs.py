"""Log files of a session: one of the scheduler, one of each task."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from tilewright.support.file_names import shortened

__all__ = ["SessionLogs"]

_NOT_IN_NAMES = re.compile(r"[^\w.-]")
#: bytes of the name of a task in that of a file, which has at most 255
_LONGEST_NAME = 200
_FORMAT = "%(asctime)s [%(levelname)s] %(message)s"


class SessionLogs:
    """The files in `work_dir`/logs, which are written inside a ``with``.

    The scheduler logs all tasks to ``tilewright.meta_schedule``; each task has its own logger, which writes only to the
    task's file.
    """

    def __init__(self, work_dir: str | Path, task_names: Sequence[str]) -> None:
        folder = Path(work_dir) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        self._scheduler = logging.getLogger("tilewright.meta_schedule")
        self._handlers = [(self._scheduler, _file(folder / "tvm.meta_schedule.logging.task_scheduler.log"))]
        if not self._scheduler.hasHandlers() and logging.lastResort is not None:
            self._handlers.append((self._scheduler, logging.lastResort))  # shows warnings
        self._levels = [(self._scheduler, self._scheduler.level)]
        self.tasks: list[logging.Logger] = []
        for number, name in enumerate(task_names):
            digits = len(str(len(task_names) - 1))
            text = f"task_{number:0{digits}d}_{shortened(_NOT_IN_NAMES.sub('_', name), _LONGEST_NAME)}"
            logger = logging.getLogger(f"tilewright.meta_schedule.logging.{text}")
            logger.propagate = False
            self.tasks.append(logger)
            self._handlers.append((logger, _file(folder / f"tvm.meta_schedule.logging.{text}.log")))
            self._levels.append((logger, logger.level))

    def __enter__(self) -> SessionLogs:
        for logger, handler in self._handlers:
            logger.addHandler(handler)
            if not logger.isEnabledFor(logging.DEBUG if logger is not self._scheduler else logging.INFO):
                logger.setLevel(logging.DEBUG if logger is not self._scheduler else logging.INFO)
        return self

    def __exit__(self, *error: object) -> None:
        for logger, handler in self._handlers:
            logger.removeHandler(handler)
            if handler is not logging.lastResort:
                handler.close()
        for logger, level in self._levels:
            logger.setLevel(level)


def _file(path: Path) -> logging.Handler:
    handler = logging.FileHandler(path, encoding="utf-8", delay=False)
    handler.setFormatter(logging.Formatter(_FORMAT))
    return handler
