"""Finding blocks and loops, handles, and what a schedule says of itself."""

import pytest

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def nested(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
    for i in range(8):
        with T.block("outer"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj]


def names(sch, blocks):
    return [sch.get(block).name_hint for block in blocks]


def test_get_block():
    error = check_refused(nested, lambda sch: sch.get_block("innr"), "get_block/P2")
    assert "Cannot find a block with the name: innr" in str(error)
    assert "root, outer, inner" in error.hint

    @T.prim_func
    def twice(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = B[vi]

    assert "Found 2 blocks" in str(check_refused(twice, lambda sch: sch.get_block("B"), "get_block/P2"))


def test_loops_and_children():
    def look(sch):
        outer, inner = sch.get_block("outer"), sch.get_block("inner")
        assert [repr(loop) for loop in sch.get_loops(inner)] == ["Loop(j, extent=8)"]
        assert names(sch, sch.get_child_blocks(sch.get_block("root"))) == ["outer"]
        assert names(sch, sch.get_child_blocks(sch.get_loops(outer)[0])) == ["outer"]
        assert names(sch, sch.get_child_blocks(outer)) == ["inner"]
        assert sch.get_loops("root") == []

    check(nested, look, nested)


def test_producers_and_consumers():
    def look(sch):
        assert names(sch, sch.get_producers("B")) == ["diff", "total"]
        assert names(sch, sch.get_consumers("diff")) == ["total", "B"]
        assert names(sch, sch.get_output_blocks("root")) == ["B"]

    softmax = workloads.softmax_like(4, 6)
    check(softmax, look, softmax)
    check_refused(softmax, lambda sch: sch.get_producers("root"), "get_producers/P1")
    check_refused(softmax, lambda sch: sch.get_consumers("root"), "get_consumers/P1")


@I.ir_module
class Two:
    @T.prim_func
    def f(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    @T.prim_func
    def g(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)


def test_handles_of_other_schedules_are_refused():
    transpose = workloads.transpose(4, 6)
    one, other = tw.Schedule(transpose), tw.Schedule(workloads.transpose(4, 6))
    (i, _), _ = one.get_loops("B"), other.get_loops("B")
    with pytest.raises(tw.ArgumentError, match="another schedule"):
        other.unroll(i)


def test_arguments():
    sch = tw.Schedule(workloads.transpose(4, 6))
    i, j = sch.get_loops("B")
    with pytest.raises(tw.ArgumentError, match=r"split\(\) needs the argument 'factors'"):
        sch.split(i)
    with pytest.raises(tw.ArgumentError, match="unknown argument 'factor'"):
        sch.split(i, factor=[2])
    with pytest.raises(tw.ArgumentError, match="twice the argument 'loop'"):
        sch.split(i, [2], loop=i)
    with pytest.raises(tw.ArgumentError, match="takes at most 1 argument"):
        sch.unroll(i, j)
    with pytest.raises(tw.ArgumentError, match="takes LoopRV, not a block"):
        sch.unroll(sch.get_block("B"))
    with pytest.raises(tw.ArgumentError, match="'factors' takes .* not a list"):
        sch.split(i, [2.5])
    with pytest.raises(tw.ArgumentError, match="beyond 64 bits"):
        sch.split(i, [1 << 70])
    with pytest.raises(ValueError):
        sch.bind(i, 3)
    with pytest.raises(tw.ArgumentError, match="PrimFunc or an IRModule"):
        tw.Schedule(tw.ir.const(1))
    with pytest.raises(tw.ArgumentError, match="cannot be negative"):
        tw.Schedule(workloads.transpose(4, 6), seed=-7)


def test_numpy_integers_are_integers():
    import numpy as np

    check(workloads.transpose(4, 6), lambda sch: sch.split(sch.get_loops("B")[0], [None, np.int64(3)]))


def test_a_lowered_function_cannot_be_scheduled():
    lowered = tw.lower(workloads.transpose(4, 6))
    with pytest.raises(tw.ScheduleError, match="cannot be scheduled") as error:
        tw.Schedule(lowered).get_block("B", next(iter(lowered.functions)))
    assert error.value.code == "schedule/no-root"


def test_an_empty_module():
    with pytest.raises(tw.ScheduleError, match="no function") as error:
        tw.Schedule(tw.ir.Module({}, {}))
    assert error.value.code == "schedule/module"


def test_docstrings_and_signatures():
    assert tw.Schedule.split.__doc__.startswith("split(self, loop: LoopRV")
    assert "Returns:\n    The new loops, outermost first." in tw.Schedule.split.__doc__
    assert "preserve_unit_iters: bool = True" in tw.Schedule.split.__doc__


def test_show(capsys):
    sch = tw.Schedule(workloads.transpose(4, 6))
    sch.get_block("B")
    sch.show()
    printed = capsys.readouterr().out
    assert "def main" in printed and "b0 = sch.get_block" in printed
    assert repr(sch) == sch.mod.script()
