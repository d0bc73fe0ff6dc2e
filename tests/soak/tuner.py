"""One round in a process of its own, which the soak may kill: `python -m soak.tuner DATABASE ROUND`.

A line with a number is printed for each trial that is in the database, and "done" at the end.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import tilewright as tw
from search.faulty_kernels import FAULTS, INDICES, gather
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.testing import formulas

#: small shapes of each family
FAMILIES: dict[str, tuple[str, tuple[int, ...]]] = {
    "C1D": ("conv1d_nlc", (1, 16, 8, 8, 3, 1, 1)),
    "C2D": ("conv2d_nhwc", (1, 8, 8, 8, 16, 3, 1, 1)),
    "DEP": ("depthwise_conv2d_nhwc", (1, 8, 8, 16, 3, 1, 1)),
    "GMM": ("batch_matmul_nkkm", (1, 32, 32, 32)),
    "SFM": ("softmax_mn", (32, 32)),
}
TRIALS = 24
#: the only outcomes that a kernel which is wrong may have
EXPECTED = {name: outcome for name, (_, outcome, _, _) in FAULTS.items()}


class Injecting(ms.SearchStrategy):
    """Hands out kernels that are right, and among them some that are not; says which, by their index."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random, self.handed, self.faults = random.Random(seed), 0, {}

    def pre_tuning(self, max_trials: int, *rest: Any) -> None:
        self.max_trials = max_trials

    def generate_measure_candidates(self) -> list[ms.MeasureCandidate] | None:
        if self.handed >= self.max_trials:
            return None
        batch = []
        for _ in range(8):
            schedule = tw.Schedule(gather)
            name = self.random.choice([*FAULTS, None, None, None])
            if name is not None:
                self.faults[self.handed] = name
                schedule = tw.Schedule(tw.ir.Module({"main": FAULTS[name][0]}))
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


def growth(seed: int) -> float:
    """By how many bytes a search makes this process larger, once it has done some."""
    formula, shape = FAMILIES["GMM"]
    program = te.create_prim_func(getattr(formulas, formula)(*shape))
    sizes = []
    for number in range(9):
        tw.tune(program, trials=16, seed=seed + number, progress=None)
        sizes.append(resident())
    return (sizes[-1] - sizes[3]) / (len(sizes) - 4)


def run(database: str, number: int) -> dict[str, Any]:
    names = ["faulty", *FAMILIES, "memory"]
    name, options = names[number % len(names)], {"database": database, "progress": tell, "seed": number}
    strategy: Any = "guided"
    if name == "memory":
        return {"family": name, "faults": {}, "stop": "trials", "trials": 0, "grown": growth(number)}
    if name == "faulty":
        strategy = Injecting(number)
        result = tw.tune(gather, space=lambda sch: None, inputs={"I": INDICES}, trials=16, strategy=strategy, **options)
    else:
        formula, shape = FAMILIES[name]
        result = tw.tune(te.create_prim_func(getattr(formulas, formula)(*shape)), trials=TRIALS, **options)
    return {
        "family": name,
        "grown": 0,
        "faults": strategy.faults if name == "faulty" else {},
        "stop": result.stop_reason,
        "trials": result.progress.trials,
    }


if __name__ == "__main__":
    print("done " + json.dumps(run(sys.argv[1], int(sys.argv[2]))), flush=True)
