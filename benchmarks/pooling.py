"""Windows that slide: max and average pooling by rules, as written, by hand, tuned, and by PyTorch.

    python benchmarks/pooling.py [--only TEXT ...] [--size 112] [--channels 64] [--trials 16]

Each row is one program: its window, stride and padding, the order of its dimensions and its type. All kernels of a row
take turns in one run, on one thread; printed are the median of ours and, for each other, its median divided by ours
(above 1: ours is faster). `--trials 0` does not tune. The schedule by hand computes the padding where it is read, keeps
results of neighboring channels (or columns) in registers, and writes the window out.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te, timing
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of


@dataclass(frozen=True)
class Pool:
    """One program.

    Attributes:
        edges: "valid": no padding; "pad": a stage of its own; "clamped": indices stop at the rim.
    """

    kind: str
    window: int
    stride: int
    edges: str
    last: bool
    dtype: str
    size: int
    channels: int

    def __str__(self) -> str:
        order = "NHWC" if self.last else "NCHW"
        return f"{self.kind} {self.window}x{self.window}/{self.stride} {self.edges} {order} {self.dtype}"

    @property
    def pad(self) -> int:
        return 0 if self.edges == "valid" else (self.window - 1) // 2

    @property
    def out(self) -> int:
        return (self.size + 2 * self.pad - self.window) // self.stride + 1

    def program(self) -> Any:
        size, pad, last = self.size, self.pad, self.last
        shape = (size, size, self.channels) if last else (self.channels, size, size)
        x = te.placeholder(shape, self.dtype, name="X")

        def at(c: Any, h: Any, w: Any) -> tuple[Any, ...]:
            return (h, w, c) if last else (c, h, w)

        def split(*i: Any) -> tuple[Any, ...]:
            return (i[2], i[0], i[1]) if last else (i[0], i[1], i[2])

        none: Any = te.min_value(self.dtype) if self.kind == "max" else te.const(0, self.dtype)  # type: ignore[attr-defined]
        source: Callable[..., Any] = lambda *i: x[i]  # noqa: E731
        if self.edges == "pad" and pad:

            def padded_element(*i: Any) -> Any:
                c, h, w = split(*i)
                inside = te.all(h >= pad, h < size + pad, w >= pad, w < size + pad)
                return te.if_then_else(inside, x[at(c, h - pad, w - pad)], none)

            padded = te.compute(at(self.channels, size + 2 * pad, size + 2 * pad), padded_element, name="padded")
            source = lambda *i: padded[i]  # noqa: E731
        elif self.edges == "clamped":

            def clamped(*i: Any) -> Any:
                c, h, w = split(*i)
                h, w = (te.max(te.min(e - pad, size - 1), 0) for e in (h, w))
                return x[at(c, h, w)]

            source = clamped
        rh, rw = te.reduce_axis((0, self.window), name="rh"), te.reduce_axis((0, self.window), name="rw")
        wide = "int32" if self.dtype == "int8" and self.kind == "avg" else self.dtype

        def element(*i: Any) -> Any:
            c, h, w = split(*i)
            value = source(*at(c, h * self.stride + rh, w * self.stride + rw))
            value = value.astype(wide) if wide != self.dtype else value
            return (te.max if self.kind == "max" else te.sum)(value, axis=[rh, rw])

        result = te.compute(at(self.channels, self.out, self.out), element, name="pool")
        if self.kind == "avg" and wide == self.dtype:
            sums = result
            result = te.compute(sums.shape, lambda *i: sums[i] * te.const(1 / self.window**2, wide), name="mean")
        return te.create_prim_func([x, result])

    def by_hand(self, target: tw.Target) -> tw.Schedule:
        """Return the schedule that a user of the primitives would write."""
        sch = tw.Schedule(self.program())
        with contextlib.suppress(tw.Error):
            sch.compute_inline("padded")
        pool = sch.get_block("pool")
        bits = 32 if self.dtype == "int8" and self.kind == "avg" else np.dtype(self.dtype).itemsize * 8
        lanes = target.vector_bits // bits
        *results, rh, rw = sch.get_loops(pool)
        outer, vector = sch.split(results[-1], [None, 4 * lanes if self.last else lanes])
        sch.reorder(*results[:-1], outer, rh, rw, vector)
        if self.kind == "avg" and self.dtype != "int8":
            copy = sch.get_block("mean")
        else:
            copy = sch.cache_write(pool, 0, "local")
        sch.reverse_compute_at(copy, outer)
        sch.set_scope(pool, 0, "local")
        begin = sch.decompose_reduction(pool, rh)
        for loop in (vector, sch.get_loops(copy)[-1], sch.get_loops(begin)[-1]):
            sch.vectorize(loop)
        sch.unroll(rh)
        sch.unroll(rw)
        return sch

    def peer(self, x: np.ndarray) -> Callable[[], object] | None:
        """PyTorch's, where it has one of the same meaning."""
        if self.edges == "clamped" and (self.kind == "avg" or self.pad == 0):
            return None
        import torch

        given = torch.from_numpy(x)
        images = (given.permute(2, 0, 1) if self.last else given).unsqueeze(0)
        run = torch.nn.functional.max_pool2d if self.kind == "max" else torch.nn.functional.avg_pool2d
        with contextlib.suppress(RuntimeError), torch.no_grad():
            run(images, self.window, self.stride, self.pad)
            return lambda: run(images, self.window, self.stride, self.pad)
        return None


