"""One round in a process of its own, which the soak may kill: `python -m soak.tuner DATABASE ROUND [CLUSTER]`.

A line with a number is printed for each trial that is in the database, and "done" at the end.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import tilewright as tw
from search.faulty_kernels import FAULTS, INDICES, gather
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.testing import formulas

#: small shapes of each family that compilers are compared by
FAMILIES: dict[str, tuple[str, tuple[int, ...]]] = {
    "C1D": ("conv1d_nlc", (1, 16, 8, 8, 3, 1, 1)),
    "C2D": ("conv2d_nhwc", (1, 8, 8, 8, 16, 3, 1, 1)),
    "DEP": ("depthwise_conv2d_nhwc", (1, 8, 8, 16, 3, 1, 1)),
    "GMM": ("batch_matmul_nkkm", (1, 32, 32, 32)),
    "SFM": ("softmax_mn", (32, 32)),
    "C3D": ("conv3d_ndhwc", (1, 4, 6, 6, 4, 8, 3, 1, 1)),
    "GRP": ("conv2d_nhwc", (1, 8, 8, 8, 16, 3, 1, 1, 1, 4)),
    "DIL": ("conv2d_nhwc", (1, 9, 9, 4, 8, 3, 2, 2, 2)),
    "T2D": ("conv2d_transpose_nhwc", (1, 4, 4, 8, 8, 4, 2, 1)),
    "CAP": ("conv2d_capsule_nhwijc", (1, 6, 6, 4, 8, 3, 2, 1)),
    "NRM": ("norm_bmn", (1, 32, 32)),
    "CBR": ("conv2d_nhwc_bn_relu", (1, 8, 8, 4, 8, 3, 2, 1)),
    "TBG": ("transpose_batch_matmul", (1, 16, 4, 8)),
}
TRIALS, FAULTY_TRIALS = 24, 16
#: the only outcomes that a kernel which is wrong may have
EXPECTED = {name: outcome for name, (_, outcome, _, _) in FAULTS.items()}


class Injecting(ms.SearchStrategy):
    """Hands out kernels that are right, and among them some that are not; says which, by their index."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.handed, dice = 0, random.Random(seed)
        chosen = [dice.choice([*FAULTS, None, None, None]) for _ in range(FAULTY_TRIALS)]
        # Known before any is drawn: a search that goes on after its last trial draws nothing.
        self.faults = {index: name for index, name in enumerate(chosen) if name is not None}

    def pre_tuning(self, max_trials: int, *rest: Any) -> None:
        self.max_trials = max_trials

    def generate_measure_candidates(self) -> list[ms.MeasureCandidate] | None:
        if self.handed >= self.max_trials:
            return None
        batch = []
        for _ in range(8):
            schedule = tw.Schedule(gather)
            name = self.faults.get(self.handed)
            if name is not None:
                schedule = tw.Schedule(tw.ir.Module({"main": FAULTS[name][0]}))
                # A search that goes on knows its candidates by their traces.
                schedule.annotate(schedule.get_block("Y"), "candidate", self.handed)
            else:
                (i,) = schedule.get_loops(schedule.get_block("Y"))
                schedule.split(i, [None, 1 + self.handed])
            batch.append(ms.MeasureCandidate(schedule))
            self.handed += 1
        return batch

    def notify_runner_results(self, measure_candidates: Any, results: Any) -> None: ...

    def post_tuning(self) -> None: ...


def tell(progress: Any) -> None:
    print(progress.trials, flush=True)


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def open_files() -> int:
    """How many this process has."""
    return len(os.listdir("/proc/self/fd"))


def growth(seed: int) -> tuple[float, int]:
    """By how many bytes a search makes this process larger, once it has done some, and how many files they all left
    open."""
    formula, shape = FAMILIES["GMM"]
    program = te.create_prim_func(getattr(formulas, formula)(*shape))
    sizes, files = [], []
    for number in range(9):
        tw.tune(program, trials=16, seed=seed + number, progress=None)
        sizes.append(resident())
        files.append(open_files())
    return (sizes[-1] - sizes[3]) / (len(sizes) - 4), files[-1] - files[3]


def run(database: str, number: int, cluster: str | None = None) -> dict[str, Any]:
    names = ["faulty", *FAMILIES, *(["memory"] if cluster is None else [])]
    name, options = names[number % len(names)], {"database": database, "progress": tell, "seed": number}
    options |= {"cluster": cluster, "batch": 8}
    strategy: Any = "guided"
    if name == "memory":
        grown, files = growth(number)
        return {"family": name, "faults": {}, "stop": "trials", "trials": 0, "grown": grown, "files": files}
    if name == "faulty":
        strategy = Injecting(number)
        result = tw.tune(
            gather, space=lambda sch: None, inputs={"I": INDICES}, trials=FAULTY_TRIALS, strategy=strategy, **options
        )
    else:
        formula, shape = FAMILIES[name]
        result = tw.tune(te.create_prim_func(getattr(formulas, formula)(*shape)), trials=TRIALS, **options)
    return {
        "family": name,
        "grown": 0,
        "files": 0,
        "faults": strategy.faults if name == "faulty" else {},
        "stop": result.stop_reason,
        "trials": result.progress.trials,
    }


if __name__ == "__main__":
    print("done " + json.dumps(run(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])), flush=True)
