"""Find records of the same operator at other shapes in a database."""

from __future__ import annotations

import json

from tilewright import _core, ir
from tilewright.database.records import as_named_in, recorded_program
from tilewright.errors import Error
from tilewright.schedule import Trace
from tilewright.task.task import module_of, one_program

#: maximum number of schedules of other shapes that are tried
MOST = 2


def operator_of(program: ir.IRModule) -> str:
    """Return a key that is equal for programs of one operator at different shapes, whatever names they use."""
    return _core.operator_hash(one_program(program))


def traces_of_relatives(store: _core.Database, key: str, program: ir.IRModule, target: str) -> list[str]:
    """Return the traces of the best records of the same operator at other shapes, or for calls of other sizes, on the
    same target; the latest first.

    Args:
        store: the database.
        key: key of the program, whose own records are excluded.
        program: the program.
        target: the target, as text.
    """
    module, operator, lines = module_of(program), operator_of(program), program.script().count("\n")
    found: list[str] = []
    for workload in reversed(store.workloads()):
        # Reading a program takes milliseconds. Sizes do not change how many lines it has, attributes add one.
        if workload.hash == key or abs(workload.script.count("\n") - lines) > 1:
            continue
        other = recorded_program(workload)
        if other is None or operator_of(other) != operator:
            continue
        for record in store.top_k(workload.hash, target, 1):
            try:
                trace = as_named_in(module, other, Trace.from_json(record.trace))
            except Error:  # the record is of a version with other instructions
                continue
            found.append(json.dumps(trace.as_json(remove_postproc=False)))
        if len(found) == MOST:
            break
    return found
