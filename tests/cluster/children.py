"""Python processes that start with all modules imported. Importing them takes a second of processor time, so the fork
server of multiprocessing does it once, and forks the processes of tests."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

#: the first module configures Dask before it is imported
_IMPORTED = ["tests.cluster.imported", "tilewright.cli.commands", "tilewright.cluster.tasks", __name__, "pytest"]


class Child:
    """A process with those methods of ``subprocess.Popen`` that tests call."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self._process, self.pid = process, process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("a process of a test", timeout or 0.0)
        return code

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def fork(text: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> Child:
    """Run a program of Python with arguments; its output goes to a file."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_run, args=(text, list(arguments), str(log), dict(environment)), daemon=True)
    process.start()
    return Child(process)


def _run(text: str, arguments: list[str], log: str, environment: dict[str, str]) -> None:
    import dask

    os.setsid()
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # follows from the environment
    dask.config.refresh()  # a worker configures Dask, a scheduler does not
    sys.argv = ["-c", *arguments]
    exec(text, {"__name__": "__main__"})
