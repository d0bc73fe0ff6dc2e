"""rolling_buffer on cascades: padding, strides, sizes that tiles do not divide, upscaling, several stages."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compat.tvm import topi
from tilewright.testing import check


def pools(size, strides, padding):
    """Pools of 3 x 3, one after the other."""
    data = A = te.placeholder((1, size, size, 2), "int8", name="A")
    for stride in strides:
        data = topi.nn.pool2d(data, (3, 3), (stride, stride), (1, 1), [padding] * 4, "max", layout="NHWC")
    return te.create_prim_func([A, data])


def numpy_pools(data, strides, padding):
    for stride in strides:
        wide = np.pad(data, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)), constant_values=-128)
        data = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2)).max((-1, -2))[:, ::stride, ::stride]
    return data


def tile(sch, block, sizes):
    loops = sch.get_loops(block)
    parts = [sch.split(loop, [None, size]) for loop, size in zip(loops[1:3], sizes, strict=True)]
    sch.reorder(loops[0], *[outer for outer, _ in parts], *[inner for _, inner in parts])
    return parts[-1][0]


def roll(stages, sizes, order):
    """Tiles the last of the pools and computes those before for each tile; their buffers roll in this order."""
    names = ["pool_max", *[f"pool_max_{number}" for number in range(1, stages)]]

    def transform(sch):
        for name in ["pad_temp", *[f"pad_temp_{number}" for number in range(1, stages)]]:
            if name in sch.mod.script():
                sch.compute_inline(name)
        at = tile(sch, names[-1], sizes)
        for name in reversed(names[:-1]):
            sch.compute_at(name, at)
        for number in order:
            sch.rolling_buffer(names[number], 0)

    return transform


def run(sch, a, shape, dtype="int8"):
    found = np.zeros(shape, dtype)
    tw.compile(sch)(a, found)
    return found


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size, strides", [(12, [1, 1]), (13, [1, 2]), (13, [2, 1])])
@pytest.mark.parametrize("sizes", [(2, 8), (1, 3), (3, 2), (8, 2)])
def test_two_pools(size, strides, padding, sizes):
    sch = check(pools(size, strides, padding), roll(2, sizes, [0]))
    a = np.random.default_rng(0).integers(-128, 128, (1, size, size, 2), dtype="int8")
    want = numpy_pools(a, strides, padding)
    np.testing.assert_array_equal(run(sch, a, want.shape), want)


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("size, strides, padding", [(14, [1, 1, 1], 0), (15, [1, 2, 1], 1)])
@pytest.mark.parametrize("sizes", [(2, 3), (1, 8)])
def test_three_pools_of_which_two_roll(size, strides, padding, sizes, order):
    sch = check(pools(size, strides, padding), roll(3, sizes, order))
    assert sch.mod.script().count("T.axis.opaque") == 3
    a = np.random.default_rng(1).integers(-128, 128, (1, size, size, 2), dtype="int8")
    want = numpy_pools(a, strides, padding)
    np.testing.assert_array_equal(run(sch, a, want.shape), want)


def test_either_order_gives_one_program():
    texts = [check(pools(14, [1, 1, 1], 0), roll(3, (2, 3), order)).mod.script() for order in ([0, 1], [1, 0])]
    assert texts[0] == texts[1]


def test_the_window_begins_before_the_first_element():
    """Of windows from 2 t - 1, n = 4 long, the two last elements are new: those at 2 and 3 in the window."""
    text = check(pools(8, [1, 1], 1), roll(2, (2, 8), [0])).mod.script()
    assert 'T.alloc_buffer((1, 4, 8, 2), "int8")' in text
    assert "(ax1_0 < 1 or 2 <= ax0_1)" in text


@pytest.mark.parametrize("factor, rows", [(2, 2), (2, 3), (2, 4), (2, 5), (3, 3), (3, 4)])
def test_upscaling(factor, rows):
    """Windows begin at t * rows // factor: they move by no more than that, rounded up. All are of one length."""
    A = te.placeholder((20,), "int32", name="A")
    B = te.compute((18,), lambda i: A[i] + A[i + 2], name="B")
    C = te.compute((16 * factor,), lambda i: B[i // factor] - B[i // factor + 2], name="C")

    def transform(sch):
        outer, _ = sch.split(sch.get_loops("C")[0], [None, rows])
        sch.compute_at("B", outer)
        sch.rolling_buffer("B", 0)

    sch = check(te.create_prim_func([A, C]), transform)
    a = np.random.default_rng(2).integers(-99, 99, 20, dtype="int32")
    b = a[:18] + a[2:]
    want = np.repeat(b[:16] - b[2:], factor)
    np.testing.assert_array_equal(run(sch, a, want.shape, "int32"), want)
