import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright.script import tir as T
from tilewright.testing import check_same, workloads


def tiled(seed=0):
    sch = tw.Schedule(workloads.matmul(16, 16, 16), seed=seed)
    i, j, _ = sch.get_loops("C")
    for loop in (i, j):
        sch.split(loop, sch.sample_perfect_tile(loop, n=2))
    return sch


def drawn(sch):
    return [*sch.trace.decisions.values()]


def test_the_printed_trace():
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    assert str(sch.trace) == "import tilewright as tw\n\ndef apply_trace(sch: tw.Schedule) -> None:\n    pass"
    i, *_ = sch.get_loops("C")
    sch.split(i, [None, 4])
    assert str(sch.trace).split("\n")[3:] == [
        '    C = sch.get_block("C")',
        "    i, j, l = sch.get_loops(C)",
        "    i_0, i_1 = sch.split(i, [None, 4])",
    ]
    assert sch.trace.as_python() == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
        "l4, l5 = sch.split(loop=l1, factors=[None, 4], preserve_unit_iters=True, disable_predication=False)",
    ]
    assert len(sch.trace) == 3


def test_the_printed_trace_says_what_is_not_proved():
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    cached = sch.cache_read("C", 0, "global")
    sch.unsafe_set_dtype(cached, 0, "float16")
    said = "values of 'A_global' lose nothing that matters as float16"
    assert sch.trace.stated == {2: said}
    last = str(sch.trace).splitlines()[-1]
    assert last.endswith(f'0, "float16")  # stated, not proved: {said}')
    assert sch.trace.simplified(False).stated == {2: said}
    assert "stated" not in "".join(sch.trace.as_python())
    replayed = tw.Schedule(sch.original)
    sch.trace.apply_to_schedule(replayed)
    assert replayed.trace.stated == {2: said}


def test_the_printed_trace_runs():
    @T.prim_func
    def awkward(A: T.Buffer((16, 16)), B: T.Buffer((16, 16))):
        for tw_, sch in T.grid(16, 16):
            with T.block("a block.1"):
                vi, vj = T.axis.remap("SS", [tw_, sch])
                B[vi, vj] = A[vi, vj]

    sch = tw.Schedule(awkward, seed=1)
    block = sch.get_block("a block.1")
    outer, inner = sch.get_loops(block)
    again, *_ = sch.get_loops(block)
    tile = sch.sample_perfect_tile(inner, n=2, max_innermost_factor=8)
    sch.split(inner, tile, preserve_unit_iters=False)
    copy = sch.cache_read(block, 0, "local")
    sch.annotate(again, "key", {"a": [1, 0.5, "x"]})
    sch.compute_at(copy, outer, preserve_unit_loops=True)
    text = str(sch.trace)
    assert "    a_block_1 = sch.get_block(" in text
    scope: dict[str, object] = {}
    exec(text, scope)
    fresh = tw.Schedule(awkward)
    scope["apply_trace"](fresh)
    check_same(fresh.mod, sch.mod)
    assert fresh.trace.as_python() == sch.trace.as_python()


def test_json():
    sch = tiled()
    assert sch.trace.as_json()[0][1] == ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]]
    read = tw.Trace.from_json(sch.trace.as_json())
    assert read.as_python() == sch.trace.as_python()
    for bad in ["", "{", [], [[["Split"]], []], [[["Nothing", [], [], []]], []]]:
        with pytest.raises(tw.ScheduleError, match="not a trace") as error:
            tw.Trace.from_json(bad)
        assert error.value.code == "trace/json"


def test_what_tvm_writes_is_read():
    trace = tw.Trace.from_json(
        [
            [
                ["GetBlock", [], ["C", "main"], ["b0"]],
                ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
                ["SamplePerfectTile", ["l1"], [2, 16], ["v4", "v5"]],
                ["Split", ["l1", "v4", "v5"], [1, 0], ["l6", "l7"]],
                ["Annotate", ["b0", '"text"'], ["key"], []],
                ["Annotate", ["l6", 3], ["key"], []],
            ],
            [[2, [4, 4]]],
        ]
    )
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    trace.apply_to_schedule(sch)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("C")] == [4, 4, 16, 16]
    assert sch.get(sch.get_block("C")).annotations == {"key": "text"}


def test_replay_with_other_decisions():
    sch = tiled(seed=1)
    same = tw.Schedule(workloads.matmul(16, 16, 16))
    sch.trace.apply_to_schedule(same)
    check_same(same.mod, sch.mod)
    chosen = tw.Schedule(workloads.matmul(16, 16, 16))
    sch.trace.apply_to_schedule(chosen, decide=lambda draw: [8, 2] if draw == 1 else None)
    assert drawn(chosen) == [drawn(sch)[0], [8, 2]]
    fresh = {
        str(drawn(candidate))
        for candidate in (tw.Schedule(workloads.matmul(16, 16, 16), seed=s) for s in range(20))
        if not sch.trace.apply_to_schedule(candidate, fresh=True)
    }
    assert len(fresh) > 5


