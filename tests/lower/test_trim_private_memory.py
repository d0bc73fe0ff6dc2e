"""Private memory that outlives a loop over threads has the elements of one thread, at places that no thread decides."""

from __future__ import annotations

import re

import numpy as np
import pytest

from codegen.test_cuda import compiled
from lower.test_check_private_memory import BLOCKS, X32, V, X, Y, two_nests
from lower.test_software_pipelines import check_every_stage
from soak import gpu_kernels
from tilewright import ir

SERIAL = "s in range(2)"


def allocated(module: ir.Module) -> list[int]:
    """Return the sizes of allocations in private memory."""
    found: list[int] = []

    def look(node: object) -> None:
        if isinstance(node, ir.Allocate) and node.buffer_var.type_annotation.storage_scope == "local":
            found.append(int(node.extents[0].value))

    ir.visit(module["main_kernel"].body, look)
    return found


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("size", "loops", "index", "kept"),
    [
        (64, f"{X32}; {SERIAL}", "x * 2 + s", 2),
        (64, f"{Y}; {X}; {SERIAL}", "(y * 8 + x) * 2 + s", 2),
        (64, f"{X32}; {SERIAL}", "s * 32 + x", 33),  # strided: the elements between are there
        (64, f"{Y}; {X}; {SERIAL}", "s * 32 + y * 8 + x", 33),
        (64, f"{X32}; {SERIAL}", "63 - x * 2 - s", 2),
        (64, f"{X32}; {SERIAL}", "(x * 2 + s + 2) % 64", 2),
        (64, f"{X32}; {SERIAL}", "(x * 3 + s * 32) % 64", 64),  # not a number of the thread plus something
        (128, f"{V}; {X32}; {SERIAL}", "v * 64 + x * 2 + s", 66),
    ],
)
def test_sizes(size: int, loops: str, index: str, kept: int, inside: bool) -> None:
    a = np.random.default_rng(0).integers(-9, 9, (BLOCKS, size)).astype("float32")
    program = two_nests(size, loops, index, loops, index, inside=inside)
    module = check_every_stage(program, "opencl", [a, np.zeros_like(a)], a * 2 + 1)
    assert allocated(module) == [kept], module.script()


def test_fragments_of_other_warps_are_not_there() -> None:
    """Of draws in which warps share a block: registers of sums are selected by constants, so that no memory holds
    them."""
    family, warps = "mma 32x48x48", 0
    for sch in gpu_kernels.draws(family, gpu_kernels.RULE_SETS[-1], 0, 6):
        kernel = compiled(sch, "cuda -arch=sm_80")
        text = kernel.inspect("cuda")
        warps += "thread_y_ * " in text
        (use,) = kernel.report["kernels"]
        assert use["stack"] == use["spill_stores"] == 0, text
        assert not re.search(r"wmma_accumulator_ \+ [^,;]*thread_y", text), text
    assert warps > 1
