"""Lesson 11: a whole module within a time budget, what became of it, and records that others use.

python examples/11_a_module_in_a_budget.py [SECONDS]

`tw.tune` of a module tunes each public function that nobody has scheduled. They share the seconds evenly, and what one
does not need is left to those after it. It prints, for each, how many candidates were tried, the time of the best,
by how much that is faster than the loops as they are written, and why its search ended: "seconds" where its share was
used up, "exhausted" where all that the space holds was tried, "roofline" where the best is within 3 % of what this
machine can do at all.

What was measured is in a database: a file that can be copied, merged with others and read by whoever has the same
program, who then compiles without tuning. The report tells, of each program in it, how the best time fell, what
failed and why, and where the time of the session went. The same on a command line:

    tilewright tune examples/11_a_module_in_a_budget.py --seconds 10 --database records.db
    tilewright report records.db                    # records.html: times, failures, limits, the best schedules
    tilewright db team.db --merge records.db        # or database="postgresql://user@host/name" from the start
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright.database_report import report_on
from tilewright.database_upkeep import change
from tilewright.script import ir as I
from tilewright.script import tir as T


@I.ir_module
class Layers:
    @T.prim_func
    def dense(X: T.Buffer((64, 256), "float32"), W: T.Buffer((256, 128), "float32"), Y: T.Buffer((64, 128), "float32")):
        for i, j, k in T.grid(64, 128, 256):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]

    @T.prim_func
    def swish(X: T.Buffer((64, 128), "float32"), Y: T.Buffer((64, 128), "float32")):
        for i, j in T.grid(64, 128):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.sigmoid(X[vi, vj])


def main(seconds: float) -> None:
    folder = tempfile.TemporaryDirectory()
    mine, shared = Path(folder.name) / "records.db", Path(folder.name) / "team.db"
    result = tw.tune(Layers, seconds=seconds, trials=1000, database=mine)
    print(result.table())
    print(result["dense"].schedule.trace)  # what was found for one of them

    for table in report_on(mine).tables():
        print(table)

    # Elsewhere: records are added to those of others, and programs compile from them.
    change(str(shared), [str(mine)], None, None, say=print)
    layers = tw.compile(Layers, database=shared)
    random = np.random.default_rng(0)
    x, w = random.standard_normal((64, 256), np.float32), random.standard_normal((256, 128), np.float32)
    y = layers.swish(layers.dense(x, w))
    np.testing.assert_allclose(y, (p := x @ w) / (1 + np.exp(-p)), rtol=1e-3, atol=1e-3)
    print({name: layers[name].schedule for name in layers})
    folder.cleanup()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 12)
