"""The namespace T of scripts: everything a tensor program is written with.

>>> from tilewright.script import tir as T
"""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.script import expressions as _expressions
from tilewright.script.dialect import dialect as _dialect
from tilewright.script.tir import statements as _statements
from tilewright.script.tir.dtypes import DTYPES as _DTYPES
from tilewright.script.tir.dtypes import handle
from tilewright.script.tir.frames import (
    Assert,
    Else,
    If,
    Let,
    LetStmt,
    Range,
    Then,
    While,
    alloc_buffer,
    allocate,
    allocate_const,
    arg,
    attr,
    axis,
    block,
    block_attr,
    decl_buffer,
    env_thread,
    evaluate,
    func_attr,
    func_name,
    func_ret,
    grid,
    init,
    launch_thread,
    let,
    match_buffer,
    parallel,
    reads,
    realize,
    serial,
    thread_binding,
    unroll,
    vectorized,
    where,
    writes,
)
from tilewright.script.tir.functions import prim_func
from tilewright.script.tir.intrinsics import INTRINSICS as _INTRINSICS
from tilewright.script.tir.intrinsics import (
    ceildiv,
    floordiv,
    floormod,
    max_value,
    min_value,
    truncdiv,
    truncmod,
)
from tilewright.script.tir.values import MetaVar as meta_var

Buffer = _core._script.buffer

globals().update(_DTYPES)
globals().update(_INTRINSICS)

_dialect("tir").names["T"] = lambda: __import__("tilewright.script.tir", fromlist=["T"])
