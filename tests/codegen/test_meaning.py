"""What operations mean: the interpreter, which computes by the table of the core, against compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.elementwise import numpy_type, program
from tilewright import ir
from tilewright.script import tir as T
from tilewright.script.core import script as core

RANDOM = np.random.default_rng(17)
ROWS = [(name, arity) for name, arity, *_ in core.intrinsics() if 1 <= arity <= 3]
FOR_OTHER_TARGETS = {"dp4a", "q_multiply_shift"}  # they have a meaning, and no code on a CPU
# The interpreter runs them for every type.
UNTYPED = {"if_then_else", "assume", "large_uint_imm", "get_active_lane_mask", "ret", "address_of", "prefetch"}
UNTYPED |= {"vectorlow", "vectorhigh", "vectorcombine"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
TESTS = {"isnan", "isinf", "isfinite"}


def both(func: Any, arrays: list[np.ndarray], output: str) -> list[Any]:
    """The result of the interpreter and of the kernel; None where one refuses."""
    results: list[Any] = []
    module = ir.as_module(func)
    name = next(iter(module.functions))
    for run in (lambda *a: ir.interpret(module, name, *a), lambda *a: tw.compile(module, schedule="as written")(*a)):
        out = np.zeros(len(arrays[0]), numpy_type(output))
        try:
            run(*arrays, out)
            results.append(out)
        except tw.Error as error:
            assert not isinstance(error, tw.InternalError)
            results.append(None)
    return results


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(("name", "arity"), ROWS)
def test_every_row_is_computed_alike_or_refused(name: str, arity: int, dtype: str, lanes: int) -> None:
    output = "bool" if name in TESTS else "int32" if name == "clz" else dtype
    is_float = dtype.startswith("f")
    values = RANDOM.uniform(0.1, 0.9, (arity, 37)) if is_float else RANDOM.integers(0, 7, (arity, 37))
    if is_float and name not in UNTYPED:  # all pairs of special values, and where there is one argument each of them
        pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL]).T
        values = np.concatenate([values, np.resize(pairs, (arity, pairs.shape[1]))], axis=1)
    arrays = list(values.astype(dtype))

    def call(*args: Any) -> Any:
        return T.call_intrin(output, f"tir.{name}", *args)

    try:
        func = program(call, [dtype] * arity, output, lanes)
    except tw.ScriptError as error:
        assert error.code in ("verify/intrinsic", "verify/return", "verify/atomic")
        return
    interpreted, compiled = both(func, arrays, output)
    if compiled is not None:
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-15 if dtype == "float64" else 4e-7)
        if is_float and output == dtype:
            zeros = interpreted == 0
            np.testing.assert_array_equal(np.signbit(compiled[zeros]), np.signbit(interpreted[zeros]))
    elif interpreted is not None:
        assert name in FOR_OTHER_TARGETS | UNTYPED
