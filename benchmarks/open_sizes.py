"""One kernel for all sizes: programs by rules with their sizes left open, against the same ones with sizes in them.

    python benchmarks/open_sizes.py [--only NAME ...] [--rounds 40]

Both kernels take turns in one run, with one thread; printed are the least times of a call and the seconds of processor
time that compiling took.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te, timing


def array(shape: Sequence[Any], name: str) -> Any:
    return te.placeholder(tuple(shape), "float32", name=name)


def steps(extent: Any, name: str) -> Any:
    return te.reduce_axis((0, extent), name=name)


def product(n: Any, m: Any, k: Any) -> list[Any]:
    a, b, r = array((n, k), "A"), array((k, m), "B"), steps(k, "r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r))]


def turned_product(n: Any, m: Any, k: Any) -> list[Any]:
    a, b, r = array((n, k), "A"), array((m, k), "B"), steps(k, "r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r))]


def matrix_vector(n: Any, k: Any) -> list[Any]:
    a, b, r = array((n, k), "A"), array((k,), "B"), steps(k, "r")
    return [a, b, te.compute((n,), lambda i: te.sum(a[i, r] * b[r], axis=r))]


def column_sums(n: Any, k: Any) -> list[Any]:
    a, r = array((n, k), "A"), steps(n, "r")
    return [a, te.compute((k,), lambda i: te.sum(a[r, i], axis=r))]


def conv2d(n: Any, h: Any, w: Any, ci: Any, co: Any) -> list[Any]:
    x, taps = array((n, h + 2, w + 2, ci), "X"), array((3, 3, ci, co), "W")
    a, b, c = steps(3, "a"), steps(3, "b"), steps(ci, "c")
    shape = (n, h, w, co)
    return [x, taps, te.compute(shape, lambda i, y, z, f: te.sum(x[i, y + a, z + b, c] * taps[a, b, c, f], [a, b, c]))]


def conv2d_channels_first(n: Any, h: Any, w: Any, ci: Any, co: Any) -> list[Any]:
    x, taps = array((n, ci, h + 2, w + 2), "X"), array((co, ci, 3, 3), "W")
    a, b, c = steps(3, "a"), steps(3, "b"), steps(ci, "c")
    shape = (n, co, h, w)
    return [x, taps, te.compute(shape, lambda i, f, y, z: te.sum(x[i, c, y + a, z + b] * taps[f, c, a, b], [c, a, b]))]


def depthwise(n: Any, h: Any, w: Any, c: Any) -> list[Any]:
    x, taps, a, b = array((n, h + 2, w + 2, c), "X"), array((3, 3, c), "W"), steps(3, "a"), steps(3, "b")
    return [x, taps, te.compute((n, h, w, c), lambda i, y, z, f: te.sum(x[i, y + a, z + b, f] * taps[a, b, f], [a, b]))]


def depthwise_channels_first(n: Any, h: Any, w: Any, c: Any) -> list[Any]:
    x, taps, a, b = array((n, c, h + 2, w + 2), "X"), array((c, 3, 3), "W"), steps(3, "a"), steps(3, "b")
    return [x, taps, te.compute((n, c, h, w), lambda i, f, y, z: te.sum(x[i, f, y + a, z + b] * taps[f, a, b], [a, b]))]


def pooling(n: Any, h: Any, w: Any, c: Any) -> list[Any]:
    x, a, b = array((n, h * 2, w * 2, c), "X"), steps(2, "a"), steps(2, "b")
    return [x, te.compute((n, h, w, c), lambda i, y, z, f: te.max(x[i, y * 2 + a, z * 2 + b, f], axis=[a, b]))]


def blur(h: Any, w: Any) -> list[Any]:
    x, a, b = array((h + 2, w + 2), "X"), steps(3, "a"), steps(3, "b")
    return [x, te.compute((h, w), lambda y, z: te.sum(x[y + a, z + b], axis=[a, b]))]


def turned(n: Any, m: Any) -> list[Any]:
    a = array((n, m), "A")
    return [a, te.compute((m, n), lambda i, j: a[j, i])]


#: what is computed, at which sizes, and how many of them, from the first, are left open
PROGRAMS: dict[str, tuple[Callable[..., list[Any]], tuple[int, ...], int]] = {
    "product": (product, (197, 256, 128), 3),
    "product, rows open": (product, (197, 256, 128), 1),
    "product of B turned": (turned_product, (197, 256, 128), 3),
    "matrix x vector": (matrix_vector, (512, 300), 2),
    "sums of columns": (column_sums, (512, 300), 2),
    "conv2d": (conv2d, (1, 28, 28, 32, 64), 5),
    "conv2d, images open": (conv2d, (1, 28, 28, 32, 64), 3),
    "conv2d, number of images open": (conv2d, (1, 28, 28, 32, 64), 1),
    "conv2d, channels first": (conv2d_channels_first, (1, 28, 28, 32, 64), 5),
    "conv2d, channels first, images open": (conv2d_channels_first, (1, 28, 28, 32, 64), 3),
    "depthwise": (depthwise, (1, 56, 56, 32), 4),
    "depthwise, images open": (depthwise, (1, 56, 56, 32), 3),
    "depthwise, channels first": (depthwise_channels_first, (1, 56, 56, 32), 4),
    "pooling": (pooling, (1, 28, 28, 32), 4),
    "blur": (blur, (200, 300), 2),
    "transposition": (turned, (300, 500), 2),
}


def run(name: str, rounds: int) -> float:
    """One row; by how much sizes in the program make it faster."""
    make, sizes, count = PROGRAMS[name]
    variables = [te.var(f"n{i}", "int32") for i in range(count)]
    target = tw.Target("native").with_num_cores(1)
    kernels, compiling = [], []
    programs = [te.create_prim_func(make(*given)) for given in ([*variables, *sizes[count:]], sizes)]
    for program in programs:
        begin = time.process_time()
        kernels.append(tw.compile(program, target))
        compiling.append(time.process_time() - begin)
    shapes = [programs[1].buffer_map[param].shape for param in programs[1].params]
    random = np.random.default_rng(0)
    arrays = [random.random([int(extent) for extent in shape], "float32") for shape in shapes]
    found = []
    for kernel in kernels:
        kernel(*arrays)
        found.append(arrays[-1].copy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4)
    times = [math.inf, math.inf]
    for _ in range(rounds):
        for i, kernel in enumerate(kernels):
            begin = time.perf_counter()
            kernel(*arrays)
            kernel(*arrays)
            times[i] = min(times[i], (time.perf_counter() - begin) / 2)
    ratio = times[0] / times[1]
    cells = [name, *map(timing.format_seconds, times), f"{ratio:.2f}x", *(f"{seconds:.2f} s" for seconds in compiling)]
    print("| " + " | ".join(cells) + " |", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    heads = ["program", "sizes open", "sizes known", "open / known", "compiling, open", "compiling, known"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    ratios = [run(name, options.rounds) for name in options.only]
    print(f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}x")


if __name__ == "__main__":
    main()
