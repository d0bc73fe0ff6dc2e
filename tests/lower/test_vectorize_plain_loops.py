"""Loops that a program leaves serial: machine code, which makes vectors of some, agrees with the interpreter."""

from __future__ import annotations

import re
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lower.passes import agrees, check, check_unchanged
from tests.samples import samples

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T

COMMON: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": False}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]
SIZE = 128  #: elements of every buffer that is read
TARGETS = ["native", "llvm -mcpu=x86-64-v3"]


def array(rng: np.random.Generator, size: int, dtype: str, cast_to: str = "") -> np.ndarray:
    low = 0 if "uint" in dtype + cast_to else -4
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return rng.integers(low, 5, size).astype(kind)


@st.composite
def indices(draw: Any, n: int, variable: str = "i") -> str:
    """An index below SIZE for every value of the loop variable in [0, n)."""
    stride = draw(st.integers(1, 9))
    offset = draw(st.integers(0, SIZE - n))
    choices = [
        f"{variable} + {offset}",
        f"{n - 1 + offset} - {variable}",
        f"({variable} * {stride} + {offset}) % {draw(st.sampled_from([32, 50, 64, SIZE]))}",
        f"{variable} // {stride}",
        f"I[{variable}]",
        f"I[({variable} + {offset}) % {n}]",
        f"{offset}",
        f"T.max({variable} - {stride}, 0)",
        f"{variable} % {stride}",
    ]
    apart = draw(st.integers(1, stride + 4))  # rows of `stride` elements that overlap, touch, or leave gaps
    if (n - 1) // stride * apart + stride <= SIZE:
        choices.append(f"{variable} // {stride} * {apart} + {variable} % {stride}")
    if stride * n + 1 < SIZE:
        choices += [
            f"{variable} * {stride}",
            f"{stride * (n - 1)} - {variable} * {stride}",
            f"{variable} * {stride} + 1",
        ]
    return str(draw(st.sampled_from(choices)))


@st.composite
def conditions(draw: Any, n: int, dtype: str) -> str:
    """What lanes may differ in."""
    bound = draw(st.integers(0, n))
    return str(
        draw(
            st.sampled_from(
                [
                    f"i < {bound}",
                    f"i >= {bound}",
                    f"i % {bound + 1} == 0",
                    f"A[{draw(indices(n))}] > T.Cast('{dtype}', 1)",
                    f"i >= 1 and A[T.max(i, 1) - 1] > T.Cast('{dtype}', 0)",
                    f"I[i] < {bound} or A[i] == T.Cast('{dtype}', 2)",
                ]
            )
        )
    )


@st.composite
def values(draw: Any, n: int, dtype: str, out: str, depth: int = 2) -> str:
    """An expression of type `out` over A, of type `dtype`."""
    load = f"T.Cast('{out}', A[{draw(indices(n))}])"
    if depth == 0:
        return draw(st.sampled_from([load, f"T.Cast('{out}', {draw(st.integers(0, 3))})", f"T.Cast('{out}', i % 5)"]))
    a, b = draw(values(n, dtype, out, depth - 1)), draw(values(n, dtype, out, depth - 1))
    test = draw(conditions(n, dtype))
    guard = draw(st.integers(1, n))
    choices = [
        f"({a} + {b})",
        f"({a} - {b})",
        f"({a} * {b})",
        f"T.max({a}, {b})",
        f"T.min({a}, {b})",
        f"T.Select({test}, {a}, {b})",
        f"T.if_then_else({test}, {a}, {b})",
        f"T.if_then_else(i >= {guard}, T.Cast('{out}', A[i - {guard}]), {b})",
        a,
    ]
    return str(draw(st.sampled_from(choices)))


