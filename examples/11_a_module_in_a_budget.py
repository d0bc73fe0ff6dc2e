"""Lesson 11: tune a whole module within a time budget, and share the records.

python examples/11_a_module_in_a_budget.py [SECONDS]

`tw.tune` of a module tunes each public unscheduled function. The functions share the seconds evenly; time that one
does not need goes to the next ones. For each function it prints the number of candidates, the best time, the speed-up
over the unscheduled program, and why the search ended: "seconds" if its share was used up, "exhausted" if the space
has no more points, "roofline" within 3 % of the machine's limit.

Measurements are stored in a database, a file that can be copied, merged and read. Other users of the program compile
from it without tuning. The report shows, for each program, the progress of the best time, failures and their reasons,
and the time breakdown of the session. From the command line:

    tilewright tune examples/11_a_module_in_a_budget.py --seconds 10 --database records.db
    tilewright report records.db                    # records.html: times, failures, limits, the best schedules
    tilewright db team.db --merge records.db        # or database="postgresql://user@host/name" from the start
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright.database.upkeep import merge_and_prune
from tilewright.report.database_report import report_on
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
    print(result["dense"].schedule.trace)  # the best schedule of one of them

    for table in report_on(mine).tables():
        print(table)

    # On another machine: merge the records and compile from them.
    merge_and_prune(str(shared), [str(mine)], None, None, say=print)
    layers = tw.compile(Layers, database=shared)
    random = np.random.default_rng(0)
    x, w = random.standard_normal((64, 256), np.float32), random.standard_normal((256, 128), np.float32)
    y = layers.swish(layers.dense(x, w))
    np.testing.assert_allclose(y, (p := x @ w) / (1 + np.exp(-p)), rtol=1e-3, atol=1e-3)
    print({name: layers[name].schedule for name in layers})
    folder.cleanup()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 12)
