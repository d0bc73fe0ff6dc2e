"""The pass vectorize_loops: vectorized loops become operations on vectors."""

from __future__ import annotations

import numpy as np
from tests.lower.passes import TARGET, agrees, check, check_unchanged, lowered_before, script_after

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T


def test_plain_loops_become_vectors() -> None:
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), s: T.float32, B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] * s

    @T.prim_func
    def expected(A: T.Buffer((16,), "float32"), s: T.float32, B: T.Buffer((16,), "float32")):
        A_1 = T.decl_buffer((16,), "float32", data=A.data)
        B_1 = T.decl_buffer((16,), "float32", data=B.data)
        B_1[0:16] = A_1[0:16] * T.Broadcast(s, 16)

    check(before, "vectorize_loops", expected)


def test_conditions_of_lanes_are_masks() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        for i in T.vectorized(8):
            if i < n:
                A[i] = A[i] + T.float32(1)

    after = tw.lower(before, after="vectorize_loops", target=TARGET)
    assert after.script().count("predicate=T.Ramp(0, 1, 8) < T.Broadcast(n, 8)") == 2


def test_a_lane_is_an_iteration() -> None:
    """Lanes in order, backwards, apart, in a table, and the loop's variable as a number."""

    @T.prim_func
    def lanes(A: T.Buffer((64,), "int32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.vectorized(8):
            B[i] = A[i] + A[63 - i] * 2 + A[i * 5] * 3 + A[I[i]] * 4 + i

    text = script_after(lanes, "vectorize_loops")
    assert "for " not in text and "A_1[0:40:5]" in text
    a, i = np.arange(64, dtype="int32") ** 2, np.array([3, 3, 0, 60, 9, 8, 7, 1], "int32")
    n = np.arange(8, dtype="int32")
    wanted = a[:8] + a[63 - n] * 2 + a[n * 5] * 3 + a[i] * 4 + n
    agrees(lanes, "vectorize_loops", [a, i, np.zeros(8, "int32")], [a, i, wanted])


def test_masked_lanes_touch_no_memory() -> None:
    @T.prim_func
    def masked(A: T.Buffer((8,), "int32"), n: T.int32, B: T.Buffer((8,), "int32")):
        for i in T.vectorized(8):
            if i < n:
                B[i] = A[i]
            else:
                B[i] = -1

    a = np.arange(8, dtype="int32")
    for n in (0, 3, 8):
        agrees(masked, "vectorize_loops", [a, n, np.zeros(8, "int32")], [a, np.where(a < n, a, -1)])


def test_a_body_without_a_vector_form_is_a_serial_loop() -> None:
    @T.prim_func
    def total(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
        for i in T.vectorized(8):
            B[0] = B[0] + A[i]

    lowered = lowered_before(total, "vectorize_loops", "interpreter")  # by passes that leave the sum to this one
    after = _core.run_pass("vectorize_loops", lowered, TARGET)
    assert "for i in range(8)" in after.script()
    a, b = np.arange(8, dtype="int32"), np.zeros(1, "int32")
    _core.interpret(after, "total", a, b)
    assert b[0] == a.sum()


def test_loops_of_other_kinds_stay() -> None:
    @T.prim_func
    def serial(A: T.Buffer((64,), "float32")):
        for i in T.parallel(8):
            for j in T.unroll(8):
                A[i * 8 + j] = T.nextafter(A[i * 8 + j], T.float32(0))

    check_unchanged(serial, "vectorize_loops")


def test_an_element_that_no_lane_asks_for_is_not_read() -> None:
    """All lanes ask for the same element, whose index divides by what may be zero: then there is no such element."""

    @T.prim_func
    def before(pA: T.handle, C: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), k: T.int32):
        m = T.int32()
        A = T.match_buffer(pA, (m,), "int32")
        for i in T.vectorized(8):
            B[i] = T.if_then_else(C[i] != 0, 7, A[k % m])

    for m in (0, 3):
        a = np.arange(m, dtype="int32")
        for asks in (False, True):
            c = np.array([1, 1, 1, 1, 1, 1, 1, 0 if asks and m else 1], "int32")
            want = np.where(c != 0, 7, a[4 % m] if m else 0)
            for kernel in (tw.compile(before, "interpreter"), tw.compile(before, "native"), lowered(before)):
                b = np.zeros(8, "int32")
                kernel(a, c, b, 4)
                np.testing.assert_array_equal(b, want)


def test_numbers_that_wrap_are_converted_lane_by_lane() -> None:
    """A value wraps in its type before it is converted to a wider one."""

    @T.prim_func
    def before(B: T.Buffer((64,), "int64")):
        for i in T.vectorized(64):
            B[i] = T.Cast("int64", i * 100000000) // T.int64(2)

    number = (np.arange(64) * 100000000).astype("int32").astype("int64")
    agrees(before, "vectorize_loops", [np.zeros(64, "int64")], [number // 2])
    b = np.zeros(64, "int64")
    tw.compile(before, schedule="as written")(b)
    np.testing.assert_array_equal(b, number // 2)


def test_a_name_of_lanes_is_another_index_in_each() -> None:
    """Elements that two lanes in a row would share, but for what a let names."""

    @T.prim_func
    def shared(X: T.Buffer((8,), "uint8"), P: T.Buffer((300,), "int32"), B: T.Buffer((8,), "int32")):
        for k in T.vectorized(8):
            x: T.uint8 = X[k]
            B[k] = P[k // 2 + T.Cast("int32", x)]

    x, p = np.array([9, 250, 3, 3, 77, 0, 1, 200], "uint8"), np.arange(300, dtype="int32") ** 2
    agrees(shared, "vectorize_loops", [x, p, np.zeros(8, "int32")], [x, p, p[np.arange(8) // 2 + x]])


def test_lanes_that_meet_by_a_name_add_one_by_one() -> None:
    @T.prim_func
    def histogram(X: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
        for k in T.vectorized(64):
            x: T.int32 = X[k]
            C[k + x] = C[k + x] + 1

    bins = np.arange(64, dtype="int32") * 7 % 5
    x = bins - np.arange(64, dtype="int32")
    wanted = np.bincount(bins, minlength=64).astype("int32")
    agrees(histogram, "vectorize_loops", [x, np.zeros(64, "int32")], [x, wanted])


def lowered(func: object) -> tw.Kernel:
    """The program after the pass, interpreted."""
    return tw.compile(tw.lower(func, after="vectorize_loops", target=TARGET), "interpreter")
