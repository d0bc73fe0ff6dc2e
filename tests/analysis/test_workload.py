"""What is counted as work, and which parameters are read before they are written."""

from typing import Any

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T


@T.prim_func
def product(A: T.Buffer((100, 100), "float32"), B: T.Buffer((100, 100), "float32"), C: T.Buffer((100, 100), "float32")):
    for i, j, k in T.grid(100, 100, 100):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def scheduled() -> Any:
    sch = tw.Schedule(product)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_out, i_in = sch.split(i, [None, 64])
    j_out, j_in = sch.split(j, [None, 64])
    sch.reorder(i_out, j_out, k, i_in, j_in)
    sch.decompose_reduction(block, k)
    return sch.mod["main"]


def test_masks_are_no_work() -> None:
    assert _core.analyze_work(product)["flops"] == 2e6
    facts = _core.analyze_work(scheduled())
    assert facts["flops"] == 2e6 and facts["exact"]
    assert _core.analyze_work(product)["bytes"] == facts["bytes"] == 3 * 4e4


def test_an_init_of_fewer_elements_is_no_start() -> None:
    @T.prim_func
    def sums(A: T.Buffer((100, 8), "float32"), B: T.Buffer((100,), "float32")):
        for o in range(2):
            for i in range(64):
                with T.block("init"):
                    v = T.axis.spatial(100, o * 64 + i)
                    T.where(o * 64 + i < 90)
                    B[v] = T.float32(0)
            for k, i in T.grid(8, 64):
                with T.block("B"):
                    v = T.axis.spatial(100, o * 64 + i)
                    r = T.axis.reduce(8, k)
                    T.where(o * 64 + i < 100)
                    B[v] = B[v] + A[v, r]

    assert _core.analyze_work(sums)["bytes"] == 4 * (800 + 2 * 100)


def test_halos_that_are_computed_twice_count_once() -> None:
    @T.prim_func
    def blur(X: T.Buffer((66,), "float32"), Y: T.Buffer((64,), "float32")):
        twice = T.alloc_buffer((66,))
        for i in range(66):
            with T.block("twice"):
                vi = T.axis.spatial(66, i)
                twice[vi] = X[vi] + X[vi]
        for i, r in T.grid(64, 3):
            with T.block("Y"):
                vi, vr = T.axis.remap("SR", [i, r])
                with T.init():
                    Y[vi] = T.float32(0)
                Y[vi] += twice[vi + vr]

    sch = tw.Schedule(blur)
    outer, _ = sch.split(sch.get_loops(sch.get_block("Y"))[0], [None, 8])
    sch.compute_at(sch.get_block("twice"), outer)
    assert _core.analyze_work(blur)["flops"] == _core.analyze_work(sch.mod["main"])["flops"] == 66 + 64 * 3


def test_loops_that_nothing_is_bound_to_repeat_the_work() -> None:
    @T.prim_func
    def steps(Y: T.Buffer((64,), "float32")):
        for _ in range(10):
            for i in range(64):
                with T.block("Y"):
                    vi = T.axis.spatial(64, i)
                    Y[vi] = Y[vi] * T.float32(2)

    facts = _core.analyze_workload(steps)
    assert facts["flops"] == 640 and facts["exact"]
    assert [p[3] for p in facts["params"]] == ["inout"]


def test_work_at_the_sizes_of_a_call() -> None:
    import numpy as np

    from tilewright.task.task import work_of

    @T.prim_func
    def halves(x: T.handle, y: T.handle):
        n = T.int32()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range((n + 1) // 2):
            with T.block("Y"):
                vi = T.axis.spatial((n + 1) // 2, i)
                Y[vi] = X[vi] * T.float32(2)

    work = work_of(halves, [np.zeros(101, np.float32)] * 2)
    assert (work.flops, work.bytes, work.exact) == (51, 808, True)
    assert not _core.analyze_work(halves)["exact"]


def test_triangles_are_estimated() -> None:
    @T.prim_func
    def triangle(X: T.Buffer((40, 40), "float32"), Y: T.Buffer((40,), "float32")):
        for i in range(40):
            with T.block("Y"):
                vi = T.axis.spatial(40, i)
                Y[vi] = T.float32(0)
                for j in range(vi):
                    Y[vi] = Y[vi] + X[vi, j]

    facts = _core.analyze_work(triangle)
    assert facts["flops"] == 40 * 20 and not facts["exact"]


def roles(program: tw.ir.PrimFunc) -> dict[str, str]:
    return {name: role for name, _, _, role in _core.analyze_workload(program)["params"]}


def test_what_is_written_in_part_and_read_is_kept() -> None:
    @T.prim_func
    def parts(X: T.Buffer((16,), "float32"), Y: T.Buffer((16,), "float32"), Z: T.Buffer((16,), "float32")):
        for i in range(9):
            with T.block("part"):
                vi = T.axis.spatial(9, i)
                Y[vi] = X[vi]
        for i in range(16):
            with T.block("all"):
                vi = T.axis.spatial(16, i)
                Z[vi] = Y[vi]

    assert roles(parts) == {"X": "input", "Y": "inout", "Z": "output"}
    assert roles(product) == {"A": "input", "B": "input", "C": "output"}


def test_a_write_through_a_view_is_one() -> None:
    @T.prim_func
    def view(X: T.Buffer((20, 30), "float32"), Y: T.Buffer((20, 30), "float32")):
        for i in range(20):
            with T.block("row"):
                vi = T.axis.spatial(20, i)
                row = T.match_buffer(Y[vi, 0:30], (30,))
                for j in range(30):
                    row[j] = X[vi, j] * T.float32(3)

    assert roles(view) == {"X": "input", "Y": "output"}
