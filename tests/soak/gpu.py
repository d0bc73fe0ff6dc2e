"""The soak of kernels for GPUs: those of the heuristics, and random candidates, of each operator family.

They are judged by NumPy, by the interpreter after each pass, by a simulated device, by removed barriers, and by the
compilers of CUDA.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from soak.gpu_kernels import FAMILIES, HEURISTICS, PRODUCTS, RULE_SETS
from soak.soak import ROOT, Soak

#: candidates of a round, and of a family and rule set in all
DRAWS, ASKED = 4, 32
#: what has been checked, by family and rule set, in all folders and on all machines
DONE = Path(__file__).with_name("gpu_done.txt")
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


def first_rounds() -> list[tuple[str, str, int]]:
    """Family, rule set, and seed 0."""
    who = [(family, rules) for family in FAMILIES for rules in (HEURISTICS, *RULE_SETS)]
    return [(family, rules, 0) for family, rules in who if family not in PRODUCTS or rules == RULE_SETS[-1]]


def rounds() -> Iterator[tuple[str, str, int]]:
    """Without end: one round of each family and rule set before the second one of any."""
    yield from first_rounds()
    for seed in itertools.count(1):
        yield from ((family, rules, seed) for family, rules, _ in first_rounds() if rules in RULE_SETS)


class GpuSoak(Soak):
    """Each round checks candidates of one family and rule set that no round has checked before.

    Attributes:
        done: the kernels of each round. Those without findings are kept in a file.
    """

    def __init__(self, folder: Path, done: Path = DONE) -> None:
        super().__init__(folder)
        self.file = done
        self.done: dict[tuple[str, str, int], int] = {}
        for line in done.read_text().splitlines() if done.exists() else ():
            family, rules, seed, kernels = line.rsplit(maxsplit=3)
            self.done[family, rules, int(seed)] = int(kernels)

    def round(self, number: int) -> None:
        family, rules, seed = which = next(each for each in rounds() if each not in self.done)
        known = len(self.findings)
        self.done[which] = self._checked(number, family, rules, seed)
        if len(self.findings) == known:
            with self.file.open("a") as file:
                file.write(f"{family} {rules} {seed} {self.done[which]}\n")

    def summary(self) -> list[str]:
        """How many kernels have been checked, for each family and rule set, and in all."""
        kernels = Counter[tuple[str, str]]()
        for (family, rules, _), count in self.done.items():
            kernels[family, rules] += count
        asked = {(family, rules): ASKED if rules in RULE_SETS else 1 for family, rules, _ in first_rounds()}
        lines = [f"{kernels[which]:8} of {count}  {', '.join(which)}" for which, count in asked.items()]
        return [*lines, f"{kernels.total():8} of {sum(asked.values())}  in all sittings"]

    def _checked(self, number: int, family: str, rules: str, seed: int) -> int:
        """Return how many kernels were checked."""
        name = f"{family}, {rules}, seed {seed}"
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            try:
                outcome = run_python("soak.gpu_kernels", family, rules, str(seed), str(DRAWS), folder)
            except subprocess.TimeoutExpired:
                self._find(number, f"{name}: not done in {CHILD_SECONDS:.0f} s")
                return 0
            if outcome.returncode:
                self._find(number, f"{name}: ended with {outcome.returncode}: {outcome.stderr[-2000:]}")
                return 0
            answer = json.loads(outcome.stdout.splitlines()[-1])
            self.counts.update(answer["counts"])
            for text in answer["findings"]:
                self._find(number, text)
            if files := sorted(Path(folder).iterdir()):
                self.counts["run on a simulated device"] += len(files)
                if report := complaints_of_device(files):
                    self._find(number, f"{name}: the simulated device reports: {report}")
            return int(answer["counts"]["kernels"])
