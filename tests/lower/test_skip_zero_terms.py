"""Terms that a condition makes zero are left out where a block asks for it, and such conditions leave the loops that
they do not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from tilewright import _core
from tilewright.ir import assert_structural_equal
from tilewright.script import tir as T


def lowered(program: Any, after: str) -> Any:
    return tw.lower(program, after=after, target="llvm -mcpu=x86-64-v3")


@T.prim_func
def taps(A: T.Buffer((16,), "float32"), W: T.Buffer((4,), "float32"), B: T.Buffer((24,), "float32")):
    for i, k in T.grid(24, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.block_attr({"skip_zero_terms": 1})
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.if_then_else((vi + vk) % 2 == 0, A[(vi + vk) // 2], T.float32(0)) * W[vk]


def test_a_term_is_added_where_it_is_not_zero() -> None:
    @T.prim_func
    def expected(A: T.Buffer((16,), "float32"), W: T.Buffer((4,), "float32"), B: T.Buffer((24,), "float32")):
        for i in range(24):
            B[i] = T.float32(0)
            for k in range(4):
                if (i + k) % 2 == 0:
                    B[i] = B[i] + A[(i + k) // 2] * W[k]

    after = lowered(taps, "lower_blocks")
    assert_structural_equal(next(iter(after.functions.values())).body, expected.body, map_free_vars=True)


def test_an_infinite_weight_does_not_meet_the_zeros() -> None:
    """As the program is written, zero times infinity would be a NaN."""
    a, w, b = np.ones(16, "float32"), np.array([np.inf, 1, 1, 1], "float32"), np.zeros(24, "float32")
    tw.compile(taps, schedule="as written")(a, w, b)
    np.testing.assert_array_equal(b, [np.inf, 2] * 12)


def test_without_the_annotation_all_terms_are_added() -> None:
    sch = tw.Schedule(taps)
    sch.unannotate("B", "skip_zero_terms")
    names = [name for name, _ in _core.list_passes()]
    earlier = lowered(sch, names[names.index("skip_zero_terms") - 1])
    assert_structural_equal(lowered(sch, "skip_zero_terms"), earlier)


def test_other_sums_stay() -> None:
    """A factor that is one instead of zero, a maximum, and a sum that is no sum of the result with a term."""

    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("ones"):
                v = T.axis.spatial(16, i)
                T.block_attr({"skip_zero_terms": 1})
                B[v] = B[v] + T.if_then_else(v % 2 == 0, A[v], T.float32(1)) * A[v]
            with T.block("maximum"):
                v = T.axis.spatial(16, i)
                T.block_attr({"skip_zero_terms": 1})
                B[v] = T.max(B[v], T.if_then_else(v % 2 == 0, A[v], T.float32(0)))
            with T.block("other"):
                v = T.axis.spatial(16, i)
                T.block_attr({"skip_zero_terms": 1})
                C[v] = B[v] + T.if_then_else(v % 2 == 0, A[v], T.float32(0))

    names = [name for name, _ in _core.list_passes()]
    earlier = lowered(program, names[names.index("skip_zero_terms") - 1])
    assert_structural_equal(lowered(program, "skip_zero_terms"), earlier)


def test_conditions_leave_the_loops_that_they_do_not_depend_on() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32"), n: T.int32, m: T.int32):
        for i in range(4):
            for j in range(16):
                if j < n:  # noqa: SIM102
                    if (i + m) % 2 == 0:
                        A[i * 16 + j] = T.float32(1)

    @T.prim_func
    def expected(A: T.Buffer((64,), "float32"), n: T.int32, m: T.int32):
        for i in range(4):
            if (i + m) % 2 == 0:
                for j in range(16):
                    if j < n:
                        A[i * 16 + j] = T.float32(1)

    body = next(iter(lowered(program, "simplify_indices").functions.values())).body
    flat = next(iter(lowered(expected, "flatten_buffers").functions.values())).body
    assert_structural_equal(body, flat, map_free_vars=True)


def test_a_condition_that_guards_a_division_stays_before_it() -> None:
    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), n: T.int32, m: T.int32):
        for i in range(n):
            if i < m:  # noqa: SIM102
                if 16 % m == 0:
                    A[i] = T.float32(1)

    kernel = tw.compile(program, schedule="as written")
    a = np.zeros(16, "float32")
    kernel(a, 0, 0)
    kernel(a, 16, 0)
    assert not a.any()
    kernel(a, 16, 8)
    assert a.sum() == 8


def padded_sum(annotated: bool, second_writer: bool = False) -> Any:
    """A sum of windows of three by three, over rows that a block pads with zeros."""
    attrs = {"skip_zero_terms_of_padding": 1} if annotated else {}

    @T.prim_func
    def program(A: T.Buffer((6, 32), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((6, 32), "float32")):
        P = T.alloc_buffer((8, 32), "float32")
        for h, w in T.grid(8, 32):
            with T.block("P"):
                vh, vw = T.axis.remap("SS", [h, w])
                P[vh, vw] = T.if_then_else(vh >= 1 and vh < 7, A[vh - 1, vw], T.float32(0))
        if second_writer:
            with T.block("Q"):
                P[0, 0] = T.float32(1)
        for h, r, w in T.grid(6, 3, 32):
            with T.block("B"):
                vh, vw, vr = T.axis.remap("SSR", [h, w, r])
                T.block_attr(attrs)
                with T.init():
                    B[vh, vw] = T.float32(0)
                B[vh, vw] = B[vh, vw] + P[vh + vr, vw] * W[vr]

    return program


def ran(program: Any, weights: list[float]) -> Any:
    a, b = np.arange(192, dtype="float32").reshape(6, 32), np.empty((6, 32), "float32")
    tw.compile(program, schedule="as written")(a, np.array(weights, "float32"), b)
    return b


def test_terms_of_padding_are_left_out_at_the_loop_that_decides() -> None:
    after = next(iter(lowered(padded_sum(True), "lower_blocks").functions.values())).script()
    assert after.count("if ") == lowered(padded_sum(False), "lower_blocks").script().count("if ") + 2
    np.testing.assert_array_equal(ran(padded_sum(True), [1, 2, 3]), ran(padded_sum(False), [1, 2, 3]))


def test_an_infinite_weight_does_not_meet_the_padding() -> None:
    assert np.isnan(ran(padded_sum(False), [np.inf, 1, 1])[0]).all()
    assert np.isfinite(ran(padded_sum(True), [np.inf, 1, 1])[0]).all()


def test_what_others_write_too_is_no_padding() -> None:
    written = ran(padded_sum(True, second_writer=True), [1, 1, 1])
    np.testing.assert_array_equal(written, ran(padded_sum(False, second_writer=True), [1, 1, 1]))
    assert written[0, 0] == ran(padded_sum(False), [1, 1, 1])[0, 0] + 1


def test_rows_of_one_tile_are_not_asked_each() -> None:
    sch = tw.Schedule(padded_sum(True))
    sch.unroll(sch.get_loops("B")[0])
    before = tw.Schedule(padded_sum(False))
    before.unroll(before.get_loops("B")[0])
    assert lowered(sch, "lower_blocks").script().count("if ") == lowered(before, "lower_blocks").script().count("if ")
