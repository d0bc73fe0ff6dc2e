"""The soak on a cluster: workers and the scheduler are what fails."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any

from cluster.machines import Machines, Process
from soak.soak import GONE, Soak, processes_of

#: what is done to a round while it runs, beside killing the tuner
DEEDS = ("nothing", "kill the tuner", "kill a worker", "stop a worker", "fill a disk", "restart the scheduler")
#: seconds that a worker is stopped
STOPPED = (0.5, 20.0)


class ClusterSoak(Soak):
    """Rounds on three workers of this machine: two measure in turn, all build."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.token = f"cluster-{os.getpid()}-{time.monotonic_ns()}"
        work = (folder / "machines").resolve()
        work.mkdir(exist_ok=True)
        self.machines = Machines(work)
        self.machines.environment["TILEWRIGHT_SOAK"] = self.token
        self.scheduler = self.machines.scheduler()
        self.workers = [self._worker(measure) for measure in (1, 1, 0)]
        self.machines.wait()
        self.timers: list[threading.Timer] = []

    def deeds(self) -> tuple[str, ...]:
        return DEEDS

    def options(self) -> list[str]:
        return [self.machines.address]

    def close(self) -> None:
        for timer in self.timers:
            timer.cancel()
        self.machines.close()
        end = time.monotonic() + GONE
        while (left := processes_of(self.token)) and time.monotonic() < end:
            time.sleep(0.05)
        if left:
            self._find(self.next_round, f"processes of the cluster are left: {left}")

    def _worker(self, measure: int) -> tuple[int, Process]:
        return measure, self.machines.worker("--measure", str(measure), "--build", "1", wait=False)

    def _do(self, deed: str, child: Any, token: str) -> None:
        dice = random.Random(self.next_round)
        place = dice.randrange(len(self.workers))
        measure, worker = self.workers[place]
        if deed == "kill a worker":
            worker.kill()
            self.workers[place] = self._worker(measure)
        elif deed == "stop a worker":
            os.kill(worker.pid, signal.SIGSTOP)
            ends = dice.random() < 0.5
            self._later(dice.uniform(*STOPPED), worker, signal.SIGKILL if ends else signal.SIGCONT)
            if ends:
                self.workers[place] = self._worker(measure)
        elif deed == "fill a disk":
            for pid in processes_of(self.token):
                if pid == worker.pid or parent_of(pid) == worker.pid:
                    with contextlib.suppress(ProcessLookupError):
                        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            self._later(10.0, worker, signal.SIGTERM)
            self.workers[place] = self._worker(measure)
        elif deed == "restart the scheduler":
            self.scheduler.kill()
            self.scheduler.wait()
            self.scheduler = self.machines.scheduler()
        else:
            super()._do(deed, child, token)

    def _later(self, seconds: float, worker: Process, number: int) -> None:
        def send() -> None:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(number)

        self.timers.append(threading.Timer(seconds, send))
        self.timers[-1].start()


def parent_of(pid: int) -> int:
    """The process that started it; 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