def test_with_decisions():
    sch = tiled(seed=1)
    other = sch.with_decisions({1: [8, 2]})
    assert drawn(other) == [drawn(sch)[0], [8, 2]]
    replayed = tw.Schedule(workloads.matmul(16, 16, 16))
    other.trace.apply_to_schedule(replayed)
    check_same(replayed.mod, other.mod)
    with pytest.raises(tw.ArgumentError, match="no sampling step number 2"):
        sch.with_decisions({2: [8, 2]})
    with pytest.raises(tw.ArgumentError, match="cannot take an integer"):
        sch.with_decisions({0: 8})


def test_decisions_that_do_not_fit_are_refused():
    sch = tiled(seed=1)
    for wrong, said in (
        ([3, 5], r"\[3, 5\] as its decision: .* 2 factors of at least 1 whose product is 16, the extent"),
        ([8, 4], "whose product is 16"),
        ([32, 1], "whose product is 16"),
    ):
        with pytest.raises(tw.ArgumentError, match=rf"(?s)schedule/decision.*sample_perfect_tile.*{said}"):
            sch.with_decisions({1: wrong})
        draw = [inst for inst in sch.trace.insts if inst.kind.name == "SamplePerfectTile"][1]
        with pytest.raises(tw.ArgumentError, match=rf"(?s)schedule/decision.*sample_perfect_tile.*{said}"):
            sch.trace.with_decision(draw, wrong)
    with pytest.raises(tw.ScheduleError, match="sample_perfect_tile/P4"):
        sch.with_decisions({1: [16]})
    # Draws after one that changes keep theirs as far as they can: that is no decision of the user's.
    after = tw.Schedule(workloads.matmul(16, 16, 16), seed=1)
    loop = after.get_loops("C")[0]
    outer, _ = after.split(loop, after.sample_perfect_tile(loop, n=2, decision=[4, 4]))
    after.split(outer, after.sample_perfect_tile(outer, n=2, decision=[2, 2]))
    assert drawn(after.with_decisions({0: [2, 8]})) == [[2, 8], [1, 2]]
    assert drawn(after.with_decisions({0: [8, 2], 1: [4, 2]})) == [[8, 2], [4, 2]]


def test_partitioned_tiles_and_places_that_do_not_fit_are_refused():
    sch = tw.Schedule(workloads.matmul(16, 16, 16), seed=1)
    loop = sch.get_loops("C")[0]
    sch.split(loop, sch.sample_partitioned_tile(loop, n=2, partition_pos=1, innerpart_factor=4, decision=[2, 8]))
    assert drawn(sch.with_decisions({0: [4, 4]})) == [[4, 4]]
    with pytest.raises(tw.ArgumentError, match=r"(?s)\[8, 2\] as its decision.*from number 1 on is a multiple of 4"):
        sch.with_decisions({0: [8, 2]})
    chain = tw.Schedule(workloads.matmul_relu(16, 16, 16), seed=1)
    chain.sample_compute_location("C", decision=-1)
    assert drawn(chain.with_decisions({0: -1})) == [-1]
    with pytest.raises(tw.ArgumentError, match=r"(?s)100 as its decision.*at which the block can be computed"):
        chain.with_decisions({0: 100})


def test_traces_are_made_of_lists_of_instructions():
    with pytest.raises(tw.ArgumentError, match=r"Trace cannot take \(int\)"):
        tw.Trace(0)
    with pytest.raises(tw.ArgumentError, match="Instruction cannot take"):
        _core.Instruction(tiled(seed=1).trace.insts[0].kind, 0, [], [])


