"""Functions of indices that name sizes of the program, in traces that go to other copies of it."""

import re

import pytest

import tilewright as tw
from tilewright import script

TEXT = """from tilewright.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle, shift: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
"""


def with_size(sch):
    n = sch.get(sch.get_block("B")).reads[0].buffer.shape[0]
    sch.annotate_buffer_access("B", 0, "read", lambda i: ((0, n),))


def turned(sch):
    n = sch.get(sch.get_block("B")).reads[0].buffer.shape[0]
    copy = sch.cache_read("B", 0, "global")
    sch.transform_layout(copy, ("write", 0), lambda i: (n - 1 - i,))


@pytest.mark.parametrize("steps", [with_size, turned])
def test_sizes_are_found_again_by_their_names(steps):
    """In the program that the trace was made on, in one that was parsed anew, and after both were written down."""
    program = script.from_source(TEXT)
    sch = tw.Schedule(program)
    steps(sch)
    for other in (program, script.from_source(TEXT)):
        for trace in (sch.trace, tw.schedule.Trace.from_json(sch.trace.as_json())):
            again = tw.Schedule(other)
            trace.apply_to_schedule(again, remove_postproc=False)
            assert tw.ir.structural_equal(sch.mod, again.mod)
            tw.ir.verify(again.mod)
            tw.compile(again)


@pytest.mark.parametrize("steps", [with_size, turned])
def test_a_size_that_is_not_there(steps):
    sch = tw.Schedule(script.from_source(TEXT))
    steps(sch)
    text = re.sub(r"\bn\b", "m", TEXT).replace("def main", "def shifted")
    other = tw.Schedule(tw.ir.IRModule({"main": script.from_source(text)}))
    with pytest.raises(tw.ScheduleError, match="it names 'n', which is not a size of 'shifted'") as error:
        sch.trace.apply_to_schedule(other, remove_postproc=False)
    assert error.value.code == "trace/size"


NESTED = """from tilewright.script import tir as T
@T.prim_func
def main(C: T.Buffer((4, 8), "int32")):
    for i in range(4):
        with T.block("outer"):
            v = T.axis.spatial(4, i)
            B = T.alloc_buffer((v + 3,), "int32")
            for j in range(v + 3):
                with T.block("B"):
                    u = T.axis.spatial(v + 3, j)
                    B[u] = u
            for j in range(v + 3):
                with T.block("C"):
                    u = T.axis.spatial(v + 3, j)
                    C[v, u] = B[u]
"""


@pytest.mark.parametrize("as_function", [False, True])
def test_an_axis_of_a_block_is_no_size(as_function):
    """A trace has no name for the variable, so it could not be replayed."""
    sch = tw.Schedule(script.from_source(NESTED))
    extent = sch.get(sch.get_block("B")).writes[0].buffer.shape[0]
    pad = (lambda *indices: extent) if as_function else extent
    with pytest.raises(tw.ScheduleError, match="it names 'v', which is not a size of 'main'") as error:
        sch.transform_layout("B", ("write", 0), lambda i: (i // 2, i % 2), pad_value=pad)
    assert error.value.code == "trace/size"
    assert all(step.kind.name == "GetBlock" for step in sch.trace.insts)
