"""The programs that are looked at, by name, and for which processors: all that could differ from machine to machine
stands in the text of the targets."""

from __future__ import annotations

import functools
import random
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import tilewright as tw
from fuzz import names as fuzz_names
from fuzz import programs as random_programs
from fuzz.steps import Scheduling, block_names
from tilewright import ir, script
from tilewright.testing import workloads

ROOT = Path(__file__).resolve().parents[2]

TARGETS = {
    "avx2": "llvm -mcpu=haswell -num-cores=2 -l1-bytes=32768 -l2-bytes=262144 -l3-bytes=8388608",
    "avx512": "llvm -mcpu=skylake-avx512 -num-cores=2 -l1-bytes=32768 -l2-bytes=1048576 -l3-bytes=16777216",
}
#: random programs, each with a random schedule of so many steps at most
RANDOM, STEPS = 150, 8

Makers = dict[str, Callable[[], ir.PrimFunc | ir.Module]]


def target_of(name: str) -> tw.Target:
    """The target under a name of TARGETS."""
    return tw.Target(TARGETS[name])


@functools.cache
def benchmarks() -> Makers:
    """All shapes of benchmarks/operators.py, shapes.py and odd_shapes.py."""
    folder = str(ROOT / "benchmarks")
    if folder not in sys.path:
        sys.path.append(folder)
    import odd_shapes
    import operators
    import shapes

    found = dict(operators.PROGRAMS)
    return found | {name: make for name, (make, _) in (shapes.PROGRAMS | odd_shapes.PROGRAMS).items()}


@functools.cache
def as_written() -> Makers:
    """Small workloads of the tests, and whatever the lessons define."""
    found: Makers = {
        "matmul": lambda: workloads.matmul(64, 96, 48),
        "matmul_relu": lambda: workloads.matmul_relu(64, 96, 48),
        "elementwise_chain": lambda: workloads.elementwise_chain(64, 96),
        "transpose": lambda: workloads.transpose(37, 50),
        "softmax_like": lambda: workloads.softmax_like(16, 48),
        "conv1d": lambda: workloads.conv1d(100, 5, 8),
        "pool": lambda: workloads.pool(50),
    }
    for path in sorted((ROOT / "examples").glob("*.py")):
        for name, value in runpy.run_path(str(path), run_name=path.stem).items():
            if isinstance(value, ir.PrimFunc | ir.Module):
                found[f"{path.stem}.{name}"] = lambda value=value: value
    return found


def random_schedule(number: int) -> ir.Module:
    """A program of the random test, after the random steps that are accepted."""
    function = script.from_source(random_programs.draw(number).text)
    assert isinstance(function, ir.PrimFunc)
    function = fuzz_names.shared(function, number)
    scheduling = Scheduling(function, block_names(tw.Schedule(function).mod), number)
    rng = random.Random(number)
    for _ in range(STEPS):
        scheduling.draw(rng)
    return scheduling.sch.mod


def as_module(program: ir.PrimFunc | ir.Module) -> ir.Module:
    """The module of a program."""
    return program if isinstance(program, ir.Module) else ir.Module({"main": program})
