import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_refused, check_trace


@T.prim_func
def program(A: T.Buffer((16,)), C: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + C[vi]


def test_reads_and_writes():
    sch = tw.Schedule(program)
    sch.unsafe_hide_buffer_access("B", "read", [1])
    assert "T.reads(A[vi])" in sch.mod.script()
    sch.unsafe_hide_buffer_access("B", "write", [0])
    assert "T.writes()" in sch.mod.script()
    check_trace(sch, program)


def test_the_program_touches_what_it_does_not_declare():
    sch = tw.Schedule(program)
    sch.unsafe_hide_buffer_access("B", "read", [1])
    with pytest.raises(tw.Error, match="verify/reads"):
        tw.compile(sch.mod)


def test_requirements():
    refused = lambda kind, positions, code: check_refused(  # noqa: E731
        program, lambda sch: sch.unsafe_hide_buffer_access("B", kind, positions), code
    )
    refused("reads", [0], "unsafe_hide_buffer_access/P1")
    refused("read", [2], "unsafe_hide_buffer_access/P2")
    refused("write", [0, 1], "unsafe_hide_buffer_access/P2")
