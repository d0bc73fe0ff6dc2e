"""Occupancy of NVIDIA's multiprocessors, judged by NVIDIA's own examples and by counting resources."""

from __future__ import annotations

import pytest

from codegen.test_cuda import compiled
from lower.test_gpu import tiled
from tilewright.kernel.occupancy import blocks_per_multiprocessor, occupancy
from tilewright.script import from_source


def blocks(arch: str, threads: int, registers: int = 0, shared_bytes: int = 0) -> int | None:
    return blocks_per_multiprocessor(arch, threads, registers, shared_bytes)


def test_the_examples_of_nvidia() -> None:
    """The section on occupancy of the CUDA C++ best practices guide, for compute capability 7.0."""
    assert (blocks("sm_70", 128, 37), occupancy("sm_70", 128, 37, 0)) == (12, 0.75)
    assert (blocks("sm_70", 320, 37), occupancy("sm_70", 320, 37, 0)) == (4, 0.625)


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared_bytes", "expected"),
    [
        ("sm_80", 32, 32, 0, 32),  # blocks
        ("sm_86", 32, 32, 0, 16),
        ("sm_80", 1024, 32, 0, 2),  # warps
        ("sm_89", 1024, 32, 0, 1),
        ("sm_80", 256, 255, 0, 1),  # registers: 8,192 for a warp, two warps in a partition
        ("sm_90a", 64, 255, 0, 4),
        ("sm_80", 64, 32, 48 << 10, 3),  # shared memory: 164 KiB, 49 of them for a block
        ("sm_90a", 64, 32, 227 << 10, 1),
        ("sm_75", 64, 32, 32 << 10, 2),  # nothing is reserved
        ("sm_80", 33, 32, 0, 32),  # a block has whole warps
        ("sm_80", 64, 32, 164 << 10, 0),  # no block fits
    ],
)
def test_each_resource_is_a_limit(arch: str, threads: int, registers: int, shared_bytes: int, expected: int) -> None:
    assert blocks(arch, threads, registers, shared_bytes) == expected


def test_architectures_that_nobody_knows() -> None:
    assert occupancy("sm_999", 32, 32, 0) is None and occupancy("compute_80", 32, 32, 0) is None
    assert all(occupancy(arch, 32, 32, 0) is None for arch in ("sm_", "sm_80ab", "sm_80A", "SM_80", ""))


def test_reports_have_the_occupancy_of_each_architecture() -> None:
    # Blocks of 16 threads are one warp each, of which a multiprocessor holds 32 blocks, half of its warps.
    uses = compiled(tiled(16, 16, 8)).report["kernels"]
    assert {use["arch"]: use["occupancy"] for use in uses} == {"sm_80": 0.5, "sm_90a": 0.5}


def test_blocks_that_do_not_fit_are_noted() -> None:
    """The target allows more shared memory than the architecture has."""
    n = 40 << 10
    kernel = compiled(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,)), B: T.Buffer((32,))):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        S = T.decl_buffer(({n},), scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S[t * {n // 32}] = A[t]
            B[t] = S[(31 - t) * {n // 32}]
"""),
        f"cuda -arch=sm_86 -max_shared_memory_per_block={4 * n}",
    )
    (use,) = kernel.report["kernels"]
    assert use["shared_bytes"] >= 100 << 10 and use["occupancy"] == 0
    notes = [note for note in kernel.report["notes"] if note["code"] == "codegen/occupancy"]
    assert len(notes) == 1 and "sm_86" in notes[0]["message"]
