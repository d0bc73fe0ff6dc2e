"""Completes schedules of SparseTIR's implementation: initializes empty rows, and makes atomic blocks accumulate."""

from __future__ import annotations

import re
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of
from tilewright.task.declared_values import DOMAINS

#: The annotation of blocks that accumulate into their outputs.
ATOMIC = "atomic"
#: The annotation of blocks whose init also runs for elements without reduction steps (src/ir/annotations.h).
WITHOUT_STEPS = "init_without_steps"


def with_inits(func: ir.PrimFunc) -> Any:
    """Return the function with empty rows initialized: decomposes the remaining inits of ragged reductions."""
    schedule = _core.Schedule(func)
    names = [block.name_hint for block in nodes_of(func, ir.Block) if WITHOUT_STEPS in block.annotations]
    for name in names:
        for loop in schedule.get_loops(name):
            try:
                schedule.decompose_reduction(name, loop)
            except ScheduleError:
                continue
            break
    (made,) = schedule.mod.functions.values()
    return made


def with_sums(func: ir.PrimFunc) -> Any:
    """Return the function with its atomic blocks accumulating into their outputs.

    Callers initialize the outputs, so the inits of the iterations are removed. Row lists of cut rows repeat rows even
    if their axes are declared sorted, so their declared order is removed.
    """
    atomic = [block for block in nodes_of(func, ir.Block) if ATOMIC in block.annotations]
    if not atomic:
        return func
    writes = (region for block in atomic for region in block.writes)
    lists = {load.buffer for region in writes for load in nodes_of(region, ir.BufferLoad)}

    def changed(node: Any) -> Any:
        if isinstance(node, ir.SeqStmt):
            kept = [each for each in node.seq if not any(_starts(each, other) for other in node.seq)]
            return None if len(kept) == len(node.seq) else _core.seq(kept)
        if not isinstance(node, ir.Block):
            return None
        return _unordered(_adding(node) if ATOMIC in node.annotations else node, lists)

    body: Any = _core.rewrite(func.body, changed)
    return func.with_body(body)


def _unordered(block: ir.Block, lists: set[ir.Buffer]) -> ir.Block:
    """Return the block without the declared order of these buffers."""
    declared = block.annotations.get(DOMAINS, ())
    if not any(region.buffer in lists for region, *_ in declared):
        return block
    domains = [
        [region, low, end, ""] if region.buffer in lists else [region, low, end, *order]
        for region, low, end, *order in declared
    ]
    return with_fields(block, annotations={**block.annotations, DOMAINS: domains})


def _adding(block: ir.Block) -> Any:
    """Return the block with each store replaced by an addition, and without an init."""
    own = [region.buffer for region in block.writes]

    def changed(node: Any) -> Any:
        if not isinstance(node, ir.BufferStore) or not any(node.buffer.same_as(each) for each in own):
            return None
        if any(load.buffer.same_as(node.buffer) for load in nodes_of(node.value, ir.BufferLoad)):
            return None
        return ir.BufferStore(node.buffer, ir.BufferLoad(node.buffer, node.indices) + node.value, node.indices)

    body: Any = _core.rewrite(block.body, changed)
    missing = [region for region in block.writes if not any(region.buffer.same_as(read.buffer) for read in block.reads)]
    annotations = {key: value for key, value in block.annotations.items() if key != WITHOUT_STEPS}
    return with_fields(block, body=body, init=None, annotations=annotations, reads=[*block.reads, *missing])


def _starts(first: Any, then: Any) -> bool:
    """Return whether `first` is the init of the iteration whose atomic block in `then` writes the same buffer."""
    atomic = [block for block in nodes_of(then, ir.Block) if ATOMIC in block.annotations]
    inits = [block for block in nodes_of(first, ir.Block) if re.search(r"_init\d*$", block.name_hint)]
    if not atomic or not inits or first.same_as(then):
        return False
    names = {block.name_hint.removesuffix("_update") for block in nodes_of(then, ir.Block)}
    added = [region.buffer for block in atomic for region in block.writes]
    for block in inits:
        name = re.sub(r"_init\d*$", "", block.name_hint)
        is_of_iteration = any(re.fullmatch(re.escape(name) + r"\d*", each) for each in names)
        sets = [region.buffer for region in block.writes]
        if is_of_iteration and all(any(buffer.same_as(each) for each in added) for buffer in sets):
            return True
    return False
