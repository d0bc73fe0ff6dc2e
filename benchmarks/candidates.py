"""How many candidates a search makes in a second, and how many it measures.

    python benchmarks/candidates.py [--peer PYTHON] [--rounds 5] [--population 256] [--generations 3]

A candidate is made by sampling or mutating a trace, replaying it, the postprocessors, the features, and a score; what
counts is processor time on one thread. With the interpreter of an environment that has `apache-tvm` (see peer.py),
rounds of both sides alternate; printed are medians of the rounds, and the ratio with the middle half of its values.
Both search the space that their rules make for a CPU with the published options of evolutionary search; the score is
made of the features alone, so that no learning library is part of what is compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from peer import Peer, quartiles, serve

#: m, n, k of a product
SHAPES = {"GMM 128": (128, 128, 128), "GMM 512": (512, 512, 512)}
TARGET = {"kind": "llvm", "mcpu": "znver4", "num-cores": 1}


class Side:
    """What differs between the two."""

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of an environment with apache-tvm")
    parser.add_argument("--rounds", type=int, default=5, help="how often each search is made (at least 2)")
    parser.add_argument("--population", type=int, default=256, help="candidates of a generation")
    parser.add_argument("--generations", type=int, default=3, help="after the first")
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


if __name__ == "__main__":
    main()
