"""Reductions next to NumPy and PyTorch: times on one thread.

    python benchmarks/reductions.py              all of them
    python benchmarks/reductions.py rows dot     those whose names begin so

Each line: microseconds in the median of 25 slices that take turns, and how many times as long the others take. Sums of
floats are vectorized as a user asks for it; the rest is the program as written.
"""

from __future__ import annotations

import argparse
import importlib.util
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import timing
from tilewright.script import from_source

#: type, what is added, NumPy's and PyTorch's name
ROWS = [
    ("float32", "C[i] + A[i, k]", "sum"),
    ("float32", "T.max(C[i], A[i, k])", "max"),
    ("float64", "C[i] + A[i, k]", "sum"),
    ("int32", "C[i] + A[i, k]", "sum"),
    ("int32", "T.max(C[i], A[i, k])", "max"),
    ("int8", "T.max(C[i], A[i, k])", "max"),
]
SIZE = 256


def rows(dtype: str, step: str, name: str) -> dict[str, Callable[[], object]]:
    """Each row of a matrix as one number."""
    loop = "T.vectorized" if "float" in dtype and name == "sum" else "range"
    kernel = tw.compile(
        from_source(f"""@T.prim_func
def rows(A: T.Buffer(({SIZE}, {SIZE}), "{dtype}"), C: T.Buffer(({SIZE},), "{dtype}")):
    for i in range({SIZE}):
        C[i] = T.Cast("{dtype}", 0)
        for k in {loop}({SIZE}):
            C[i] = {step}
""")
    )
    a = np.random.default_rng(0).integers(0, 9, (SIZE, SIZE)).astype(dtype)
    c = np.zeros(SIZE, dtype)
    out = np.zeros(SIZE, dtype)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: kernel(a, c),
        "NumPy": lambda: getattr(np, name)(a, axis=1, out=out),
    }
    calls["ours"](), calls["NumPy"]()
    np.testing.assert_array_equal(c, out)
    if torch := pytorch():
        tensor = torch.from_numpy(a)
        function = torch.sum if name == "sum" else torch.amax
        calls["PyTorch"] = lambda: function(tensor, 1)
    return calls


def dot(size: int) -> dict[str, Callable[[], object]]:
    kernel = tw.compile(
        from_source(f"""@T.prim_func
def dot(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32"), C: T.Buffer((1,), "float32")):
    C[0] = T.float32(0)
    for k in T.vectorized({size}):
        C[0] = C[0] + A[k] * B[k]
""")
    )
    a, b = np.random.default_rng(0).standard_normal((2, size)).astype("float32")
    c = np.zeros(1, "float32")
    kernel(a, b, c)
    np.testing.assert_allclose(c[0], a @ b, rtol=1e-4, atol=1e-3)
    calls: dict[str, Callable[[], object]] = {"ours": lambda: kernel(a, b, c), "NumPy": lambda: np.dot(a, b)}
    if torch := pytorch():
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        calls["PyTorch"] = lambda: torch.dot(x, y)
    return calls


def lesson(name: str) -> dict[str, Callable[[], object]]:
    """A program of the lesson about reductions, with its schedule."""
    parts = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "06_reductions.py"))
    random = np.random.default_rng(0)
    shapes = [(parts["M"], parts["N"])] + [parts["N"]] * (2 if name == "layer_norm" else 0)
    inputs = [random.standard_normal(shape).astype("float32") for shape in shapes]
    result = np.zeros(shapes[0], "float32")
    kernel = tw.compile(parts["row_by_row"](parts[name]), schedule="as written")
    reference = parts[f"numpy_{name}"]
    kernel(*inputs, result)
    np.testing.assert_allclose(result, reference(*inputs), rtol=1e-4, atol=1e-5)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: kernel(*inputs, result),
        "NumPy": lambda: reference(*inputs),
    }
    if torch := pytorch():
        x, *rest = map(torch.from_numpy, inputs)
        if name == "softmax":
            calls["PyTorch"] = lambda: torch.softmax(x, 1)
        else:
            calls["PyTorch"] = lambda: torch.layer_norm(x, (parts["N"],), *rest)
    return calls


def pytorch() -> Any:
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of names; all by default")
    options = parser.parse_args()
    cases: dict[str, Callable[[], dict[str, Callable[[], object]]]] = {
        f"rows {name} {dtype}": lambda dtype=dtype, step=step, name=name: rows(dtype, step, name)
        for dtype, step, name in ROWS
    }
    cases |= {f"dot {size}": lambda size=size: dot(size) for size in (1000, 2**14, 2**20)}
    cases |= {name: lambda name=name: lesson(name) for name in ("softmax", "layer_norm")}
    for name, case in cases.items():
        if options.names and not name.startswith(tuple(options.names)):
            continue
        with timing.limit_threads(1):
            samples = timing.time_interleaved(case(), rounds=25, budget=3.0)
        median = {who: float(np.median(times)) for who, times in samples.items()}
        others = "   ".join(f"{who} {median[who] / median['ours']:5.2f}x" for who in median if who != "ours")
        print(f"{name:18} {median['ours'] * 1e6:9.2f} us   {others}", flush=True)


if __name__ == "__main__":
    main()
