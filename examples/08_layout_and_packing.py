"""Lesson 8: choose layouts for the inner loop. A convolution with padding, bias and ReLU.

python examples/08_layout_and_packing.py

The inner product multiplies 16 output channels by one element of the input. In the layout of the tensors, these 16
results and their weights are strided. `transform_layout` changes the layout of a buffer and all its accesses: it
makes the 16 channels of the result contiguous, and those of a copy of the weights, which `cache_read` creates.
Arguments of the kernel keep their layout.
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T
from tilewright.tables import Table
from tilewright.timing import KernelCalls, format_seconds, limit_threads, time_interleaved

C, O, H, W = 64, 64, 56, 56


@T.prim_func
def conv_bias_relu(
    X: T.Buffer((C, H, W), "float32"),
    F: T.Buffer((O, C, 3, 3), "float32"),
    B: T.Buffer((O,), "float32"),
    Y: T.Buffer((O, H, W), "float32"),
):
    padded = T.alloc_buffer((C, H + 2, W + 2), "float32")
    conv = T.alloc_buffer((O, H, W), "float32")
    for c, y, x in T.grid(C, H + 2, W + 2):
        with T.block("padded"):
            vc, vy, vx = T.axis.remap("SSS", [c, y, x])
            inside = T.And(T.And(vy >= 1, vy < H + 1), T.And(vx >= 1, vx < W + 1))
            padded[vc, vy, vx] = T.if_then_else(inside, X[vc, vy - 1, vx - 1], T.float32(0))
    for o, y, x, c, ky, kx in T.grid(O, H, W, C, 3, 3):
        with T.block("conv"):
            vo, vy, vx, vc, vky, vkx = T.axis.remap("SSSRRR", [o, y, x, c, ky, kx])
            with T.init():
                conv[vo, vy, vx] = T.float32(0)
            conv[vo, vy, vx] += padded[vc, vy + vky, vx + vkx] * F[vo, vc, vky, vkx]
    for o, y, x in T.grid(O, H, W):
        with T.block("Y"):
            vo, vy, vx = T.axis.remap("SSS", [o, y, x])
            Y[vo, vy, vx] = T.max(conv[vo, vy, vx] + B[vo], T.float32(0))


LANES, COLUMNS = 16, 7  # of a register tile of results


def schedule() -> tw.Schedule:
    sch = tw.Schedule(conv_bias_relu)
    conv = sch.get_block("conv")
    # Layouts: the channels of a vector are contiguous.
    packed = sch.cache_read(conv, 1, "global")
    sch.transform_layout(packed, ("write", 0), lambda o, c, y, x: (o // LANES, c, y, x, o % LANES))
    sch.transform_layout(conv, ("write", 0), lambda o, y, x: (o // LANES, y, x, o % LANES))
    # Loop order: a register tile of columns and channels accumulates all products.
    o, y, x, c, ky, kx = sch.get_loops(conv)
    o, lanes = sch.split(o, factors=[None, LANES])
    x, columns = sch.split(x, factors=[None, COLUMNS])
    sch.reorder(o, y, x, c, ky, kx, columns, lanes)
    tile = sch.cache_write(conv, 0, "local")
    sch.reverse_compute_at(tile, x)
    sch.decompose_reduction(conv, c)
    for block in ("conv_init", conv, tile):
        *_, columns, lanes = sch.get_loops(block)
        sch.vectorize(lanes)
        sch.unroll(columns)
    # Add bias and ReLU to a row of results while it is in cache.
    sch.reverse_compute_at("Y", y)
    for block in ("padded", "Y"):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.parallel(o)
    return sch


def reference(x: np.ndarray, f: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute it as a matrix product (im2col): each window is a column."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    columns = windows.transpose(0, 3, 4, 1, 2).reshape(C * 9, H * W)
    return np.maximum((f.reshape(O, C * 9) @ columns).reshape(O, H, W) + b[:, None, None], 0)


def main() -> None:
    sch = schedule()
    print(sch.trace)
    print(sch.verify(seconds=1))
    written, scheduled = tw.compile(conv_bias_relu, schedule="as written"), tw.compile(sch)
    random = np.random.default_rng(0)
    x, f, b = (random.standard_normal(n).astype("float32") for n in [(C, H, W), (O, C, 3, 3), O])
    y = np.empty((O, H, W), "float32")
    scheduled(x, f, b, y)
    np.testing.assert_allclose(y, reference(x, f, b), rtol=1e-3, atol=1e-3)
    calls = {
        "NumPy": lambda: reference(x, f, b),
        "as written": KernelCalls(written, (x, f, b, y)),
        "scheduled": KernelCalls(scheduled, (x, f, b, y)),
    }
    with limit_threads(1):
        times = {way: float(np.median(samples)) for way, samples in time_interleaved(calls, rounds=5).items()}
    rows = []
    for way, time in times.items():
        speed = 2 * O * C * 9 * H * W / time / 1e9
        rows.append((way, format_seconds(time), f"{speed:.1f}", f"{times['NumPy'] / time:.2f}"))
    headings = ("", "time", "GFLOP/s", "x NumPy's speed")
    print(Table(f"{O} of {C} channels, {H} x {W}, 1 thread", headings, tuple(rows)))


if __name__ == "__main__":
    main()
