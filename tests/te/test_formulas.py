"""Workloads as formulas, against NumPy."""

import numpy as np
import pytest

from tilewright import te
from tilewright.testing import formulas, run_in_interpreter


def run(tensors):
    return run_in_interpreter(te.create_prim_func(tensors))


def test_products():
    a, b, c = run(formulas.matmul(3, 4, 5))
    np.testing.assert_array_equal(c, a @ b)
    a, b, c = run(formulas.matmul(3, 4, 5, "int8", "int32"))
    np.testing.assert_array_equal(c, a.astype("int32") @ b.astype("int32"))
    a, b, c = run(formulas.matmul_relu(3, 4, 5))
    np.testing.assert_array_equal(c, np.maximum(a @ b, 0))
    x, y, z = run(formulas.batch_matmul_nkkm(2, 3, 4, 5))
    np.testing.assert_array_equal(z, x @ y)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (1, 1, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)]
)
def test_convolution(stride, padding, dilation, groups):
    image, weight, result = run(formulas.conv2d_nhwc(1, 6, 7, 4, 6, 3, stride, padding, dilation, groups))
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    want = np.zeros_like(result)
    inputs, outputs = 4 // groups, 6 // groups
    for _, h, w, co in np.ndindex(result.shape):
        rows = slice(h * stride, h * stride + 2 * dilation + 1, dilation)
        columns = slice(w * stride, w * stride + 2 * dilation + 1, dilation)
        channels = slice(co // outputs * inputs, co // outputs * inputs + inputs)
        want[0, h, w, co] = (padded[0, rows, columns, channels] * weight[:, :, :, co]).sum()
    np.testing.assert_array_equal(result, want)
