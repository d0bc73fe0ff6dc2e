"""Modules with the fastest recorded schedules of their functions, and heuristic ones for the others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from tilewright import _core, te
from tilewright.errors import Error, ResourceError
from tilewright.support.wrong_arguments import no_program

if TYPE_CHECKING:
    from tilewright.meta_schedule import Database

__all__ = ["as_module", "exported_keys", "recorded_schedules", "with_recorded"]

#: where the schedule of a function comes from
Origin = Literal["recorded", "by rules"]


def as_module(program: Any) -> Any:
    """Return the module of a function, a module, a schedule, or formulas of te.

    Raises:
        tilewright.ArgumentError: it is none of these.
    """
    if isinstance(program, te.Tensor | list | tuple):
        program = te.program_of(program)
    program = getattr(program, "mod", program)
    if isinstance(program, _core.PrimFunc):
        return _core.as_module(program)
    if isinstance(program, _core.Module):
        return program
    raise no_program("a function, a module or a schedule can be compiled", program)


def recorded_schedules(
    program: Any, database: str | os.PathLike[str] | Database, target: _core.Target
) -> tuple[Any, dict[str, Origin], Mapping[str, Any], Mapping[str, str]]:
    """Return the program with its fastest recorded schedule; or a module each of whose functions was tuned by itself,
    with theirs, see :func:`with_recorded`. Then where the schedules of functions come from, the steps of those that
    were recorded, and with what heuristics failed."""
    from tilewright.database.records import best_of_functions, best_schedule

    written = as_module(program)
    try:
        found = best_schedule(program, database, target)
        names = exported_keys(module := as_module(found))
        return module, dict.fromkeys(names, "recorded"), dict.fromkeys(names, found.trace), {}
    except ResourceError:
        if len(exported_keys(written)) < 2:
            raise
    tuned, traces = best_of_functions(written, database, target)
    named = exported_keys(written)
    module, schedules, failed = with_recorded(written, {name: tuned.functions[named[name]] for name in traces}, target)
    return module, schedules, traces, failed


def with_recorded(
    module: Any, recorded: Mapping[str, Any], target: _core.Target
) -> tuple[Any, dict[str, Origin], Mapping[str, str]]:
    """Put recorded functions into a module, and heuristic schedules on the others.

    Args:
        module: the unscheduled functions.
        recorded: by the names of kernels, the functions that they are made of.
        target: what heuristics schedule for.

    Returns:
        The module; by the names of kernels, where their schedules come from, and with what heuristics failed.
    """
    from tilewright.heuristics.by_target import heuristic_schedules

    named = exported_keys(module)
    chosen = {named[name]: function.with_attr("global_symbol", name) for name, function in recorded.items()}
    schedules: dict[str, Origin] = dict.fromkeys(recorded, "recorded")
    others = _core.Module({key: f for key, f in module.functions.items() if key not in chosen})
    failed: Mapping[str, str] = {}
    with contextlib.suppress(Error):  # of a program that is not well formed, which compiling it says
        ruled = heuristic_schedules(others, target, if_faster=True)
        others, failed = ruled.module, ruled.failed
        schedules |= dict.fromkeys(ruled.changed, "by rules")
    every = dict(others.functions) | chosen
    return _core.Module({key: every[key] for key in module.functions}, module.attrs), schedules, failed


def exported_keys(module: Any) -> dict[str, Any]:
    """Return the names in a module of the functions that kernels are made of, by the names of these kernels."""
    return {str(f.attrs["global_symbol"]): key for key, f in module.functions.items() if "global_symbol" in f.attrs}
