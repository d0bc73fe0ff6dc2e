import pytest

from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def program(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            V = T.match_buffer(B[vi, vj], (), offset_factor=1)
            C[vi, vj] = V[()] + T.float32(1)


def test_allocated_buffer_and_its_views():
    sch = check(program, lambda sch: sch.set_axis_separator("B", ("write", 0), [1]))
    script = sch.mod.script()
    assert "B = T.alloc_buffer((16, 8), axis_separators=[1])" in script
    assert "axis_separators=[0]" in script


@pytest.mark.parametrize("buffer", ["A", ("read", 0)])
def test_parameters(buffer):
    sch = check(program, lambda sch: sch.set_axis_separator("B", buffer, [1]))
    assert "axis_separators=[1]" in sch.mod.script().split("B = T.alloc_buffer")[0]


def test_layouts_with_separators():
    sch = check(program, lambda sch: sch.transform_layout("B", "A", lambda i, j: (i, T.AXIS_SEPARATOR, j)))
    assert [step.kind.name for step in sch.trace.insts] == ["GetBlock", "TransformLayout", "SetAxisSeparator"]
    assert "axis_separators=[1]" in sch.mod.script()


def test_compiled():
    import numpy as np

    import tilewright as tw

    sch = tw.Schedule(program)
    sch.set_axis_separator("B", ("write", 0), [1])
    a, c = np.random.rand(16, 8).astype("float32"), np.zeros((16, 8), "float32")
    tw.compile(sch.mod)(a, c)
    np.testing.assert_array_equal(c, a * 2 + 1)


def test_requirements():
    refused = lambda buffer, axes, code: check_refused(  # noqa: E731
        program, lambda sch: sch.set_axis_separator("C", buffer, axes), code
    )
    refused(("write", 1), [1], "set_axis_separator/P1")
    refused("A", [1], "set_axis_separator/P1")
    refused(("write", 0), [3], "set_axis_separator/P2")
    refused(("write", 0), [1, 1], "set_axis_separator/P2")
    refused(("write", 0), [-1], "set_axis_separator/P2")

    @T.prim_func
    def nested(A: T.Buffer((16,))):
        with T.block("outer"):
            T.reads()
            T.writes(A[0:16])
            V = T.match_buffer(A[0:16], (16,), offset_factor=1)
            for i in range(16):
                with T.block("inner"):
                    vi = T.axis.spatial(16, i)
                    V[vi] = T.float32(0)

    check_refused(nested, lambda sch: sch.set_axis_separator("inner", "V", [0]), "set_axis_separator/P3")
