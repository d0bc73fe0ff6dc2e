"""Lesson 7: choose where a stage is computed. A blur of two stages, scheduled in four ways.

python examples/07_compute_at_and_caches.py

The first stage adds neighbors within a row, the second stage adds rows of the result. Unscheduled, the whole first
stage goes through memory. `compute_at` moves it to a loop of the second stage, which computes only what that loop
reads. Per row these are three rows, two of which were computed before. Per block of rows the overlap is small. A
rolling buffer keeps the two rows, so that nothing is computed twice. A cache is a stage that copies: `cache_read`
creates it, `compute_at` places it. Here it gains little, since X is contiguous already.
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T
from tilewright.tables import Table
from tilewright.timing import KernelCalls, format_seconds, limit_threads, time_interleaved

M, N = 2048, 2048


def blur(m: int, n: int) -> tw.ir.PrimFunc:
    @T.prim_func
    def main(X: T.Buffer((m + 2, n + 2), "float32"), Y: T.Buffer((m, n), "float32")):
        across = T.alloc_buffer((m + 2, n), "float32")
        for i, j in T.grid(m + 2, n):
            with T.block("across"):
                vi, vj = T.axis.remap("SS", [i, j])
                across[vi, vj] = (X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]) * T.float32(1 / 3)
        for i, j in T.grid(m, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = (across[vi, vj] + across[vi + 1, vj] + across[vi + 2, vj]) * T.float32(1 / 3)

    return main


def in_vectors(sch: tw.Schedule, *blocks: str) -> tw.Schedule:
    for block in blocks:
        sch.vectorize(sch.get_loops(block)[-1])
    return sch


def stage_by_stage(program: tw.ir.PrimFunc) -> tw.Schedule:
    return in_vectors(tw.Schedule(program), "across", "Y")


def at_each_row(program: tw.ir.PrimFunc) -> tw.Schedule:
    sch = tw.Schedule(program)
    row, _ = sch.get_loops("Y")
    sch.compute_at("across", row)
    return in_vectors(sch, "across", "Y")


def at_strips(program: tw.ir.PrimFunc) -> tw.Schedule:
    sch = tw.Schedule(program)
    strip, _ = sch.split(sch.get_loops("Y")[0], factors=[None, 32])
    sch.compute_at("across", strip)
    sch.parallel(strip)
    return in_vectors(sch, "across", "Y")


def with_a_copy(program: tw.ir.PrimFunc) -> tw.Schedule:
    sch = at_strips(program)
    copy = sch.cache_read("across", 0, "global")
    sch.compute_at(copy, sch.get_loops("Y")[0])
    return in_vectors(sch, "X_global")


def rolling(program: tw.ir.PrimFunc) -> tw.Schedule:
    sch = tw.Schedule(program)
    row, _ = sch.get_loops("Y")
    sch.compute_at("across", row)
    in_vectors(sch, "across", "Y")
    sch.rolling_buffer("across", 0)
    return sch


def reference(x: np.ndarray) -> np.ndarray:
    across = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) * np.float32(1 / 3)
    return (across[:-2] + across[1:-1] + across[2:]) * np.float32(1 / 3)


def main() -> None:
    ways = {
        "stage by stage": stage_by_stage,
        "at each row": at_each_row,
        "at strips of 32": at_strips,
        "strips, with a copy": with_a_copy,
        "at each row, rolling": rolling,
    }
    small, large = blur(70, 90), blur(M, N)
    print(at_strips(large).trace)
    x = np.random.default_rng(0).standard_normal((M + 2, N + 2)).astype("float32")
    y = np.empty((M, N), "float32")
    calls = {"NumPy": lambda: reference(x)}
    for way, schedule in ways.items():
        print(f"{way}: {schedule(small).verify()}")
        kernel = tw.compile(schedule(large))
        kernel(x, y)
        np.testing.assert_allclose(y, reference(x), rtol=1e-4, atol=1e-5)
        calls[way] = KernelCalls(kernel, (x, y))
    with limit_threads(1):
        times = {way: float(np.median(samples)) for way, samples in time_interleaved(calls, rounds=5).items()}
    rows = [(way, format_seconds(time), f"{times['NumPy'] / time:.1f}") for way, time in times.items()]
    print(Table(f"blur, {M} x {N}, 1 thread", ("", "time", "x NumPy's speed"), tuple(rows)))


if __name__ == "__main__":
    main()
