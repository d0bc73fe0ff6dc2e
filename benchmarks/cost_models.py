"""How well cost models rank schedules, against measurements.

    python benchmarks/cost_models.py [--candidates 120] [--seed 0] [--only product]

Draws random schedules of a product, a convolution and a softmax, compiles and times them, and prints

- the rank correlation (Spearman) of the analytical estimates with the times, the ratio of estimate to time (median and
  quartiles), and how much slower than the best of all the best of the first k by estimate is;
- the rank correlation on the later half of the schedules, of the analytical model, and of the models that learn, after
  they have seen 16 and after they have seen the earlier half;
- the same of models that have seen all schedules of the other programs before, which is what a model that comes with
  the package could know, and how much slower the best of their first k is.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import _core
from tilewright.cost_model import AnalyticalModel, ResidualModel, XGBModel
from tilewright.script import tir as T
from tilewright.testing.workloads import matmul

TARGET = "native"


@T.prim_func
def conv2d(
    X: T.Buffer((1, 28, 28, 64), "float32"),
    W: T.Buffer((3, 3, 64, 64), "float32"),
    Y: T.Buffer((1, 28, 28, 64), "float32"),
):
    P = T.alloc_buffer((1, 30, 30, 64))
    for n, h, w, c in T.grid(1, 30, 30, 64):
        with T.block("pad"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(
                vh >= 1 and vh < 29 and vw >= 1 and vw < 29, X[vn, vh - 1, vw - 1, vc], T.float32(0)
            )
    for n, h, w, o, r, s, c in T.grid(1, 28, 28, 64, 3, 3, 64):
        with T.block("C"):
            vn, vh, vw, vo, vr, vs, vc = T.axis.remap("SSSSRRR", [n, h, w, o, r, s, c])
            with T.init():
                Y[vn, vh, vw, vo] = T.float32(0)
            Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + P[vn, vh + vr, vw + vs, vc] * W[vr, vs, vc, vo]


@T.prim_func
def softmax(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32")):
    M = T.alloc_buffer((512,))
    E = T.alloc_buffer((512, 512))
    S = T.alloc_buffer((512,))
    for i, k in T.grid(512, 512):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, j in T.grid(512, 512):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, k in T.grid(512, 512):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(512, 512):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = E[vi, vj] / S[vi]


def tile(sch: Any, random: np.random.Generator, spatial: list[int], reduction: list[int]) -> None:
    """Four levels of tiles, a copy of the result or none, vectors, unrolling."""
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    parts = [sch.split(loops[i], sch.sample_perfect_tile(loops[i], 4, 32)) for i in spatial]
    steps = [sch.split(loops[i], sch.sample_perfect_tile(loops[i], 2, 16)) for i in reduction]
    level = [[part[n] for part in parts] for n in range(4)]
    copy = random.choice(["none", "global", "local"])
    written = None if copy == "none" else sch.cache_write(block, 0, str(copy))
    sch.reorder(*level[0], *level[1], *(s[0] for s in steps), *level[2], *(s[1] for s in steps), *level[3])
    if written is not None:
        sch.reverse_compute_at(written, parts[-1][random.integers(0, 2)])
    if random.integers(0, 3):
        sch.vectorize(parts[-1][3])
    if random.integers(0, 2):
        sch.unroll(parts[-2][3])
    if most := int(random.choice([0, 16, 64, 512])):
        sch.annotate(parts[0][0], "pragma_auto_unroll_max_step", most)
        sch.annotate(parts[0][0], "pragma_unroll_explicit", 1)
    if random.integers(0, 2):
        sch.decompose_reduction(block, steps[0][0])


def schedule_product(sch: Any, random: np.random.Generator) -> None:
    tile(sch, random, [0, 1], [2])


def schedule_conv2d(sch: Any, random: np.random.Generator) -> None:
    where = random.integers(0, 3)
    tile(sch, random, [1, 2, 3], [4, 5, 6])
    if where == 1:
        sch.compute_inline(sch.get_block("pad"))
    elif where == 2:
        sch.compute_at(sch.get_block("pad"), sch.get_loops(sch.get_block("C"))[random.integers(0, 6)])


def schedule_softmax(sch: Any, random: np.random.Generator) -> None:
    for name in "ESMD":
        i, j = sch.get_loops(sch.get_block(name))
        how = random.integers(0, 4)
        if how == 0:
            sch.reorder(j, i)
        elif how == 1:
            sch.vectorize(sch.split(j, [None, int(random.choice([4, 8, 16, 32, 64, 128]))])[1])
        elif how == 2:
            i_0, i_1 = sch.split(i, [None, int(random.choice([2, 4, 8, 16]))])
            sch.reorder(i_0, j, i_1)
    outer = sch.get_loops(sch.get_block("D"))[0]
    for name in "SEM":
        if random.integers(0, 2):
            sch.compute_at(sch.get_block(name), outer)


PROGRAMS: dict[str, tuple[Any, Callable[[Any, np.random.Generator], None]]] = {
    "product 256": (matmul(256, 256, 256), schedule_product),
    "conv2d 28x28x64": (conv2d, schedule_conv2d),
    "softmax 512": (softmax, schedule_softmax),
}

MODELS: dict[str, Any] = {"xgb": XGBModel, "residual": ResidualModel}
Measured = tuple[list[Any], np.ndarray]


def seconds_of(module: Any, arrays: list[Any]) -> float:
    """The least time of a call."""
    kernel = tw.compile(module, target=TARGET, schedule="as written")
    kernel(*arrays)
    best = float("inf")
    for _ in range(6):
        calls = max(1, int(0.003 / best)) if best < 1 else 1
        start = time.thread_time()
        for _ in range(calls):
            kernel(*arrays)
        best = min(best, (time.thread_time() - start) / calls)
        if best > 0.05:
            break
    return best


def measured(name: str, count: int, seed: int) -> Measured:
    """Candidates and their seconds."""
    program, schedule = PROGRAMS[name]
    buffers = [buffer for _, buffer in program.buffer_map.items()]
    arrays = [np.random.default_rng(0).random([int(n) for n in b.shape], dtype="float32") for b in buffers]
    candidates, seconds = [], []
    while len(candidates) < count:
        seed += 1
        sch = tw.Schedule(program, seed=seed)
        try:
            schedule(sch, np.random.default_rng(seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds.append(seconds_of(sch.mod, arrays))
        except tw.Error:
            continue
        candidates.append(SimpleNamespace(sch=sch, args_info=[]))
    return candidates, np.array(seconds)


def correlation(scores: np.ndarray, seconds: np.ndarray) -> float:
    """Return the correlation of the ranks: 1 where the greatest score is the fastest, and so on."""
    ranks = [np.argsort(np.argsort(values)) for values in (scores, -seconds)]
    return float(np.corrcoef(*ranks)[0, 1])


def context_of(name: str) -> Any:
    context = _core.TuneContext()
    context.module, context.target = tw.Schedule(PROGRAMS[name][0]).mod, tw.Target(TARGET)
    return context


def learn(model: Any, name: str, candidates: list[Any], seconds: np.ndarray) -> None:
    model.update(context_of(name), candidates, [SimpleNamespace(run_secs=[s], error_msg=None) for s in seconds])


def firsts(scores: np.ndarray, seconds: np.ndarray) -> str:
    """How much slower than the best of all the best of the first k by score is."""
    order = np.argsort(-scores)
    return "  ".join(f"{k}: {seconds[order[:k]].min() / seconds.min():.2f}" for k in (1, 3, 10, 30))


def report(name: str, candidates: list[Any], seconds: np.ndarray) -> None:
    context = context_of(name)
    scores = AnalyticalModel().predict(context, candidates)
    low, middle, high = np.percentile(1 / scores / seconds, [25, 50, 75])
    print(f"{name}: {len(candidates)} schedules, {seconds.min() * 1e6:.0f} to {seconds.max() * 1e6:.0f} us")
    print(f"  analytical: rank correlation {correlation(scores, seconds):.2f}, estimate/time {middle:.2f}", end="")
    print(f" ({low:.2f} to {high:.2f}), best of the first k over best of all  {firsts(scores, seconds)}")
    half = len(candidates) // 2
    rest = candidates[half:], seconds[half:]
    row = [f"analytical {correlation(scores[half:], rest[1]):.2f}"]
    for seen in (16, half):
        for kind, make in MODELS.items():
            model = make(num_warmup_samples=min(16, seen))
            learn(model, name, candidates[:seen], seconds[:seen])
            row.append(f"{kind} after {seen} {correlation(model.predict(context, rest[0]), rest[1]):.2f}")
    print("  on the later half: " + ", ".join(row), flush=True)


def report_pretrained(name: str, all_measured: dict[str, Measured]) -> None:
    candidates, seconds = all_measured[name]
    context, half = context_of(name), len(candidates) // 2
    row = []
    for kind, make in MODELS.items():
        model = make(num_warmup_samples=16)
        for other, measurements in all_measured.items():
            if other != name:
                learn(model, other, *measurements)
        scores = model.predict(context, candidates)
        print(f"{name}: {kind} that saw the others: rank correlation {correlation(scores, seconds):.2f}", end="")
        print(f", best of the first k over best of all  {firsts(scores, seconds)}")
        row.append(f"{kind} {correlation(scores[half:], seconds[half:]):.2f}")
        learn(model, name, candidates[:half], seconds[:half])
        scores = model.predict(context, candidates[half:])
        row.append(f"{kind} after {half} of its own {correlation(scores, seconds[half:]):.2f}")
    print("  on the later half: " + ", ".join(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=120, help="schedules of each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="what the name of the program contains")
    options = parser.parse_args()
    all_measured = {}
    for name in PROGRAMS:
        if options.only in name:
            all_measured[name] = measured(name, options.candidates, options.seed)
            report(name, *all_measured[name])
    if len(all_measured) > 1:
        for name in all_measured:
            report_pretrained(name, all_measured)


if __name__ == "__main__":
    main()
