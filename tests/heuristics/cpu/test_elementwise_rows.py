"""Elementwise programs along lines of memory whose indices or conditions change along the way."""

import pytest
from tests.heuristics.cpu.programs import scheduled

import tilewright as tw
from tilewright import te
from tilewright.testing import everyday


def test_halves_of_a_row_are_told_apart_without_asking():
    """A rotary embedding: which half an element is in is settled for each group of lanes."""
    kernel = tw.compile(everyday.rotary(64, 4, 64), "llvm -mcpu=x86-64-v3 -num-cores=1", schedule="by rules")
    assert "Select" not in kernel.inspect("tir") and "predicate" not in kernel.inspect("tir")


@pytest.mark.parametrize("place", ["clamped", "round"])
def test_indices_that_turn_back_are_cut_there_and_not_gathered(place):
    """Shifts along the last axis: between the ends, neighbors are neighbors."""
    x = te.placeholder((8, 40, 128), name="X")
    at = {"clamped": lambda k: te.max(te.min(k - 1, 127), 0), "round": lambda k: (k + 31) % 128}[place]
    program = te.create_prim_func([x, te.compute((8, 40, 128), lambda i, j, k: x[i, j, at(k)] * 2.0, name="Y")])
    lines = [
        len(tw.compile(program, "llvm -mcpu=x86-64-v3 -num-cores=1", schedule=how).inspect("asm").splitlines())
        for how in ("by rules", "as written")
    ]
    assert "T.vectorized" not in scheduled(program, "llvm -mcpu=x86-64-v3 -num-cores=1").mod.script()
    assert lines[0] <= 2 * lines[1]
