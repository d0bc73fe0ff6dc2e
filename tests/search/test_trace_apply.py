"""Traces of one program on others with the same heaviest block."""

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.script import tir as T
from tilewright.testing import workloads


def tiled(sch):
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i0, j0, l, i1, j1)
    written = sch.cache_write(block, 0, "global")
    sch.reverse_compute_at(written, j0)
    sch.parallel(i0)


def anchor_trace():
    sch = tw.Schedule(workloads.matmul(8, 12, 6))
    tiled(sch)
    return sch.trace


def test_what_follows_goes_into_the_write_cache():
    sch = tw.Schedule(workloads.matmul_relu(8, 12, 6))
    ms.schedule_using_anchor_trace(sch, anchor_trace(), "llvm")
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(sch.get_block("root"))] == ["C", "C_global"]
    assert "max" in str(sch.get(sch.get_block("C_global")).body)
    assert sch.verify()


def test_without_a_cache_the_rest_is_parallel():
    def steps(sch):
        i, *_ = sch.get_loops(sch.get_block("C"))
        sch.parallel(i)

    anchor = tw.Schedule(workloads.matmul(8, 12, 6))
    steps(anchor)
    sch = tw.Schedule(workloads.matmul_relu(8, 12, 6))
    ms.schedule_using_anchor_trace(sch, anchor.trace, "llvm")
    (loop,) = sch.get_loops(sch.get_block("D"))
    assert sch.get(loop).kind == tw.ir.ForKind.PARALLEL
    assert sch.verify()


def test_what_is_not_there_is_left_out():
    anchor = tw.Schedule(workloads.matmul_relu(8, 12, 6))
    tiled(anchor)
    anchor.vectorize(anchor.get_loops(anchor.get_block("D"))[1])
    sch = tw.Schedule(workloads.matmul(8, 12, 6))
    ms.schedule_using_anchor_trace(sch, anchor.trace, "llvm")
    assert len(sch.get_loops(sch.get_block("C"))) == 5
    assert sch.verify()


def test_a_gpu_gets_threads():
    anchor = tw.Schedule(workloads.matmul(8, 16, 6))
    i, j, _ = anchor.get_loops(anchor.get_block("C"))
    anchor.bind(i, "blockIdx.x")
    anchor.bind(j, "threadIdx.x")
    sch = tw.Schedule(workloads.matmul_relu(8, 16, 6), seed=1)
    ms.schedule_using_anchor_trace(sch, anchor.trace, "nvidia/geforce-rtx-3070")
    tags = [str(sch.get(loop).thread_binding.thread_tag) for loop in sch.get_loops(sch.get_block("D"))]
    assert tags == ["blockIdx.x", "threadIdx.x"]


@T.prim_func
def two_products(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), D: T.Buffer((8, 8))):
    C = T.alloc_buffer((8, 8))
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j, k in T.grid(8, 8, 4):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + C[vi, vk]


def test_traces_that_do_not_fit():
    nothing = tw.Schedule(workloads.matmul(8, 12, 6)).trace
    with pytest.raises(tw.ScheduleError) as error:
        ms.schedule_using_anchor_trace(tw.Schedule(two_products), nothing, "llvm")
    assert error.value.code == "trace-apply/rest"

    anchor = tw.Schedule(workloads.matmul(8, 12, 6))
    anchor.get_loops(anchor.get_block("C"))
    other = tw.Schedule(workloads.matmul(8, 12, 6))
    other.split(other.get_loops(other.get_block("C"))[0], [2, 4])
    with pytest.raises(tw.ScheduleError) as error:
        ms.schedule_using_anchor_trace(other, anchor.trace, "llvm")
    assert error.value.code == "trace-apply/outputs"
