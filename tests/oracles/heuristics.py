"""The steps that rules take on each shape of the benchmarks, without measuring, and whether `tw.compile` takes them."""

from __future__ import annotations

import tilewright as tw
from oracles import programs
from tilewright.heuristics import by_target, cpu


def names() -> list[str]:
    """Of all entries."""
    return [f"{target} {program}" for program in programs.benchmarks() for target in programs.TARGETS]


def text(name: str) -> str:
    """Of one."""
    target_name, _, program = name.partition(" ")
    target, module = programs.target_of(target_name), programs.as_module(programs.benchmarks()[program]())
    schedule = tw.Schedule(module)
    cpu.schedule_for_cpu(schedule, target, best=True)
    ruled = by_target.heuristic_schedules(module, target, if_faster=True)
    taken = {"changed": ruled.changed, "left": ruled.left, "failed": dict(ruled.failed)}
    return f"{schedule.trace}\n# by default: {taken}"
