"""tvm.script.tir: Tilewright's names of scripts; compact buffers may be written as TVM writes them."""

from __future__ import annotations

from typing import Any

from tilewright.script import tir

globals().update({name: getattr(tir, name) for name in vars(tir)["__all__"]})
__all__ = vars(tir)["__all__"]


def alloc_buffer(shape: Any, dtype: str = "float32", data: Any = None, strides: Any = None, **layout: Any) -> Any:
    """A buffer of the block; TVM writes the strides [1] for a compact one of any number of dimensions."""
    if isinstance(shape, list | tuple) and len(shape) > 1 and strides is not None and list(strides) == [1]:
        strides = None
    return tir.alloc_buffer(shape, dtype, data, strides, **layout)


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
