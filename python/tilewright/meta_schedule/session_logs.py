"""Log files of a session: one of the scheduler, one of each task."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import ResourceError
from tilewright.support.file_names import shortened
from tilewright.support.user_lines import users_level

__all__ = ["SessionLogs", "cannot_be_written"]

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
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_be_written(folder, error) from None
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


class _LogFile(logging.FileHandler):
    """A log file. If it cannot be written, as on a full disk, the session continues, after one
    warning."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self._is_complete = True
        self.setFormatter(logging.Formatter(_FORMAT))

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exception()
        if isinstance(error, OSError):
            self._report(error)
        else:
            super().handleError(record)

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            self._report(error)

    def _report(self, error: OSError) -> None:
        if self._is_complete:
            text = f"{self.baseFilename}: cannot be written: {error.strerror}: the log is not complete"
            warnings.warn(text, stacklevel=users_level())
        self._is_complete = False


def _file(path: Path) -> logging.Handler:
    try:
        return _LogFile(path)
    except OSError as error:
        raise cannot_be_written(path, error) from None


def cannot_be_written(path: Path, error: OSError) -> ResourceError:
    """Return the error for a file in the folder of a session."""
    return ResourceError.of(
        "tune/work-dir",
        f"{path}: cannot be written: {error.strerror}",
        "choose another work_dir, or free some space: a session keeps its logs and its journal there",
    )
