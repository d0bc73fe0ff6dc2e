"""Processes of a cluster on loopback, on free ports: a scheduler, and workers as users start them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .children import Child, fork

#: seconds until a process has to be there; nothing is measured by them
PATIENCE = 60.0
#: A process of its own, or one that is forked; see children.py.
Process = subprocess.Popen[bytes] | Child
_SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def main():
    async with Scheduler(protocol=sys.argv[2], host="127.0.0.1", port=int(sys.argv[1]), dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""


#: The limits of the machine, which take two seconds to measure, are not what most tests are about.
_WITHOUT_PROBE = """
from tilewright.cluster import labels
label = labels.label
labels.label = lambda measure, build, probe: label(measure, build, probe=False)
"""


class Machines:
    """Processes of a cluster; all of them are gone at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address, self.port = folder, "", 0
        self.processes: list[Process] = []
        self.logs: list[Path] = []
        # Locks of its own: other tests have workers at the same time.
        self.environment = {**os.environ, "TILEWRIGHT_HOST_FOLDER": str(folder / "host"), "TMPDIR": str(folder)}

    def scheduler(self, protocol: str = "tcp") -> Process:
        """Starts it; where it was before, if it was."""
        log = self.folder / f"scheduler-{len(self.processes)}.log"
        process = self._start(_SCHEDULER, [str(self.port), protocol], log, self.environment)
        until(lambda: re.search(r"^\w+://.*\n", log.read_text(), re.MULTILINE) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        self.address = log.read_text().split()[-1]
        self.port = int(self.address.rpartition(":")[2])
        return process

    def worker(self, *arguments: str, patch: str = "", wait: bool = True, host: str = "") -> Process:
        """Starts ``tilewright worker``.

        Args:
            arguments: of the command.
            patch: Python that runs in it before.
            wait: until it has joined.
            host: that it is on, which has locks of its own; all are on one host by default.
        """
        text = f"{_WITHOUT_PROBE}\n{patch}\nfrom tilewright.__main__ import main\nmain()"
        log = self.folder / f"worker-{len(self.processes)}.log"
        environment = {**self.environment, "TILEWRIGHT_HOST_FOLDER": str(self.folder / f"host{host}")}
        process = self._start(text, ["worker", self.address, *arguments], log, environment)
        self.logs.append(log)
        if wait:
            self.wait()
        return process

    def wait(self) -> None:
        """Until all workers have joined."""
        for log in self.logs:
            until(lambda log=log: "works as" in log.read_text() or "error" in log.read_text())
            assert "works as" in log.read_text(), log.read_text()

    def _start(self, text: str, arguments: list[str], log: Path, environment: dict[str, str]) -> Process:
        log.touch()
        process = self._run(text, arguments, log, environment)
        self.processes.append(process)
        return process

    def _run(self, text: str, arguments: list[str], log: Path, environment: dict[str, str]) -> Process:
        """Start Python with a program and its arguments, in a session of its own."""
        with log.open("w") as file:
            return subprocess.Popen(
                [sys.executable, "-c", text, *arguments],
                **{"stdout": file, "stderr": file, "env": environment, "start_new_session": True},
            )

    def close(self) -> None:
        """Ends all, also those that are stopped."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
                os.kill(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class QuickMachines(Machines):
    """Processes that are forked, where nothing depends on how they are started."""

    def _run(self, text: str, arguments: list[str], log: Path, environment: dict[str, str]) -> Process:
        return fork(text, arguments, log, environment)


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Waits; fails where that takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