@st.composite
def programs(draw: Any) -> tuple[str, int, str, str]:
    """Source, iterations, types of A and C."""
    n = draw(st.sampled_from([5, 8, 16, 33, 64, 100]))
    dtype, out = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))
    text = "@T.prim_func\n"
    text += f"def f(A: T.Buffer(({SIZE},), '{dtype}'), I: T.Buffer(({n},), 'int32'), C: T.Buffer(({4 * n},), '{out}'), "
    text += f"D: T.Buffer(({n},), '{dtype}')):\n"
    kind = draw(st.sampled_from(["range", "range", "range", "T.parallel"]))
    target = draw(st.sampled_from(["i", "i", f"{n - 1} - i", "i * 2", "i * 3 + 1", f"i + {n}"]))
    shape = draw(st.sampled_from(["plain", "plain", "if", "else", "sum", "let", "two"]))
    text += f"    for i in {kind}({n}):\n"
    value, other = draw(values(n, dtype, out)), draw(values(n, dtype, out))
    store = f"C[{target}] = {value}\n"
    if shape == "plain":
        text += f"        {store}"
    elif shape == "if":
        text += f"        if {draw(conditions(n, dtype))}:\n            {store}            D[i] = A[i]\n"
    elif shape == "else":
        text += f"        if {draw(conditions(n, dtype))}:\n            {store}"
        text += f"        else:\n            C[{target}] = {other}\n"
    elif shape == "let":
        text += f"        with T.LetStmt(A[{draw(indices(n))}]) as x:\n"
        text += f"            {store}            D[i] = x + A[i]\n"
    elif shape == "two":
        text += f"        D[i] = A[{draw(indices(n))}]\n        C[{target}] = T.Cast('{out}', D[i])\n"
    else:
        k = draw(st.integers(1, 6))
        text += f"        C[{target}] = {value}\n        for k in range({k}):\n"
        term = f"A[(i * {draw(st.integers(1, 4))} + k) % {SIZE}]"
        text += f"            C[{target}] = C[{target}] + T.Cast('{out}', {term})\n"
    return text, n, dtype, out


@settings(max_examples=samples(50), **COMMON)
@given(programs(), st.integers(0, 2**31), st.sampled_from(TARGETS))
def test_machine_code_agrees_with_the_interpreter(program: tuple[str, int, str, str], seed: int, target: str) -> None:
    text, n, dtype, out = program
    rng = np.random.default_rng(seed)
    args = [
        array(rng, SIZE, dtype, out),
        rng.integers(0, SIZE, n).astype("int32"),
        array(rng, 4 * n, out),
        array(rng, n, dtype),
    ]
    expected = [a.copy() for a in args]
    func = from_source(text)
    tw.compile(func, "interpreter", schedule="as written")(*expected)
    tw.compile(func, target, schedule="as written")(*args)
    for got, want in zip(args, expected, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=text)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("modulus", [32, 64, 48])
@pytest.mark.parametrize("factor", [3, 5, 7])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "float16"])
def test_indices_that_wrap(factor: int, modulus: int, dtype: str, target: str) -> None:
    text = f"""@T.prim_func
def f(A: T.Buffer(({modulus},), "{dtype}"), B: T.Buffer((64,), "{dtype}")):
    for i in range(64):
        B[i] = A[i * {factor} % {modulus}] + T.Cast("{dtype}", 1)
"""
    a = (np.arange(modulus) % 100).astype(dtype)
    b = np.zeros(64, dtype)
    tw.compile(from_source(text), target, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a[np.arange(64) * factor % modulus] + np.ones(1, dtype))


@settings(max_examples=samples(38), **COMMON)
@given(
    st.lists(
        st.tuples(st.sampled_from("AB"), st.integers(-4, 40), st.sampled_from("AB"), st.integers(-4, 40)),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 3),
    st.sampled_from([8, 33, 64]),
    st.booleans(),
)
def test_in_place_updates(statements: list[tuple[str, int, str, int]], step: int, n: int, conditional: bool) -> None:
    """What an iteration passes on to later ones through memory, and what it must not."""
    size = 64 * 3 + 50
    text = f"@T.prim_func\ndef f(A: T.Buffer(({size},), 'int32'), B: T.Buffer(({size},), 'int32')):\n"
    text += f"    for i in range({n}):\n"
    indent = " " * 8
    if conditional:
        text += f"{indent}if A[i * {step} + 5] % 2 == 0:\n"
        indent += "    "
    for to, at, source, place in statements:
        text += f"{indent}{to}[i * {step} + {at + 5}] = {source}[i * {step} + {place + 5}] * 3 + 1\n"
    rng = np.random.default_rng(0)
    args = [rng.integers(0, 9, size).astype("int32") for _ in "AB"]
    expected = [a.copy() for a in args]
    func = from_source(text)
    tw.compile(func, "interpreter", schedule="as written")(*expected)
    tw.compile(func, schedule="as written")(*args)
    for got, want in zip(args, expected, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=text)


