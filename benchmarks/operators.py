"""Operators of neural networks, without a schedule written by anybody: by rules, tuned, and as PyTorch computes them.

    python benchmarks/operators.py [--trials 32] [--families C2D GMM] [--full] [--target "llvm -mcpu=x86-64-v3"]

One shape of each family, or all four with --full. Each program is compiled by rules (no search), tuned over the space
of the same rules, and then both kernels and PyTorch's operator are timed in turn in one run, on one thread. Weights
of PyTorch lie as its convolutions like them, before the clock runs; so do its images (channels last). Printed: the
least times, since other work of the machine only adds to them, GFLOP/s of the tuned kernel, and PyTorch's time as a
multiple of each. A transposed convolution counts the zeros between its pixels, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from shapes import in_turn

import tilewright as tw
from tilewright import te, timing
from tilewright.arguments import make_arrays
from tilewright.task import task_of
from tilewright.testing import formulas

#: which of the four shapes stands for a family
SHAPE = {"C3D": 1, "C2D": 2, "GMM": 2, "T2D": 1, "CBR": 1, "NRM": 2, "SFM": 2}


def peer(family: str, shape: tuple[int, ...], arrays: list[Any]) -> Callable[[], object] | None:
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


def run(family: str, number: int, trials: int, text: str) -> tuple[float, float] | None:
    """One row; PyTorch's time over that by rules, and over the tuned one."""
    name, shapes = formulas.CONFIGS[family]
    shape = shapes[number]
    program = te.create_prim_func(getattr(formulas, name)(*shape))
    task = task_of(program)
    target = tw.Target(text).with_num_cores(1)
    by_rules = tw.compile(program, target, schedule="by rules")
    start = time.perf_counter()
    result = tw.tune(program, trials=trials, target=text, progress=None)
    spent = time.perf_counter() - start
    tuned = result.kernel if result.record else by_rules
    arrays = list(make_arrays(task, {}, 0).values())
    functions: dict[str, Any] = {"by rules": lambda: by_rules(*arrays), "tuned": lambda: tuned(*arrays)}
    if (other := peer(family, shape, arrays)) is not None:
        functions["PyTorch"] = other
    times = in_turn(functions)
    row = [f"{family}-{number}", *(timing.format_seconds(each) for each in times.values())]
    row += [""] * (4 - len(row)) + [f"{task.work.flops / times['tuned'] / 1e9:.0f}"]
    ratios = None
    if "PyTorch" in times:
        ratios = tuple(times["PyTorch"] / times[way] for way in ("by rules", "tuned"))
        row += [f"{ratio:.2f}x" for ratio in ratios]
    print("| " + " | ".join([*row, *[""] * (7 - len(row)), f"{spent:.0f} s"]) + " |", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--families", nargs="+", choices=formulas.CONFIGS, default=list(formulas.CONFIGS))
    parser.add_argument("--full", action="store_true", help="all four shapes of each family")
    parser.add_argument("--target", default="native", help="for which processor; PyTorch knows this one only")
    options = parser.parse_args()
    heads = ("operator", "by rules", "tuned", "PyTorch", "GFLOP/s", "by rules", "tuned", "search")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    ratios = []
    for family in options.families:
        for number in range(4) if options.full else [SHAPE.get(family, 0)]:
            if (found := run(family, number, options.trials, options.target)) is not None:
                ratios.append(found)
    if ratios:
        means = [math.exp(statistics.mean(math.log(each[way]) for each in ratios)) for way in range(2)]
        print(f"geometric mean of PyTorch's time over ours: by rules {means[0]:.2f}, tuned {means[1]:.2f}")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
