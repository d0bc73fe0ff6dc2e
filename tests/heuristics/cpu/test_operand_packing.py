"""Operands that come from behind the second level: what is taken of a row, what is asked for ahead, rows kept apart."""

import re

import numpy as np
import pytest
from tests.heuristics.cpu.programs import check_results, convolution, here, product, scheduled

import tilewright as tw
from tilewright import te
from tilewright.heuristics import cpu
from tilewright.testing import everyday, formulas

#: processors whose second level holds next to nothing, so that small programs do what large ones do on others
SMALL = ["llvm -mcpu=haswell -num-cores=2 -l2-bytes=16384", "llvm -mcpu=skylake-avx512 -num-cores=1 -l2-bytes=4096"]


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("seed", range(12))
def test_operands_from_afar_are_right(seed, target):
    rng = np.random.default_rng(seed)
    rows, columns, steps = (int(rng.integers(low, high)) for low, high in [(1, 60), (1, 150), (40, 400)])
    if seed % 2:
        program = product(rows, columns, steps, turned=bool(rng.integers(2)))
    else:
        channels, filters = (int(rng.choice([32, 48, 64, 96])) for _ in range(2))
        groups, stride = int(rng.choice([1, 2, 4])), int(rng.integers(1, 3))
        program = convolution(
            int(rng.integers(5, 12)), channels, filters, groups=groups, stride=stride, epilogue=seed % 4 == 0
        )
    choices = {seed: True, seed + 100: False, seed + 200: False}
    schedules = (scheduled(program, here(target), best=best, seed=number) for number, best in choices.items())
    check_results(program, (tw.compile(sch, target=here(target)) for sch in schedules), seed)


def test_large_operands_are_copied_in_whole_lines_and_asked_for_ahead():
    def steps(target):
        return tw.compile(product(160, 512, 1024), target=target).inspect("schedule")

    far, near = (
        steps("llvm -mcpu=haswell -num-cores=1 -l2-bytes=262144"),
        steps("llvm -mcpu=haswell -num-cores=1 -l2-bytes=67108864"),
    )
    assert re.search(r"B_prefetch = sch.prefetch_at\(\w+, B_global, 0, distance=\d+\)", far)
    assert "prefetch" not in near
    columns = int(re.search(r"i2 // (\d+)", far)[1])
    panels = re.search(r"j_0_0, j_0_1 = sch.split\(j_0, \[None, (\d+)\]\)", far)
    assert columns * int(panels[1] if panels else 1) * 4 >= 128


def test_padded_rows_a_power_of_two_apart_get_a_line_of_distance():
    def aligned(channels):
        steps = tw.compile(convolution(14, channels, 64), target="llvm -mcpu=haswell -num-cores=1").inspect("schedule")
        return re.findall(r"sch.storage_align\(\w+, 0, 2, (\d+), (\d+)\)", steps)

    assert aligned(512) == [("512", "16")]
    assert aligned(500) == []
    assert aligned(64) == []  # eight rows in each set of lines, of which the cache holds as many


def test_each_core_has_groups_of_columns_of_its_own():
    """Where all columns fit into the second level, one group of them would be work for one core."""
    for target in ("llvm -mcpu=sapphirerapids -num-cores=2", "llvm -mcpu=sapphirerapids -num-cores=4"):
        program = te.create_prim_func(formulas.batch_matmul_nkkm(1, 512, 512, 512))
        sch = tw.Schedule(program)
        cpu.schedule_for_cpu(sch, tw.Target(target), best=True)
        outer = sch.get(sch.get_loops("Z_update")[0])
        assert outer.kind == tw.ir.ForKind.PARALLEL and outer.extent.value >= tw.Target(target).num_cores


@pytest.mark.parametrize("cores", [2, 3, 4, 8])
@pytest.mark.parametrize("turned", [False, True])
def test_all_cores_have_as_much_to_copy(turned, cores):
    """Groups of columns in three parts would leave one of two cores without work for a quarter of the time."""
    sch = tw.Schedule(product(128, 768, 768, turned=turned))
    cpu.schedule_for_cpu(sch, tw.Target(f"llvm -mcpu=sapphirerapids -num-cores={cores}"), best=True)
    outer = sch.get(sch.get_loops("C_update")[0])
    assert outer.kind == tw.ir.ForKind.PARALLEL and outer.extent.value % cores == 0


def test_lines_of_a_filter_are_not_asked_for_again_in_each_step():
    assert "prefetch" not in tw.compile(everyday.filter_signal(1 << 18, 31), "llvm -mcpu=haswell -num-cores=1").inspect(
        "schedule"
    )


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=skylake-avx512 -num-cores=2"])
def test_columns_of_one_group_are_copied_for_each_batch(target):
    """Heads of an attention: rows of keys lie apart, and one group of columns is all of them."""
    a, b = (te.placeholder((3, 32, 4, 16), name=name) for name in "AB")
    d = te.reduce_axis((0, 16), name="d")
    scores = te.compute((3, 4, 32, 32), lambda n, h, i, j: te.sum(a[n, i, h, d] * b[n, j, h, d], axis=[d]), name="C")
    program = te.create_prim_func([a, b, scores])
    assert "B_global" in scheduled(program, target).mod.script()
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (3, 32, 4, 16)).astype("float32") for _ in range(2))
    got = np.zeros((3, 4, 32, 32), "float32")
    tw.compile(program, "native", schedule="by rules")(x, y, got)
    np.testing.assert_array_equal(got, np.einsum("nihd,njhd->nhij", x, y))
