"""Heuristic schedules for the unscheduled functions of a module, for CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tilewright import _core, ir
from tilewright.errors import Error
from tilewright.heuristics import cpu, failures, gpu
from tilewright.heuristics.block_info import constant, is_argreduce
from tilewright.heuristics.unscheduled import is_unscheduled
from tilewright.schedule import Schedule
from tilewright.support.machine import is_for_device
from tilewright.support.nodes import nodes_of


class HeuristicSchedules(NamedTuple):
    """A module with heuristic schedules.

    Attributes:
        module: the module in which each unscheduled function has a schedule; the others are unchanged.
        changed: the public names of the functions that changed.
        left: the names of unscheduled functions with loops that no heuristic changes. Functions that are estimated to
            be faster unscheduled are not included.
        failed: error messages by function name, if a heuristic or an estimate failed. Such a function is unchanged;
            for a device it has a simple schedule.
        notes: codes and messages of notes on the schedules, by function name.
    """

    module: ir.Module
    changed: list[str]
    left: list[str]
    failed: Mapping[str, str] = MappingProxyType({})
    notes: Mapping[str, list[tuple[str, str]]] = MappingProxyType({})


class _Heuristics(NamedTuple):
    """The heuristics for a kind of target: a row of :data:`_BY_TARGET`.

    Attributes:
        are_for: function that returns whether a target is of this kind.
        schedule: function that returns the schedule with the named function scheduled and None, or a simple schedule
            and the error of the heuristics. It returns None and the error of the simple schedule if the target cannot
            run the program at all.
        seem_slower: function that returns whether the scheduled function (its first argument) is estimated to be slower
            than the unscheduled one; None if programs need a schedule to run.
    """

    are_for: Callable[[_core.Target], bool]
    schedule: Callable[[Schedule, str, _core.Target], tuple[Schedule | None, Exception | None]]
    seem_slower: Callable[[ir.PrimFunc, ir.PrimFunc, _core.Target], bool] | None


def heuristic_schedules(module: ir.Module, target: _core.Target, *, if_faster: bool = False) -> HeuristicSchedules:
    """Schedule each unscheduled function.

    Args:
        module: the module to schedule.
        target: the processor or device.
        if_faster: skip functions that are estimated to be faster unscheduled; ignored for devices, which need kernels.

    Raises:
        tilewright.ScriptError: the module is not well formed, or the target cannot run a function with any schedule. A
            failing heuristic raises no error; its function stays unchanged.
    """
    heuristics = next((row for row in _BY_TARGET if row.are_for(target)), None)
    if heuristics is None:
        return HeuristicSchedules(module, [], [])
    _core.verify(module)
    schedule = Schedule(module)
    changed: dict[str, tuple[str, ir.PrimFunc]] = {}
    left: list[str] = []
    failed: dict[str, str] = {}
    notes: dict[str, list[tuple[str, str]]] = {}
    for name, function in module.functions.items():
        if not isinstance(function, ir.PrimFunc):
            continue
        known_as = str(function.attrs.get("global_symbol", name))
        refusal: Error | None = None
        try:
            if not is_unscheduled(function):
                continue
            schedule.work_on(name)
            before = _function(schedule, name)
            found, error = heuristics.schedule(schedule, name, target)
            if found is None:
                if not isinstance(error, Error):
                    continue
                # Compiling the unscheduled function would only report that no loop is bound to threads.
                refusal = error
                raise refusal
            if error is not None:
                failures.raise_in_tests(error)
                failed[known_as] = failures.description(error)
            after, seem_slower = _function(found, name), heuristics.seem_slower
            notes[known_as] = _notes_on(after, target)
            if seem_slower is not None and after.same_as(before):
                if _loops(function) and not _has_only_argreduces(function):
                    left.append(known_as)
            elif seem_slower is None or not if_faster or not seem_slower(after, before, target):
                changed[name] = known_as, after
        except Exception as error:
            if error is refusal:
                raise
            failures.raise_in_tests(error)
            failed[known_as] = failures.description(error)
    if not changed:
        return HeuristicSchedules(module, [], left, failed, notes)
    functions = {**dict(module.functions), **{name: after for name, (_, after) in changed.items()}}
    return HeuristicSchedules(
        ir.Module(functions, module.attrs), [known_as for known_as, _ in changed.values()], left, failed, notes
    )


def _notes_on(function: ir.PrimFunc, target: _core.Target) -> list[tuple[str, str]]:
    if "gpu" in target.keys:
        return [("compile/unordered-sums", message) for message in gpu.unordered_sums(function)]
    if target.num_cores > 1:
        return [("compile/one-thread", message) for message in cpu.serial_updates(function)]
    return []


def schedule_function(schedule: Schedule, target: _core.Target) -> Schedule:
    """Apply heuristics to the current function of a schedule; return this schedule or a scheduled copy.

    Raises:
        Exception: a heuristic failed.
    """
    worked_on = schedule.func_working_on
    name = worked_on.name_hint if worked_on is not None else next(iter(schedule.mod.functions))
    heuristics = next((row for row in _BY_TARGET if row.are_for(target)), _FOR_CPU)
    found, error = heuristics.schedule(schedule, name, target)
    if found is None:
        assert error is not None
        raise error
    return found


def _function(schedule: Schedule, name: str) -> ir.PrimFunc:
    function = schedule.mod.functions[name]
    assert isinstance(function, ir.PrimFunc)
    return function


def _for_cpu(schedule: Schedule, name: str, target: _core.Target) -> tuple[Schedule, None]:
    """Return the schedule itself, whose current function is scheduled in place."""
    cpu.schedule_for_cpu(schedule, target, best=True)
    return schedule, None


def _for_gpu(schedule: Schedule, name: str, target: _core.Target) -> tuple[Schedule | None, Exception | None]:
    """Return a scheduled copy that can be lowered, with None; or a simple schedule, with the error of the patterns.

    Returns None and the error of the simple schedule if neither can be lowered, because the device cannot run the
    program.
    """
    error: Exception | None = None
    last: Exception | None = None
    schedule = _with_blocks(schedule, name)
    for schedule_as in (gpu.schedule_for_gpu, gpu.schedule_simply):
        trial = schedule.copy()
        try:
            schedule_as(trial, target)
            _core.lower(_with_callees(trial.mod, name), str(target))
        except Exception as refusal:
            last = refusal
            error = error or refusal
        else:
            return trial, error
    return None, last


def _with_blocks(schedule: Schedule, name: str) -> Schedule:
    """Return a schedule of the module in which all statements of a function are in blocks, or the schedule itself."""
    before = _function(schedule, name)
    after = gpu.with_blocks(before)
    if after is before:
        return schedule
    changed = Schedule(ir.Module({**dict(schedule.mod.functions), name: after}, schedule.mod.attrs))
    changed.work_on(name)
    return changed


def _with_callees(module: ir.Module, name: str) -> ir.Module:
    """Return a module of a function and its callees, which can be lowered on its own."""
    wanted: dict[str, ir.PrimFunc] = {}

    def take(called: str) -> None:
        function = module.functions.get(called)
        if isinstance(function, ir.PrimFunc) and called not in wanted:
            wanted[called] = function
            for call in nodes_of(function.body, ir.Call):
                if isinstance(call.op, ir.GlobalVar):
                    take(call.op.name_hint)

    take(name)
    return ir.Module(wanted, module.attrs)


def _loops(function: ir.PrimFunc) -> bool:
    return any(constant(loop.extent) != 1 for loop in nodes_of(function.body, ir.For))


def _has_only_argreduces(function: ir.PrimFunc) -> bool:
    """Return whether all blocks are argmin or argmax. Lowering vectorizes these, so no schedule is needed."""
    computing = [block for block in nodes_of(function.body, ir.Block) if block.iter_vars]
    return bool(computing) and all(is_argreduce(block) for block in computing)


def _seems_slower_on_cpu(after: ir.PrimFunc, before: ir.PrimFunc, target: _core.Target) -> bool:
    return cpu.seems_slower(after, before, target)


_FOR_CPU = _Heuristics(lambda target: target.kind == "llvm", _for_cpu, _seems_slower_on_cpu)
_BY_TARGET = (_Heuristics(is_for_device, _for_gpu, None), _FOR_CPU)
