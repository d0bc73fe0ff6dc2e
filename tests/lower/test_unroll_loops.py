"""Unrolling by annotation: "pragma_auto_unroll_max_step" and "pragma_unroll_explicit"."""

import re
import warnings

import numpy as np
import pytest
from tests.lower.passes import agrees, script_after

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


@T.prim_func
def filtered(A: T.Buffer((6, 3, 4), "float32"), B: T.Buffer((1,), "float32")):
    """Each step needs the one before, so that no loop becomes vectors."""
    for i, j, k in T.grid(6, 4, 3):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("RRR", [i, j, k])
            B[0] = B[0] * T.float32(0.5) + A[vi, vk, vj]


def scheduled(steps, explicit=None):
    sch = tw.Schedule(filtered)
    i = sch.get_loops("B")[0]
    sch.annotate(i, "pragma_auto_unroll_max_step", steps)
    if explicit is not None:
        sch.annotate(i, "pragma_unroll_explicit", explicit)
    return sch.mod


@pytest.mark.parametrize(("steps", "copies"), [(0, 1), (2, 1), (3, 3), (11, 3), (12, 12), (71, 12), (72, 72)])
def test_loops_are_unrolled_up_to_so_many_steps(steps, copies):
    module = scheduled(steps)
    lowered = tw.lower(module, after="unroll_loops")
    assert lowered.script().count("T.float32(0.5)") == copies
    check_equivalent(module, lowered)
    a, b = np.arange(72, dtype="float32").reshape(6, 3, 4), np.zeros(1, "float32")
    tw.compile(module, schedule="as written")(a, b)
    want = 0.0
    for value in a.transpose(0, 2, 1).ravel():
        want = want / 2 + value
    np.testing.assert_allclose(b, want, rtol=1e-6)


def test_a_hint_for_the_code_generator_instead():
    text = tw.lower(scheduled(3, explicit=0), after="unroll_loops").script()
    assert text.count("T.float32(0.5)") == 1 and text.count('"unroll_hint": 3') == 1
    assert "unroll_hint" not in tw.lower(scheduled(3, explicit=1), after="unroll_loops").script()


def test_inner_annotations_decide_for_themselves():
    sch = tw.Schedule(filtered)
    i, _j, k = sch.get_loops("B")
    sch.annotate(i, "pragma_auto_unroll_max_step", 100)
    sch.annotate(k, "pragma_auto_unroll_max_step", 0)
    assert tw.lower(sch.mod, after="unroll_loops").script().count("T.float32(0.5)") == 1


@pytest.mark.parametrize("operation", ["T.floordiv", "T.floormod", "T.truncdiv", "T.truncmod"])
@pytest.mark.parametrize("loop", ["T.unroll", "T.vectorized", "T.serial"])
def test_divisions_that_do_not_run_where_the_divisor_is_zero(loop: str, operation: str) -> None:
    func = from_source(f"""
@T.prim_func
def func(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for k in {loop}(8):
        B[k] = T.if_then_else(k - 3 != 0, {operation}(A[k], k - 3), 1000)
""")
    a = np.array([7, -7, 5, 4, -9, 8, 100, -100], "int32")
    expected = np.zeros(8, "int32")
    tw.compile(func, target="interpreter", schedule="as written")(a, expected)
    assert expected[3] == 1000
    np.testing.assert_array_equal(tw.compile(func, schedule="as written")(a), expected)
    np.testing.assert_array_equal(tw.compile(func)(a), expected)


def test_loops_left_inside_of_unrolled_ones_count_for_more():
    """Compilers take long over thousands of loops in one function, however short each is."""
    program = from_source("""
@T.prim_func
def func(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (40, 20, n))
    for i in T.unroll(40):
        for j in range(n):
            for k in range(n):
                for l in range(20):
                    A[i, l, j] = A[i, l, j] * T.float32(0.5) + T.Cast("float32", k)
    for i in T.unroll(20):
        for j in T.unroll(20):
            for k in range(n):
                A[i, j, k] = A[i, j, k] + T.float32(2)
""")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = tw.lower(program, after="unroll_loops").script()
    assert text.count("T.float32(0.5)") == 40
    assert 1 <= text.count("T.float32(2") <= 20 * 4


def test_unrolling_is_full_or_a_hint() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        for i in T.unroll(4):
            A[i] = T.sin(A[i])
        for i in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
            A[i] = T.cos(A[i])

    text = tw.lower(before, after="unroll_loops").script()
    assert text.count("T.sin") == 4
    assert text.count("T.cos") == 1
    assert '"unroll_hint": 64' in text


def test_unrolling_has_a_budget() -> None:
    """Three loops of 64 in one another are a quarter of a million copies."""

    @T.prim_func
    def nested(A: T.Buffer((64, 64, 64), "float32")):
        for i in T.unroll(64):
            for j in T.unroll(64):
                for k in T.unroll(64):
                    A[i, j, k] = A[i, j, k] + T.float32(1)

    with pytest.warns(tw.PerformanceWarning, match="loop 'i' is not unrolled: 64 copies of") as caught:
        kernel = tw.compile(nested, schedule="as written")
    assert caught[0].filename == __file__
    assert {note.code for note in kernel.notes} == {"lower/not-unrolled"}
    a = np.zeros((64, 64, 64), "float32")
    kernel(a)
    assert (a == 1).all()


def test_the_budget_is_for_all_loops_together() -> None:
    steps = "".join(f"    for i{k} in T.unroll(2000):\n        A[i{k}] = A[i{k}] + 1\n" for k in range(12))
    program = from_source("@T.prim_func\ndef f(A: T.Buffer((2000,), 'int32')):\n" + steps)
    text = script_after(program, "unroll_loops")
    assert 0 < text.count("T.unroll(2000") + text.count("range(2000)") < 12
    agrees(program, "unroll_loops", [np.zeros(2000, "int32")], [np.full(2000, 12, "int32")])


def test_hints_multiply() -> None:
    @T.prim_func
    def nested(A: T.Buffer((64, 64, 64), "float32")):
        for i in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
            for j in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
                for k in T.unroll(64, annotations={"pragma_unroll_explicit": 0}):
                    A[i, j, k] = A[i, j, k] + T.float32(1)

    text = tw.lower(nested, after="unroll_loops").script()
    hints = [int(hint) for hint in re.findall(r'"unroll_hint": (\d+)', text)]
    assert len(hints) == 3
    assert hints[0] * hints[1] * hints[2] <= 8192


def test_each_copy_declares_a_buffer_of_its_own() -> None:
    @T.prim_func
    def declared(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in T.unroll(16):
            D = T.decl_buffer((16,), "float32", data=C.data)
            D[i] = A[i] + T.float32(1)

    a = np.arange(16, dtype="float32")
    agrees(declared, "unroll_loops", [a, np.zeros(16, "float32")], [a, a + 1])