def test_index_maps_are_written_whole():
    """Deeper than a message shows, with casts, and with a map of one index."""

    @T.prim_func
    def copy(A: T.Buffer((T.int64(64), T.int64(32))), B: T.Buffer((T.int64(64), T.int64(32)))):
        for i, j in T.grid(T.int64(64), T.int64(32)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = tw.Schedule(copy)
    cached = sch.cache_read("B", 0, "global")

    def deep(i, j):
        total = i * 32 + j
        for _ in range(14):
            total = total + 0 * i + (i - i)
        return (total // 4 + T.Cast("int64", T.int32(0)), total % 4)

    sch.transform_layout(cached, ("write", 0), deep)
    text = str(sch.trace)
    assert "..." not in text
    scope: dict[str, object] = {}
    exec(text, scope)
    fresh = tw.Schedule(copy)
    scope["apply_trace"](fresh)
    check_same(fresh.mod, sch.mod)


def test_replay_from_an_edit():
    sch = tiled(seed=1)
    at = [step.kind.name for step in sch.trace.insts].index("SamplePerfectTile")
    other = sch.replay_from(at, {at: [8, 2]})
    assert drawn(other) == [[8, 2], drawn(sch)[1]]
    again = tw.Schedule(workloads.matmul(16, 16, 16))
    other.trace.apply_to_schedule(again)
    check_same(again.mod, other.mod)
    last = len(sch.trace) - 1
    shorter = sch.replay_from(last, {last: None})
    assert len(shorter.trace) == last
    step = sch.trace.insts[last]
    assert step.kind.name == "Split"
    turned = tw.schedule.Instruction(step.kind, [step.inputs[0], *reversed(step.inputs[1:])], step.attrs, step.outputs)
    edited = sch.replay_from(last, {last: turned})
    made = shorter.copy()
    made.split(shorter.trace.insts[last - 1].inputs[0], list(reversed(step.inputs[1:])))
    check_same(edited.mod, made.mod)
    assert len({str(drawn(sch.replay_from(at, fresh=True))) for sch in map(tiled, range(20))}) > 5
    with pytest.raises(tw.ArgumentError, match="replay starts at step"):
        sch.replay_from(last, {at: [8, 2]})
    with pytest.raises(tw.ScheduleError, match="a handle that no earlier step gives"):
        sch.replay_from(at, {at: None})


def test_another_trace_of_the_same_program():
    sch = tiled(seed=1)
    trace = tw.Trace.from_json(tiled(seed=2).trace.as_json())
    check_same(sch.with_trace(trace).mod, tiled(seed=2).mod)
    assert sch.with_trace(sch.trace).mod == sch.mod


def test_simplified_drops_unused_lookups():
    sch = tiled()
    sch.get_loops("C")
    sch.sample_categorical([1], [1.0])
    assert len(sch.trace.simplified()) == len(tiled().trace)


def test_a_trace_of_another_program():
    other = tw.Schedule(workloads.transpose(16, 16))
    with pytest.raises(tw.ScheduleError, match=r"step 0 of the trace, get_block\(\): Cannot find a block") as error:
        tiled().trace.apply_to_schedule(other)
    assert error.value.code == "get_block/P2"
    sch = tw.Schedule(workloads.transpose(16, 16))
    sch.get_loops("B")
    trace = tw.Trace.from_json(sch.trace.as_json())
    renamed = tw.Schedule(workloads.conv1d(4, 3, 2))
    text = str(trace.as_json()).replace("'B'", "'conv'").replace("'", '"')
    with pytest.raises(tw.ScheduleError, match="gave 3 handles where the trace has 2") as error:
        tw.Trace.from_json(text).apply_to_schedule(renamed)
    assert error.value.code == "trace/outputs"


@pytest.mark.parametrize(("step", "edits"), [(-1, {}), (99, {}), (0, {-1: None}), (-1, {3: None}), (0, {99: None})])
def test_a_step_that_the_trace_has_not(step, edits):
    with pytest.raises(tw.ArgumentError, match="the trace has no step of that number") as error:
        tiled().replay_from(step, edits)
    assert error.value.code == "trace/step"


def test_an_instruction_that_there_is_not():
    with pytest.raises(AttributeError, match="there is no instruction 'Unrol'; did you mean 'Unroll'"):
        tw.schedule.InstructionKind.get("Unrol")


def test_a_callback_that_raises():
    with pytest.raises(ZeroDivisionError):
        tiled().trace.apply_to_schedule(tw.Schedule(workloads.matmul(16, 16, 16)), decide=lambda draw: 1 // 0)


def test_a_draw_that_gives_nothing_there():
    @T.prim_func
    def symbolic(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                A[vi] = T.float32(1)

    trace = tw.Trace.from_json(
        [
            [
                ["GetBlock", [], ["B", "main"], ["b0"]],
                ["GetLoops", ["b0"], [], ["l1"]],
                ["SamplePerfectTile", ["l1"], [2, 16], ["v2", "v3"]],
                ["Split", ["l1", "v2", "v3"], [True, False], ["l4", "l5"]],
            ],
            [],
        ]
    )
    with pytest.raises(tw.ScheduleError, match=r"step 3 of the trace, split\(\): it uses a handle") as error:
        trace.apply_to_schedule(tw.Schedule(symbolic))
    assert error.value.code == "trace/handle"


@pytest.mark.parametrize("target", [lambda sch: sch.get_loops("C")[1], lambda sch: [sch.get_block("B"), "C"]])
def test_simplified_keeps_what_either_kind_of_handle_names(target):
    sch = tw.Schedule(workloads.elementwise_chain(4, 6))
    sch.blockize(target(sch))
    short = sch.trace.simplified()
    assert "_," not in str(short) and "=_" not in str(short)
    again = tw.Schedule(workloads.elementwise_chain(4, 6))
    short.apply_to_schedule(again)
    ir.assert_structural_equal(again.mod, sch.mod)
    names: dict = {"sch": tw.Schedule(workloads.elementwise_chain(4, 6))}
    exec("\n".join(short.as_python()), names)
    ir.assert_structural_equal(names["sch"].mod, sch.mod)


def test_decisions_are_drawn_anew():
    def made():
        sch = tw.Schedule(workloads.matmul(16, 16, 16), seed=3)
        sch.get_loops("C")
        sch.sample_categorical([*range(100)], [0.01] * 100)
        return sch

    sch, same = made(), made()
    fresh = [drawn(sch.replay_from(2, fresh=True)) for _ in range(8)]
    assert len({number for (number,) in fresh}) > 3
    assert drawn(sch.replay_from(2)) == drawn(sch)
    # The stream is that of the schedule: the same seed gives the same draws.
    assert [drawn(same.replay_from(2, fresh=True)) for _ in range(8)] == fresh


def test_steps_are_numbered_as_in_the_trace_that_was_edited():
    sch = tw.Schedule(workloads.matmul(16, 16, 16))
    i, j, k = sch.get_loops("C")  # steps 0 and 1
    _, i_1 = sch.split(i, [None, 4])  # 2
    sch.annotate(k, "kept", 1)  # 3
    sch.reorder(j, i_1)  # 4
    with pytest.raises(tw.ScheduleError, match=r"(?s)trace/handle.*step 4 of the trace, reorder.*leave it out, too"):
        sch.replay_from(2, {2: None})
    assert len(sch.replay_from(2, {2: None, 4: None}).trace) == 3


def test_the_only_function_may_be_called_otherwise():
    program = workloads.matmul(16, 16, 16)
    sch = tw.Schedule(tw.ir.IRModule({"mine": program}))
    sch.vectorize(sch.get_loops(sch.get_block("C"))[1])
    other = tw.Schedule(program)
    sch.trace.apply_to_schedule(other)
    tw.ir.assert_structural_equal(other.mod["main"], sch.mod["mine"])
    assert other.trace.insts[0].attrs == ["C", "main"]
    two = tw.Schedule(tw.ir.IRModule({"main": program, "f": program}))
    with pytest.raises(tw.ScheduleError, match="no function 'mine'"):
        sch.trace.apply_to_schedule(two)


def test_printed_traces_that_name_sizes_run():
    """Where nothing around defines the size or T; a size of a trace and a number of the caller are told apart."""

    @T.prim_func
    def main(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, n))
        B = T.match_buffer(b, (n, n))
        for i, j in T.grid(n, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0

    n = main.buffer_map[main.params[0]].shape[0]
    for function, pad_value in (
        (lambda i, j: (i * n + j,), None),
        (lambda i, j: (j, n - 1 - i), None),
        (lambda i, j: tuple(value * n + j for value in [i]), None),
        (lambda i, j: (i, j), T.Cast("float32", n)),
        (lambda i, j: (j, i), T.Cast("float32", n * 2)),
    ):
        sch = tw.Schedule(main)
        sch.transform_layout("B", ("write", 0), function, pad_value)
        text = "\n".join(sch.trace.as_python())
        assert "n" in text and "lambda" in text
        names: dict = {"sch": tw.Schedule(main)}
        exec(text, names)
        ir.assert_structural_equal(names["sch"].mod, sch.mod)
        assert names["sch"].trace.as_python() == sch.trace.as_python()
        assert "n" not in names and "T" not in names
    sch = tw.Schedule(main)
    sch.annotate_buffer_access("B", 0, "read", lambda i, j: (T.max(i - 1, 0), T.min(i + 1, n), j, j + 1))
    names = {"sch": tw.Schedule(main)}
    exec("\n".join(sch.trace.as_python()), names)
    ir.assert_structural_equal(names["sch"].mod, sch.mod)
    # What is defined around is meant.
    sch = tw.Schedule(main)
    exec("sch.transform_layout('B', ('write', 0), lambda i, j: (i * n, j))", {"sch": sch, "n": 1})
    assert "lambda i, j: (i, j)" in str(sch.trace)
    with pytest.raises(NameError):
        exec("sch.transform_layout('B', ('write', 0), lambda i, j: (i * m, j))", {"sch": sch})
