# ruff: noqa: F401
"""tvm.tir: tensor programs."""

from __future__ import annotations

from tilewright._core import const
from tilewright.compat.tvm.driver import build
from tilewright.compat.tvm.runtime import convert
from tilewright.compat.tvm.tir import (
    analysis,
    block_dependence_info,
    block_scope,
    buffer,
    data_layout,
    expr,
    function,
    ir_builder,
    op,
    schedule,
    sparse,
    stmt,
    stmt_functor,
    tensor_intrin,
    transform,
)
from tilewright.compat.tvm.tir.block_dependence_info import BlockDependenceInfo
from tilewright.compat.tvm.tir.block_scope import BlockScope, StmtSRef
from tilewright.compat.tvm.tir.buffer import *  # noqa: F403
from tilewright.compat.tvm.tir.data_layout import *  # noqa: F403
from tilewright.compat.tvm.tir.expr import *  # noqa: F403
from tilewright.compat.tvm.tir.function import *  # noqa: F403
from tilewright.compat.tvm.tir.index_map import IndexMap
from tilewright.compat.tvm.tir.op import *  # noqa: F403
from tilewright.compat.tvm.tir.schedule import Schedule, ScheduleError, ScheduleState, Trace
from tilewright.compat.tvm.tir.stmt import *  # noqa: F403

__all__ = [
    *(
        "analysis",
        "block_scope",
        "buffer",
        "data_layout",
        "expr",
        "function",
        "ir_builder",
        "op",
        "schedule",
        "sparse",
        "stmt",
        "stmt_functor",
    ),
    *("tensor_intrin", "transform"),
    *(
        "BlockDependenceInfo",
        "BlockScope",
        "IndexMap",
        "Schedule",
        "ScheduleError",
        "ScheduleState",
        "StmtSRef",
        "Trace",
    ),
    *("build", "const", "convert"),
    *(buffer.__all__ + data_layout.__all__ + expr.__all__ + function.__all__ + op.__all__ + stmt.__all__),
]
