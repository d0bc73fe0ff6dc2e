"""Random programs run to an end or to a report, whatever they do."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import ir

sys.path.insert(0, str(Path(__file__).parents[1] / "script"))
from random_programs import program


def argument(param, buffers, sizes):
    buffer = buffers.get(param)
    if buffer is None:
        return 3
    shape = [sizes.setdefault(e, 8) if isinstance(e, ir.Var) else int(e) for e in buffer.shape]
    kind = np.dtype(getattr(ml_dtypes, buffer.dtype, buffer.dtype))
    return np.ones(shape, kind)


@pytest.mark.parametrize("seed", range(300))
def test_random_programs_end_in_a_result_or_a_report(seed):
    func = program(seed)
    sizes = {}
    args = [argument(param, dict(func.buffer_map), sizes) for param in func.params]
    codes = ("interpret/", "verify/")
    try:
        ir.interpret(ir.as_module(func), next(iter(ir.as_module(func).functions)), *args, max_steps=20000, timeout=5)
    except tw.Error as error:
        assert error.code.startswith(codes)
