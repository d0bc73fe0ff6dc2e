"""Sums whose neighboring results read with gaps between: strided convolutions with channels first."""

import numpy as np
import pytest
from tests.heuristics.cpu.programs import TARGETS, scheduled

import tilewright as tw
from tilewright import te
from tilewright.heuristics.block_info import coefficient
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import formulas


def in_channels(h, w, channels, filters, kernel, stride, pad, *more):
    return te.create_prim_func(formulas.conv2d_nchw(1, h, w, channels, filters, kernel, kernel, stride, pad, *more))


PROGRAMS = {
    "strided": in_channels(12, 12, 6, 17, 3, 2, 1),
    "strided, odd lines": in_channels(13, 15, 5, 19, 3, 2, 1),
    "strided, a copy of what is given": in_channels(11, 17, 7, 16, 2, 2, 0),
    "strided, kernel of one": in_channels(10, 20, 9, 33, 1, 2, 0),
    "stride 3, odd lines": in_channels(16, 32, 3, 10, 5, 3, 1),
    "stride 4": in_channels(9, 41, 3, 9, 3, 4, 1),
    "strided and dilated": in_channels(14, 19, 4, 12, 3, 2, 2, 3),
    "strided, bytes": in_channels(9, 35, 4, 8, 3, 2, 1, 1, "int8", "int32"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_schedule_computes_the_same(name, target):
    scheduled(PROGRAMS[name], target).verify()


@pytest.mark.parametrize("name", PROGRAMS)
def test_drawn_schedules_compute_the_same(name):
    for seed in range(3):
        scheduled(PROGRAMS[name], TARGETS[seed % 2], best=False, seed=seed).verify()


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_right(name):
    """As compiled for this processor, against the program as it was written: lines that are cut off, too."""
    program = PROGRAMS[name]
    given = list(make_arrays(task_of(program), {}, seed=1).values())
    results = []
    for way in ("by rules", "as written"):
        arrays = [array.copy() for array in given]
        tw.compile(program, "native", schedule=way)(*arrays)
        results.append(arrays[-1])
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "pad", "stride"), [(32, 1, 2), (33, 1, 2), (32, 0, 2), (49, 1, 3)])
def test_a_strided_convolution_with_channels_first_has_no_gaps_in_its_vectors(size, pad, stride):
    """What neighboring results read is laid side by side before the sums, where the lines are no multiple of the stride
    too, and where there is no padding whose order could be another."""
    sch = scheduled(in_channels(size, size, 8, 32, 3, stride, pad))
    sums = sch.get(sch.get_block("conv2d_nchw_update"))
    column = sums.iter_vars[3].var
    assert {coefficient(read.region[-1].min, column) for read in sums.reads} == {0, 1}
    written = {loop.kind for loop in map(sch.get, sch.get_loops(sch.get_producers("conv2d_nchw_update")[0]))}
    assert tw.ir.ForKind.VECTORIZED in written
