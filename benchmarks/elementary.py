"""Elementary functions next to NumPy and PyTorch: time per element on one thread, and errors.

    python benchmarks/elementary.py                       all functions in float32 and float64
    python benchmarks/elementary.py exp tanh --dtypes float32

Each line: nanoseconds per element over 2^19 elements in the best of 25 slices, how many times as long the others take,
and in brackets the largest error of each, in units in the last place, over a sample of the elements with mpmath as the
judge. The program is the plain loop that a user writes, B[i] = T.exp(A[i]).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp, mpf

import tilewright as tw
from tilewright import timing
from tilewright.script import tir as T

SIZE = 2**19
SAMPLE = 500

#: name: the range of arguments, the exact function, and NumPy's and PyTorch's names where they differ
UNARY: dict[str, tuple[float, float, Callable[[Any], Any]]] = {
    "exp": (-10, 10, mp.exp),
    "exp2": (-10, 10, lambda x: mp.power(2, x)),
    "exp10": (-5, 5, lambda x: mp.power(10, x)),
    "expm1": (-2, 2, mp.expm1),
    "log": (0.001, 100, mp.log),
    "log2": (0.001, 100, lambda x: mp.log(x, 2)),
    "log10": (0.001, 100, mp.log10),
    "log1p": (-0.9, 10, mp.log1p),
    "rsqrt": (0.1, 10, lambda x: 1 / mp.sqrt(x)),
    "cbrt": (-10, 10, lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    "sigmoid": (-10, 10, lambda x: 1 / (1 + mp.exp(-x))),
    "sin": (-10, 10, mp.sin),
    "cos": (-10, 10, mp.cos),
    "tan": (-10, 10, mp.tan),
    "asin": (-1, 1, mp.asin),
    "acos": (-1, 1, mp.acos),
    "atan": (-5, 5, mp.atan),
    "sinh": (-5, 5, mp.sinh),
    "cosh": (-5, 5, mp.cosh),
    "tanh": (-4, 4, mp.tanh),
    "asinh": (-10, 10, mp.asinh),
    "acosh": (1, 10, mp.acosh),
    "atanh": (-1, 1, mp.atanh),
    "erf": (-4, 4, mp.erf),
}
BINARY: dict[str, tuple[float, float, Callable[[Any, Any], Any]]] = {
    "atan2": (-5, 5, mp.atan2),
    "fmod": (0.1, 10, mp.fmod),
    "hypot": (-5, 5, mp.hypot),
    "pow": (0.1, 10, mp.power),
}
NUMPY = {"pow": "power", "atan2": "arctan2"} | {
    f"a{f}": f"arc{f}" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}


def kernel_of(name: str, dtype: str, arguments: int) -> Any:
    function = getattr(T, name)
    if arguments == 1:

        @T.prim_func
        def unary(A: T.Buffer((SIZE,), dtype), B: T.Buffer((SIZE,), dtype)):
            for i in range(SIZE):
                B[i] = function(A[i])

        return tw.compile(unary, schedule="as written")

    @T.prim_func
    def binary(A: T.Buffer((SIZE,), dtype), B: T.Buffer((SIZE,), dtype), C: T.Buffer((SIZE,), dtype)):
        for i in range(SIZE):
            C[i] = function(A[i], B[i])

    return tw.compile(binary, schedule="as written")


def error(got: np.ndarray, arguments: list[np.ndarray], exact: Callable[..., Any]) -> float:
    """The largest one over a sample, in units in the last place."""
    worst = 0.0
    with mp.workprec(150):
        for i in range(0, SIZE, SIZE // SAMPLE):
            value = exact(*(mpf(float(a[i])) for a in arguments))
            unit = mpf(float(np.spacing(abs(got[i])))) or mpf(2) ** -1074
            worst = max(worst, float(abs(mpf(float(got[i])) - value) / unit))
    return worst


def peers(name: str, inputs: list[np.ndarray]) -> dict[str, tuple[Callable[[], object], np.ndarray]]:
    """Return the peers' calls, and the arrays of their results."""
    found: dict[str, tuple[Callable[[], object], np.ndarray]] = {}
    numpy = getattr(np, NUMPY.get(name, name), None)
    if numpy is not None:
        result = np.zeros_like(inputs[0])
        found["NumPy"] = (lambda: numpy(*inputs, out=result), result)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        function = getattr(torch, name, None)
        if function is not None:
            tensors = [torch.from_numpy(x) for x in inputs]
            output = torch.zeros_like(tensors[0])
            found["PyTorch"] = (lambda: function(*tensors, out=output), output.numpy())
    return found


def line(name: str, dtype: str) -> str:
    low, high, exact = (UNARY | BINARY)[name]
    random = np.random.default_rng(0)
    inputs = [random.uniform(low, high, SIZE).astype(dtype) for _ in range(1 if name in UNARY else 2)]
    ours = np.zeros_like(inputs[0])
    kernel = kernel_of(name, dtype, len(inputs))
    others = peers(name, inputs)
    functions = {"ours": lambda: kernel(*inputs, ours)} | {who: call for who, (call, _) in others.items()}
    samples = timing.time_interleaved(functions, rounds=25, budget=3.0)
    best = {who: min(times) for who, times in samples.items()}
    text = f"{name:8} {dtype:8} {best['ours'] / SIZE * 1e9:7.3f} ns [{error(ours, inputs, exact):.2f}]"
    for who in ("NumPy", "PyTorch"):
        if who in others:
            text += f"   {who} {best[who] / best['ours']:6.2f}x [{error(others[who][1], inputs, exact):.2f}]"
        else:
            text += " " * (len(who) + 18)
    return text.rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions; all by default")
    parser.add_argument("--dtypes", nargs="*", default=["float32", "float64"])
    options = parser.parse_args()
    for dtype in options.dtypes:
        for name in options.names or [*UNARY, *BINARY]:
            print(line(name, dtype), flush=True)


if __name__ == "__main__":
    main()
