"""Finding blocks and loops, handles, and what a schedule says of itself."""

import pytest

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, check_trace, workloads


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

    assert "Found 2 blocks" in str(check_refused(twice, lambda sch: sch.get_block("B"), "get_block/P3"))


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


def test_functions_of_a_module():
    error = check_refused(Two, lambda sch: sch.get_block("B"), "get_block/P1")
    assert isinstance(error, ValueError) and "does not know which function to be working on" in str(error)
    check_refused(Two, lambda sch: sch.get_block("B", func_name="h"), "schedule/function")
    sch = tw.Schedule(Two)
    assert sch.func_working_on is None
    sch.work_on("g")
    assert sch.func_working_on == sch.mod.get_global_var("g") != sch.mod.get_global_var("f")
    sch.unroll(sch.get_loops("B")[0])
    assert "T.unroll" in sch.mod.functions["g"].script() and "T.unroll" not in sch.mod.functions["f"].script()
    with pytest.raises(tw.ScheduleError):
        sch.work_on("h")

    def unroll_both(sch):
        for name in ["f", "g"]:
            sch.unroll(sch.get_loops(sch.get_block("B", name))[0])

    replayed = tw.Schedule(Two)
    unroll_both(replayed)
    other = tw.Schedule(Two)
    replayed.trace.apply_to_schedule(other)
    assert tw.ir.structural_equal(other.mod, replayed.mod)


def test_copies_share_handles():
    sch = tw.Schedule(workloads.transpose(4, 6))
    i, j = sch.get_loops("B")
    copy = sch.copy()
    copy.split(i, [2, 3])
    sch.unroll(i)
    assert repr(i) == "Loop(i, extent=6)"
    with pytest.raises(tw.ScheduleError) as error:
        copy.unroll(i)
    assert isinstance(error.value, ValueError)
    copy.unroll(j)


def test_forgotten_handles():
    sch = tw.Schedule(workloads.transpose(4, 6), seed=1)
    block, (i, _), value = sch.get_block("B"), sch.get_loops("B"), sch.sample_categorical([3], [1.0])
    for handle in (block, i, value):
        sch.remove_rv(handle)
        for schedule in (sch, sch.copy()):
            with pytest.raises(IndexError, match="does not have"):
                schedule.get(handle)
    with pytest.raises(tw.ArgumentError, match="schedule/handle"):
        sch.remove_rv(i)
    sch.unroll(sch.get_loops("B")[0])
    check_trace(sch, workloads.transpose(4, 6))


def test_seeds_for_other_schedules():
    def seeds(sch):
        return [sch.fork_seed() for _ in range(3)]

    one, same = (tw.Schedule(workloads.transpose(4, 6), seed=7) for _ in range(2))
    first = seeds(one)
    assert first == seeds(same) and len(set(first)) == 3 and all(1 <= seed < 2**31 for seed in first)
    assert seeds(one) != first


def test_handles_of_other_schedules_are_refused():
    transpose = workloads.transpose(4, 6)
    one, other = tw.Schedule(transpose), tw.Schedule(workloads.transpose(4, 6))
    (i, _), _ = one.get_loops("B"), other.get_loops("B")
    with pytest.raises(tw.ArgumentError, match="this schedule does not have"):
        other.unroll(i)
    for handle in (i, one.get_block("B"), one.sample_categorical([3], [1.0])):
        one.get(handle)
        with pytest.raises(tw.ArgumentError, match=r"get\(\) got a handle that this schedule does not have") as error:
            other.get(handle)
        assert isinstance(error.value, IndexError)


