"""The pass bind_loop_bounds: bounds of loops are evaluated once, whatever the body writes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from lower.passes import agrees, check_unchanged, script_after
from tilewright.script import from_source
from tilewright.script import tir as T

PASS = "bind_loop_bounds"


@T.prim_func
def example(A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    for k in range(N[0]):
        B[k] = A[k]
        N[0] = 3


def test_the_example_of_the_pass():
    text = script_after(example, PASS)
    assert "k_extent: T.int32 = N[0]" in text and "for k in range(k_extent):" in text
    a, b = np.arange(8, dtype="int32") + 10, np.zeros(8, "int32")
    expected = np.array([10, 11, 12, 13, 14, 15, 0, 0], "int32")
    agrees(example, PASS, [a, np.array([6], "int32"), b], [a, np.array([3], "int32"), expected])


def test_bounds_that_the_loop_leaves_alone_stay():
    @T.prim_func
    def rows(P: T.Buffer((5,), "int32"), A: T.Buffer((9,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            for p in range(P[i], P[i + 1]):
                B[i] = B[i] + A[p]

    check_unchanged(rows, PASS)


def looped(kind: str, first: str, end: str, condition: str) -> tuple[str, str]:
    """A loop that changes what its bounds read, and a condition that cuts it in two."""
    body = f"""
        if {condition}:
            B[k] = B[k] * 2 + A[k]
        N[0] = 3
"""
    script = f"""
@T.prim_func
def main(A: T.Buffer((40,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((40,), "int32")):
    for k in {kind}({first}, {end}):{body}"""
    return script, f"def main(A, N, B):\n    for k in range({first}, {end}):{body}"


@pytest.mark.parametrize("kind", ["range", "T.unroll"])
@pytest.mark.parametrize(("first", "end"), [("0", "N[0]"), ("N[0]", "40"), ("N[0] // 2", "N[0] + 5")])
@pytest.mark.parametrize("condition", ["k < 5", "k >= 2", "k < N[0]", "2 * k < N[0]", "k >= 2 and k < 9", "k > N[0]"])
@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_parts_of_a_loop_that_changes_its_bounds(kind, first, end, condition):
    script, text = looped(kind, first, end, condition)
    scope: dict = {}
    exec(text, scope)
    given = [np.arange(40, dtype="int32"), np.array([20], "int32"), np.arange(40, dtype="int32")[::-1].copy()]
    wanted = [each.copy() for each in given]
    scope["main"](*wanted)
    for target in ("interpreter", "llvm"):
        arrays = [each.copy() for each in given]
        tw.compile(from_source(script), target=target)(*arrays)
        for array, right in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(array, right, err_msg=target)


def test_a_view_begins_where_it_did_before_its_block():
    """Also a view of a view; the block moves what says where."""

    @T.prim_func
    def moved(A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((32,), "int32")):
        for k in range(4):
            with T.block("b"):
                T.reads(N[0], A[k])
                T.writes(B[0:32], N[0])
                V = T.match_buffer(B[N[0] : N[0] + 4], (4,), "int32", offset_factor=1)
                W = T.match_buffer(V[1:3], (2,), "int32", offset_factor=1)
                V[0] = A[k] + 1
                N[0] = N[0] + 3
                W[1] = A[k] + 5

    a, n, b = np.arange(8, dtype="int32"), np.array([10], "int32"), np.zeros(32, "int32")
    wanted, at = b.copy(), 10
    for k in range(4):
        wanted[at], wanted[at + 2] = a[k] + 1, a[k] + 5
        at += 3
    agrees(moved, "lower_match_buffers", [a, n, b], [a, np.array([22], "int32"), wanted])
    tw.compile(moved)(a, n, b)
    np.testing.assert_array_equal(b, wanted)
    assert n[0] == 22


def test_the_end_of_a_pipeline_in_a_pipeline_is_no_index():
    """The blocks of the inner one would read N to say which version of p they use."""
    program = from_source("""
@T.prim_func
def main(D: T.Buffer((12,), "int32"), N: T.Buffer((2,), "int32"), B: T.Buffer((12, 3), "int32")):
    for k in T.serial(N[0], annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        with T.block("outer"):
            p = T.alloc_buffer((1,), "int32")
            p[0] = D[k]
            for j in T.serial(3, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
                with T.block("inner"):
                    t = T.alloc_buffer((1,), "int32")
                    t[0] = p[0] + j
                    B[k, j] = t[0] * N[1]
""")
    d, n, b = np.arange(12, dtype="int32"), np.array([5, 7], "int32"), np.zeros((12, 3), "int32")
    expected = b.copy()
    expected[:5] = (d[:5, None] + np.arange(3)) * 7
    agrees(program, "inject_software_pipelines", [d, n, b], [d, n, expected])
    tw.compile(program)(d, n, b)
    np.testing.assert_array_equal(b, expected)
