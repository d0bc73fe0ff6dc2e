"""The greatest or least value and where it is: vectors choose what the loop as written chooses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lower.passes import agrees, check_unchanged, script_after
from tests.samples import samples

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T

TARGETS = ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]
COMMON: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": False}
NUMBERS = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "uint32", "int64"]
PLACES = ["int32", "int64", "int16", "uint32"]

#: ways to replace P and N by `place` and `number`; {b} stands for > or <, {w} for the opposite one
WAYS = {
    "first": ["p = T.Select(N[i] {b}= {n}, P[i], {p})", "n = T.Select(N[i] {b}= {n}, N[i], {n})"],
    "last": ["p = T.Select(N[i] {b} {n}, P[i], {p})", "n = T.Select(N[i] {b} {n}, N[i], {n})"],
    "new": ["p = T.Select({n} {b} N[i], {p}, P[i])", "n = T.Select({n} {b} N[i], {n}, N[i])"],
    "lazy": ["p = T.if_then_else(N[i] {b}= {n}, P[i], {p})", "n = T.{m}({n}, N[i])"],
    "smaller": [
        "p = T.Select(T.Or(N[i] {b} {n}, T.And(N[i] == {n}, P[i] < {p})), P[i], {p})",
        "n = T.Select(N[i] {b} {n}, N[i], {n})",
    ],
    "smaller new": [
        "p = T.Select(T.Or(T.And({p} < P[i], {n} == N[i]), {n} {b} N[i]), {p}, P[i])",
        "n = T.{m}(N[i], {n})",
    ],
    "branch": [],
}


def numpy_type(dtype: str) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype


def body_of(way: str, place: str, number: str, greatest: bool, types: tuple[str, str], swapped: bool) -> list[str]:
    better, worse = (">", "<") if greatest else ("<", ">")
    if way == "branch":
        stores = ["    P[i] = " + place, "    N[i] = " + number]
        condition = f"{number} {better} N[i]" if swapped else f"N[i] {worse} {number}"
        return [f"if {condition}:", *(reversed(stores) if swapped else stores)]
    values = [
        line.format(b=better, w=worse, n=number, p=place, m="max" if greatest else "min").replace(
            " = ", f": T.{t} = ", 1
        )
        for line, t in zip(WAYS[way], types, strict=True)
    ]
    stores = ["P[i] = p", "N[i] = n"]
    return [*(reversed(values) if swapped else values), *stores]


@st.composite
def choices(draw: Any) -> tuple[str, int, int, int, str, str]:
    """A program of rows whose best numbers are looked for: source, rows, columns, base of places, types."""
    way = draw(st.sampled_from(list(WAYS)))
    numbers, places = draw(st.sampled_from(NUMBERS)), draw(st.sampled_from(PLACES))
    rows = draw(st.integers(1, 5))
    columns = draw(st.sampled_from([1, 7, 47, 48, 63, 64, 65, 100, 127, 200, 257, 1000, 1023]))
    greatest, swapped, is_open = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    step, base, begin = draw(st.sampled_from([1, 1, 1, 3, -1])), draw(st.integers(0, 9)), draw(st.integers(0, 3))
    place = f"{base} + k" if step == 1 else f"{base} + (k * {step})" if step > 0 else f"{base + columns + begin} - k"
    if places != "int32":
        place = f"T.Cast('{places}', {place})"
    number = draw(
        st.sampled_from(["A[i, k]", "A[i, k]", "A[i, k] + B[k]", "A[k, i]", f"A[i, {columns + begin - 1} - k]"])
    )
    shape = f"{rows}, {columns + begin}" if "A[i" in number else f"{columns + begin}, {rows}"
    extent = "m" if is_open else str(columns)
    rest = ", m: T.int32" if is_open else ""
    source = [
        "@T.prim_func",
        f"def f(A: T.Buffer(({shape}), '{numbers}'), B: T.Buffer(({columns + begin},), '{numbers}'), "
        f"P: T.Buffer(({rows},), '{places}'), N: T.Buffer(({rows},), '{numbers}'){rest}):",
        "    T.func_attr({'global_symbol': 'f'})",
        f"    for i in range({rows}):",
        f"        for k in range({begin}, {begin} + {extent}):",
        *("            " + line for line in body_of(way, place, number, greatest, (places, numbers), swapped)),
    ]
    return "\n".join(source), rows, columns, begin, numbers, places


@settings(max_examples=samples(25), **COMMON)
@given(choices(), st.integers(0, 2**32 - 1), st.sampled_from(TARGETS), st.booleans())
def test_vectors_choose_what_the_loop_chooses(
    program: tuple[str, int, int, int, str, str], seed: int, target: str, odd: bool
) -> None:
    source, rows, columns, begin, numbers, places = program
    func = from_source(source)
    rng = np.random.default_rng(seed)
    shape = (rows, columns + begin) if "A[i" in source else (columns + begin, rows)
    # Few different numbers: which of equal ones is taken shows.
    low = 0 if "uint" in numbers else -3
    kind = numpy_type(numbers)
    a, b = rng.integers(low, 4, shape).astype(kind), rng.integers(0, 2, columns + begin).astype(kind)
    n = rng.integers(low, 4, rows).astype(kind)
    if numbers.startswith(("float", "bfloat")) and odd:
        for value in (np.nan, np.inf, -np.inf):
            a[rng.random(shape) < rng.choice([0.002, 0.2, 0])] = value
            n[rng.random(rows) < 0.1] = value
    p = rng.integers(0, 2000, rows).astype(places)
    args, scalars = [a, b, p, n], [columns] if "m: T.int32" in source else []
    expected = [each.copy() for each in args]
    tw.compile(func, "interpreter", schedule="as written")(*expected, *scalars)
    for schedule in ("as written", None):
        got = [each.copy() for each in args]
        tw.compile(func, target, schedule=schedule)(*got, *scalars)
        for ours, want in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours.astype("float64"), want.astype("float64"), err_msg=source)


ROWS = """
@T.prim_func
def f(A: T.Buffer((64, {n}), "float32"), P: T.Buffer((64,), "int32"), N: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, {n}):
        with T.block("best"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                N[vi] = T.min_value("float32")
            p: T.int32 = T.Select(N[vi] >= A[vi, vk], P[vi], {p})
            n: T.float32 = T.Select(N[vi] >= A[vi, vk], N[vi], A[vi, vk])
            P[vi] = p
            N[vi] = n
"""


def lowered(source: str, target: str = "llvm -mcpu=x86-64-v4") -> str:
    return str(tw.lower(from_source(source), target=target, after="vectorize_choices").script())


@pytest.mark.parametrize("n, place, taken", [(1000, "vk", True), (24, "vk", False), (1000, "1000 - vk", False)])
def test_what_is_taken(n: int, place: str, taken: bool) -> None:
    """Rows that fill some vectors, with places that grow."""
    assert ("T.vectorized" in lowered(ROWS.format(n=n, p=place))) == taken


def test_columns_are_left_to_vectors_of_results() -> None:
    assert "T.vectorized" not in lowered(ROWS.format(n=64, p="vk").replace("A[vi, vk]", "A[vk, vi]"))


def test_arguments_of_a_called_function_may_overlap() -> None:
    source = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def best(A: T.Buffer((1000,), "float32"), P: T.Buffer((1,), "float32"), N: T.Buffer((1,), "float32")):
        for k in range(1000):
            p: T.float32 = T.Select(N[0] >= A[k], P[0], T.Cast("float32", k))
            n: T.float32 = T.Select(N[0] >= A[k], N[0], A[k])
            P[0] = p
            N[0] = n
"""
    assert "T.vectorized" not in str(tw.lower(from_source(source), after="vectorize_choices").script())


@pytest.mark.parametrize("target", ["native", "native -num-cores=2"])
@pytest.mark.parametrize("n", [7, 1000])
def test_rows_without_a_schedule(target: str, n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.standard_normal((64, n), dtype="float32")
    p, best = np.zeros(64, "int32"), np.zeros(64, "float32")
    kernel = tw.compile(from_source(ROWS.format(n=n, p="vk")), target)
    kernel(a, p, best)
    np.testing.assert_array_equal(p, a.argmax(1))
    np.testing.assert_array_equal(best, a.max(1))
    assert not kernel.notes


def test_large_rows_and_columns_go_to_all_cores() -> None:
    rows = from_source(ROWS.format(n=100_000, p="vk"))
    turned = ROWS.replace("Buffer((64, {n})", "Buffer(({n}, 64)").replace("A[vi, vk]", "A[vk, vi]")
    columns = from_source(turned.format(n=100_000, p="vk"))
    for func in (rows, columns):
        kernel = tw.compile(func, "llvm -mcpu=x86-64-v3 -num-cores=2")
        assert "parallel" in str(kernel.inspect("schedule"))


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("way", ["smaller", "lazy"])
def test_short_rows_side_by_side_have_no_masks_within_conditions(way: str, target: str) -> None:
    """What each lane loads or stores anyway is there: a mask for each condition around it took seconds to compile."""
    body = body_of(way, "T.Cast('int8', k + 11)", "A[i, k]", False, ("int8", "int16"), False)
    source = "\n".join(
        [
            "@T.prim_func",
            "def f(A: T.Buffer((96, 3), 'int16'), P: T.Buffer((96,), 'int8'), N: T.Buffer((96,), 'int16')):",
            "    for i in range(96):",
            "        for k in range(3):",
            *("            " + line for line in body),
        ]
    )
    text = str(tw.lower(from_source(source), target=target).script())
    assert "vload" not in text
    assert len(tw.compile(from_source(source), target).inspect("asm").splitlines()) < 3000


def test_the_pass_alone_finds_what_numpy_finds() -> None:
    """And leaves a sum alone, which is no choice."""

    @T.prim_func
    def rows(A: T.Buffer((3, 200), "float32"), P: T.Buffer((3,), "int32"), N: T.Buffer((3,), "float32")):
        for i in range(3):
            P[i] = 0
            N[i] = T.float32("-inf")
            for k in range(200):
                place = T.Select(N[i] >= A[i, k], P[i], k)
                number = T.Select(N[i] >= A[i, k], N[i], A[i, k])
                P[i] = place
                N[i] = number

    assert "T.vectorized" in script_after(rows, "vectorize_choices", "llvm -mcpu=x86-64-v4")
    a = np.random.default_rng(0).integers(-50, 50, (3, 200)).astype("float32")
    given = [a, np.zeros(3, "int32"), np.zeros(3, "float32")]
    wanted = [a, a.argmax(1).astype("int32"), a.max(1)]
    agrees(rows, "vectorize_choices", given, wanted, "llvm -mcpu=x86-64-v4")

    @T.prim_func
    def total(A: T.Buffer((200,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(200):
            C[0] = C[0] + A[k]

    check_unchanged(total, "vectorize_choices", "llvm -mcpu=x86-64-v4")
