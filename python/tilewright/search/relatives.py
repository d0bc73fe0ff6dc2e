"""What a database knows of the same operator at other shapes."""

from __future__ import annotations

import re
from typing import Any

#: of other shapes so many schedules are tried
MOST = 2
#: a number that is no part of a name, of a type such as "float32" or of a number with a point
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
#: what a function is called
_NAME = re.compile(r"^( *def )\w+|^ *T\.func_attr\(.*\n", re.MULTILINE)


def operator_of(script: str) -> str:
    """A program without its sizes and names: programs of one operator at different shapes have the same."""
    return _NUMBER.sub("#", _NAME.sub(lambda found: found[1] or "", script))


def traces_of_relatives(store: Any, key: str, script: str, target: str) -> list[str]:
    """The traces of the best records of the same operator at other shapes, or for calls of other sizes, on the same
    target; the latest first.

    Args:
        store: the database.
        key: of the program, which is not meant.
        script: its text.
        target: as text.
    """
    operator, found = operator_of(script), []
    for workload in reversed(store.workloads()):
        if workload.hash == key or operator_of(workload.script) != operator:
            continue
        found += [record.trace for record in store.top_k(workload.hash, target, 1)]
        if len(found) == MOST:
            break
    return found
