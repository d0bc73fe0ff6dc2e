"""The soak of kernels for GPUs: random candidates of each operator family.

They are judged by NumPy, by the interpreter after each pass, by a simulated device, by removed barriers, and by the
compilers of CUDA.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from soak.gpu_kernels import FAMILIES
from soak.soak import ROOT, Soak

#: candidates of a round
DRAWS = 8
#: what the simulated device says about kernels that are not right
COMPLAINTS = ("race", "Invalid", "divergen", "Oclgrind")
CHILD_SECONDS = 3600.0


def run_python(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests in a process of its own."""
    path = os.pathsep.join([*(str(ROOT / part) for part in ("tests", "python")), *sys.path])
    return subprocess.run(
        [*prefix, sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=CHILD_SECONDS,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def complaints_of_device(files: list[Path]) -> str:
    """Run stored kernels on oclgrind. Return what it reports, "" if all of them are right.

    An optimizer may load in front of a condition what is used behind it. Such a load of shared memory may meet a store
    of another thread, and its value is then not used: a race counts if the kernels have it without optimizations, too.
    """
    return _report_of_device(files) and _report_of_device(files, "--build-options", "-cl-opt-disable")


def _report_of_device(files: list[Path], *options: str) -> str:
    prefix = ("oclgrind", "--data-races", *options)
    outcome = run_python("soak.gpu_kernels", "--run", *map(str, files), prefix=prefix)
    report = outcome.stdout + outcome.stderr
    if outcome.returncode == 0 and "ran" in outcome.stdout and not any(word in report for word in COMPLAINTS):
        return ""
    return report[-3000:] or f"ended with {outcome.returncode}"


class GpuSoak(Soak):
    """Each round draws candidates of one family."""

    def round(self, number: int) -> None:
        seed, which = divmod(number, len(FAMILIES))
        family = FAMILIES[which]
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            try:
                outcome = run_python("soak.gpu_kernels", family, str(seed), str(DRAWS), folder)
            except subprocess.TimeoutExpired:
                self._find(number, f"{family}, seed {seed}: not done in {CHILD_SECONDS:.0f} s")
                return
            if outcome.returncode:
                self._find(number, f"{family}, seed {seed}: ended with {outcome.returncode}: {outcome.stderr[-2000:]}")
                return
            answer = json.loads(outcome.stdout.splitlines()[-1])
            self.counts.update(answer["counts"])
            for text in answer["findings"]:
                self._find(number, text)
            if files := sorted(Path(folder).iterdir()):
                self.counts["run on a simulated device"] += len(files)
                if report := complaints_of_device(files):
                    self._find(number, f"{family}, seed {seed}: the simulated device reports: {report}")
