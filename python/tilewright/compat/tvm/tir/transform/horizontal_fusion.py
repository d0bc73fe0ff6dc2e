"""HorizontalFusion of SparseTIR's implementation: kernels that follow one another become one."""

from __future__ import annotations

from typing import Any

from tilewright import _core, ir
from tilewright.errors import ScheduleError
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of

#: an attribute of functions whose kernels are to be fused
KEY = "horizontal_fuse"
GRID = "blockIdx.x"


def fused(func: ir.PrimFunc) -> Any:
    """Return the function with one kernel in the place of neighbors: the thread blocks of the first one come first.

    Functions without the attribute stay as they are. Kernels stay apart where their threads do not fit together: loops
    of different lengths over one thread axis.
    """
    if not func.attrs.get(KEY):
        return func
    func = func.without_attr(KEY)
    realize: Any = func.body
    statements = list(realize.block.body.seq) if isinstance(realize.block.body, ir.SeqStmt) else []
    if len(statements) < 2 or not all(_is_grid(each) for each in statements):
        return func
    serial = [with_fields(each, kind=ir.ForKind.SERIAL, thread_binding=None) for each in statements]
    root = with_fields(realize.block, body=_core.seq(serial))
    schedule = _core.Schedule(func.with_body(ir.BlockRealize(realize.iter_values, realize.predicate, root)))
    try:
        # The outermost loop around some block of each statement.
        loops = [schedule.get_loops(nodes_of(each, ir.Block)[0].name_hint)[0] for each in serial]
        schedule.bind(schedule.horizontal_fuse(*loops), GRID)
    except ScheduleError:
        return func
    (made,) = schedule.mod.functions.values()
    return made


def _is_grid(statement: Any) -> bool:
    binding = statement.thread_binding if isinstance(statement, ir.For) else None
    return binding is not None and binding.thread_tag == GRID
