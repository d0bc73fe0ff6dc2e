"""Windows that slide by any stride, padded or not: pooling by heuristics is right, and padding is no copy."""

import itertools
import random as rng

import numpy as np
import pytest
from tests.heuristics.cpu.programs import TARGETS, here

import tilewright as tw
from tilewright import _core, ir, te
from tilewright.heuristics import cpu


def pooling(kind, window, stride, edges, is_last, dtype, size, channels):
    """Channels last or first; edges that are padded by a stage, clamped, or not there."""
    pad = 0 if edges == "valid" else (window - 1) // 2
    rows, columns = size

    def at(c, h, w):
        return (h, w, c) if is_last else (c, h, w)

    def split(i):
        return (i[2], i[0], i[1]) if is_last else i

    x = te.placeholder(at(channels, rows, columns), dtype, name="X")
    none = te.min_value(dtype) if kind == "max" else te.const(0, dtype)
    source = x.__getitem__
    if edges == "pad":

        def padded_element(*i):
            c, h, w = split(i)
            inside = te.all(h >= pad, h < rows + pad, w >= pad, w < columns + pad)
            return te.if_then_else(inside, x[at(c, h - pad, w - pad)], none)

        padded = te.compute(at(channels, rows + 2 * pad, columns + 2 * pad), padded_element, name="padded")
        source = padded.__getitem__
    elif edges == "clamped":

        def source(i):
            c, h, w = split(i)
            return x[at(c, te.max(te.min(h - pad, rows - 1), 0), te.max(te.min(w - pad, columns - 1), 0))]

    rh, rw = te.reduce_axis((0, window), name="rh"), te.reduce_axis((0, window), name="rw")
    wide = "int32" if dtype == "int8" and kind == "sum" else dtype

    def element(*i):
        c, h, w = split(i)
        value = source(at(c, h * stride + rh, w * stride + rw)).astype(wide)
        return (te.max if kind == "max" else te.sum)(value, axis=[rh, rw])

    out = [(extent + 2 * pad - window) // stride + 1 for extent in size]
    result = te.compute(at(channels, *out), element, name="pool")
    if kind == "sum" and dtype != "int8":
        sums = result
        result = te.compute(sums.shape, lambda *i: sums[i] * te.const(0.5, dtype), name="scaled")
    return te.create_prim_func([x, result])


def expected(x, kind, window, stride, edges, is_last):
    pad = 0 if edges == "valid" else (window - 1) // 2
    x = np.moveaxis(x, 2, 0) if is_last else x
    if kind == "sum" and x.dtype == np.int8:
        x = x.astype("int32")
    lowest = np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.finfo(x.dtype).min
    widths = [(0, 0), (pad, pad), (pad, pad)]
    if edges == "clamped":
        x = np.pad(x, widths, mode="edge")
    else:
        x = np.pad(x, widths, constant_values=lowest if kind == "max" else 0)
    windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(1, 2))[:, ::stride, ::stride]
    y = windows.max((3, 4)) if kind == "max" else windows.sum((3, 4), dtype=x.dtype)
    if kind == "sum" and x.dtype.kind == "f":
        y = y * x.dtype.type(0.5)
    return np.moveaxis(y, 0, 2) if is_last else y


FAMILY = list(itertools.product(["max", "sum"], [2, 3, 5], [1, 2, 3], ["pad", "clamped", "valid"], [True, False]))


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("seed", range(18))
def test_pooling_by_heuristics(dtype, seed):
    """Each third of the family for each type, at sizes that fill no vectors, on either processor."""
    random = rng.Random(seed)
    for kind, window, stride, edges, is_last in FAMILY[seed::18]:
        size, channels = (random.choice([5, 9, 24]), random.choice([6, 19, 40])), random.choice([1, 3, 20, 64])
        program = pooling(kind, window, stride, edges, is_last, dtype, size, channels)
        x = (
            np.random.default_rng(seed)
            .integers(-9, 9, (*size, channels) if is_last else (channels, *size))
            .astype(dtype)
        )
        wanted = expected(x, kind, window, stride, edges, is_last)
        target = here(TARGETS[seed % 2])
        found = np.full(wanted.shape, 7, wanted.dtype)
        tw.compile(program, target, schedule="by rules")(x, found)
        np.testing.assert_array_equal(found, wanted)


