"""tvm.topi of the alias layer against NumPy."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compat.tvm import topi


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("axis", "keepdims"), [(1, False), (0, True), ((0, 2), False), (None, True)])
def test_positions_of_extremes_along_axes(name, axis, keepdims):
    A = te.placeholder((3, 5, 4), "int32")
    kernel = tw.compile(te.create_prim_func([A, getattr(topi, name)(A, axis=axis, keepdims=keepdims)]))
    a = np.random.default_rng(0).integers(0, 4, (3, 5, 4), dtype="int32")
    pair = axis == (0, 2)
    moved = a.transpose(1, 0, 2).reshape(5, 12) if pair else a
    want = getattr(np, name)(moved, 1 if pair else axis, keepdims=keepdims)
    b = np.zeros(want.shape, "int32")
    kernel(a, b)
    assert (b == want).all()


def test_the_last_of_equal_values():
    A = te.placeholder((8,), "float32")
    a, b = np.array([1, 3, 0, 3, 2, 3, 1, 0], "float32"), np.zeros((), "int32")
    tw.compile(te.create_prim_func([A, topi.argmax(A, 0, select_last_index=True)]))(a, b)
    assert b == 5


def test_names_that_are_only_mentioned():
    with pytest.raises(AttributeError, match=r"Tilewright has no tvm\.topi\.conv2d yet"):
        topi.conv2d.schedule
