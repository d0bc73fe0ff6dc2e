"""How soon strategies find good candidates, on recorded measurements.

    python benchmarks/strategies.py --records strategies.db [--tasks GMM-2 C2D-2] [--trials 256] [--seeds 5]

Each task's space is measured once, by `tw.tune` until its points or `--trials` are used up; the file keeps what was
measured, so a second run measures nothing. Each strategy then searches again, and is told the recorded times instead
of new ones: what another program does to the machine meanwhile makes no difference. Printed for 8, 16, 32, 64
trials: how much slower than the best of all its best so far is, the median of the seeds; and after how many trials it
comes within 1 %. `--picture FILE.svg` draws the medians after every trial, a frame for each task.
"""

from __future__ import annotations

import argparse
import html
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms
from tilewright.database.records import open_database
from tilewright.report import charts
from tilewright.search.spaces import space_for_cpu
from tilewright.task.task import task_of
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
        if workload.script != task.module.script():
            continue
        for record in store.records(workload.hash, ""):
            if record.outcome in ("ok", "slow_stopped") and record.seconds:
                trace = tw.schedule.Trace.from_json(record.trace)
                found.setdefault(str([*trace.decisions.values()]), []).append(record.median)
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


#: by way; the first is what the others are compared with
COLORS = ("#8c959f", "#0969da", "#54aeff", "#bc4c00", "#1a7f37", "#8250df")
STYLE = """svg { background: #ffffff; } text { fill: #57606a; font: 11px system-ui, sans-serif; }
.title { font-size: 13px; fill: #1f2328; } .axis { stroke: #d0d7de; } .curve { fill: none; }"""
#: wide below narrow, so that curves on top of one another are all seen
WIDTHS = (7.5, 6.3, 5.1, 3.9, 2.7, 1.5)


def _stroke(number: int) -> str:
    return f'stroke="{COLORS[number]}" stroke-width="{WIDTHS[number]}"'


def picture(tasks: Mapping[str, tuple[int, Mapping[str, Sequence[float]]]], shown: float = 25.0) -> str:
    """How many per cent slower than the best of all points the best so far is, by task (with the number of its points)
    and way, after every trial. What is more than `shown` is cut off."""
    names = list(WAYS)
    above, legend = 26, 20 * ((len(names) + 2) // 3) + 8
    frames = []
    for place, (task, (points, curves)) in enumerate(tasks.items()):
        x = charts.Axis([AT[-1]], charts.LEFT, charts.WIDTH - charts.RIGHT, powers=False)
        highest = min(shown, max(curve[min(1, len(curve) - 1)] for curve in curves.values()))
        y = charts.Axis([max(highest, 1.0)], charts.HEIGHT - charts.BOTTOM, charts.TOP + 14, powers=False)
        lines = []
        for way, curve in curves.items():
            steps = [(x(n), max(y(value), charts.TOP)) for n, value in enumerate(curve, 1)]
            path = f"M{steps[0][0]:.1f},{steps[0][1]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in steps[1:])
            lines.append(f'<path class="curve" {_stroke(names.index(way))} d="{path}"/>')
        title = f"{task}, {points} points"
        inside = charts.frame(x, y, ("trial", "% slower than the best of all"), lines, title)
        left, top = place % 2 * charts.WIDTH, place // 2 * (charts.HEIGHT + above)
        head = f'<text class="title" x="{charts.LEFT}" y="18">{html.escape(title)}</text>'
        moved = inside.replace("<svg ", f'<svg y="{above}" ', 1)
        frames.append(f'<g transform="translate({left},{top})">{head}{moved}</g>')
    bottom = (len(tasks) + 1) // 2 * (charts.HEIGHT + above)
    for number, way in enumerate(names):
        a, b = charts.LEFT + number % 3 * 200, bottom + 20 + number // 3 * 20
        frames.append(
            f'<path class="curve" {_stroke(number)} d="M{a},{b - 4}h24"/>'
            f'<text x="{a + 30}" y="{b}">{html.escape(way)}</text>'
        )
    width, height = min(len(tasks), 2) * charts.WIDTH, bottom + legend
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join(frames) + "\n</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", required=True)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    print("| task | points | way | " + " | ".join(map(str, AT)) + " | trials to 1 % |\n|" + "---|" * (len(AT) + 4))
    curves: dict[str, tuple[int, dict[str, list[float]]]] = {}
    for name in options.tasks:
        table = recorded(name, options.trials, options.records)
        if not table:
            print(f"| {name} | 0 |")
            continue
        least = min(table.values())
        for way in WAYS:
            runs = [best_so_far(name, table, way, seed) for seed in range(options.seeds)]
            curve = [
                100 * (statistics.median(r[min(n, len(r)) - 1] for r in runs) / least - 1) for n in range(1, AT[-1] + 1)
            ]
            curves.setdefault(name, (len(table), {}))[1][way] = curve
            cells = [f"{curve[n - 1]:.1f} %" for n in AT]
            first = [next((n + 1 for n, s in enumerate(r) if s <= 1.01 * least), AT[-1] + 1) for r in runs]
            row = [name, str(len(table)), way, *cells, f"{statistics.median(first):.0f}"]
            print(f"| {' | '.join(row)} |", flush=True)
    if options.picture and curves:
        options.picture.write_text(picture(curves))


if __name__ == "__main__":
    main()
