"""The pass split_vector_loops: vectorized loops are cut to the widths that processors have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.lower.passes import TARGET, agrees, check_unchanged, script_after

import tilewright as tw
from tilewright import _core, script
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


def test_elementary_functions_have_the_registers_to_themselves() -> None:
    @T.prim_func
    def before(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
        for i in range(1024):
            B[i] = T.pow(A[i], A[i])

    assert "for i in T.vectorized(8)" in tw.lower(before, after="split_vector_loops", target=TARGET).script()


def count_lanes(store: Any) -> int:
    name = str(store.value.dtype)
    return int(name.split("x")[1]) if "x" in name else 1


@pytest.mark.parametrize(
    ("extent", "lanes"),
    [
        (8, [8]),
        (12, [8, 4]),
        (13, [8, 4, 1]),
        (7, [4, 2, 1]),
        (24, [8, 8, 8]),
        (40, [8] * 5),
        (64, [64]),
        (1000, [32, 8]),
    ],
)
def test_lanes_are_powers_of_two(extent: int, lanes: list[int]) -> None:
    @T.prim_func
    def before(A: T.Buffer((extent,), "float32")):
        for i in T.vectorized(extent):
            A[i] = T.float32(1)

    stores: list[int] = []
    body = tw.lower(before, after="unroll_loops", target=TARGET)

    def note(node: Any) -> None:
        if isinstance(node, _core.BufferStore):
            stores.append(count_lanes(node))

    tw.ir.visit(body, note)
    assert stores == lanes


def test_rests_that_compute_much_are_one_vector() -> None:
    """13 of 16 lanes at once, not 8, 4 and 1 after one another."""

    @T.prim_func
    def powers(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
        for i in T.vectorized(13):
            B[i] = T.exp(A[i])

    @T.prim_func
    def copies(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
        for i in T.vectorized(13):
            B[i] = A[i] + T.float32(1)

    wide = "llvm -mcpu=skylake-avx512"
    assert tw.lower(powers, target=wide).script().count("T.exp") == 1
    assert tw.lower(copies, target=wide).script().count("T.Broadcast(T.float32(1.0), ") == 2
    check_equivalent(powers, tw.lower(powers, target=wide))


@pytest.mark.parametrize("extent", [5, 8, 28, 100, 1000])
def test_parts_of_a_loop_cover_it_once(extent: int) -> None:
    @T.prim_func
    def counted(A: T.Buffer((extent,), "int32")):
        for i in T.vectorized(extent):
            A[i] = A[i] + i

    a = np.arange(extent, dtype="int32")
    agrees(counted, "split_vector_loops", [a], [a * 2])


def test_a_loop_that_begins_elsewhere_keeps_its_iterations() -> None:
    @T.prim_func
    def shifted(A: T.Buffer((64,), "int32")):
        for i in T.vectorized(7, 20):
            A[i] = A[i] + i

    a = np.zeros(64, "int32")
    agrees(
        shifted, "split_vector_loops", [a], [np.where((np.arange(64) >= 7) & (np.arange(64) < 20), np.arange(64), 0)]
    )


def test_an_open_extent_is_whole_vectors_under_a_condition() -> None:
    @T.prim_func
    def opened(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        for i in T.vectorized(n):
            A[i] = A[i] + i

    assert "< n" in script_after(opened, "split_vector_loops")
    for n in (0, 1, 31, 64, 77):
        agrees(opened, "split_vector_loops", [np.arange(n, dtype="int32")], [2 * np.arange(n, dtype="int32")])


@pytest.mark.parametrize("kind", ["T.vectorized(8)", "T.vectorized(1)", "T.serial(100)", "T.unroll(7)"])
def test_a_power_of_two_and_other_loops_stay(kind: str) -> None:
    program = script.from_source(f"""@T.prim_func
def func(A: T.Buffer((100,), "float32"), B: T.Buffer((1,), "float32")):
    for i in {kind}:
        A[i] = T.nextafter(A[i], T.float32(0))
""")
    check_unchanged(program, "split_vector_loops")