def of_kind(root, kind):
    found = []
    _core.visit(root, lambda node: found.append(node) if isinstance(node, kind) else None)
    return found


def kernel_tir(program):
    """What the kernel by heuristics is made from."""
    sch = tw.Schedule(program)
    cpu.schedule_for_cpu(sch, tw.Target(TARGETS[1]), best=True)
    (function,) = tw.lower(sch.mod, target=TARGETS[1]).functions.values()
    return function.body


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_padding_of_windows_is_no_copy(kind, stride):
    """What lies between the edges asks nothing, and results stay in registers."""
    program = pooling(kind, 3, stride, "pad", True, "float32", (56, 56), 64)
    kernel = tw.compile(program, TARGETS[1], schedule="by rules")
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    assert not any("padded" in buffer.name for buffer in of_kind(kernel_tir(program), ir.Buffer))
    # Of a row, what is between its first and its last element.
    rows = [loop for loop in of_kind(kernel_tir(program), ir.For) if not of_kind(loop.body, ir.For)]
    between = [loop for loop in rows if int(loop.extent) >= 56 // stride - 2]
    assert any(not [call for call in of_kind(loop.body, ir.Call) if "if_then_else" in str(call.op)] for loop in between)


def test_clamped_windows_along_the_lanes_gather_nothing():
    program = pooling("max", 3, 1, "clamped", False, "float32", (56, 56), 1)
    assert "gather" not in tw.compile(program, TARGETS[1], schedule="by rules").inspect("asm")


EDGES = {
    "clamp": lambda v, n: te.max(te.min(v, n - 1), 0),
    "wrap": lambda v, n: (v + n) % n,
    "reflect": lambda v, n: n - 1 - te.abs(n - 1 - te.abs(v)),
    "reflect by conditions": lambda v, n: te.if_then_else(v < 0, -v, te.if_then_else(v > n - 1, 2 * n - 2 - v, v)),
}
MODES = {"clamp": "edge", "wrap": "wrap", "reflect": "reflect", "reflect by conditions": "reflect"}


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("window", [3, 5, 7])
def test_windows_over_clamped_wrapped_and_reflected_images(edges, window):
    """The sums equal NumPy's. Unless indices are only clamped, the padded image is a buffer: no window gathers."""
    rows, columns, around = 21, 45, window // 2
    x = te.placeholder((rows, columns), name="X")
    go_on = EDGES[edges]
    wide = (rows + 2 * around, columns + 2 * around)
    beyond = te.compute(wide, lambda i, j: x[go_on(i - around, rows), go_on(j - around, columns)], name="beyond")
    a, b = te.reduce_axis((0, window), name="a"), te.reduce_axis((0, window), name="b")
    sums = te.compute((rows, columns), lambda i, j: te.sum(beyond[i + a, j + b], axis=[a, b]), name="sums")
    program = te.create_prim_func([x, sums])
    given = np.random.default_rng(window).integers(-9, 9, (rows, columns)).astype("float32")
    padded = np.pad(given, around, mode=MODES[edges])
    wanted = np.lib.stride_tricks.sliding_window_view(padded, (window, window)).sum(axis=(2, 3))
    found = np.zeros((rows, columns), "float32")
    tw.compile(program, schedule="by rules")(given, found)
    np.testing.assert_array_equal(found, wanted)
    if edges != "clamp":
        assert any("beyond" in buffer.name for buffer in of_kind(kernel_tir(program), ir.Buffer))


def test_a_single_element_has_no_rows():
    x = te.placeholder((), name="X")
    copied = te.compute((), lambda: x[()], name="copied")
    program = te.create_prim_func([x, te.compute((8,), lambda i: copied[()] + 1.0, name="Y")])
    found = np.zeros(8, "float32")
    tw.compile(program, schedule="by rules")(np.array(2.0, "float32"), found)
    np.testing.assert_array_equal(found, np.full(8, 3.0, "float32"))
