"""Lesson 10: write your own schedule rule, which extends the spaces of all programs with matching blocks.

python examples/10_write_a_rule.py [TRIALS]

A rule gets a schedule and a block, and returns schedules; if it returns two, both are searched. This rule splits sums
of long rows into several vector accumulators (`rfactor`), since in a single accumulator each addition waits for the
previous one. It returns other blocks unchanged.
"""

import sys
import tempfile

import numpy as np

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.script import tir as T

ROWS, COLUMNS = 64, 16384


@T.prim_func
def row_sums(X: T.Buffer((ROWS, COLUMNS), "float32"), S: T.Buffer((ROWS,), "float32")):
    for i, k in T.grid(ROWS, COLUMNS):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + X[vi, vk]


class LongSums(ms.ScheduleRule):
    """Vectorize sums with `lanes` lanes and a sampled number of accumulators."""

    def initialize(self, context):
        self.lanes = context.target.vector_bits // 32

    def apply(self, sch, block):
        loops = sch.get_loops(block)
        if sch.get(block).init is None or len(loops) != 2:
            return sch
        as_it_is = sch.copy()
        vectors = sch.sample_categorical([1, 2, 4, 8], [0.25] * 4)
        _, which, lane = sch.split(loops[1], [None, vectors, self.lanes])
        parts = sch.rfactor(sch.fuse(which, lane), 1)  # partial sums for each lane of each vector, then their sum
        rows, steps, lanes = sch.get_loops(parts)
        sch.reverse_compute_at(block, rows)
        sch.decompose_reduction(parts, steps)
        sch.vectorize(lanes)
        return [sch, as_it_is]


def main(trials: int) -> None:
    space = ms.PostOrderApply(sch_rules=[LongSums()], postprocs=[], mutator_probs={})
    target = tw.Target("native").with_num_cores(1)
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(
            row_sums, target, folder, trials, space=space, strategy="replay-trace", cost_model="none", seed=0
        )
        schedule = ms.compile_tir(database, row_sums, target)
    print(schedule.trace)
    x = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    for name, kernel in {
        "as written": tw.compile(row_sums, schedule="as written"),
        "by this rule": tw.compile(schedule),
    }.items():
        np.testing.assert_allclose(kernel(x), x.sum(1), rtol=1e-4)
        print(f"{name:14}{kernel.benchmark(x)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
