"""How many candidates a search makes in a second, how many it measures, and whether its memory grows with them.

    python benchmarks/candidates.py [--peer PYTHON] [--rounds 5] [--population 256] [--generations 3]
                                    [--trials 256] [--many 10000]

A candidate is made by sampling or mutating a trace, replaying it, the postprocessors, the features, and a score; what
counts is processor time on one thread. With the interpreter of an environment that has `apache-tvm` (see peer.py),
rounds of both sides alternate; printed are medians of the rounds, and the ratio with the middle half of its values.
Both search the space that their rules make for a CPU with the published options of evolutionary search; the score is
made of the features alone, so that no learning library is part of what is compared.

Then a product is tuned without a space, and printed is how many candidates a second it measures between the first and
the last of them: by the clock, and the processor time that drawing, building and running takes, of which follows what
two processors would do that have nothing else to do.

Last, a search hands out as many candidates as `--many` says, whose times are made up; printed is the memory of the
process after a tenth of them and after all.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from pathlib import Path
from typing import Any

from peer import Peer, quartiles, serve

#: m, n, k of a product
SHAPES = {"GMM 128": (128, 128, 128), "GMM 512": (512, 512, 512)}
TARGET = {"kind": "llvm", "mcpu": "znver4", "num-cores": 1}


class Side:
    """The parts of the benchmark that differ between Tilewright and its peer."""

    def __init__(self, *, peer: bool) -> None:
        if peer:
            from tvm.ir.utils import derived_object
            from tvm.s_tir import meta_schedule as ms
            from tvm.target import Target

            self.target: Any = Target(TARGET)
            self.extractor = ms.feature_extractor.PerStoreFeature()
            model, decorated = ms.cost_model.PyCostModel, derived_object
            self.database = ms.database.MemoryDatabase
            self.evolution = ms.search_strategy.EvolutionarySearch
        else:
            from tilewright import meta_schedule as ms

            self.target = "llvm -mcpu=znver4 -num-cores=1"
            self.extractor = ms.PerStoreFeature()
            model, decorated = ms.CostModel, lambda made: made
            self.database = ms.MemoryDatabase
            self.evolution = lambda **named: ms.SearchStrategy.create("evolutionary", **named)
        self.ms = ms
        extractor = self.extractor

        class ByFeatures(model):  # type: ignore[misc,valid-type]
            """Extracts what a learned model would look at, and scores by a part of it."""

            def load(self, path: str) -> None:
                """Nothing is learned."""

            def save(self, path: str) -> None:
                """Nothing is learned."""

            def update(self, context: Any, candidates: Any, results: Any) -> None:
                """Nothing is learned."""

            def predict(self, context: Any, candidates: Any) -> Any:
                """One score for each candidate."""
                import numpy as np

                features = [
                    np.asarray(each.numpy() if hasattr(each, "numpy") else each)
                    for each in extractor.extract_from(context, candidates)
                ]
                return np.array([1.0 / (1.0 + each[:, 0].max()) for each in features])

        self.model = decorated(ByFeatures)
        self.peer = peer

    def program(self, name: str) -> Any:
        if self.peer:
            import tvm
            from tvm import te

            m, n, depth = SHAPES[name]
            a, b = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
            k = te.reduce_axis((0, depth), name="k")
            c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
            return tvm.IRModule({"main": te.create_prim_func([a, b, c])})
        from tilewright.testing import workloads

        return workloads.matmul(*SHAPES[name])

    def measure(self, request: list[Any]) -> float:
        """Candidates of a population and its generations, for a processor second."""
        name, population, generations, seed = request
        context = self.ms.TuneContext(
            self.program(name),
            target=self.target,
            space_generator="post-order-apply",
            search_strategy=self.evolution(population_size=population, genetic_num_iters=generations),
            task_name="main",
            rand_state=seed,
            num_threads=1,
        )
        context.pre_tuning(64, 64, context.generate_design_space(), database=self.database(), cost_model=self.model())
        start = time.process_time()
        context.generate_measure_candidates()
        return population * (generations + 1) / (time.process_time() - start)


def spent(helpers: dict[str, tuple[str, float]]) -> dict[str, float]:
    """Processor seconds so far: of this process, and of the helpers that build and measure; `helpers` keeps what those
    had used when they were last seen."""
    for children in Path("/proc/self/task").glob("*/children"):
        for process in children.read_text().split():
            with contextlib.suppress(OSError):  # it is gone
                mode = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[1:2]
                used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
                what = {b"build": "building", b"measure": "measuring"}.get(*mode or [b""])
                if what:
                    helpers[process] = what, sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    seconds = {"drawing and lowering": time.process_time(), "building": 0.0, "measuring": 0.0}
    for what, used_by_one in helpers.values():
        seconds[what] += used_by_one
    return seconds


def measured(trials: int) -> None:
    """Measure the time that a session of tw.tune spends on each candidate."""
    import tilewright as tw
    from tilewright.testing import workloads

    looks: list[tuple[int, float, dict[str, float]]] = []
    helpers: dict[str, tuple[str, float]] = {}

    def look(progress: Any) -> None:
        if progress.phase == "search":
            looks.append((progress.trials, time.monotonic(), spent(helpers)))

    tw.tune(workloads.matmul(*SHAPES["GMM 512"]), trials=trials, progress=look)
    (before, begin, first), (after, end, last) = looks[0], looks[-1]
    count = after - before
    each = {what: 1e3 * (last[what] - first[what]) / count for what in last}
    print(f"\nGMM 512: {count} candidates measured, {count / (end - begin):.0f} a second by the clock")
    for what, milliseconds in each.items():
        print(f"  {what:24}{milliseconds:6.1f} ms of a processor for each")
    print(f"  two processors with nothing else to do: {2e3 / sum(each.values()):.0f} a second")


def resident() -> float:
    """MiB of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(many: int) -> None:
    """Measure the memory that a search keeps for its candidates."""
    from tilewright import _core
    from tilewright import meta_schedule as ms
    from tilewright.testing import workloads

    context = ms.TuneContext(
        workloads.matmul(*SHAPES["GMM 512"]),
        target="llvm -mcpu=znver4 -num-cores=1",
        space_generator="post-order-apply",
        search_strategy=_core.GuidedSearch(drafts=16),
        rand_state=1,
        num_threads=1,
    )
    context.pre_tuning(many, 8, database=None, cost_model=None)
    random = statistics.NormalDist(1e-3, 1e-4)
    seconds = iter(random.samples(many, seed=1))
    sizes, count = {}, 0
    while count < many and (candidates := context.generate_measure_candidates()):
        context.notify_runner_results(candidates, [ms.RunnerResult([next(seconds)], None) for _ in candidates])
        for _ in candidates:
            count += 1
            if count in (many // 10, many):
                sizes[count] = resident()
    text = ", ".join(f"{size:.0f} MiB after {n}" for n, size in sizes.items())
    print(f"\nmemory of a search with {count} candidates: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of an environment with apache-tvm")
    parser.add_argument("--rounds", type=int, default=5, help="how often each search is made (at least 2)")
    parser.add_argument("--population", type=int, default=256, help="candidates of a generation")
    parser.add_argument("--generations", type=int, default=3, help="after the first")
    parser.add_argument("--trials", type=int, default=256, help="candidates to measure")
    parser.add_argument("--many", type=int, default=10_000, help="candidates of which memory is asked")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    side = Side(peer=options.serve)
    if options.serve:
        serve(side.measure)
        return
    other = Peer(options.peer, __file__) if options.peer else None
    print(f"{'candidates a second':24}{'ours':>10}" + (f"{'peer':>10}{'ratio':>8}    half of them" if other else ""))
    for name in SHAPES:
        own, theirs = [], []
        for seed in range(1, options.rounds + 1):
            request = [name, options.population, options.generations, seed]
            own.append(side.measure(request))
            if other:
                theirs.append(other.measure(request))
        row = f"{name:24}{statistics.median(own):>10.0f}"
        if other:
            low, middle, high = quartiles(own, theirs)
            row += f"{statistics.median(theirs):>10.0f}{middle:>8.1f}    {low:.1f} to {high:.1f}"
        print(row, flush=True)
    measured(options.trials)
    memory(options.many)


if __name__ == "__main__":
    main()
