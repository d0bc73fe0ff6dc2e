"""The program whose schedules a search samples, and checks of the candidates against it."""

from __future__ import annotations

import json

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.heuristics import cpu, failures
from tilewright.heuristics.by_target import schedule_function
from tilewright.heuristics.unscheduled import is_unscheduled
from tilewright.schedule import Schedule
from tilewright.search.spaces import Space
from tilewright.support.machine import is_for_device
from tilewright.support.nodes import nodes_of
from tilewright.task.task import Task


def heuristic_trace(task: Task, start: ir.Module, target: _core.Target) -> str:
    """Return the trace of the heuristic schedule of :func:`tilewright.compile` as JSON; "" if there is none."""
    is_device = is_for_device(target)
    if not (is_device or target.kind == "llvm") or not is_unscheduled(task.program):
        return ""
    schedule = Schedule(start)
    try:
        if start is task.sparse:
            schedule.lower_sparse_iter()
        if is_device:
            schedule = schedule_function(schedule, target)
        else:
            cpu.schedule_for_cpu(schedule, target, best=True)
    except Exception as error:  # the search continues without this baseline
        failures.raise_in_tests(error)
        return ""
    return json.dumps(schedule.trace.as_json()) if schedule.trace.insts else ""


def fitting_postprocs(
    generator: _core.SpaceGenerator, task: Task, context: _core.TuneContext, takes_defaults: bool
) -> list[_core.Postproc] | None:
    """Return the postprocessors of a search where they are others than those of its generator, else None.

    Args:
        generator: with its postprocessors.
        task: what is searched.
        context: context of the search.
        takes_defaults: whether nobody has chosen the postprocessors. The defaults are TVM's, which refuse all schedules
            of a program whose sizes are left open or follow from data, as those of sparse matrices do.
    """
    kept = list(generator.postprocs or [])
    known = len(kept)
    if (
        "layout_free_buffers" in task.program.attrs
    ):  # kernels of a search are called with arrays as the program has them
        kept = [each for each in kept if not isinstance(each, _core.RewriteLayout)]
    is_sparse = task.sparse is not None or _has_ragged_loops(task.program)
    if not takes_defaults or not is_sparse:
        return kept if len(kept) < known else None
    kept = [each for each in kept if not isinstance(each, _core.DisallowDynamicLoop)]
    for at, each in enumerate(kept):
        if isinstance(each, _core.VerifyGPUCode):
            kept[at] = _core.VerifyGPUCode(open_grids=True)
            kept[at].initialize(context)
    return kept


def _has_ragged_loops(program: ir.PrimFunc) -> bool:
    """Return whether the extent of a loop depends on data."""
    return any(nodes_of(loop.extent, ir.BufferLoad) for loop in nodes_of(program.body, ir.For))


def check_parameters(task: Task, space: Space, schedule: Schedule) -> None:
    """Check that a candidate can be called with the arguments of the program.

    Raises:
        tilewright.ScheduleError: It has other parameters ("space/parameters").
    """
    before, after = task.module.functions[task.function], schedule.mod.functions.get(task.function)
    if isinstance(before, ir.PrimFunc) and isinstance(after, ir.PrimFunc):
        was, now = ([param.name for param in function.params] for function in (before, after))
        if was != now:
            raise ScheduleError.of(
                "space/parameters",
                f"the space '{space.name}' makes a program of other parameters: {', '.join(now)}",
                "a search calls candidates with the arguments of the program: decompose it first, and tune "
                "tw.sparse.decompose_format(program, ...).function with inputs=",
            )
