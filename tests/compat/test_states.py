"""tvm.tir.ScheduleState: statements that are replaced, and references that follow them."""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T


@T.prim_func
def two_stages(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


def named(block, name, body=None):
    return tir.Block(block.iter_vars, block.reads, block.writes, name, block.body if body is None else body)


def root_of(state):
    return state.mod["main"].body.block


def test_a_loop():
    state = tir.ScheduleState(two_stages, debug_mask="all")
    before, loop = state.mod, root_of(state).body.seq[0]
    sref, of_root = state.get_sref(loop), state.get_sref(root_of(state))
    inner = state.get_sref(loop.body)
    target = tir.For(loop.loop_var, 0, 16, tir.ForKind.PARALLEL, loop.body)
    state.replace(sref, target)
    assert root_of(state).body.seq[0].same_as(target) and sref.stmt.same_as(target)
    assert state.get_sref(target) == sref and sref.parent == of_root
    assert of_root.stmt.same_as(root_of(state)) and inner.stmt.same_as(loop.body)
    tvm.ir.assert_structural_equal(before["main"], two_stages)


def test_a_loop_by_a_block():
    state = tir.ScheduleState(two_stages)
    loop = root_of(state).body.seq[0]
    sref = state.get_sref(loop)
    opaque = tir.Block([], [], [], "outer", loop)
    state.replace(sref, tir.BlockRealize([], True, opaque))
    assert root_of(state).body.seq[0].block.name_hint == "outer"
    assert sref.stmt.same_as(loop) and sref.parent == state.get_sref(opaque)


def test_a_block_by_one_that_takes_its_place():
    state = tir.ScheduleState(two_stages)
    block = root_of(state).body.seq[0].body.body.block
    sref = state.get_sref(block)
    replacement = named(block, "B2")
    state.replace(sref, replacement, {block: replacement})
    found = state.get_sref(root_of(state).body.seq[0].body.body.block)
    assert sref.stmt.name_hint == "B2" and hash(found) == hash(sref) and found == sref
    assert state.get_block_scope(state.get_sref(root_of(state))).get_deps_by_src(sref)


def test_a_block_without_a_successor():
    state = tir.ScheduleState(two_stages)
    block = root_of(state).body.seq[0].body.body.block
    sref = state.get_sref(block)
    state.replace(sref, named(block, "B2"))
    assert sref.stmt is None and state.get_sref(block) is None
    assert state.get_sref(root_of(state).body.seq[0].body.body) is None
    assert root_of(state).body.seq[0].body.body.block.name_hint == "B2"


def test_the_root():
    state = tir.ScheduleState(two_stages)
    root = root_of(state)
    target = tir.Block([], [], [], "root", root.body.seq[1], alloc_buffers=root.alloc_buffers)
    state.replace(state.get_sref(root), target)
    assert root_of(state).same_as(target) and state.get_sref(target).parent is None
    assert state.get_sref(root.body.seq[0]) is None


def test_what_cannot_be_replaced():
    state, other = tir.ScheduleState(two_stages), tir.ScheduleState(two_stages)
    root = root_of(state)
    loop, block = root.body.seq[0], root.body.seq[0].body.body.block
    with pytest.raises(tvm.TVMError, match="a loop cannot be replaced by a Block"):
        state.replace(state.get_sref(loop), block)
    with pytest.raises(tvm.TVMError, match="a block cannot be replaced by a For") as raised:
        state.replace(state.get_sref(block), loop)
    assert raised.value.code == "schedule/replace"
    with pytest.raises(tvm.TVMError, match="a statement of this state"):
        other.replace(state.get_sref(loop), loop)
    for reused in ({loop: block}, {block: loop}, {"B": "B2"}):
        with pytest.raises(tvm.TVMError, match="not a block"):
            state.replace(state.get_sref(block), named(block, "B2"), reused)
    assert state.mod["main"].body.block.same_as(root)


def test_a_schedule_begins_anew():
    sch = tir.Schedule(two_stages)
    sch.annotate(sch.get_block("B"), "k", 1)
    state = sch.state
    loop = sch.get(sch.get_loops("C")[0])
    state.replace(state.get_sref(loop), tir.For(loop.loop_var, 0, 16, tir.ForKind.PARALLEL, loop.body))
    assert sch.get(sch.get_loops("C")[0]).kind == tir.ForKind.PARALLEL
    assert not any(step.kind.name == "Annotate" for step in sch.trace.insts)
    sch.split(sch.get_loops("C")[1], [4, 4])
    assert len(sch.get_loops("C")) == 3
