import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def program(A: T.Buffer((16,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            V = T.match_buffer(B[vi], (), offset_factor=1)
            C[vi] = V[()] + T.float32(1)


def test_values_that_the_type_holds():
    @T.prim_func
    def after(A: T.Buffer((16,)), C: T.Buffer((16,))):
        B = T.alloc_buffer((16,), "float16")
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.Cast("float16", A[vi] * T.float32(2))
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                V = T.match_buffer(B[vi], (), "float16", offset_factor=1)
                C[vi] = T.Cast("float32", V[()]) + T.float32(1)

    check(program, lambda sch: sch.unsafe_set_dtype("B", 0, "float16"), after)


def test_others_are_rounded():
    sch = tw.Schedule(program)
    sch.unsafe_set_dtype("B", 0, "float16")
    a, c = np.linspace(0, 1, 16, dtype="float32"), np.zeros(16, "float32")
    tw.compile(sch.mod)(a, c)
    np.testing.assert_array_equal(c, (a * 2).astype("float16").astype("float32") + 1)


def test_the_same_type():
    sch = check(program, lambda sch: sch.unsafe_set_dtype("B", 0, "float32"), program)
    assert len(sch.trace.insts) == 2


def test_requirements():
    refused = lambda block, index, dtype, code: check_refused(  # noqa: E731
        program, lambda sch: sch.unsafe_set_dtype(block, index, dtype), code
    )
    refused("B", 1, "float16", "unsafe_set_dtype/P1")
    refused("B", -1, "float16", "unsafe_set_dtype/P1")
    refused("B", 0, "handle", "unsafe_set_dtype/P2")
    refused("B", 0, "number", "unsafe_set_dtype/P2")
    refused("B", 0, "float16x4", "unsafe_set_dtype/P2")
    refused("C", 0, "float16", "unsafe_set_dtype/P3")

    @T.prim_func
    def pointer(C: T.Buffer((16,))):
        B = T.alloc_buffer((16,))
        with T.block("B"):
            T.reads()
            T.writes(B[0:16])
            T.evaluate(T.call_extern("int32", "fill", B.data))

    check_refused(pointer, lambda sch: sch.unsafe_set_dtype("B", 0, "float16"), "unsafe_set_dtype/P3")


def test_what_converts_to_the_new_type_takes_elements_as_they_are():
    """And the copy of narrower numbers rests on nothing that the user says."""

    @T.prim_func
    def halves(A: T.Buffer((16,), "float16"), C: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float16")):
        B = T.alloc_buffer((16,), "float16")
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + A[vi]
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = T.Cast("float32", B[vi]) * T.float32(3)
                D[vi] = B[vi]

    sch = tw.Schedule(halves)
    sch.unsafe_set_dtype("B", 0, "float32")
    text = sch.mod.script()
    assert "C[vi] = B[vi] * T.float32(3" in text and 'D[vi] = T.Cast("float16", B[vi])' in text
    assert not sch.trace.stated
    a = np.random.default_rng(0).standard_normal(16).astype("float16")
    got, want = ([np.zeros(16, "float32"), np.zeros(16, "float16")] for _ in range(2))
    tw.compile(sch)(a, *got)
    tw.compile(halves, "interpreter")(a, *want)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize(
    "old, new, exact",
    [
        *(("float16", "float32", True), ("float32", "float16", False), ("bfloat16", "float16", False)),
        *(("int8", "int32", True), ("int32", "int8", False), ("uint8", "int32", False), ("int8", "uint8", False)),
        *(("int16", "float32", True), ("int32", "float32", False), ("int32", "float64", True)),
    ],
)
def test_types_that_have_all_numbers_are_no_assertion(old, new, exact):
    sch = tw.Schedule(te.create_prim_func(_copied(old)))
    sch.unsafe_set_dtype("B", 0, new)
    assert (not sch.trace.stated) == exact


def _copied(dtype):
    a = te.placeholder((16,), dtype, name="A")
    b = te.compute((16,), lambda i: a[i], name="B")
    return [a, te.compute((16,), lambda i: b[i], name="C")]
