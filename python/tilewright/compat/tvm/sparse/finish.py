"""What the end of a schedule of SparseTIR's implementation means for inits and atomic blocks."""

from __future__ import annotations

import re
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.changed_nodes import with_fields
from tilewright.task.declared_values import DOMAINS

#: an annotation of blocks: what they write is added to what is there
ATOMIC = "atomic"
#: an annotation of blocks with an init, which also runs for elements without steps (src/ir/annotations.h)
WITHOUT_STEPS = "init_without_steps"


def with_inits(func: ir.PrimFunc) -> Any:
    """Return the function in which rows without elements are initialized, too: inits that a schedule has left in blocks
    of ragged reductions run before the loops of these."""
    schedule = _core.Schedule(func)
    names = [block.name_hint for block in _blocks(func) if WITHOUT_STEPS in block.annotations]
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
    """Return the function whose atomic blocks add to what is there.

    So what they add to is not initialized by the same iteration: callers have done so. And lists of rows that they add
    to may hold a row several times, although their axes are sorted: rows that are cut.
    """
    atomic = [block for block in _blocks(func) if ATOMIC in block.annotations]
    if not atomic:
        return func
    lists: set[ir.Buffer] = set()
    for block in atomic:
        for region in block.writes:
            _core.visit(region, lambda node: lists.add(node.buffer) if isinstance(node, ir.BufferLoad) else None)

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
    """The block, which declares no order of these buffers."""
    declared = block.annotations.get(DOMAINS, ())
    if not any(region.buffer in lists for region, *_ in declared):
        return block
    domains = [
        [region, low, end, ""] if region.buffer in lists else [region, low, end, *order]
        for region, low, end, *order in declared
    ]
    return with_fields(block, annotations={**block.annotations, DOMAINS: domains})


def _adding(block: ir.Block) -> Any:
    """The block with sums in the place of stores, and without an init."""
    own = [region.buffer for region in block.writes]

    def changed(node: Any) -> Any:
        if not isinstance(node, ir.BufferStore) or not any(node.buffer.same_as(each) for each in own):
            return None
        loads: list[Any] = []
        _core.visit(node.value, lambda each: loads.append(each) if isinstance(each, ir.BufferLoad) else None)
        if any(load.buffer.same_as(node.buffer) for load in loads):
            return None
        return ir.BufferStore(node.buffer, ir.BufferLoad(node.buffer, node.indices) + node.value, node.indices)

    body: Any = _core.rewrite(block.body, changed)
    missing = [region for region in block.writes if not any(region.buffer.same_as(read.buffer) for read in block.reads)]
    annotations = {key: value for key, value in block.annotations.items() if key != WITHOUT_STEPS}
    return with_fields(block, body=body, init=None, annotations=annotations, reads=[*block.reads, *missing])


def _starts(first: Any, then: Any) -> bool:
    """Whether one statement is the init of an iteration, whose atomic block in another one writes the same buffer."""
    atomic = [block for block in _blocks(then) if ATOMIC in block.annotations]
    inits = [block for block in _blocks(first) if re.search(r"_init\d*$", block.name_hint)]
    if not atomic or not inits or first.same_as(then):
        return False
    names = {block.name_hint.removesuffix("_update") for block in _blocks(then)}
    added = [region.buffer for block in atomic for region in block.writes]
    for block in inits:
        name = re.sub(r"_init\d*$", "", block.name_hint)
        is_of_iteration = any(re.fullmatch(re.escape(name) + r"\d*", each) for each in names)
        sets = [region.buffer for region in block.writes]
        if is_of_iteration and all(any(buffer.same_as(each) for each in added) for buffer in sets):
            return True
    return False


def _blocks(node: Any) -> list[ir.Block]:
    found: list[ir.Block] = []
    _core.visit(node, lambda each: found.append(each) if isinstance(each, ir.Block) else None)
    return found
