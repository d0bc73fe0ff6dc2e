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

#: origin of a function's schedule
Origin = Literal["recorded", "by rules"]


def as_module(program: Any) -> Any:
    """Return the module of a function, a module, a schedule, or formulas of te.

    Raises:
        tilewright.ArgumentError: the program has another type.
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
    """Return the program with its fastest recorded schedule, or a module with the schedules of separately tuned
    functions (:func:`with_recorded`). Also return the origins of the functions' schedules, the traces of recorded
    schedules, and the errors of failed heuristics."""
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
        recorded: recorded functions, by the names of kernels.
        target: target of heuristic schedules.

    Returns:
        The module; the origins of schedules, and the errors of failed heuristics, both by the names of kernels.
    """
    from tilewright.heuristics.by_target import heuristic_schedules

    named = exported_keys(module)
    chosen = {named[name]: function.with_attr("global_symbol", name) for name, function in recorded.items()}
    schedules: dict[str, Origin] = dict.fromkeys(recorded, "recorded")
    others = _core.Module({key: f for key, f in module.functions.items() if key not in chosen})
    failed: Mapping[str, str] = {}
    with contextlib.suppress(Error):  # compiling an invalid program reports its error
        ruled = heuristic_schedules(others, target, if_faster=True)
        others, failed = ruled.module, ruled.failed
        schedules |= dict.fromkeys(ruled.changed, "by rules")
    every = dict(others.functions) | chosen
    return _core.Module({key: every[key] for key in module.functions}, module.attrs), schedules, failed


def exported_keys(module: Any) -> dict[str, Any]:
    """Return the names that functions have in a module, by the names of their kernels."""
    return {str(f.attrs["global_symbol"]): key for key, f in module.functions.items() if "global_symbol" in f.attrs}
