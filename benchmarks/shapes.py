"""Programs and shapes that are no operator of a suite, without a schedule: by rules, as written, and by PyTorch.

    python benchmarks/shapes.py [NAME...] [--target "llvm -mcpu=x86-64-v3"]

All are timed in turn in one run, on one thread; printed is the least of the times, since other work of the machine only
adds to them, and how often the rules are as fast as the program as written and as PyTorch.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te, timing
from tilewright.arguments import make_arrays
from tilewright.task import task_of


def reduce(*sizes: int) -> list[Any]:
    make: Any = te.reduce_axis
    return [make((0, size), name=f"r{n}") for n, size in enumerate(sizes)]


def product(n: int, m: int, k: int, types: tuple[str, str, str] = ("float32",) * 3, turned: bool = False) -> Any:
    a = te.placeholder((n, k), types[0], name="A")
    b = te.placeholder((m, k) if turned else (k, m), types[1], name="B")
    (r,) = reduce(k)
    right = (lambda j: b[j, r]) if turned else (lambda j: b[r, j])
    c = te.compute(
        (n, m), lambda i, j: te.sum(a[i, r].astype(types[2]) * right(j).astype(types[2]), axis=[r]), name="C"
    )
    return te.create_prim_func([a, b, c])


def matrix_vector(n: int, k: int, turned: bool = False) -> Any:
    a, x = te.placeholder((k, n) if turned else (n, k), name="A"), te.placeholder((k,), name="x")
    (r,) = reduce(k)
    element = (lambda i: a[r, i]) if turned else (lambda i: a[i, r])
    return te.create_prim_func([a, x, te.compute((n,), lambda i: te.sum(element(i) * x[r], axis=[r]), name="y")])


def batched_vector(b: int, n: int, k: int) -> Any:
    a, x = te.placeholder((b, n, k), name="A"), te.placeholder((b, k), name="x")
    (r,) = reduce(k)
    return te.create_prim_func(
        [a, x, te.compute((b, n), lambda s, i: te.sum(a[s, i, r] * x[s, r], axis=[r]), name="y")]
    )


def rows(m: int, n: int, fold: Callable[..., Any]) -> Any:
    x = te.placeholder((m, n), name="X")
    (k,) = reduce(n)
    return te.create_prim_func([x, te.compute((m,), lambda i: fold(x[i, k], axis=[k]), name="Y")])


def columns(m: int, n: int) -> Any:
    x = te.placeholder((m, n), name="X")
    (k,) = reduce(m)
    return te.create_prim_func([x, te.compute((n,), lambda i: te.sum(x[k, i], axis=[k]), name="Y")])


def total(n: int) -> Any:
    x = te.placeholder((n,), name="X")
    (k,) = reduce(n)
    return te.create_prim_func([x, te.compute((1,), lambda _: te.sum(x[k], axis=[k]), name="Y")])


def layer_norm(m: int, n: int) -> Any:
    x, gain, bias = (te.placeholder(s, name=v) for s, v in (((m, n), "X"), ((n,), "G"), ((n,), "B")))
    k, k2 = reduce(n, n)
    mean = te.compute((m,), lambda i: te.sum(x[i, k], axis=[k]), name="mean")
    spread = te.compute(
        (m,), lambda i: te.sum((x[i, k2] - mean[i] / n) * (x[i, k2] - mean[i] / n), axis=[k2]), name="spread"
    )
    scale = te.compute((m,), lambda i: te.rsqrt(spread[i] / n + 1e-5), name="scale")  # type: ignore[attr-defined]
    y = te.compute((m, n), lambda i, j: (x[i, j] - mean[i] / n) * scale[i] * gain[j] + bias[j], name="Y")
    return te.create_prim_func([x, gain, bias, y])


def softmax(m: int, n: int) -> Any:
    x = te.placeholder((m, n), name="X")
    k, k2 = reduce(n, n)
    top = te.compute((m,), lambda i: te.max(x[i, k], axis=[k]), name="top")
    power = te.compute((m, n), lambda i, j: te.exp(x[i, j] - top[i]), name="power")  # type: ignore[attr-defined]
    sums = te.compute((m,), lambda i: te.sum(power[i, k2], axis=[k2]), name="sums")
    return te.create_prim_func([x, te.compute((m, n), lambda i, j: power[i, j] / sums[i], name="Y")])


def each(shape: tuple[int, ...], function: Callable[[Any], Any]) -> Any:
    x = te.placeholder(shape, name="X")
    return te.create_prim_func([x, te.compute(shape, lambda *i: function(x[i]), name="Y")])


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + te.erf(x * math.sqrt(0.5)))  # type: ignore[attr-defined]


def chain(m: int, n: int) -> Any:
    x, b = te.placeholder((m, n), name="X"), te.placeholder((n,), name="b")
    one = te.compute((m, n), lambda i, j: x[i, j] + b[j], name="one")
    two = te.compute((m, n), lambda i, j: te.max(one[i, j], 0.0), name="two")
    return te.create_prim_func([x, b, te.compute((m, n), lambda i, j: two[i, j] * x[i, j], name="Y")])


def turned(m: int, n: int) -> Any:
    x = te.placeholder((m, n), name="X")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: x[j, i], name="Y")])


def heads(b: int, s: int, h: int, d: int) -> Any:
    x = te.placeholder((b, s, h, d), name="X")
    return te.create_prim_func([x, te.compute((b, h, s, d), lambda n, i, j, k: x[n, j, i, k], name="Y")])


def stencil(n: int) -> Any:
    x = te.placeholder((n, n), name="X")
    y = te.compute(
        (n - 2, n - 2),
        lambda i, j: (x[i, j + 1] + x[i + 1, j] + x[i + 1, j + 1] + x[i + 1, j + 2] + x[i + 2, j + 1]) * 0.2,
        name="Y",
    )
    return te.create_prim_func([x, y])


def pool(n: int, channels: int) -> Any:
    x = te.placeholder((2 * n + 1, 2 * n + 1, channels), name="X")
    a, b = reduce(3, 3)
    y = te.compute((n, n, channels), lambda i, j, c: te.max(x[2 * i + a, 2 * j + b, c], axis=[a, b]), name="Y")
    return te.create_prim_func([x, y])


def gather(n: int, m: int, k: int) -> Any:
    table, index = te.placeholder((n, k), name="table"), te.placeholder((m,), "int32", name="index")
    return te.create_prim_func([table, index, te.compute((m, k), lambda i, j: table[index[i], j], name="Y")])


HALVES, BYTES = ("float16", "float16", "float32"), ("uint8", "int8", "int32")

#: programs, and PyTorch's function of the same arrays where it has one
PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[..., Any] | None]] = {
    "product 197x197x768": (lambda: product(197, 197, 768), lambda t, a, b: t.matmul(a, b)),
    "product 251x257x263": (lambda: product(251, 257, 263), lambda t, a, b: t.matmul(a, b)),
    "product 127x509x257": (lambda: product(127, 509, 257), lambda t, a, b: t.matmul(a, b)),
    "product 16x16x16": (lambda: product(16, 16, 16), lambda t, a, b: t.matmul(a, b)),
    "product 5x7x3": (lambda: product(5, 7, 3), lambda t, a, b: t.matmul(a, b)),
    "product 8x2048x2048": (lambda: product(8, 2048, 2048), lambda t, a, b: t.matmul(a, b)),
    "product 4096x16x64": (lambda: product(4096, 16, 64), lambda t, a, b: t.matmul(a, b)),
    "product 512x3x512": (lambda: product(512, 3, 512), lambda t, a, b: t.matmul(a, b)),
    "product 128x768x3072": (lambda: product(128, 768, 3072), lambda t, a, b: t.matmul(a, b)),
    "product 512 of B turned": (lambda: product(512, 512, 512, turned=True), lambda t, a, b: t.matmul(a, b.T)),
    "matrix x vector 1024": (lambda: matrix_vector(1024, 1024), lambda t, a, x: t.mv(a, x)),
    "matrix x vector 4096": (lambda: matrix_vector(4096, 4096), lambda t, a, x: t.mv(a, x)),
    "vector x matrix 1024": (lambda: matrix_vector(1024, 1024, turned=True), lambda t, a, x: t.mv(a.T, x)),
    "vector x matrix 1000x3000": (lambda: matrix_vector(1000, 3000, turned=True), lambda t, a, x: t.mv(a.T, x)),
    "batched matrix x vector": (
        lambda: batched_vector(64, 128, 96),
        lambda t, a, x: t.bmm(a, x.unsqueeze(2)),
    ),
    "u8 x i8 512": (lambda: product(512, 512, 512, BYTES), None),
    "u8 x i8 512 of B turned": (lambda: product(512, 512, 512, BYTES, turned=True), None),
    "i8 x i8 512": (lambda: product(512, 512, 512, ("int8", "int8", "int32")), lambda t, a, b: t._int_mm(a, b)),
    "i8 x i8 197x197x768": (
        lambda: product(197, 200, 768, ("int8", "int8", "int32")),
        lambda t, a, b: t._int_mm(a, b),
    ),
    "float16 512": (lambda: product(512, 512, 512, HALVES), lambda t, a, b: t.matmul(a, b)),
    "bfloat16 512": (
        lambda: product(512, 512, 512, ("bfloat16", "bfloat16", "float32")),
        lambda t, a, b: t.matmul(a, b),
    ),
    "float64 256": (lambda: product(256, 256, 256, ("float64",) * 3), lambda t, a, b: t.matmul(a, b)),
    "int32 256": (lambda: product(256, 256, 256, ("int32",) * 3), lambda t, a, b: t.matmul(a, b)),
    "sums of rows 1000x1000": (lambda: rows(1000, 1000, te.sum), lambda t, x: t.sum(x, 1)),
    "sums of rows 3000x37": (lambda: rows(3000, 37, te.sum), lambda t, x: t.sum(x, 1)),
    "greatest of rows 1000x1000": (lambda: rows(1000, 1000, te.max), lambda t, x: t.amax(x, 1)),
    "sums of columns 1000x1000": (lambda: columns(1000, 1000), lambda t, x: t.sum(x, 0)),
    "sums of columns 3000x37": (lambda: columns(3000, 37), lambda t, x: t.sum(x, 0)),
    "sum of 1000003": (lambda: total(1000003), lambda t, x: t.sum(x)),
    "layer norm 512x1024": (
        lambda: layer_norm(512, 1024),
        lambda t, x, g, b: t.nn.functional.layer_norm(x, (x.shape[1],), g, b),
    ),
    "layer norm 197x771": (
        lambda: layer_norm(197, 771),
        lambda t, x, g, b: t.nn.functional.layer_norm(x, (x.shape[1],), g, b),
    ),
    "softmax 197x197": (lambda: softmax(197, 197), lambda t, x: t.softmax(x, 1)),
    "softmax 64x5003": (lambda: softmax(64, 5003), lambda t, x: t.softmax(x, 1)),
    "relu 1000x1000": (lambda: each((1000, 1000), lambda v: te.max(v, 0.0)), lambda t, x: t.relu(x)),
    "gelu 128x3072": (lambda: each((128, 3072), gelu), lambda t, x: t.nn.functional.gelu(x)),
    "tanh 77x77x77": (
        lambda: each((77, 77, 77), lambda v: te.tanh(v)),  # type: ignore[attr-defined]
        lambda t, x: t.tanh(x),
    ),
    "bias, relu, product 999x333": (lambda: chain(999, 333), lambda t, x, b: t.relu(x + b) * x),
    "transpose 1024x1024": (lambda: turned(1024, 1024), lambda t, x: x.T.contiguous()),
    "transpose 1000x777": (lambda: turned(1000, 777), lambda t, x: x.T.contiguous()),
    "heads first 128x12x64": (lambda: heads(1, 128, 12, 64), lambda t, x: x.permute(0, 2, 1, 3).contiguous()),
    "stencil 1000": (lambda: stencil(1000), None),
    "max pool 56, 64 channels": (
        lambda: pool(28, 64),
        lambda t, x: t.nn.functional.max_pool2d(x.permute(2, 0, 1).unsqueeze(0), 3, 2),
    ),
    "gather 1000 rows of 300": (lambda: gather(5000, 1000, 300), lambda t, x, i: t.index_select(x, 0, i)),
}

#: what no random numbers do for
INPUTS = {"gather 1000 rows of 300": {"index": np.random.default_rng(0).integers(0, 5000, 1000, "int32")}}


def in_turn(
    functions: dict[str, Callable[[], object]], seconds: float = 0.6, turn: float = 0.002, threads: int = 1
) -> dict[str, float]:
    """The least time of a call of each; one runs for `turn` seconds before it is the next one's turn."""
    least = dict.fromkeys(functions, math.inf)
    end = time.perf_counter() + seconds
    with timing.limit_threads(threads):
        while time.perf_counter() < end or math.inf in least.values():
            for name, function in functions.items():
                start = time.perf_counter()
                count = 0
                while time.perf_counter() - start < turn or count == 0:
                    one = time.perf_counter()
                    function()
                    least[name] = min(least[name], time.perf_counter() - one)
                    count += 1
    return least


