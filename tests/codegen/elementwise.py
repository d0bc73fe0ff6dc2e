"""Programs of one statement over one loop, scalar and vectorized, with a tail that does not fill a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright.script import tir as T

SIZE = 37
LANES = [1, 8, 16]

NARROW = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numpy_type(dtype: str) -> Any:
    return NARROW.get(dtype, dtype)


def program(function: Callable[..., Any], inputs: list[str], output: str, lanes: int, size: int = SIZE) -> Any:
    """C[i] = function(A[i], ...) for all i; `lanes` at a time."""
    steps = -(-size // lanes)
    if len(inputs) == 1:

        @T.prim_func
        def unary(A: T.Buffer((size,), inputs[0]), C: T.Buffer((size,), output)):
            for i0 in range(steps):
                for i1 in T.vectorized(lanes):
                    if i0 * lanes + i1 < size:
                        C[i0 * lanes + i1] = function(A[i0 * lanes + i1])

        return unary

    if len(inputs) == 2:

        @T.prim_func
        def binary(A: T.Buffer((size,), inputs[0]), B: T.Buffer((size,), inputs[1]), C: T.Buffer((size,), output)):
            for i0 in range(steps):
                for i1 in T.vectorized(lanes):
                    if i0 * lanes + i1 < size:
                        C[i0 * lanes + i1] = function(A[i0 * lanes + i1], B[i0 * lanes + i1])

        return binary

    @T.prim_func
    def ternary(
        A: T.Buffer((size,), inputs[0]),
        B: T.Buffer((size,), inputs[1]),
        D: T.Buffer((size,), inputs[2]),
        C: T.Buffer((size,), output),
    ):
        for i0 in range(steps):
            for i1 in T.vectorized(lanes):
                if i0 * lanes + i1 < size:
                    C[i0 * lanes + i1] = function(A[i0 * lanes + i1], B[i0 * lanes + i1], D[i0 * lanes + i1])

    return ternary


def run(function: Callable[..., Any], arrays: list[np.ndarray], output: str, lanes: int) -> np.ndarray:
    """What the kernel makes of the arrays."""
    names = [str(a.dtype) for a in arrays]
    kernel = tw.compile(program(function, names, output, lanes, len(arrays[0])))
    result = np.zeros(len(arrays[0]), numpy_type(output))
    kernel(*arrays, result)
    return result
