# ruff: noqa: F401
"""The namespace T of scripts: everything a tensor program is written with.

>>> from tilewright.script import tir as T
"""

from __future__ import annotations

import re as _re
import sys as _sys
from typing import Any

from tilewright.script import expressions as _expressions
from tilewright.script.dialect import dialect as _dialect
from tilewright.script.tir import frames as _frames
from tilewright.script.tir import intrinsics as _intrinsics
from tilewright.script.tir import statements as _statements
from tilewright.script.tir.buffers import Buffer, Ptr, buffer_var
from tilewright.script.tir.dtypes import DTYPES as _DTYPES
from tilewright.script.tir.dtypes import DType as _DType
from tilewright.script.tir.dtypes import handle, ptr
from tilewright.script.tir.formulas import compute, prod, reduce_axis, sum
from tilewright.script.tir.functions import prim_func
from tilewright.script.tir.index_maps import AXIS_SEPARATOR, AxisSeparator, index_map, index_map_with_separators
from tilewright.script.tir.macros import macro
from tilewright.script.tir.macros import macro as inline
from tilewright.script.tir.sparse import (
    alloc_sparse_buffer,
    attach,
    dense_fixed,
    dense_variable,
    flatten,
    fuse,
    iter,
    iter_attr,
    match_sparse_buffer,
    sp,
    sp_iter,
    sp_iter_attr,
    sparse_fixed,
    sparse_variable,
)
from tilewright.script.tir.values import MetaVar as meta_var

_HIDDEN = {
    "Any",
    "Callable",
    "Sequence",
    "ScriptError",
    "annotations",
    "check_dtype",
    "no_dtype",
    "fail",
    "tensor_data",
    "np",
}

for _module in (_frames, _intrinsics):
    globals().update({k: v for k, v in vars(_module).items() if not k.startswith("_") and k not in _HIDDEN})
# The table's functions give way to those that Python defines, which know their arguments by name.
globals().update({k: v for k, v in _intrinsics.INTRINSICS.items() if k not in vars(_intrinsics)})
globals().update(_intrinsics.OPERATORS)
globals().update(_DTYPES)
# Of two values, or over axes.
from tilewright.script.tir.formulas import max, min  # noqa: E402

del globals()["INTRINSICS"], globals()["OPERATORS"]

_dialect("tir").names["T"] = lambda: _sys.modules[__name__]

__all__ = [
    _name
    for _name, _value in globals().items()
    if not _name.startswith("_") and _name not in {"annotations", "Any"} and not isinstance(_value, type(_sys))
]


#: Names that TVM's scripts know and that have no meaning here, with what to write instead.
_ABSENT = {
    "Reduce": "a reduction is a block with T.axis.reduce and T.init, or T.sum, T.max, ... in T.compute",
    "ProducerLoad": "load from a buffer, A[i]; tensors are a matter of tilewright.te",
    "CallEffectKind": "the effect of a call follows from what it calls",
    "call_kernel": "kernels of other languages are not called from programs",
    "buffer_decl": "write T.Buffer(...), T.decl_buffer(...) or T.alloc_buffer(...)",
    "var": 'write T.int32(), or T.Var("name", "int32")',
}


class _AbsentName(AttributeError):
    """A name that another system has."""

    hint = ""


def __getattr__(name: str) -> Any:
    """Return a vector type of any length, such as T.int8x12."""
    if name in _ABSENT:
        error = _AbsentName(f"Tilewright has no T.{name}: {_ABSENT[name]}", name=name, obj=_sys.modules[__name__])
        error.hint = _ABSENT[name]
        raise error
    if _re.fullmatch(r"(u?int|b?float|handle)\d+\w*", name):
        try:
            dtype = _DType(name)
        except (TypeError, ValueError):
            pass
        else:
            globals()[name] = dtype
            return dtype
    raise AttributeError(
        f"module 'tilewright.script.tir' has no attribute {name!r}", name=name, obj=_sys.modules[__name__]
    )
