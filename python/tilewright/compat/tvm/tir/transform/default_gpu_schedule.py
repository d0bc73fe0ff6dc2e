"""tvm.tir.transform.DefaultGPUSchedule: threads for the blocks of functions for a GPU that have none.

Before                                  After
for i in range(n):                      for i_0 in T.thread_binding((n + 1023) // 1024, "blockIdx.x"):
    with T.block("B"):                      for i_1 in T.thread_binding(1024, "threadIdx.x"):
        ...                                     with T.block("B"):
"""

from __future__ import annotations

import json
from typing import Any

from tilewright import _core, ir
from tilewright.compat.tvm.tir.schedule.schedule import ScheduleAsTVM

_MAX_BLOCKS = 256


def _is_bound(sch: Any, block: Any) -> bool:
    return any(sch.get(loop).kind == ir.ForKind.THREAD_BINDING for loop in sch.get_loops(block))


def _schedule(sch: Any, block: Any, max_threads: int) -> None:
    """Fuse the spatial loops of the outermost nest, and bind their iterations to threads."""
    realized = sch.get(block)
    loops = sch.get_loops(block)
    spatial = []
    for loop, axis in zip(loops, realized.iter_vars, strict=False):
        if axis.iter_type != _core.IterType.DATA_PAR:
            break
        spatial.append(loop)
    fused = sch.fuse(*spatial) if spatial else sch.add_unit_loop(loops[0] if loops else block)
    extent = sch.get(fused).extent
    size = extent.value if isinstance(extent, ir.IntImm) else None
    if size is None or size <= max_threads * _MAX_BLOCKS:
        threads = max_threads if size is None else min(size, max_threads)
        outer, inner = sch.split(fused, [None, threads])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        return
    steps, outer, inner = sch.split(fused, [None, _MAX_BLOCKS, max_threads])
    sch.reorder(outer, inner, steps)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


def with_threads(mod: Any, target: Any) -> Any:
    """Return the module with threads for all blocks of its functions for a GPU."""
    sch: Any = ScheduleAsTVM(mod)
    for name, function in mod.functions.items():
        own = function.attrs.get("target") if isinstance(function, ir.PrimFunc) else None
        chosen = target if own is None else _core.Target(own)
        if not isinstance(function, ir.PrimFunc) or chosen is None or "gpu" not in chosen.keys:
            continue
        sch.work_on(str(name))
        threads = int(json.loads(chosen.json()).get("max_threads_per_block", 1024))
        for block in sch.get_child_blocks(sch.get_block("root")):
            if not _is_bound(sch, block):
                _schedule(sch, block, threads)
    return sch.mod
