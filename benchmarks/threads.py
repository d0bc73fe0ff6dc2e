"""Speed-up by threads: operators without a schedule, with heuristic ones, and PyTorch's, with one thread and several.

    python benchmarks/threads.py [--threads 2] [--families C2D GMM] [--full] [--target "llvm -mcpu=x86-64-v3"]

One thread and several take turns in one run; printed are the least times, since other work of the machine only adds to
them. With all cores busy otherwise, threads often wait for one that has no core: then neither column says much.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from operators import SHAPE, pytorch
from shapes import in_turn

import tilewright as tw
from tilewright import te, timing
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import formulas

WAYS = ("by rules", "PyTorch")
#: in which each has its turn with one thread and with several
ROUNDS = 120


def call(kernel: Any, arrays: list[Any]) -> Callable[[], object]:
    return lambda: kernel(*arrays)


def run(family: str, number: int, text: str, threads: int) -> dict[str, float]:
    """One row; by how much several threads are faster."""
    name, shapes = formulas.CONFIGS[family]
    program = te.create_prim_func(getattr(formulas, name)(*shapes[number]))
    arrays = list(make_arrays(task_of(program), {}, 0).values())
    other = pytorch(family, shapes[number], arrays)
    times: dict[tuple[str, int], float] = {}
    functions: dict[int, dict[str, Callable[[], object]]] = {}
    for count in (1, threads):
        kernel = tw.compile(program, tw.Target(text).with_num_cores(count), schedule="by rules")
        functions[count] = {"by rules": call(kernel, arrays), **({"PyTorch": other} if other is not None else {})}
    # One after the other: PyTorch's threads keep their cores for a while after each call.
    for way in WAYS:
        for _ in range(ROUNDS):
            for count, each in functions.items():
                if way in each:
                    took = in_turn({way: each[way]}, 0.02, threads=count)[way]
                    times[way, count] = min(took, times.get((way, count), math.inf))
    worth = {way: times[way, 1] / times[way, threads] for way in WAYS if (way, 1) in times}
    row = [f"{family}-{number}"]
    for way in WAYS:
        row += [timing.format_seconds(times[way, count]) if way in worth else "" for count in functions]
        row.append(f"{worth[way]:.2f}x" if way in worth else "")
    print("| " + " | ".join(row) + " |", flush=True)
    return worth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--families", nargs="+", choices=formulas.CONFIGS, default=list(formulas.CONFIGS))
    parser.add_argument("--full", action="store_true", help="all four shapes of each family")
    parser.add_argument("--target", default="native", help="for which processor; PyTorch knows this one only")
    options = parser.parse_args()
    heads = ["operator"]
    for way in WAYS:
        heads += [f"{way}, 1 thread", f"{options.threads} threads", "worth"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    worth: dict[str, list[float]] = {}
    for family in options.families:
        for number in range(4) if options.full else [SHAPE.get(family, 0)]:
            for way, ratio in run(family, number, options.target, options.threads).items():
                worth.setdefault(way, []).append(ratio)
    for way, found in worth.items():
        mean = math.exp(statistics.mean(map(math.log, found)))
        print(f"{way}: {options.threads} threads are worth {mean:.2f} (geometric mean), {min(found):.2f} at least")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