def test_what_a_refusal_shows():
    texts = {}
    for level in ("detail", "fast", "none"):
        sch = tw.Schedule(nested, error_render_level=level)
        assert sch.error_render_level == sch.copy().error_render_level == level
        with pytest.raises(tw.ScheduleError) as error:
            sch.fuse(*sch.get_loops("inner"), *sch.get_loops("outer"))
        texts[level] = str(error.value)
        assert error.value.message and error.value.nodes
    assert "T.block" in texts["detail"] and "T.block" not in texts["fast"]
    assert error.value.message not in texts["none"] and "(not rendered)" in texts["none"]
    with pytest.raises(tw.ArgumentError, match="schedule/error-level"):
        tw.Schedule(nested, error_render_level="some")


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
    with pytest.raises(TypeError, match="takes LoopRV, not a block"):
        sch.unroll(sch.get_block("B"))
    with pytest.raises(tw.ArgumentError, match=r"'factors' takes .* not a list"):
        sch.split(i, [2.5])
    with pytest.raises(tw.ArgumentError, match="beyond 64 bits"):
        sch.split(i, [1 << 70])
    with pytest.raises(ValueError):
        sch.bind(i, 3)
    with pytest.raises(tw.ArgumentError, match="PrimFunc or an IRModule"):
        tw.Schedule(tw.ir.const(1))
    with pytest.raises(tw.ArgumentError, match="cannot be negative"):
        tw.Schedule(workloads.transpose(4, 6), seed=-7)


def test_functions_are_called_as_their_authors_call_them():
    """In a module of its own, a function is "main"; two of one name are told apart by their keys."""
    error = check_refused(nested, lambda sch: sch.get_block("innr"), "get_block/P2")
    assert error.hint == "the blocks of 'nested' are: root, outer, inner"
    assert check_refused(nested, lambda sch: sch.work_on("h"), "schedule/function").hint == "its functions are: nested"
    sch = tw.Schedule(nested)
    for name in ("main", "nested"):
        sch.work_on(name)
        sch.get_block("inner", func_name=name)
    assert [step.attrs for step in sch.trace.insts] == [["inner", "main"]] * 2

    module = tw.ir.IRModule({"f": Two["f"], "g": Two["f"], "nested": Two["g"], "h": nested})
    error = check_refused(module, lambda sch: sch.work_on("i"), "schedule/function")
    assert error.hint == "its functions are: f, g, h, nested"
    for name in ("f", "g", "h", "nested"):
        sch = tw.Schedule(module)
        sch.work_on(name)
        assert sch.func_working_on.name_hint == name
    twins = tw.ir.IRModule({"a": nested, "b": nested})
    assert check_refused(twins, lambda sch: sch.work_on("nested"), "schedule/function").hint.endswith("are: a, b")


def test_numpy_integers_are_integers():
    import numpy as np

    check(workloads.transpose(4, 6), lambda sch: sch.split(sch.get_loops("B")[0], [None, np.int64(3)]))


def test_a_lowered_function_cannot_be_scheduled():
    lowered = tw.lower(workloads.transpose(4, 6))
    alone = tw.ir.IRModule({"main": next(iter(lowered.functions.values()))})
    with pytest.raises(tw.ScheduleError, match="function 'transpose' cannot be scheduled") as error:
        tw.Schedule(alone).get_block("B")
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
    assert "def main" in printed and 'B = sch.get_block("B")' in printed
    assert str(sch) == sch.mod.script()


def test_output_blocks_inside_of_blocks():
    @T.prim_func
    def nested(A: T.Buffer((8,)), B: T.Buffer((8,))):
        with T.block("outer"):
            vo = T.axis.spatial(1, 0)
            local = T.alloc_buffer((8,))
            for i in range(8):
                with T.block("local"):
                    vi = T.axis.spatial(8, i)
                    local[vi] = A[vi]
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i + vo)
                    B[vi] = local[vi]

    sch = tw.Schedule(nested)
    assert [sch.get(b).name_hint for b in sch.get_output_blocks("root")] == ["outer", "B"]
    assert [sch.get(b).name_hint for b in sch.get_output_blocks("outer")] == ["B"]


def test_the_wrong_element_of_a_list_is_named() -> None:
    sch = tw.Schedule(workloads.matmul(12, 10, 8))
    i, *_ = sch.get_loops("C")
    with pytest.raises(tw.ArgumentError, match=r"'factors' takes .*, not a list whose element 0 is 2\.5"):
        sch.split(i, [2.5, None])
    with pytest.raises(tw.ArgumentError, match=r"'factors' takes .*, not a tuple whose element 1 is 'two'"):
        sch.split(i, (None, "two"))
    with pytest.raises(tw.ArgumentError, match=r"'candidates' takes .*, not a list whose element 1 is 0\.5"):
        sch.sample_categorical([1, 0.5], [0.5, 0.5])
    sch.sample_categorical([1, 2], [0.5, 0.5])
