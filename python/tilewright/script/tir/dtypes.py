"""T.int32, T.float16x4, T.handle, ...: a constant or a cast when called with a value, a fresh variable without."""

from __future__ import annotations

import re
from typing import Any

from tilewright import _core
from tilewright.errors import ScriptError
from tilewright.script.core import script as _script
from tilewright.script.report import did_you_mean, fail
from tilewright.support.dtype_names import DTYPE_NAMES


def check_dtype(dtype: Any) -> None:
    """Raise an error if a string is not the name of a data type.

    Raises:
        tilewright.ScriptError: the text is not a data type.
    """
    if not isinstance(dtype, str):
        return
    try:
        _core.PrimType(dtype)
    except (TypeError, ValueError):
        raise no_dtype(dtype) from None


def no_dtype(text: str, otherwise: str = 'for instance "float32"', *, is_near: bool = True) -> ScriptError:
    """Return the error for an invalid dtype name; `otherwise` is the hint if no known name is similar."""
    hint = (did_you_mean(text, DTYPES) if is_near else "") or otherwise
    return fail("script/dtype", f"'{text}' is not a data type", hint)


class DType:
    """A data type of scripts.

    >>> T.float32(1)          # a constant
    >>> T.float32("inf")
    >>> T.int64(i)            # a cast
    >>> n = T.int32()         # a fresh variable
    >>> n: T.int32            # of a parameter: its type
    """

    __slots__ = ("_type", "dtype")

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self._type = _core.PrimType(dtype)

    def __call__(self, expr: Any = None, *, is_size_var: bool = False) -> Any:
        """Return a constant or a cast; without `expr`, a new variable."""
        if expr is None:
            return _script.fresh_var(self._type, is_size_var)
        if isinstance(expr, _core.StringImm) and self.dtype == "uint32" and expr.value.startswith("llvm."):
            return expr  # T.uint32(T.llvm_lookup_intrinsic_id("llvm. ...")): the name stands for the number
        if isinstance(expr, str):
            try:
                expr = int(expr) if "int" in self.dtype and re.fullmatch(r"\s*[+-]?\d+\s*", expr) else float(expr)
            except ValueError:
                raise fail("script/constant", f"'{expr}' is not a number", "'inf', '-inf' or 'nan'") from None
        return _core.const(expr, self.dtype)

    def __repr__(self) -> str:
        return f"T.{self.dtype}"

    def __str__(self) -> str:
        return self.dtype

    def __eq__(self, other: object) -> bool:
        return self.dtype == (other.dtype if isinstance(other, DType) else other)

    def __hash__(self) -> int:
        return hash(self.dtype)


#: spellings of a data type: its name, or T.float32
DTypeLike = str | DType

DTYPES: dict[str, DType] = {name: DType("bool" if name == "boolean" else name) for name in DTYPE_NAMES}


def ptr(dtype: Any, storage_scope: str = "global", is_size_var: bool = False) -> Any:
    """Return a new pointer variable to elements of `dtype`; the same as ``T.handle(dtype, storage_scope)``.

    Args:
        dtype: the type of the elements it points to.
        storage_scope: the memory it points to, such as "global".
        is_size_var: for scripts that spell it; a pointer is no size.

    Returns:
        The variable, of type handle.
    """
    return handle(str(dtype), storage_scope, is_size_var=is_size_var)


def handle(dtype: Any = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Any:
    """Return a new pointer variable: to elements of `dtype` in memory of `storage_scope`, or opaque without a dtype.

    Args:
        dtype: the type of the elements it points to; None for an opaque pointer.
        storage_scope: the memory it points to, such as "global".
        is_size_var: for scripts that spell it; a pointer is no size.

    Returns:
        The variable, of type handle.
    """
    if dtype is None:
        return _script.fresh_var(_core.PrimType("handle"), is_size_var)
    element = dtype if isinstance(dtype, _core.Type) else _core.PrimType(dtype)
    return _script.fresh_var(_core.PointerType(element, storage_scope), is_size_var)
