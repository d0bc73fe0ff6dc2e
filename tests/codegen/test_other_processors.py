"""Code for processors that need not be the one at hand: it is read, not run."""

import re

import pytest

import tilewright as tw
from tilewright.testing import workloads


def tiled(rows, columns):
    sch = tw.Schedule(workloads.matmul(96, 128, 64))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_out, i_tile = sch.split(i, [None, rows])
    j_out, j_tile = sch.split(j, [None, columns])
    sch.reorder(i_out, j_out, k, i_tile, j_tile)
    tile = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(tile, j_out)
    sch.decompose_reduction(block, k)
    sch.vectorize(j_tile)
    sch.unroll(i_tile)
    *_, tile_rows, tile_columns = sch.get_loops(tile)
    sch.vectorize(tile_columns)
    sch.unroll(tile_rows)
    return sch


def innermost_loop(asm):
    """The instructions between the label and the backward jump around the most multiply-adds."""
    loops = re.findall(r"^(\.LBB\w+):\n((?:(?!^\.LBB).*\n)*?\s+j\w+\s+\1\n)", asm, re.MULTILINE)
    return max((body for _, body in loops), key=lambda body: body.count("vfmadd"))


@pytest.mark.parametrize(
    ("target", "rows", "columns", "register"),
    [("llvm -mcpu=skylake-avx512", 6, 64, "zmm"), ("llvm -mcpu=haswell", 6, 16, "ymm")],
)
def test_a_tile_stays_in_the_registers_of_the_target(target, rows, columns, register):
    loop = innermost_loop(tw.compile(tiled(rows, columns), target=target, schedule="as written").inspect("asm"))
    lanes = {"zmm": 16, "ymm": 8}[register]
    multiply_adds = [line for line in loop.splitlines() if "vfmadd" in line]
    assert len(multiply_adds) == rows * columns // lanes
    assert all(register in line for line in multiply_adds)
    assert "(%rsp)" not in loop  # nothing is spilled
    stores = [line for line in loop.splitlines() if re.search(rf"vmov\w+\s+%{register}\d+, .*\(", line)]
    assert not stores
