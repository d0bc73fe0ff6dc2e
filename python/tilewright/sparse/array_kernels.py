"""Kernels over arrays of any length that conversions share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import ir
from tilewright.kernel.kernel import Kernel, compile_quietly
from tilewright.sparse import programs
from tilewright.sparse.structure import name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def compiled(program: ir.PrimFunc) -> Kernel:
    """Return the kernel of a program, without a schedule."""
    kernel = compile_quietly(program, schedule=None)
    assert isinstance(kernel, Kernel)
    return kernel


@functools.cache
def _repeat_kernel(dtype: str) -> Kernel:
    return compiled(programs.repeat(dtype))


def repeated(values: Array, offsets: Array) -> Array:
    """Repeat each value by the difference of two neighboring offsets, of the same type."""
    result = np.empty(int(offsets[-1]), values.dtype)
    _repeat_kernel(name_of(values.dtype))(values, offsets, result)
    return result


@functools.cache
def gather_kernel(dtype: str, index_dtype: str) -> Kernel:
    """Return the kernel that converts values (:func:`tilewright.sparse.programs.gather`)."""
    return compiled(programs.gather(dtype, index_dtype))


@functools.cache
def scatter_kernel(dtype: str, index_dtype: str) -> Kernel:
    """Return the kernel that stores values at positions of their own (:func:`tilewright.sparse.programs.scatter`)."""
    return compiled(programs.scatter(dtype, index_dtype))
