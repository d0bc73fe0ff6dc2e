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
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import everyday


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


def attention(heads: int, rows: int, width: int) -> Made:
    """Against the fused one, which takes a batch of heads alone."""

    def fused(t: Any, *operands: Any) -> Any:
        q, k, v = (operand[None] for operand in operands)
        return t.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.125)

    return (lambda: everyday.attention(heads, rows, width), fused)


def nibbles(n: int, k: int, times_vector: bool = False) -> Any:
    """Weights of four bits, two in a byte, with a scale for each 32; or what a vector makes of them."""
    p, s = te.placeholder((n, k // 2), "uint8", name="P"), te.placeholder((n, k // 32), name="s")
    x, (r,) = te.placeholder((k,), name="x"), reduce(k)

    def weight(i: Any, j: Any) -> Any:
        part = (p[i, j // 2] >> ((j % 2) * 4).astype("uint8")) & te.const(15, "uint8")
        return (part.astype("int32").astype("float32") - 8.0) * s[i, j // 32]

    w = te.compute((n, k), weight, name="W")
    if not times_vector:
        return te.create_prim_func([p, s, w])
    return te.create_prim_func([p, s, x, te.compute((n,), lambda i: te.sum(w[i, r] * x[r], axis=[r]), name="Y")])


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

#: what makes a program, and PyTorch's function of the same arrays where it has one
Made = tuple[Callable[[], Any], Callable[..., Any] | None]

PROGRAMS: dict[str, Made] = {
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

#: those of tilewright.testing.everyday, as people write them who know nothing of schedules
PROGRAMS |= {
    "product 64x64x65536": (lambda: product(64, 64, 65536), lambda t, a, b: t.matmul(a, b)),
    "product 512x512x8192": (lambda: product(512, 512, 8192), lambda t, a, b: t.matmul(a, b)),
    "bfloat16 197x200x768": (
        lambda: product(197, 200, 768, ("bfloat16", "bfloat16", "float32")),
        lambda t, a, b: t.matmul(a, b),
    ),
    "weights of 4 bits 2048": (lambda: nibbles(2048, 2048), None),
    "weights of 4 bits 2048 x vector": (lambda: nibbles(2048, 2048, True), None),
    "blur in two passes, zeros around": (lambda: everyday.blur_zero_edges(1024, 1024), None),
    "blur in two passes, clamped": (lambda: everyday.blur_clamped_edges(1024, 1024), None),
    "stencil, two steps": (lambda: everyday.stencil_twice(1024, 1024), None),
    "unsharp mask": (lambda: everyday.unsharp_mask(768, 1024), None),
    "sobel": (lambda: everyday.sobel(1024, 1024), None),
    "jacobi": (lambda: everyday.jacobi(1024, 1024), None),
    "running sums": (lambda: everyday.running_sums(512, 1024), lambda t, a: t.cumsum(a, 1)),
    "running sums down": (lambda: everyday.running_sums_down(512, 1024), lambda t, a: t.cumsum(a, 0)),
    "sums of what is before": (lambda: everyday.triangle_sums(2048), lambda t, a: t.cumsum(a, 0)),
    "histogram": (lambda: everyday.histogram(1 << 20, 256), lambda t, a: t.bincount(a, minlength=256)),
    "argmax": (lambda: everyday.argmax(512, 1000), lambda t, a: t.max(a, 1)),
    "masked softmax": (
        lambda: everyday.masked_softmax(512, 512),
        lambda t, a: t.softmax((a * 0.125).masked_fill(t.triu(t.ones_like(a, dtype=t.bool), 1), -1e9), 1),
    ),
    "rms norm": (
        lambda: everyday.rms_norm(512, 1024),
        lambda t, x, g: t.nn.functional.rms_norm(x, (1024,), g, 1e-6),
    ),
    "rotary embedding": (lambda: everyday.rotary(256, 16, 64), None),
    "depth to space": (
        lambda: everyday.depth_to_space(128, 128, 32),
        lambda t, x: x.view(128, 128, 2, 2, 32).permute(0, 2, 1, 3, 4).contiguous(),
    ),
    "mean of windows": (
        lambda: everyday.mean_pool(112, 112, 32),
        lambda t, x: t.nn.functional.avg_pool2d(x.permute(2, 0, 1).unsqueeze(0), 2),
    ),
    "max pool, channels first": (
        lambda: everyday.max_pool_channels_first(64, 56, 56),
        lambda t, x: t.nn.functional.max_pool2d(x.unsqueeze(0), 3, 2, 1),
    ),
    "mean of channels": (lambda: everyday.pool_all(512, 28, 28), lambda t, x: x.mean((1, 2))),
    "embedding": (lambda: everyday.embedding(5000, 512, 768), lambda t, table, place, i: table[i] + place),
    "scatter": (
        lambda: everyday.scatter_add(1000, 4096, 128),
        lambda t, x, i: x.new_zeros(1000, 128).index_add_(0, i, x),
    ),
    "attention": attention(12, 197, 64),
    "attention 8x512x64": attention(8, 512, 64),
    "attention 12x577x64": attention(12, 577, 64),
    "attention 1x2048x128": attention(1, 2048, 128),
    "filter of 31 taps": (
        lambda: everyday.filter_signal(1 << 18, 31),
        lambda t, x, w: t.nn.functional.conv1d(x.view(1, 1, -1), w.view(1, 1, -1)),
    ),
    "polynomial": (lambda: everyday.polynomial(1 << 18), None),
    "polynomial of coefficients": (lambda: everyday.polynomial_of_coefficients(1 << 16, 8), None),
    "a matrix and its transpose": (lambda: everyday.add_transposed(1024), lambda t, a: a + a.T),
    "bytes to floats, 3 channels": (lambda: everyday.scale_bytes(224 * 224, 3), lambda t, x, m, r: (x.float() - m) * r),
    "rows to bytes": (lambda: everyday.quantize(512, 1024), None),
    "distances": (lambda: everyday.distances(512, 512, 64), lambda t, x, y: t.cdist(x, y)),
    "variance of columns": (lambda: everyday.variance(1024, 512), lambda t, x: t.var(x, 0, correction=0)),
    "cross entropy": (
        lambda: everyday.cross_entropy(256, 5000),
        lambda t, x, i: t.nn.functional.cross_entropy(x, i.long(), reduction="none"),
    ),
    "gated products": (lambda: everyday.gated(128, 512, 512), lambda t, x, u, w: (x @ u) * t.nn.functional.silu(x @ w)),
    "resize": (lambda: everyday.resize(128, 128, 32), None),
    "bias, heads first": (
        lambda: everyday.heads_and_bias(1, 128, 12, 64),
        lambda t, x, b: (x + b).view(1, 128, 12, 64).permute(0, 2, 1, 3).contiguous(),
    ),
}


def below(most: int, count: int) -> Any:
    """Random numbers that are places."""
    return np.random.default_rng(0).integers(0, most, count, "int32")


#: what no random numbers do for
INPUTS = {
    "gather 1000 rows of 300": {"index": below(5000, 1000)},
    "histogram": {"A": below(256, 1 << 20)},
    "embedding": {"index": below(5000, 512)},
    "scatter": {"index": below(1000, 4096)},
    "cross entropy": {"index": below(5000, 256)},
}


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


def run(name: str, made: Made, target: tw.Target) -> dict[str, float]:
    make, other = made
    program = make()
    arrays = list(make_arrays(task_of(program), INPUTS.get(name, {}), 0).values())
    ruled = tw.compile(program, target, schedule="by rules")
    written = tw.compile(program, target, schedule="as written")
    functions: dict[str, Callable[[], object]] = {
        "by rules": lambda: ruled(*arrays),
        "as written": lambda: written(*arrays),
    }
    if other is not None:
        import torch

        read = [array for array, each in zip(arrays, task_of(program).parameters, strict=True) if each.role == "input"]
        theirs = [torch.from_numpy(a) if a.dtype != "bfloat16" else bfloat16(torch, a) for a in read]
        functions["PyTorch"] = lambda: other(torch, *theirs)
    return in_turn(functions)


def bfloat16(torch: Any, array: Any) -> Any:
    return torch.from_numpy(array.view("int16")).view(torch.bfloat16)


def main(programs: dict[str, Made]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(programs))
    parser.add_argument("--target", default="native")
    options = parser.parse_args()
    target = tw.Target(options.target).with_num_cores(1)
    heads = ("program", "by rules", "as written", "PyTorch", "against as written", "against PyTorch")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    against: dict[str, list[float]] = {"as written": [], "PyTorch": []}
    for name in options.names:
        times = run(name, programs[name], target)
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
    main(PROGRAMS)
