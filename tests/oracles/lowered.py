"""Programs after the whole lowering pipeline: those of the benchmarks scheduled by rules, those of tests and lessons as
they are written, and those of the random test after random steps."""

from __future__ import annotations

import tilewright as tw
from oracles import programs
from tilewright import ir
from tilewright.heuristics import by_target


def names() -> list[str]:
    """Of all entries."""
    found = [f"{target} by rules {name}" for name in programs.benchmarks() for target in programs.TARGETS]
    found += [f"{target} as written {name}" for name in programs.as_written() for target in programs.TARGETS]
    return found + [f"avx2 random {number}" for number in range(programs.RANDOM)]


def _module(name: str, target: tw.Target) -> ir.Module:
    kind, _, program = name.partition(" ")
    if kind == "random":
        return programs.random_schedule(int(program))
    _, _, program = program.partition(" ")
    if kind == "as":
        return programs.as_module(programs.as_written()[program]())
    return by_target.heuristic_schedules(programs.as_module(programs.benchmarks()[program]()), target).module


def text(name: str) -> str:
    """Of one."""
    target_name, _, rest = name.partition(" ")
    target = programs.target_of(target_name)
    return str(tw.lower(_module(rest, target), target=target).script())