def run(name: str, target: tw.Target) -> dict[str, float]:
    make, other = PROGRAMS[name]
    program = make()
    arrays = list(make_arrays(task_of(program), INPUTS.get(name, {}), 0).values())
    ruled, written = tw.compile(program, target), tw.compile(program, target, schedule="as written")
    functions: dict[str, Callable[[], object]] = {
        "by rules": lambda: ruled(*arrays),
        "as written": lambda: written(*arrays),
    }
    if other is not None:
        import torch

        theirs = [torch.from_numpy(a) if a.dtype != "bfloat16" else bfloat16(torch, a) for a in arrays[:-1]]
        functions["PyTorch"] = lambda: other(torch, *theirs)
    return in_turn(functions)


def bfloat16(torch: Any, array: Any) -> Any:
    return torch.from_numpy(array.view("int16")).view(torch.bfloat16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--target", default="native")
    options = parser.parse_args()
    target = tw.Target(options.target).with_num_cores(1)
    heads = ("program", "by rules", "as written", "PyTorch", "against as written", "against PyTorch")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    against: dict[str, list[float]] = {"as written": [], "PyTorch": []}
    for name in options.names:
        times = run(name, target)
        row = [name, *(timing.format_seconds(times[way]) if way in times else "" for way in ("by rules", *against))]
        for way, found in against.items():
            if way in times:
                found.append(times[way] / times["by rules"])
            row.append(f"{found[-1]:.2f}x" if way in times else "")
        print("| " + " | ".join(row) + " |", flush=True)
    for way, found in against.items():
        if found:
            mean = math.exp(statistics.mean(map(math.log, found)))
            print(
                f"geometric mean against {way}: {mean:.2f}, at least 1 on {sum(x >= 1 for x in found)} of {len(found)}"
            )


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