@pytest.mark.parametrize("n", [0, 1, 7, 64, 65, 1000, 4099])
@pytest.mark.parametrize("loop", ["range", "T.parallel"])
def test_sizes_of_the_call(loop: str, n: int) -> None:
    text = f"""@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in {loop}(n):
        B[i] = A[n - 1 - i] * T.float32(2)
"""
    a = np.arange(n, dtype="float32")
    b = np.full(n, -1, "float32")
    tw.compile(from_source(text), schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a[::-1] * 2)


def lowered(func: Any) -> str:
    return str(tw.lower(func, after="vectorize_plain_loops").script())


def test_sums_stay_in_order() -> None:
    """Lanes are taken from a loop around the sum, so each float sum is that of the program to the bit."""

    @T.prim_func
    def product(A: T.Buffer((48, 200), "float32"), B: T.Buffer((200, 96), "float32"), C: T.Buffer((48, 96), "float32")):
        for i, j, k in T.grid(48, 96, 200):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    assert "for j in T.vectorized(96)" in lowered(product)
    assert "for k in range(200)" in lowered(product)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in [(48, 200), (200, 96)])
    c = np.empty((48, 96), "float32")
    tw.compile(product, schedule="as written")(a, b, c)
    sums = np.zeros((48, 96), "float32")
    exact = np.zeros((48, 96))
    for k in range(200):  # with a multiply-add, rounded once
        exact = sums.astype("float64") + a[:, k, None].astype("float64") * b[None, k, :]
        sums = exact.astype("float32")
    np.testing.assert_array_equal(c, sums)


def test_arguments_that_other_functions_pass_may_overlap() -> None:
    @tw.script.ir_module
    class Shifts:
        @T.prim_func
        def shift(A: T.Buffer((65,), "int32"), B: T.Buffer((64,), "int32")):
            T.func_attr({"global_symbol": "shift"})
            for i in range(64):
                B[i] = A[i]

        @T.prim_func
        def main(X: T.Buffer((65,), "int32")):
            T.func_attr({"global_symbol": "main"})
            Shifts.shift(X.data, T.address_of(X[1]))

    x = np.arange(65, dtype="int32")
    tw.compile(Shifts, schedule="as written")["main"](x)
    np.testing.assert_array_equal(x, np.zeros(65, "int32"))


def test_a_condition_is_evaluated_once() -> None:
    """The first statement under it changes what it reads."""

    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
        for i in T.vectorized(64):
            if A[i] > 0:
                A[i] = -1
                B[i] = 2
            else:
                A[i] = 1
                C[i] = 3

    a = np.tile(np.array([1, -1], "int32"), 32)
    b, c = np.zeros(64, "int32"), np.zeros(64, "int32")
    tw.compile(f, schedule="as written")(a, b, c)
    np.testing.assert_array_equal(b, np.tile([2, 0], 32))
    np.testing.assert_array_equal(c, np.tile([0, 3], 32))
    np.testing.assert_array_equal(a, np.tile([-1, 1], 32))


def test_why_a_loop_stays_scalar() -> None:
    @T.prim_func
    def scan(A: T.Buffer((64,), "float32")):
        for i in range(63):
            A[i + 1] = A[i + 1] + A[i]

    (note,) = tw.compile(scan, schedule="as written").report["notes"]
    assert note["code"] == "lower/scalar-loop"
    assert note["message"] == "loop 'i' has no vector code: an iteration needs what an earlier one does to 'A'"


