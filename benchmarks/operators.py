"""Operators of neural networks, without a schedule written by anybody: by rules, tuned, and as others compute them.

    python benchmarks/operators.py [--trials 32] [--families C2D GMM] [--full] [--target "llvm -mcpu=x86-64-v3"]
        [--peer PYTHON] [--peer-trials 64] [--peer-work FOLDER]

One shape of each family, or all four with --full. Each program is compiled by rules (no search), tuned over the space
of the same rules, and then both kernels and PyTorch's operator are timed in turn in one run, on one thread. Weights
of PyTorch lie as its convolutions like them, before the clock runs; so do its images (channels last). All arrays begin
at multiples of 64 bytes, and lie elsewhere in each of ten rounds. Printed: the least times, since other work of the
machine only adds to them, GFLOP/s of the tuned kernel, and PyTorch's time as a multiple of each; then how fast what is
made by rules is, as a share of the speed of what was tuned, for each family. A transposed convolution counts the zeros
between its pixels, too.

With the interpreter of an environment that has apache-tvm and xgboost (see peer.py), TVM's MetaSchedule tunes the same
operators, and its kernels take their turn. Its searches last minutes each; their records stay in FOLDER, so that each
shape is tuned once on a machine, and a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from metaschedule_peer import TURN
from peer import Peer
from shapes import in_turn

import tilewright as tw
from tilewright import te, timing
from tilewright.task.arguments import aligned, make_arrays
from tilewright.task.task import task_of
from tilewright.testing import formulas

#: which of the four shapes stands for a family
SHAPE = {"C3D": 1, "C2D": 2, "GMM": 2, "T2D": 1, "CBR": 1, "NRM": 2, "SFM": 2}
#: all of them by name
PROGRAMS: dict[str, Callable[[], Any]] = {
    f"{family}-{number}": functools.partial(formulas.workload, family, number)
    for family, (_, sizes) in formulas.CONFIGS.items()
    for number in range(len(sizes))
}

#: whose time is compared with ours
OTHERS = ("PyTorch", "TVM")


def pytorch(family: str, shape: tuple[int, ...], arrays: list[Any]) -> Callable[[], object] | None:
    """PyTorch's operator on the same numbers; None where it has none."""
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    functional = torch.nn.functional
    x, *rest = (torch.from_numpy(array) for array in arrays)
    last = torch.channels_last if family != "C3D" else torch.channels_last_3d
    if family == "GMM":
        return lambda: torch.matmul(x, rest[0])
    if family == "SFM":
        return lambda: torch.softmax(x, 1)
    if family == "NRM":
        return lambda: torch.linalg.vector_norm(x, dim=(1, 2))
    if family == "TBG":
        return lambda: torch.matmul(x.permute(0, 2, 1, 3), rest[0].permute(0, 2, 3, 1))
    if family in ("C1D", "C2D", "C3D", "GRP", "DIL", "CBR"):
        spatial = {"C1D": 1, "C3D": 3}.get(family, 2)
        stride, pad, *more = shape[spatial + 4 :]
        dilation, groups = (*more, 1, 1)[:2]
        to_front = (0, spatial + 1, *range(1, spatial + 1))
        image, weight = x.permute(to_front), rest[0].permute(spatial + 1, spatial, *range(spatial))
        if spatial > 1:
            image, weight = image.contiguous(memory_format=last), weight.contiguous(memory_format=last)
        else:
            image, weight = image.contiguous(), weight.contiguous()
        convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[spatial]
        if family != "CBR":
            return lambda: convolve(image, weight, None, stride, pad, dilation, groups)
        bias, scale, offset = (each.reshape(1, -1, 1, 1) for each in rest[1:4])
        return lambda: torch.relu((convolve(image, weight, None, stride, pad) + bias) * scale + offset)
    image = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last) if x.dim() == 4 else None
    if family == "DEP" and image is not None:
        stride, pad = shape[5:7]
        weight = rest[0][0].permute(2, 0, 1).unsqueeze(1).contiguous()
        return lambda: functional.conv2d(image, weight, None, stride, pad, 1, weight.shape[0])
    if family == "T2D" and image is not None:
        stride, pad = shape[6:8]
        weight = rest[0].permute(2, 3, 0, 1).contiguous()
        return lambda: functional.conv_transpose2d(image, weight, None, stride, pad)
    return None


