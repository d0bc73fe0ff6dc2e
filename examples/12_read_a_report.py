"""Lesson 12: read the report of a search, table by table.

python examples/12_read_a_report.py [TRIALS]

A database stores each trial with its time or its failure, what was refused before, and the time breakdown.
`tilewright report records.db` prints tables and writes a page with curves, the best schedules and their assembly.
`report_on` returns the same as data.

The space below also samples tiles that do not fit into registers. These are refused or slow, so that the report has
something to show.
"""

import sys
import tempfile
from pathlib import Path

import tilewright as tw
from tilewright.report.database_report import report_on
from tilewright.report.page import page
from tilewright.script import tir as T

N = 128


@T.prim_func
def product(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@tw.space(product)
def too_large_at_times(sch):
    rows, columns, k = sch.get_loops(sch.get_block("C"))
    rows, i = sch.split(rows, [None, sch.sample_categorical([2, 4, 8, 16], [0.25] * 4)])
    columns, j, lane = sch.split(columns, [None, sch.sample_categorical([1, 2, 4, 8], [0.25] * 4), 16])
    sch.reorder(rows, columns, k, i, j, lane)
    tile = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(tile, columns)
    sch.unroll(i)
    sch.unroll(j)
    sch.vectorize(lane)
    sch.vectorize(sch.split(sch.get_loops(tile)[-1], [None, 16])[1])
    sch.decompose_reduction("C", k)


def main(trials: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.db"
        result = tw.tune(too_large_at_times, trials=trials, database=records)
        report = report_on(records)
        (task,) = report.tasks

        print(
            "\n1. One line for each program: how many trials, how many of them were stopped as slow or failed, the best"
        )
        print("   time, and which share that is of what this machine can do at all.\n")
        print(report.overview())
        if task.roofline is not None:
            roofline = task.roofline
            print(f"\n   {roofline.intensity:.0f} operations a byte, so '{roofline.binding.name}' is what limits it:")
            print(
                f"   {roofline.share:.0%} of that is reached. Far from 100 %, another schedule may be faster; near it,"
            )
            print("   only another program.")

        print("\n2. How the best time fell. Where the last rows are early, more trials of this space gain little.\n")
        print(task.progress_table())

        print(
            "\n3. What failed and what was refused, with the first message of each reason. Refused draws cost no trial:"
        )
        print("   many of one kind mean that the space asks for what cannot be.\n")
        print(task.failure_table() if task.failures else "   nothing failed")
        print(task.refusal_table() if task.refusals else "   nothing was refused")

        print(
            "\n4. Where the time went: what the search did, or waited for. Much 'measuring' is a search that does its"
        )
        print("   work; much 'building' are kernels that take long to compile (unroll less); much 'drawing' is a space")
        print("   that is slow to sample, or nearly used up.\n")
        print(report.time_table())
        assert result.stop_reason in ("trials", "exhausted", "roofline")

        print("\n5. The best schedule, as steps.\n")
        print("\n".join(task.best[0].steps))
        written = Path(folder) / "report.html"
        written.write_text(page(report), encoding="utf-8")
        print(f"\nThe page has {len(written.read_text()) // 1024} KiB, and needs nothing beside itself.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
