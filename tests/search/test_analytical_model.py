"""The analytical model says what must hold on any processor."""

from __future__ import annotations

import itertools

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T
from tilewright.testing.workloads import matmul

ONE = "llvm -mcpu=znver4 -num-cores=1"


def cost(sch, target=ONE):
    return _core.estimate_cost(sch.mod, target)


def seconds(sch, target=ONE):
    return cost(sch, target)["seconds"]


def tiled(n, rows, columns):
    """A product whose results of a tile stay in registers."""
    sch = tw.Schedule(matmul(n, n, n))
    i, j, k = sch.get_loops(sch.get_block("C"))
    i_0, i_1 = sch.split(i, [None, rows])
    j_0, j_1 = sch.split(j, [None, columns])
    sch.reorder(i_0, j_0, k, i_1, j_1)
    if rows > 1:
        sch.unroll(i_1)
    sch.vectorize(j_1)
    return sch


def test_more_work_takes_longer():
    times = [seconds(tiled(n, 4, 32)) for n in (64, 128, 256, 512, 1024)]
    assert all(4 < later / earlier < 20 for earlier, later in itertools.pairwise(times))


def test_vectors_are_faster_than_walking_down_columns():
    down = tw.Schedule(matmul(256, 256, 256))
    i, j, k = down.get_loops(down.get_block("C"))
    down.reorder(j, k, i)
    assert seconds(tiled(256, 4, 32)) * 4 < seconds(down)


def test_independent_sums_hide_the_latency():
    assert seconds(tiled(256, 4, 32)) * 2 < seconds(tiled(256, 1, 16))


def test_tiles_beyond_the_registers_spill():
    fits, spills = cost(tiled(256, 8, 32)), cost(tiled(256, 16, 64))
    assert fits["spilled_registers"] == 0
    assert spills["spilled_registers"] >= 32
    assert spills["compute"] > 1.3 * fits["compute"]


def test_rows_a_power_of_two_apart_are_slower():
    def per_operation(n):
        return cost(tiled(n, 4, 16))["memory"] / n**3

    assert per_operation(1024) > per_operation(1040)


def test_larger_caches_and_more_lanes_are_never_slower():
    sch = tiled(512, 4, 32)
    for option, values in {"l1-bytes": (16384, 32768, 65536), "l2-bytes": (262144, 1048576, 4194304)}.items():
        times = [seconds(sch, f"{ONE} -{option}={value}") for value in values]
        assert times == sorted(times, reverse=True)
    times = [seconds(sch, f"{ONE} -vector-width={bits}") for bits in (128, 256, 512)]
    assert times == sorted(times, reverse=True)


def test_threads_help_large_programs_and_not_tiny_ones():
    def parallel(n):
        sch = tiled(n, 4, 16)
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])
        return sch

    two = "llvm -mcpu=znver4 -num-cores=2"
    large, tiny = parallel(512), parallel(16)
    assert 1.6 < seconds(large) / seconds(large, two) <= 2.01
    assert cost(large)["parallel_chunks"] == 128
    assert seconds(tiny, two) > seconds(tiled(16, 4, 16), two)
    three = parallel(512)
    assert seconds(three, "llvm -mcpu=znver4 -num-cores=3") >= seconds(large) / 3  # 128 chunks do not divide evenly


def test_copies_under_the_loop_that_uses_them_spare_memory():
    @T.prim_func
    def chain(A: T.Buffer((4096, 1024), "float32"), B: T.Buffer((4096, 1024), "float32")):
        C = T.alloc_buffer((4096, 1024))
        for i, j in T.grid(4096, 1024):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(4096, 1024):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[vi, vj] + T.float32(1)

    apart, together = tw.Schedule(chain), tw.Schedule(chain)
    together.compute_at(together.get_block("C"), together.get_loops(together.get_block("B"))[0])
    assert cost(together)["memory"] < 0.8 * cost(apart)["memory"]
