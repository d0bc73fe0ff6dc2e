"""Instructions, and traces made of them by hand."""

import pytest

import tilewright as tw
from tilewright.schedule import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, Trace
from tilewright.testing import check_same, workloads

KIND = InstructionKind.get


def tiled():
    sch = tw.Schedule(workloads.transpose(12, 6), seed=0)
    i, j = sch.get_loops("B")
    for loop in (i, j):
        sch.split(loop, sch.sample_perfect_tile(loop, n=2))
    sch.annotate("B", "key", {"list": [1, "two"]})
    return sch


def test_kinds():
    assert (KIND("Split").name, KIND("Split").is_pure, KIND("GetLoops").is_pure) == ("Split", False, True)
    assert KIND("Split") == KIND("Split") != KIND("Fuse") and KIND("Split").same_as(KIND("Split"))
    assert hash(KIND("Split")) == hash(KIND("Split"))
    with pytest.raises(AttributeError, match="no instruction 'Splt'; did you mean 'Split'"):
        KIND("Splt")


def test_kinds_that_need_iterations_over_sparse_axes():
    names = {"GetSparseIteration", "GetSpIters", "SparseReorder", "SparseFuse", "DecomposeFormat", "LowerSparseIter"}
    assert all(KIND(name).is_on_iterations for name in names)
    assert not any(KIND(name).is_on_iterations for name in ("GetBlock", "Split", "Reorder", "Fuse", "EnterPostproc"))


def test_by_hand():
    block, outer, inner = BlockRV(), LoopRV(), LoopRV()
    inst = Instruction(KIND("GetLoops"), [block], [], outputs=[outer, inner])
    assert str(inst) == "_, _ = sch.get_loops(block=_)"
    assert inst.kind == KIND("GetLoops") and inst.attrs == []
    assert inst.inputs[0].same_as(block) and not inst.outputs[0].same_as(inner)
    assert inst.outputs == [outer, inner] and outer != inner
    assert str(Instruction(KIND("EnterPostproc"), [], [], [])) == "sch.enter_postproc()"
    split = Instruction(KIND("Split"), [outer, None, ExprRV(), 4], [True, False], [LoopRV()])
    assert str(split).startswith("_, = sch.split(loop=_, factors=[None, _, 4], preserve_unit_iters=True")
    for wrong in (
        Instruction(KIND("GetLoops"), [block, block], [], []),
        Instruction(KIND("GetLoops"), [outer], [], []),
        Instruction(KIND("GetLoops"), [object()], [], []),
    ):
        with pytest.raises(tw.ArgumentError, match="schedule/argument"):
            str(wrong)
    with pytest.raises(tw.ArgumentError, match="gives handles"):
        tw.Trace([Instruction(KIND("GetLoops"), [block], [], [1])])


def test_handles_of_no_schedule():
    sch = tiled()
    for handle in (BlockRV(), LoopRV(), ExprRV()):
        assert "of no schedule" in repr(handle)
        with pytest.raises(IndexError):
            sch.get(handle)
    with pytest.raises(IndexError):
        int(ExprRV())


def test_of_a_schedule():
    sch = tiled()
    insts, decisions = sch.trace.insts, sch.trace.decisions
    assert [str(inst) for inst in insts[:2]] == [
        '_ = sch.get_block(name="B", func_name="main")',
        "_, _ = sch.get_loops(block=_)",
    ]
    assert sch.get(insts[0].outputs[0]).name_hint == "B"
    draws = [inst for inst in insts if inst.kind.name == "SamplePerfectTile"]
    assert list(decisions) == draws
    assert [decisions[draw] for draw in draws] == [sch.trace.get_decision(draw) for draw in draws]
    assert draws[0] != draws[1] and draws[0].same_as(sch.trace.insts[2])
    assert sch.trace.get_decision(insts[0]) is None
    assert insts[-1].inputs[1] == {"list": [1, "two"]} and insts[-1].attrs == ["key"]
    assert not sch.decisions_read
    other = tiled()
    with pytest.raises(tw.ArgumentError, match="trace/instruction"):
        sch.trace.get_decision(Instruction(KIND("GetBlock"), [], ["x", "main"], [BlockRV()]))
    with pytest.raises(IndexError):
        tw.Trace([insts[0], other.trace.insts[1]])