@pytest.mark.parametrize("target", ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"])
def test_no_warning_of_vectors_that_nobody_asked_for(target: str) -> None:
    """Full vectors are made; the extent of the loop inside differs between lanes of the last one, some of which are
    idle."""

    @T.prim_func
    def segments(A: T.Buffer((64,), "float32"), P: T.Buffer((4,), "int32"), C: T.Buffer((40,), "float32"), k: T.int32):
        for s in range(k):
            C[s] = 0.0
            for j in range(P[1]):
                C[s] += A[j]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = tw.compile(segments, target, schedule="as written")
    assert all(note.code == "lower/scalar-loop" and note.where for note in kernel.notes)
    a, p, c = np.arange(64, dtype="float32"), np.array([0, 5, 0, 0], "int32"), np.ones(40, "float32")
    kernel(a, p, c, 35)
    np.testing.assert_array_equal(c, [10.0] * 35 + [1.0] * 5)

    @T.prim_func
    def marked(A: T.Buffer((64,), "float32"), P: T.Buffer((4,), "int32"), C: T.Buffer((64,), "float32")):
        for s in T.vectorized(64):
            for j in range(P[s % 4]):
                C[s] = C[s] + A[j]

    with pytest.warns(tw.PerformanceWarning, match=r"loop 's' is not vectorized: .* \(test_vectorize_plain_loops.py:"):
        tw.compile(marked, target, schedule="as written")


def test_a_running_sum_does_not_write_to_one_element() -> None:
    """Its first step, behind a condition, stores to element 0; each of the others to its own."""

    @T.prim_func
    def running(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
        for i in range(1024):
            with T.block("B"):
                v = T.axis.opaque(1024, i)
                if v == 0:
                    B[v] = A[v]
                else:
                    B[v] = B[v - 1] + A[v]

    (note,) = tw.compile(running, schedule="as written").notes
    assert note.code == "lower/scalar-loop" and "'B'" in note.message
    assert "same element" not in note.message


def test_hints_are_no_scalar_loop() -> None:
    @T.prim_func
    def ahead(A: T.Buffer((256, 64), "float32")):
        for i in range(256):
            T.prefetch(A, [T.Range(i, i + 1), T.Range(0, 1)])

    assert tw.compile(ahead, schedule="as written").report["notes"] == []


def test_packing_is_known_to_write_each_element_once() -> None:
    @T.prim_func
    def pack(W: T.Buffer((64, 48), "float32"), P: T.Buffer((3, 16, 16, 4), "float32")):
        for k, j in T.grid(64, 48):
            with T.block("P"):
                vk, vj = T.axis.remap("SS", [k, j])
                P[vj // 16, vk // 4, vj % 16, vk % 4] = T.exp(W[vk, vj])

    kernel = tw.compile(pack, schedule="as written")
    assert kernel.notes == ()
    w, p = np.random.default_rng(0).random((64, 48), "float32"), np.zeros((3, 16, 16, 4), "float32")
    kernel(w, p)
    np.testing.assert_allclose(p, np.exp(w).reshape(16, 4, 3, 16).transpose(2, 0, 3, 1), rtol=1e-6)


def test_short_rows_make_long_vectors() -> None:
    @T.prim_func
    def rows(A: T.Buffer((50, 7, 3), "float32"), B: T.Buffer((50, 7, 3), "float32")):
        for i, j, k in T.grid(50, 7, 3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)

    @T.prim_func
    def column(A: T.Buffer((50, 3), "float32"), b: T.Buffer((3,), "float32"), B: T.Buffer((50, 3), "float32")):
        for i, j in T.grid(50, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + b[vj]

    assert "for i in T.vectorized(1050)" in lowered(rows)
    assert "for i, j in T.grid(50, 3)" in lowered(column)
    a = np.arange(1050, dtype="float32").reshape(50, 7, 3)
    b = np.zeros_like(a)
    tw.compile(rows, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize("n", [16, 17, 100])
def test_sums_of_rows(n: int) -> None:
    """Lanes in different rows: one register of them at a time."""

    @T.prim_func
    def variance(X: T.Buffer((n, 40), "float32"), m: T.Buffer((n,), "float32"), Y: T.Buffer((n,), "float32")):
        for i, j in T.grid(n, 40):
            with T.block("Y"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = T.float32(0)
                Y[vi] = Y[vi] + (X[vi, vj] - m[vi]) * (X[vi, vj] - m[vi]) * T.float32(0.5)

    x = np.random.default_rng(0).integers(-4, 5, (n, 40)).astype("float32")
    m = np.arange(n, dtype="float32") % 3
    y = np.empty(n, "float32")
    tw.compile(variance, schedule="as written")(x, m, y)
    np.testing.assert_array_equal(y, ((x - m[:, None]) ** 2).sum(1) / 2)


def test_rows_of_a_register_tile_stay_apart() -> None:
    """Registers are as wide as the widest access: rows of 8 are not set to zero as one vector of 16."""

    @T.prim_func
    def tile(A: T.Buffer((2, 8), "float32"), B: T.Buffer((2, 8), "float32")):
        with T.block("root"):
            X = T.alloc_buffer((2, 8), "float32", scope="local")
            for i, j in T.grid(2, 8):
                with T.block("zero"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    X[vi, vj] = T.float32(0)
            for i in range(2):
                for j in T.vectorized(8):
                    with T.block("add"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        X[vi, vj] = X[vi, vj] + A[vi, vj]
            for i in range(2):
                for j in T.vectorized(8):
                    with T.block("out"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = X[vi, vj]

    (buffer,) = tw.compile(tile, target="llvm -mcpu=x86-64-v4", schedule="as written").report["promotions"]
    assert buffer["promoted"]
    assert "float32x16" not in str(tw.lower(tile, target="llvm -mcpu=x86-64-v4").script())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_interleaved_outputs_are_stored_together(dtype: str, count: int, target: str) -> None:
    """In any order of the statements; not where an element is left out, or one reads what another one writes."""
    order = [(k + 1) % count for k in range(count)]
    statements = "".join(f"        C[{count} * i + {k}] = A[i] + T.Cast('{dtype}', {k})\n" for k in order)
    text = f"""@T.prim_func
def f(A: T.Buffer((100,), '{dtype}'), C: T.Buffer(({count * 100},), '{dtype}')):
    for i in range(100):
{statements}"""
    func = from_source(text)
    a = (np.arange(100) % 50).astype(dtype)
    c = np.zeros(100 * count, dtype)
    assert "T.vectorized(100)" in lowered(func)
    script = str(tw.lower(func, target=target, after="vectorize_loops").script())
    assert script.count("T.Shuffle") >= 1 and f"T.Ramp(1, {count}," not in script
    tw.compile(func, target, schedule="as written")(a, c)
    np.testing.assert_array_equal(c, (a[:, None] + np.arange(count).astype(dtype)).ravel())
    for other in (
        text.replace(f"C[{count} * i + 0]", f"C[{count} * i + {count - 1}]"),
        text.replace("A[i]", f"C[{count} * i]"),
        text.replace("range(100)", "T.vectorized(100)").replace("A[i]", f"C[{count} * i]"),
        text.replace("range(100)", "T.vectorized(100)").replace("A[i]", f"C[{count} * i + {count - 1}]"),
    ):
        args = [a.copy(), np.arange(100 * count).astype(dtype)]
        expected = [v.copy() for v in args]
        tw.compile(from_source(other.replace("T.vectorized", "range")), "interpreter")(*expected)
        tw.compile(from_source(other), target, schedule="as written")(*args)
        np.testing.assert_array_equal(args[1], expected[1], err_msg=other)


def test_bytes_that_are_stored_apart_are_no_longer_vectors_than_those_of_32_bits() -> None:
    """Each lane is a store of its own: four full registers of bytes would be 256 of them for each statement."""

    @T.prim_func
    def blended(a: T.handle, c: T.handle):
        n = T.int32(is_size_var=True)
        A = T.match_buffer(a, (n, 3), "uint8")
        C = T.match_buffer(c, (n, 3), "uint8")
        for i, k in T.grid(n, 3):
            C[i, k] = T.uint8(1)
            for _ in range(3):
                C[i, k] = T.Cast("uint8", T.Cast("int64", C[i, k]) + T.Cast("int64", A[i, k]))

    script = str(tw.lower(blended, target="llvm -mcpu=x86-64-v4", after="split_vector_loops").script())
    assert re.findall(r"T.vectorized\((\d+)\)", script) == ["16"]
    a = np.arange(300, dtype="uint32").astype("uint8").reshape(100, 3)
    c = np.zeros((100, 3), "uint8")
    tw.compile(blended, schedule="as written")(a, c)
    np.testing.assert_array_equal(c, a * np.uint8(3) + np.uint8(1))


@pytest.mark.parametrize(("most", "vectors"), [(3, False), (16, True)])
def test_loops_that_are_short_at_every_turn_stay_scalar(most: int, vectors: bool) -> None:
    """Vectors under a mask, of bytes above all, are many instructions where no turn fills them."""
    program = from_source(
        f"""
from tilewright.script import tir as T
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i in range(64):
        for j in range(i % {most} + 1):
            B[i, j] = A[i, j] + T.float32(1)
"""
    )
    assert ("T.Ramp" in tw.lower(program, target="llvm -mcpu=x86-64-v3").script()) == vectors


@pytest.mark.parametrize(
    ("target", "dtype", "masks"),
    [
        ("llvm -mcpu=x86-64-v3", "uint8", False),
        ("llvm -mcpu=x86-64-v3", "float32", True),
        ("llvm -mcpu=skylake-avx512", "uint8", True),
    ],
)
def test_what_full_vectors_leave_is_a_loop_where_bytes_have_no_masks(target: str, dtype: str, masks: bool) -> None:
    """Each lane under a condition would be a branch: hundreds of them for one vector of 128."""
    program = from_source(
        f"""
from tilewright.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "{dtype}")
    B = T.match_buffer(b, (n,), "{dtype}")
    for i in range(n):
        B[i] = A[i] * T.Cast("{dtype}", 3)
"""
    )
    text = tw.lower(program, target=target).script()
    assert "T.Broadcast(" in text
    assert ("predicate=" in text) == masks
    kernel = tw.compile(program, schedule="as written")
    for n in (0, 1, 31, 127, 128, 129, 300):
        values = (np.arange(n) % 80).astype(dtype)
        np.testing.assert_array_equal(kernel(values), values * np.dtype(dtype).type(3))


@pytest.mark.parametrize("target", ["llvm -mcpu=skylake-avx512", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_lanes_that_lie_apart_under_a_condition_are_a_loop(dtype: str, target: str) -> None:
    """No processor scatters bytes: each lane would be a branch, of several hundred lines for each statement."""
    program = f"""@T.prim_func
def keep(A: T.Buffer((64, 128), "{dtype}"), V: T.Buffer((128, 2), "{dtype}"), W: T.Buffer((128, 2), "{dtype}")):
    for i in T.vectorized(128):
        with T.block("V"):
            vi = T.axis.spatial(128, i)
            if A[0, vi] > A[1, vi]:
                V[vi, 1] = A[2, vi]
            if A[3, vi] > A[4, vi]:
                W[vi, 1] = A[5, vi]
"""
    text = tw.compile(from_source(program), target, schedule="as written").inspect("asm")
    assert len(text.splitlines()) < 1000


@pytest.mark.parametrize("rows", ["range(i)", "range(i + 1)", "range(40)"])
@pytest.mark.parametrize("columns", ["24", "30"])
@pytest.mark.parametrize("update, meets", [("X[i, j] - L[i, k] * X[k, j]", False), ("X[i, j] + X[k, 23 - j]", True)])
def test_rows_of_one_matrix_do_not_meet(update: str, meets: bool, rows: str, columns: str) -> None:
    """A triangular solve: lanes along the row that is changed, from rows that are complete."""
    program = from_source(
        f"""
@T.prim_func
def solve(L: T.Buffer((40, 40), "float32"), X: T.Buffer((40, {columns}), "float32")):
    for i in range(40):
        for k in {rows}:
            for j in range(24):
                X[i, j] = {update}
"""
    )
    text = str(tw.lower(program, after="vectorize_plain_loops").script())
    assert ("T.vectorized" in text) == (not meets)
    rng = np.random.default_rng(3)
    lower = rng.integers(-1, 2, (40, 40)).astype("float32") / 64
    got = rng.integers(-1, 2, (40, int(columns))).astype("float32") / 1024
    want = got.copy()
    tw.compile(program, "interpreter")(lower, want)
    tw.compile(program)(lower, got)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_what_speaks_against_vectors() -> None:
    @T.prim_func
    def total(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        for i in range(64):
            B[0] = B[0] + A[i]

    @T.prim_func
    def shifted(A: T.Buffer((65,), "float32")):
        for i in range(64):
            A[i + 1] = A[i]

    @T.prim_func
    def strided(A: T.Buffer((576,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = A[i * 9]

    @T.prim_func
    def called(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            B[i] = T.nextafter(A[i], T.float32(0))

    for program in (total, shifted, strided, called):
        check_unchanged(program, "vectorize_plain_loops")


def test_a_loop_is_marked_and_nothing_else() -> None:
    @T.prim_func
    def scaled(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            B[i] = A[i] * 3

    @T.prim_func
    def expected(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        A_1 = T.decl_buffer((16,), "int32", data=A.data)
        B_1 = T.decl_buffer((16,), "int32", data=B.data)
        for i in T.vectorized(16):
            B_1[i] = A_1[i] * 3

    check(scaled, "vectorize_plain_loops", expected)
    a = np.arange(16, dtype="int32")
    agrees(scaled, "vectorize_plain_loops", [a, np.zeros_like(a)], [a, a * 3])
