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


@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "ceil_mode"),
    [
        ((1, 1), (1, 1), (0, 0, 0, 0), False),
        ((2, 3), (1, 2), (1, 0, 2, 1), False),
        ((2, 2), (1, 1), (0, 1, 0, 1), True),
    ],
)
def test_pools(pool_type, layout, stride, dilation, padding, ceil_mode):
    shape = (2, 9, 10, 3) if layout == "NHWC" else (2, 3, 9, 10)
    A = te.placeholder(shape, "float32", name="A")
    B = topi.nn.pool2d(A, (3, 2), stride, dilation, padding, pool_type, ceil_mode, layout)
    a = np.random.default_rng(0).integers(-9, 9, shape).astype("float32")
    picture = a if layout == "NCHW" else a.transpose(0, 3, 1, 2)
    extra = [step - 1 if ceil_mode else 0 for step in stride]
    border = -np.finfo("float32").max if pool_type == "max" else 0
    top, left, bottom, right = padding
    wide = np.pad(picture, ((0, 0), (0, 0), (top, bottom + extra[0]), (left, right + extra[1])), constant_values=border)
    rows, columns = [
        range(0, wide.shape[2 + d] - (kernel - 1) * dilation[d], stride[d]) for d, kernel in enumerate((3, 2))
    ]
    want = np.zeros((2, 3, len(rows), len(columns)), "float32")
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            window = wide[:, :, y : y + 2 * dilation[0] + 1 : dilation[0], x : x + dilation[1] + 1 : dilation[1]]
            want[:, :, i, j] = window.max((2, 3)) if pool_type == "max" else window.sum((2, 3)) / np.float32(6)
    want = want if layout == "NCHW" else want.transpose(0, 2, 3, 1)
    b = np.zeros(want.shape, "float32")
    tw.compile(te.create_prim_func([A, B]))(a, b)
    np.testing.assert_allclose(b, want, rtol=1e-6)


def test_pools_that_are_not_there():
    A = te.placeholder((1, 8, 8, 2), name="A")
    with pytest.raises(ValueError, match="pool2d of type 'min'"):
        topi.nn.pool2d(A, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "min", layout="NHWC")
    with pytest.raises(ValueError, match="count_include_pad=True"):
        topi.nn.pool2d(A, (2, 2), (1, 1), (1, 1), (1, 1, 1, 1), "avg", False, "NHWC", False)
    with pytest.raises(AttributeError, match=r"Tilewright has no tvm\.topi\.nn\.dense yet"):
        topi.nn.dense.schedule