@pytest.mark.parametrize("written", [False, True])
def test_traces_from_instructions(written):
    sch = tiled()
    trace = tw.Trace.from_json(sch.trace.as_json()) if written else sch.trace
    copy = tw.Trace(trace.insts, trace.decisions)
    assert copy.as_python() == sch.trace.as_python() and copy.insts == trace.insts
    draw = copy.insts[2]
    other = copy.with_decision(draw, [1, 6])
    assert (other.decisions[draw], copy.decisions[draw]) == ([1, 6], sch.trace.decisions[sch.trace.insts[2]])
    last = copy.pop()
    assert last == trace.insts[-1] and len(copy) == len(trace) - 1
    copy.append(Instruction(KIND("Unroll"), [copy.insts[5].outputs[0]], [], []))
    assert copy.as_python()[-1] == "sch.unroll(loop=l9)"
    replayed, expected = tw.Schedule(workloads.transpose(12, 6)), tiled()
    copy.apply_to_schedule(replayed)
    expected.unannotate("B", "key")
    expected.unroll(expected.get_loops("B")[2])
    check_same(replayed.mod, expected.mod)
    empty = tw.Trace([], {})
    assert empty.pop() is None and len(empty) == 0
    empty.append(draw, [2, 3])
    assert empty.get_decision(draw) == [2, 3]


def test_the_record_of_a_schedule_is_not_changed_from_outside():
    sch = tiled()
    before = sch.trace
    for change in (sch.trace.pop, lambda: sch.trace.append(sch.trace.insts[0])):
        with pytest.raises(tw.ArgumentError, match="trace/of-schedule"):
            change()
    sch.unroll(sch.get_loops("B")[0])
    assert len(sch.trace) == len(before) + 3


def test_decisions_by_a_callback():
    sch, other = tiled(), tw.Schedule(workloads.transpose(12, 6))
    seen = []

    def provide(inst, inputs, attrs, decision):
        seen.append((inst, other.get(inputs[0]).extent.value, attrs, decision))
        return [6, 2] if inst == sch.trace.insts[4] else decision

    sch.trace.apply_to_schedule(other, False, provide)
    assert [(extent, attrs) for _, extent, attrs, _ in seen] == [(6, [2, 16]), (12, [2, 16])]
    assert [decision for *_, decision in seen] == list(sch.trace.decisions.values())
    assert list(other.trace.decisions.values()) == [seen[0][3], [6, 2]]


def test_names_count_from_zero_in_every_trace():
    sch = tiled()
    sch.get_block("root")
    sch.unroll(sch.get_loops("B")[0])
    simplified = sch.trace.simplified()
    names = [name for entry in simplified.as_json()[0] for name in entry[3]]
    assert [int(name[1:]) for name in names] == list(range(len(names)))
    replayed = tw.Schedule(workloads.transpose(12, 6))
    tw.Trace.apply_json_to_schedule(simplified.as_json(), replayed)
    check_same(replayed.mod, sch.mod)


def endless():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trace([[1]]), "a trace holds instructions, not a 'list'"),
        (lambda: Trace([None]), "a trace holds instructions, not a 'NoneType'"),
        (lambda: str(Instruction(KIND("GetBlock"), [], [2**63, "main"], [])), "an integer beyond 64 bits"),
        (lambda: str(Instruction(KIND("GetBlock"), [endless()], [], [])), "nested without end"),
        (lambda: tiled().trace.with_decision(tiled().trace.insts[0], endless()), "nested without end"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(tw.ArgumentError, match=message):
        make()