def pools(size: int, channels: int) -> list[Pool]:
    """The whole family."""
    return [
        Pool(kind, window, stride, edges, last, dtype, size, channels)
        for dtype, last, kind, edges, window, stride in itertools.product(
            ("float32", "int8", "float64"),
            (True, False),
            ("max", "avg"),
            ("pad", "clamped", "valid"),
            (2, 3, 5),
            (1, 2, 3),
        )
        if window >= stride and not (edges != "valid" and window == 2)
    ]


def measure(pool: Pool, target: tw.Target, trials: int, budget: float) -> tuple[float, dict[str, float]]:
    """Median seconds by rules, and of the others as multiples of that."""
    program = pool.program()
    kernels = {
        "by rules": tw.compile(program, target, schedule="by rules"),
        "as written": tw.compile(program, target, schedule="as written"),
        "by hand": tw.compile(pool.by_hand(target), target),
    }
    if trials:
        kernels["tuned"] = tw.tune(program, target=str(target), trials=trials, progress=None).kernel
    task = task_of(program)
    arrays = list(make_arrays(task, {}, 0).values())
    wanted: np.ndarray | None = None
    functions: dict[str, Callable[[], object]] = {}
    for name, kernel in kernels.items():
        own = [array.copy() for array in arrays]
        kernel(*own)
        if wanted is None:
            wanted = own[-1]
        np.testing.assert_allclose(own[-1], wanted, rtol=1e-5, atol=1e-5)
        functions[name] = timing.KernelCalls(kernel, own)
    peer = pool.peer(arrays[0])
    if peer is not None:
        functions["PyTorch"] = peer
    with timing.limit_threads(1):
        times = timing.time_slices(functions, budget=budget).seconds
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    own = medians.pop("by rules")
    return own, {name: seconds / own for name, seconds in medians.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="texts that are all in the name of a row")
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of measuring for a row")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    target = tw.Target("native").with_num_cores(1)
    columns = ["as written", "by hand", *(["tuned"] if options.trials else []), "PyTorch"]
    heads = ("program", "by rules", *columns)
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    found: dict[str, list[float]] = {name: [] for name in columns}
    for pool in pools(options.size, options.channels):
        if not all(text in str(pool) for text in options.only):
            continue
        own, ratios = measure(pool, target, options.trials, options.budget)
        for name, ratio in ratios.items():
            found[name].append(ratio)
        cells = [f"{ratios[name]:.2f}x" if name in ratios else "" for name in columns]
        print("| " + " | ".join([str(pool), timing.format_seconds(own), *cells]) + " |", flush=True)
    for name, ratios in found.items():
        if ratios:
            mean = math.exp(statistics.mean(map(math.log, ratios)))
            print(f"against {name}: geometric mean {mean:.2f}, least {min(ratios):.2f}, of {len(ratios)} programs")


if __name__ == "__main__":
    main()
