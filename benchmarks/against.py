"""This checkout against another one: kernels by rules, on one thread, of the shapes of operators.py and shapes.py.

    scripts/bench --against REVISION_OR_FOLDER [NAME...] [--full] [--rounds 5] [--target "llvm -mcpu=x86-64-v3"]

A folder is a checkout that is built; a revision is checked out and built in build/against/. In each round both make and
time the kernel in turn, each time in a process of its own, the same arrays in both. Printed: the medians of the rounds,
the other's time as a multiple of ours (above 1: this one is faster), and its quartiles. By default one shape of each
family of operators.py; --full is all of them and those of shapes.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import operators
import shapes
from peer import quartiles

import tilewright as tw
from tilewright import timing
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import formulas

ROOT = Path(__file__).resolve().parents[1]

PROGRAMS = operators.PROGRAMS | {name: make for name, (make, _) in shapes.PROGRAMS.items()}
SHORT = [f"{family}-{operators.SHAPE.get(family, 0)}" for family in formulas.CONFIGS]


def seconds_here(name: str, target: str) -> float:
    """The least time of a call, in this process."""
    program = PROGRAMS[name]()
    arrays = list(make_arrays(task_of(program), shapes.INPUTS.get(name, {}), 0).values())
    kernel = tw.compile(program, tw.Target(target).with_num_cores(1), schedule="by rules")
    return shapes.in_turn({name: lambda: kernel(*arrays)}, 0.2)[name]


def seconds_of(checkout: Path, name: str, target: str) -> float:
    """Return the seconds of a call in a process of its own, with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "python")}
    command = [sys.executable, __file__, "--time", name, "--target", target]
    return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def checkout_of(given: str) -> Path:
    """The folder of another checkout, made and built where a revision is given."""
    if (Path(given) / "python/tilewright").is_dir():
        return Path(given).resolve()
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--verify", f"{given}^{{commit}}"], stdout=subprocess.PIPE, text=True)
    if found.returncode:
        raise SystemExit(f"{given} is no revision, and no folder of a checkout")
    revision = found.stdout.strip()
    folder = ROOT / "build/against" / revision[:12]
    if not folder.exists():
        subprocess.run([*git, "worktree", "add", "--detach", str(folder), revision], check=True)
    python = f"-DPython_EXECUTABLE={sys.executable}"
    subprocess.run(["cmake", "--preset", "release", python], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build/release"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--against", metavar="REVISION_OR_FOLDER")
    parser.add_argument("--full", action="store_true", help="all shapes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", default="native")
    parser.add_argument("--time", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        print(seconds_here(options.time, options.target))
        return
    if not options.against or not {*options.names} <= {*PROGRAMS} or options.rounds < 2:
        parser.error("against which revision or folder, which of the known shapes, and 2 rounds or more?")
    there = checkout_of(options.against)
    print("| shape | here | there | there / here | quartiles |\n|---|---|---|---|---|")
    ratios = []
    for name in options.names or (PROGRAMS if options.full else SHORT):
        rounds: list[dict[Path, float]] = []
        for number in range(options.rounds):
            order = (ROOT, there) if number % 2 == 0 else (there, ROOT)
            rounds.append({checkout: seconds_of(checkout, name, options.target) for checkout in order})
        here, other = ([each[checkout] for each in rounds] for checkout in (ROOT, there))
        low, ratio, high = quartiles(other, here)
        ratios.append(ratio)
        times = " | ".join(timing.format_seconds(statistics.median(each)) for each in (here, other))
        print(f"| {name} | {times} | {ratio:.3f} | {low:.3f} to {high:.3f} |", flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}, most {max(ratios):.3f}")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
