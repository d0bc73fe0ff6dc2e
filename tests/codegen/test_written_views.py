"""Parameters that are written through views of them."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def through_views(A: T.Buffer((2, 6)), B: T.Buffer((2, 6))):
    for i in range(2):
        with T.block("rows"):
            vi = T.axis.spatial(2, i)
            row = T.match_buffer(B[vi, 0:6], (6,), offset_factor=1)
            for j in range(2):
                with T.block("halves"):
                    vj = T.axis.spatial(2, j)
                    half = T.match_buffer(row[vj * 3 : vj * 3 + 3], (3,), offset_factor=1)
                    for k in range(3):
                        with T.block("elements"):
                            vk = T.axis.spatial(3, k)
                            half[vk] = A[vi, vj * 3 + vk] + T.float32(1)


@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_what_is_written_through_a_view_is_written(target):
    kernel = tw.compile(through_views, target)
    a, b = np.ones((2, 6), "float32"), np.zeros((2, 6), "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, a + 1)
    a.flags.writeable = False
    kernel(a, b)
    b.flags.writeable = False
    with pytest.raises(tw.ArgumentError, match="may be written"):
        kernel(a, b)
