"""Ctrl-C ends a session on a cluster at once: what runs on workers is canceled, and the next session has them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.search.programs import scale, tiles

import tilewright as tw

from .machines import Machines, until

#: Its kernel would run for hours.
ENDLESS = """
import tilewright as tw
from tilewright.script import tir as T

@T.prim_func
def endless(X: T.Buffer((64,), "int32"), Y: T.Buffer((1,), "int32")):
    for i, j in T.grid(1000000, 1000000):
        with T.block("Y"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                Y[0] = 0
            Y[0] = (Y[0] * 1664525) ^ (X[vj % 64] + vi)

@tw.space(endless)
def as_it_is(sch):
    sch.sample_categorical([1, 2, 3, 4], [0.25] * 4)
"""


def processor_seconds(process: Path) -> float:
    """Return the processor time that a process has used so far."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kernels_of(worker: int) -> list[Path]:
    """Return the processes below a worker that have used a second of processor time."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == worker and processor_seconds(process) > 1.0:
                found.append(process)
        except (OSError, ValueError):  # it has ended meanwhile
            continue
    return found


def test_kernels_on_workers_end_with_the_session(machines: Machines, tmp_path: Path) -> None:
    worker = machines.worker("--measure", "1", "--build", "1")
    (tmp_path / "program.py").write_text(ENDLESS)
    command = [sys.executable, "-m", "tilewright", "tune", "program.py", "--cluster", machines.address, "--json"]
    session = subprocess.Popen(
        command, cwd=tmp_path, env=machines.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(lambda: kernels_of(worker.pid) or session.poll() is not None)
    assert session.poll() is None, session.communicate()
    session.send_signal(signal.SIGINT)
    progress, problems = session.communicate(timeout=60)
    assert session.returncode == 130 and "interrupted" in problems, problems
    assert json.loads(progress.splitlines()[-1])["trials"] == 0
    until(lambda: not kernels_of(worker.pid))
    assert worker.poll() is None
    # The worker is free: its only slot measures for the next session.
    result = tw.tune(scale, space=tiles, trials=2, progress=None, cluster=machines.address)
    assert result.stop_reason == "trials" and result.record is not None
