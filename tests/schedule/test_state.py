"""sch.state: references to statements, and dependences between blocks."""

import pytest

import tilewright as tw
from tilewright.schedule import DepKind
from tilewright.script import tir as T
from tilewright.testing import workloads


@T.prim_func
def sums(A: T.Buffer((4, 4)), B: T.Buffer((4,)), C: T.Buffer((4,))):
    for i in range(4):
        with T.block("zero"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.float32(0)
        for k in range(4):
            with T.block("add"):
                vi, vk = T.axis.remap("SR", [i, k])
                B[vi] = B[vi] + A[vi, vk]
        with T.block("copy"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]
        with T.block("clear"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.float32(1)


def test_references_follow_their_statement():
    sch = tw.Schedule(workloads.transpose(12, 6))
    i, j = sch.get_loops("B")
    outer, block = sch.get_sref(i), sch.get_sref(sch.get_block("B"))
    assert outer.stmt.same_as(sch.get(i)) and sch.get(outer).same_as(sch.get(i))
    inner, _ = sch.split(j, [2, 6])
    sch.unroll(i)
    assert outer.stmt.kind.name == "UNROLLED" and outer == sch.get_sref(i) and hash(outer) == hash(sch.get_sref(i))
    assert block.parent.parent == sch.get_sref(inner) and sch.get_sref(inner).parent == outer
    assert outer.parent.stmt.name_hint == "root" and outer.parent.parent is None
    middle = sch.get_sref(inner)
    sch.split(inner, [None, 2])
    assert middle.stmt is None
    for gone in (lambda: middle.parent, lambda: middle.seq_index, lambda: sch.get_sref(inner)):
        with pytest.raises(ValueError, match="schedule/expired"):
            gone()
    copy = sch.copy()
    again = copy.get_sref(copy.get_block("B"))
    assert again.stmt.same_as(block.stmt) and not again.same_as(block) and again != block


def test_references_of_statements():
    sch = tw.Schedule(workloads.transpose(12, 6))
    i, _ = sch.get_loops("B")
    before = sch.get(i)
    assert sch.state.get_sref(before) == sch.get_sref(before) == sch.get_sref(i)
    assert sch.state.mod.same_as(sch.mod)
    sch.unroll(i)
    assert sch.state.get_sref(before) is None
    with pytest.raises(tw.ArgumentError, match="does not hold this statement"):
        sch.get_sref(before)
    with pytest.raises(tw.ArgumentError, match="schedule/statement") as error:
        sch.get_sref(before.loop_var)
    assert "takes a loop or a block, not a Var" in str(error.value)


def test_places_in_a_sequence():
    sch = tw.Schedule(sums)
    block = sch.get_block
    assert [sch.get_sref(block(name)).seq_index for name in ("zero", "add", "copy", "clear")] == [0, -1, 2, 3]
    assert [sch.get_sref(loop).seq_index for loop in sch.get_loops("add")] == [-1, 1]


def test_dependences():
    sch = tw.Schedule(sums)
    srefs = {name: sch.get_sref(sch.get_block(name)) for name in ("root", "zero", "add", "copy", "clear")}
    scope = sch.state.get_block_scope(srefs["root"])

    def show(deps):
        return [(dep.src.stmt.name_hint, dep.dst.stmt.name_hint, dep.kind.name) for dep in deps]

    assert sorted(show(scope.get_deps_by_src(srefs["zero"]))) == [
        ("zero", "add", "RAW"),
        ("zero", "add", "WAW"),
        ("zero", "clear", "WAW"),
        ("zero", "copy", "RAW"),
    ]
    assert sorted(show(scope.get_deps_by_dst(srefs["clear"]))) == [
        ("add", "clear", "WAR"),
        ("add", "clear", "WAW"),
        ("copy", "clear", "WAR"),
        ("zero", "clear", "WAW"),
    ]
    assert int(DepKind.RAW) == 0 and DepKind.WAR == 2
    with pytest.raises(tw.ArgumentError, match="schedule/scope"):
        sch.state.get_block_scope(sch.get_sref(sch.get_loops("add")[0]))
    with pytest.raises(tw.ArgumentError, match="schedule/scope"):
        sch.copy().state.get_block_scope(srefs["root"])


def test_a_dead_handle_says_what_removed_it():
    """The step that took it out, not a guess; in copies and after replays too."""
    sch = tw.Schedule(workloads.matmul(8, 8, 8))
    i, j, k = sch.get_loops("C")
    fused = sch.fuse(i, j)
    sch.split(fused, [None, 4])
    sch.parallel(sch.get_loops("C")[0])
    took = {i: "fuse(), step 2 of the trace, took it out", fused: "split(), step 3 of the trace, took it out"}
    for schedule in (sch, sch.copy(), sch.with_decisions({})):
        for loop, what in took.items():
            for use in (schedule.unroll, schedule.get, schedule.get_sref, lambda h, s=schedule: s.reorder(k, h)):
                with pytest.raises(tw.ScheduleError) as error:
                    use(loop)
                assert error.value.code == "schedule/expired" and what in error.value.message
                assert "use the handles which that step gave" in error.value.hint


def test_a_dead_block_says_what_removed_it():
    sch = tw.Schedule(workloads.elementwise_chain(8, 8))
    block = sch.get_block("B")
    loop = sch.get_loops(block)[0]
    sch.compute_inline(block)
    for dead in (block, loop):
        with pytest.raises(tw.ScheduleError, match=r"compute_inline\(\), step 2 of the trace, took it out") as error:
            sch.get(dead)
        assert error.value.hint.startswith("get_loops() and get_block()")
