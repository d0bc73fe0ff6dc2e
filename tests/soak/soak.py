"""What happens to a round from outside, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.database.records import open_database
from tilewright.task.arguments import make_arrays
from tilewright.task.reference import interpreted
from tilewright.task.task import task_of

ROOT = Path(__file__).resolve().parents[2]
#: what is done to a round while it runs
DEEDS = ("nothing", "kill a helper", "kill the tuner", "lock the database")
#: seconds in which the helpers of a tuner that was killed are gone
GONE = 10.0
ROUND_SECONDS = 240.0
#: bytes by which a process may grow with each search after the first ones
MOST_GROWN = 2_000_000


class Soak:
    """Rounds in a folder that keeps where they are, so that the soak goes on where it stopped.

    Attributes:
        findings: what should not have happened.
        counts: what was done, and what came of it.
        seconds: how long the soak has gone on in this folder, all runs together.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.database, self.state = folder / "soak.db", folder / "state.json"
        kept = json.loads(self.state.read_text()) if self.state.exists() else {}
        self.next_round: int = kept.get("next_round", 0)
        self.records: int = kept.get("records", 0)
        self.seconds: float = kept.get("seconds", 0.0)
        self.counts: Counter[str] = Counter(kept.get("counts", {}))
        self.findings: list[str] = kept.get("findings", [])

    def run(self, seconds: float, most: int | None = None) -> None:
        """Rounds until the time is over."""
        end = time.monotonic() + seconds
        while (begin := time.monotonic()) < end and (most is None or most > 0):
            self.round(self.next_round)
            self.next_round += 1
            self.seconds += time.monotonic() - begin
            most = None if most is None else most - 1
            scratch = self.state.with_suffix(".new")
            scratch.write_text(
                json.dumps(
                    {
                        "next_round": self.next_round,
                        "records": self.records,
                        "seconds": self.seconds,
                        "counts": self.counts,
                        "findings": self.findings,
                    }
                )
            )
            scratch.rename(self.state)

    def round(self, number: int) -> None:
        """One search, something that goes wrong with it, and the same search again until it is done."""
        dice = random.Random(number)
        deed = dice.choice(self.deeds())
        self.counts[f"rounds: {deed}"] += 1
        answer = self._tuned(number, deed, dice)
        if answer is None and deed == "kill the tuner":
            answer = self._tuned(number, "nothing", dice)
        if answer is None:
            self._find(number, f"{deed}: the search did not come to its end")
        elif answer["grown"] > MOST_GROWN:
            self._find(number, f"{answer['grown']} bytes more are taken after each search")
        elif answer["files"] > 0:
            self._find(number, f"{answer['files']} files stay open after five searches")
        elif answer["family"] == "faulty":
            self._check_outcomes(number, {int(index): name for index, name in answer["faults"].items()})
        self._check_records(number)

    def summary(self) -> list[str]:
        """What to print beside counts and findings."""
        return []

    def close(self) -> None:
        """Nothing is left that a run has begun."""

    def deeds(self) -> tuple[str, ...]:
        """What may be done to a round."""
        return DEEDS

    def options(self) -> list[str]:
        """Of the tuner, beside database and round."""
        return []

    def _find(self, number: int, text: str) -> None:
        self.findings.append(f"round {number}: {text}")

    def _tuned(self, number: int, deed: str, dice: random.Random) -> dict[str, Any] | None:
        """What the search says at its end; None where it did not get there."""
        token, scratch = f"{os.getpid()}-{number}-{time.monotonic_ns()}", self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        path = os.pathsep.join(str(ROOT / part) for part in ("tests", "python"))
        environment = {**os.environ, "TILEWRIGHT_SOAK": token, "TMPDIR": str(scratch), "PYTHONPATH": path}
        command = [sys.executable, "-m", "soak.tuner", str(self.database), str(number), *self.options()]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stderr is not None
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(child.stderr.read()))
        reader.start()
        watchdog = threading.Timer(ROUND_SECONDS, child.kill)
        watchdog.start()
        when, told, answer = dice.randrange(2, 14), -1, None
        for line in child.stdout:
            if line.startswith("done "):
                answer = json.loads(line[5:])
            elif line.strip().isdigit():
                told = int(line)
                if told >= when and deed != "nothing":
                    self._do(deed, child, token)
                    deed = "nothing"
        child.wait()
        watchdog.cancel()
        reader.join()
        if child.returncode not in (0, -signal.SIGKILL):
            self._find(number, f"the tuner ended with {child.returncode}: {''.join(errors)[-2000:]}")
        self._check_leaks(number, token, scratch)
        # All that was told to be a trial is in the file.
        if told > (kept := self._count("WHERE seed = ?", number)) and answer is None:
            self._find(number, f"{told} trials were told, and the file has {kept}")
        return answer

    def _do(self, deed: str, child: Any, token: str) -> None:
        if deed == "kill the tuner":
            child.kill()
        elif deed == "kill a helper":
            helpers = [pid for pid in processes_of(token) if pid != child.pid]
            for pid in helpers[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif deed == "lock the database":
            with contextlib.closing(sqlite3.connect(self.database, timeout=5)) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                time.sleep(1.5)
                connection.rollback()

    def _count(self, which: str = "", *values: int) -> int:
        with contextlib.closing(sqlite3.connect(self.database, timeout=10)) as connection:
            count: int = connection.execute(f"SELECT count(*) FROM record {which}", values).fetchone()[0]
        return count

    def _check_leaks(self, number: int, token: str, scratch: Path) -> None:
        end = time.monotonic() + GONE
        while (left := processes_of(token)) and time.monotonic() < end:
            time.sleep(0.05)
        if left:
            self._find(number, f"processes are left: {left}")
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if files := sorted(str(path) for path in scratch.rglob("*")):
            self._find(number, f"files are left: {files[:5]}")

    def _check_outcomes(self, number: int, faults: dict[int, str]) -> None:
        from soak.tuner import EXPECTED

        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute(
                "SELECT position, outcome FROM record JOIN workload ON workload.id = workload_id "
                # the program as written, at position -1, is kept where it is the fastest: it is no trial
                "WHERE workload.name = 'gather' AND seed = ? AND position >= 0 "
                # Where somebody ends two workers with one candidate, it looks as if that was its fault.
                "AND coalesce(error, '') NOT LIKE 'workers were lost%'",
                (number,),
            ).fetchall()
        for index, outcome in rows:
            name = faults.get(index)
            self.counts[f"kernels: {name or 'right'}"] += 1
            if outcome == "ok" and name is not None:
                self._find(number, f"candidate {index} ({name}) is wrong, and was kept")
            if name is None and outcome not in ("ok", "slow_stopped"):
                self._find(number, f"candidate {index} is right, and ended as {outcome}")
            if name is not None and outcome not in (EXPECTED[name], "run_crash", "slow_stopped"):
                self._find(number, f"candidate {index} ({name}) ended as {outcome}")

    def _check_records(self, number: int) -> None:
        """None is lost, and the best of what was tuned last computes what the interpreter says."""
        count = self._count()
        if count < self.records:
            self._find(number, f"{self.records - count} records are lost")
        self.records = count
        store = open_database(self.database)
        workload = store.workloads()[-1]
        for record in store.top_k(workload.hash, "", 1):
            self.counts["kernels checked"] += 1
            if (text := wrong(workload.script, record.trace)) is not None:
                self._find(number, f"a wrong kernel was kept for {workload.name}: {text}")


def processes_of(token: str) -> list[int]:
    """Those whose environment names the token."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            alive = "\nState:\tZ" not in (folder / "status").read_text()
            if alive and f"TILEWRIGHT_SOAK={token}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def wrong(script: str, trace: str) -> str | None:
    """What a kernel of the database computes otherwise than its program, on random arguments; None if nothing."""
    from search.faulty_kernels import INDICES
    from tilewright.database.records import schedule_of
    from tilewright.script import from_source

    module = from_source(script)
    task = task_of(module)
    inputs = {p.name: INDICES for p in task.parameters if str(p.dtype) == "int32"}
    arrays = make_arrays(task, inputs, seed=3)
    expected = interpreted(task.module, task.function, arrays, 60.0)
    kernel = tw.compile(schedule_of(task.module, trace).mod, schedule="as written")
    got = {name: array.copy() for name, array in arrays.items()}
    one = kernel if callable(kernel) else next(iter(kernel.values()))
    one(*got.values())
    for name in expected:
        if not np.allclose(got[name], expected[name], rtol=1e-3, atol=1e-4):
            return f"{name} differs by {np.max(np.abs(got[name] - expected[name]))}"
    return None
