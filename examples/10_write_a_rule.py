"""Lesson 10: a rule of one's own. What is known of a kind of block goes into the spaces of all programs that have one.

python examples/10_write_a_rule.py [TRIALS]

A rule gets a schedule and a block, and gives the schedules that it makes of them; where it returns two, both are
searched. This one knows how to sum long rows: in several lanes and parts, which are put together at the end (rfactor),
because a sum that goes on in one register waits for each addition. It leaves all other blocks alone.
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
    """Sums in `lanes` at a time, with a number of vectors that is drawn."""

    def initialize(self, context):
        self.lanes = context.target.vector_bits // 32

    def apply(self, sch, block):
        loops = sch.get_loops(block)
        if sch.get(block).init is None or len(loops) != 2:
            return sch
        as_it_is = sch.copy()
        vectors = sch.sample_categorical([1, 2, 4, 8], [0.25] * 4)
        _, which, lane = sch.split(loops[1], [None, vectors, self.lanes])
        parts = sch.rfactor(sch.fuse(which, lane), 1)  # a sum for each lane of each vector, then the sum of these
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
            row_sums, target, folder, trials, space=space, strategy="replay-trace", cost_model="none"
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
