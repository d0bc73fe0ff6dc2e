"""Formats by name, as steps of schedules: ``sch.decompose_format("A", "hyb", [m, n, parts, widest], count=8)``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright import _core, ir
from tilewright.database.records import PLACES, read_database, recorded_formats
from tilewright.errors import ArgumentError, ResourceError
from tilewright.sparse import formats
from tilewright.sparse.decompose import DecomposedProgram, decompose_format
from tilewright.sparse.format_rule import FormatRewriteRule, picklable
from tilewright.support import limits
from tilewright.support.machine import TargetLike
from tilewright.support.nodes import nodes_of

NAMES = (
    *("banded", "bsr", "coo", "csc", "csf", "csr", "dbsr", "dcsr", "ell", "hyb", "padded_csr", "ragged", "sell"),
    *("relational", "sr_bcrs", "strided"),
)


@picklable
def template_rules(name: str, parameters: Sequence[int], count: int = 0) -> list[FormatRewriteRule]:
    """Return the rules of a format by its name.

    Args:
        name: a function of :mod:`tilewright.sparse.formats`.
        parameters: its arguments, the numbers of the shape of the tensor first: ``[relations, m, n, widest]``.
        count: how many rules to return, 0 for those of the format. Those beyond take no nonzero.

    Raises:
        tilewright.ArgumentError: There is no such format, it takes other arguments, or has more rules
            ("sparse/template").
    """
    if name not in NAMES:
        raise _refusal(f"no format is called {name!r}", f"there are {', '.join(NAMES)}")
    try:
        given = [parameters[:3], *parameters[3:]] if name == "relational" else parameters
        rules: list[FormatRewriteRule] = getattr(formats, name)(*given)
    except (TypeError, ValueError, ZeroDivisionError) as error:
        message = f"format {name!r} does not take {list(parameters)}: {error}"
        raise _refusal(message, "see tilewright.sparse.formats") from error
    if count and len(rules) > count:
        raise _refusal(f"format {name!r} has {len(rules)} rules, but `count` is {count}", "raise `count`")
    for number in range(len(rules), count):
        none = replace(rules[0], name=f"{rules[0].name}_none_{number}").when(lambda z: z.column < 0)
        rules.append(replace(none, disjoint_rows=rules[-1].disjoint_rows))
    return rules


def decomposition_of(sch: _core.Schedule, func: ir.PrimFunc) -> DecomposedProgram:
    """Return the decomposition that a step of a schedule has made: its rules, and what makes arguments.

    Args:
        sch: a schedule of the function, with one step ``decompose_format``.
        func: the function as it was before.

    Raises:
        tilewright.ArgumentError: The schedule does not have one such step ("sparse/template").
    """
    steps = [step for step in sch.trace.insts if step.kind.name == "DecomposeFormat"]
    if len(steps) != 1:
        raise _refusal(f"the schedule has {len(steps)} steps decompose_format", "it takes one")
    return decompose_format(func, str(steps[0].attrs[0]), rules_of_step(sch, steps[0])[0])


def recorded_format(func: ir.PrimFunc, database: Any, target: TargetLike = "native") -> DecomposedProgram:
    """Return a program over the format that is the fastest one in a database of a search over formats.

    ``tw.compile(found.function, database=database)`` is its fastest kernel, and ``found.arguments`` makes the arguments
    of a structure.

    Args:
        func: the program that was tuned, by ``tw.tune`` with a space that decomposes a tensor.
        database: what the search was given: the path of a file, or "postgresql://...".
        target: for which there has to be a record.

    Raises:
        tilewright.ResourceError: The database cannot be read, or no format has a correct record for the target
            ("database/no-record").
    """
    limits.kind("database", database, str | os.PathLike, PLACES)
    store = read_database(database)
    found = recorded_formats(store, func, target)
    if not found:
        message = f"{store.path} holds no record of this program in any format for {_core.Target(target)}"
        raise ResourceError.of(
            "database/no-record", message, "tune it by a space with sch.decompose_format, and database="
        )
    best = found[0]
    return decompose_format(func, best.tensor, template_rules(best.name, best.parameters, best.count))


def rules_of_step(sch: _core.Schedule, step: Any) -> tuple[list[FormatRewriteRule], list[int]]:
    """Return the rules of a step ``decompose_format``, and the parameters of its format.

    Args:
        sch: a schedule in whose trace the step stands, or what comes before the step.
        step: an instruction of its trace.
    """
    (given,), (_, name, count, _) = step.inputs, step.attrs
    parameters = [each if isinstance(each, int) else int(sch.get(each)) for each in given]
    return template_rules(str(name), parameters, int(count)), parameters


def decomposed_by_name(
    func: ir.PrimFunc, buffer: str, name: str, parameters: list[int], count: int
) -> tuple[ir.PrimFunc, list[str]]:
    """Return a program over a format, and the names of its iterations: what ``sch.decompose_format`` calls."""
    rules = template_rules(name, parameters, count)
    made = decompose_format(func, buffer, rules).function
    known = {*nodes_of(func.body, ir.SparseIteration)}  # which may have names that look like those of rules
    names = [each.name_hint for each in nodes_of(made.body, ir.SparseIteration) if each not in known]
    endings = tuple(f"_{rule.name}" for rule in rules)
    return made, [each for each in names if each.endswith(endings)]


def _refusal(message: str, hint: str) -> ArgumentError:
    return ArgumentError.of("sparse/template", message, hint)
