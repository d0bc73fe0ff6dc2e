"""Overheads of Tilewright itself: importing it, calling a kernel, compiling one.

    python benchmarks/overheads.py

Printed: the import's time beyond NumPy's own (whole interpreters, in turn), the time of a call with three NumPy arrays
of 16 elements next to that of np.add on them, and the seconds that scheduling, lowering and code generation take for a
product as written and for one tiled for registers.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
from gemm import product, space_of_example

import tilewright as tw
from tilewright import timing
from tilewright.script import tir as T


def interpreter(statement: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


def import_time() -> None:
    samples = timing.time_interleaved(
        {
            "NumPy": interpreter("import numpy"),
            "both": interpreter("import numpy, tilewright"),
            "with T": interpreter("import numpy, tilewright\nfrom tilewright.script import tir as T\nT.prim_func"),
        },
        rounds=15,
        budget=30.0,
    )
    alone = statistics.median(samples["NumPy"])
    for name, what in (("both", "import tilewright"), ("with T", "with the script parser")):
        beyond = statistics.median(samples[name]) - alone
        print(f"{what}: {beyond * 1e3:.0f} ms beyond NumPy's own {alone * 1e3:.0f} ms")


def call_overhead() -> None:
    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi] + B[vi]

    kernel = tw.compile(add, schedule="as written")
    a, b, c = (np.ones(16, np.float32) for _ in range(3))
    samples = timing.time_interleaved(
        {"kernel": lambda: kernel(a, b, c), "np.add": lambda: np.add(a, b, out=c)}, rounds=25
    )
    ours, theirs = (statistics.median(samples[name]) for name in ("kernel", "np.add"))
    print(f"call with three arrays: {ours * 1e6:.2f} us (np.add: {theirs * 1e6:.2f} us)")


def median_of(function: Callable[[], object]) -> float:
    """Seconds."""
    return statistics.median(timing.time_interleaved({"it": function}, rounds=9)["it"])


def compile_time() -> None:
    func = product(512, 512, 512)
    scheduled = next(sch for sch in draws(func, space_of_example()) if compiles(sch))
    trace = scheduled.trace

    def replay() -> None:
        trace.apply_to_schedule(tw.Schedule(func))

    print(f"scheduling {len(trace)} steps: {median_of(replay) * 1e3:.1f} ms")
    for name, program in (("as written", tw.Schedule(func)), ("tiled for registers", scheduled)):
        lowered = median_of(lambda p=program: tw.lower(p))  # type: ignore[misc]
        compiled = median_of(lambda p=program: tw.compile(p, schedule="as written"))  # type: ignore[misc]
        print(f"{name}: lowering {lowered * 1e3:.1f} ms, lowering and code generation {compiled * 1e3:.1f} ms")


def draws(func: tw.ir.PrimFunc, space: tw.Space) -> Iterator[tw.Schedule]:
    """Points of the space."""
    for seed in itertools.count():
        sch = tw.Schedule(func, seed=seed)
        space(sch)
        yield sch


def compiles(sch: tw.Schedule) -> bool:
    try:
        tw.compile(sch)
    except tw.Error:
        return False
    return True


def main() -> None:
    import_time()
    call_overhead()
    compile_time()


if __name__ == "__main__":
    main()