def contestants(
    family: str, shape: tuple[int, ...], arrays: list[Any], kernels: dict[str, Any]
) -> dict[str, Callable[[], object]]:
    """Calls of our kernels and of PyTorch's operator, with these arrays."""
    functions = {name: functools.partial(kernel, *arrays) for name, kernel in kernels.items()}
    other = pytorch(family, shape, arrays)
    return functions if other is None else functions | {"PyTorch": other}


def run(family: str, number: int, options: argparse.Namespace, tvm: Peer | None) -> dict[tuple[str, str], float]:
    """One row; the time of each other over that by rules, and over the tuned one, and that of the tuned one over that
    by rules."""
    name, shapes = formulas.CONFIGS[family]
    shape = shapes[number]
    work = str(options.peer_work.resolve())
    request = {"do": "tune", "family": family, "number": number, "work": work, "trials": options.peer_trials}
    tvm_search = tvm.measure(request) if tvm else None
    program = te.create_prim_func(getattr(formulas, name)(*shape))
    task = task_of(program)
    target = tw.Target(options.target).with_num_cores(1)
    by_rules = tw.compile(program, target, schedule="by rules")
    start = time.perf_counter()
    result = tw.tune(program, trials=options.trials, target=options.target, progress=None)
    spent = time.perf_counter() - start
    tuned = result.kernel if result.record else by_rules
    numbers = list(make_arrays(task, {}, 0).values())
    times: dict[str, float] = {}
    for _ in range(10):
        # Each time elsewhere: which lines of a cache arrays share is a matter of luck, of up to a third of the time.
        # As those of TVM and PyTorch are; NumPy's begin anywhere.
        arrays = [aligned(array.copy()) for array in numbers]
        functions = contestants(family, shape, arrays, {"by rules": by_rules, "tuned": tuned})
        took = in_turn(functions, 0.06, TURN)
        if tvm and tvm_search is not None:
            took["TVM"] = tvm.measure({"do": "time"})
        times = {way: min(seconds, times.get(way, math.inf)) for way, seconds in took.items()}
    columns = ["by rules", "tuned", "PyTorch", *(["TVM"] if tvm else [])]
    row = [f"{family}-{number}", *(timing.format_seconds(times[way]) if way in times else "" for way in columns)]
    row += [f"{task.work.flops / times['tuned'] / 1e9:.0f}"]
    ratios = {("tuned", "by rules"): times["tuned"] / times["by rules"]}
    for other_way in columns[2:]:
        for way in columns[:2]:
            if other_way in times:
                ratios[other_way, way] = times[other_way] / times[way]
            row.append(f"{ratios[other_way, way]:.2f}x" if other_way in times else "")
    row += [f"{spent:.0f} s", *([f"{tvm_search:.0f} s" if tvm_search is not None else "nothing found"] if tvm else [])]
    print("| " + " | ".join(row) + " |", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--families", nargs="+", choices=formulas.CONFIGS, default=list(formulas.CONFIGS))
    parser.add_argument("--full", action="store_true", help="all four shapes of each family")
    parser.add_argument("--target", default="native", help="for which processor; PyTorch knows this one only")
    parser.add_argument("--peer", help="Python of an environment with apache-tvm and xgboost")
    parser.add_argument("--peer-trials", type=int, default=64)
    parser.add_argument("--peer-work", type=Path, default=Path("build/metaschedule"), help="where TVM's records stay")
    options = parser.parse_args()
    tvm = Peer(options.peer, str(Path(__file__).with_name("metaschedule_peer.py"))) if options.peer else None
    others = OTHERS if tvm else OTHERS[:1]
    heads = ["operator", "by rules", "tuned", *others, "GFLOP/s"]
    heads += [f"{other}: {way}" for other in others for way in ("by rules", "tuned")]
    heads += ["search", *(["TVM's search"] if tvm else [])]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    ratios: dict[tuple[str, str], list[float]] = {}
    untuned: dict[str, list[float]] = {}
    for family in options.families:
        for number in range(4) if options.full else [SHAPE.get(family, 0)]:
            found = run(family, number, options, tvm)
            untuned.setdefault(family, []).append(found.pop(("tuned", "by rules")))
            for pair, ratio in found.items():
                ratios.setdefault(pair, []).append(ratio)
    for (other, way), each in ratios.items():
        mean = statistics.geometric_mean(each)
        print(f"{other}'s time over ours {way}: geometric mean {mean:.2f}, least {min(each):.2f}")
    print("\n| family | speed by rules / tuned | least |\n|---|---|---|")
    for family, shares in untuned.items():
        print(f"| {family} | {statistics.geometric_mean(shares):.2f} | {min(shares):.2f} |")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
