"""How soon strategies find good candidates, on recorded measurements.

    python benchmarks/strategies.py --records strategies.db [--tasks GMM-2 C2D-2] [--trials 256] [--seeds 5]

Each task's space is measured once, by `tw.tune` until its points or `--trials` are used up; the file keeps what was
measured, so a second run measures nothing. Each strategy then searches again, and is told the recorded times instead
of new ones: what another program does to the machine meanwhile makes no difference. Printed for 8, 16, 32, 64
trials: how much slower than the best of all its best so far is, the median of the seeds; and after how many trials it
comes within 1 %.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms
from tilewright.records import open_database
from tilewright.search.space import space_for_cpu
from tilewright.task import task_of
from tilewright.testing import formulas

TASKS = ("GMM-0", "GMM-2", "C2D-2", "DEP-0", "SFM-1")
AT = (8, 16, 32, 64)
BATCH = 8


def chance(**options: Any) -> _core.SearchStrategy:
    return _core.GuidedSearch(drafts=BATCH * 8, descent_share=0.0, random_share=1.0, **options)


#: strategy and cost model of each way; both made anew for each search
WAYS: dict[str, tuple[Any, Any]] = {
    "at random": (chance, lambda: None),
    "draft and verify": (lambda: ms.SearchStrategy.create("draft-and-verify"), lambda: None),
    "draft, learned": (lambda: ms.SearchStrategy.create("draft-and-verify"), ms.ResidualModel),
    "descent": (lambda: ms.SearchStrategy.create("descent", ends_with_descent=False), lambda: None),
    "both": (lambda: ms.SearchStrategy.create("guided"), lambda: None),
    "both, learned": (lambda: ms.SearchStrategy.create("guided"), ms.ResidualModel),
}


def program_of(name: str) -> tw.ir.PrimFunc:
    family, number = name.split("-")
    formula, shapes = formulas.CONFIGS[family]
    return te.create_prim_func(getattr(formulas, formula)(*shapes[int(number)]))


def recorded(name: str, trials: int, path: str) -> dict[str, float]:
    """Seconds by the text of the candidate's decisions."""
    program = program_of(name)
    tw.tune(program, trials=trials, database=path, progress=None, strategy=chance())
    task = task_of(program)
    found: dict[str, list[float]] = {}
    store = open_database(path)
    for workload in store.workloads():
        if workload["script"] != task.module.script():
            continue
        for record in store.records(workload["hash"], ""):
            if record["outcome"] in ("ok", "slow_stopped") and record["seconds"]:
                trace = tw.schedule.Trace.from_json(record["trace"])
                found.setdefault(str([*trace.decisions.values()]), []).append(record["median"])
    return {decisions: min(times) for decisions, times in found.items()}


def best_so_far(name: str, table: dict[str, float], way: str, seed: int) -> list[float]:
    """After each trial; candidates without a record count for nothing."""
    make, model_of = WAYS[way]
    program, target = program_of(name), tw.Target("native").with_num_cores(1)
    space = space_for_cpu(program, target)

    def run(schedule: tw.Schedule, first: bool) -> None:
        assert space.first is not None
        (space.first if first else space.function)(schedule)

    generator = _core.FunctionSpace(run)
    generator.schedule_rules, generator.postprocs, generator.mutators = [], [], []
    context = _core.TuneContext()
    context.module, context.target, context.seed = task_of(program).module, target, seed
    context.space_generator, context.search_strategy = generator, make()
    context.initialize()
    model = model_of()
    strategy = context.search_strategy
    strategy.pre_tuning(AT[-1], BATCH, generator.generate_design_space(context.module), None, model)
    best, history, told = float("inf"), [], []
    while len(history) < AT[-1] and (batch := strategy.generate_measure_candidates()):
        known = [(c, table.get(str([*c.sch.trace.decisions.values()]))) for c in batch]
        for _, seconds in known:
            if seconds is not None:
                best = min(best, seconds)
                history.append(best)
        told.append([(c, ms.RunnerResult(None if s is None else [s], "none" if s is None else None)) for c, s in known])
        if len(told) > 1:
            candidates, results = (list(part) for part in zip(*told.pop(0), strict=True))
            if model is not None:
                model.update(context, candidates, results)
            strategy.notify_runner_results(candidates, results)
    return history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", required=True)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("| task | points | way | " + " | ".join(map(str, AT)) + " | trials to 1 % |\n|" + "---|" * (len(AT) + 4))
    for name in options.tasks:
        table = recorded(name, options.trials, options.records)
        if not table:
            print(f"| {name} | 0 |")
            continue
        least = min(table.values())
        for way in WAYS:
            runs = [best_so_far(name, table, way, seed) for seed in range(options.seeds)]
            cells = [f"{100 * (statistics.median(r[min(n, len(r)) - 1] for r in runs) / least - 1):.1f} %" for n in AT]
            first = [next((n + 1 for n, s in enumerate(r) if s <= 1.01 * least), AT[-1] + 1) for r in runs]
            row = [name, str(len(table)), way, *cells, f"{statistics.median(first):.0f}"]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
