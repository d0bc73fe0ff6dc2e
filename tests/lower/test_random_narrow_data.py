"""Extents, both ends of ranges, and indices that are computed of unsigned and of short data, which wrap in their type.

The expected values are computed here, by Python's integers and the table of types in docs/types.md."""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

DTYPES = ["uint8", "int8", "int16", "uint16", "uint32", "int32"]
SIZE = 11


def bits(dtype: str) -> int:
    return int(dtype.removeprefix("u").removeprefix("int"))


def wrap(dtype: str, value: int) -> int:
    value %= 2 ** bits(dtype)
    return value - 2 ** bits(dtype) if dtype[0] == "i" and value >= 2 ** (bits(dtype) - 1) else value


@dataclass
class Term:
    """An expression, its type, and its value for the data of the program; whether int32 left its range on the way."""

    text: str
    dtype: str
    value: int
    overflows: bool = False


class Program:
    """A function over data of two types, and what it has to store."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dtypes = [rng.choice(DTYPES[:5]), rng.choice(DTYPES)]
        self.data = [self.numbers(dtype) for dtype in self.dtypes]
        self.lines: list[str] = []
        self.expected: list[int] = []
        self.overflows = False
        for _ in range(rng.choice([1, 2, 3])):
            rng.choice([self.loop, self.loop, self.loop_between, self.index])()

    def numbers(self, dtype: str) -> np.ndarray:
        info = np.iinfo(dtype)
        near = [0, 1, 3, 7, 12, info.max, info.max - 1, info.max - 5, info.min, info.min + 2, info.max // 2 + 1]
        return np.array([self.rng.choice(near) for _ in range(4)], dtype)

    # expressions

    def leaf(self) -> Term:
        which, at = self.rng.randrange(2), self.rng.randrange(4)
        return Term(f"{'NM'[which]}[{at}]", self.dtypes[which], int(self.data[which][at]))

    def make(self, dtype: str, text: str, value: int, *parts: Term) -> Term:
        overflows = any(part.overflows for part in parts)
        if dtype in ("int32", "int64"):
            overflows = overflows or wrap(dtype, value) != value
        return Term(text, dtype, wrap(dtype, value), overflows)

    def cast(self, dtype: str, term: Term) -> Term:
        return Term(term.text, dtype, wrap(dtype, term.value), term.overflows)

    def beside_number(self, term: Term) -> Term:
        return term if bits(term.dtype) >= 32 else self.cast("int32", term)

    def together(self, a: Term, b: Term) -> tuple[Term, Term]:
        wider = max(bits(a.dtype), bits(b.dtype))
        of_that = [t.dtype for t in (a, b) if bits(t.dtype) == wider]
        dtype = next((t for t in of_that if t[0] == "u"), of_that[0])
        return self.cast(dtype, a), self.cast(dtype, b)

    def binary(self, operator: str, a: Term, b: Term) -> Term:
        values = {"+": a.value + b.value, "-": a.value - b.value, "*": a.value * b.value}
        values |= {"min": min(a.value, b.value), "max": max(a.value, b.value)}
        text = f"T.{operator}({a.text}, {b.text})" if operator in ("min", "max") else f"({a.text} {operator} {b.text})"
        return self.make(a.dtype, text, values[operator], a, b)

    def expression(self, depth: int = 2) -> Term:
        kind = self.rng.random()
        if depth == 0 or kind < 0.15:
            return self.leaf()
        if kind < 0.7:
            a, b = self.together(self.expression(depth - 1), self.expression(depth - 1))
            return self.binary(self.rng.choice("++--*") if kind < 0.6 else self.rng.choice(["min", "max"]), a, b)
        a, number = self.beside_number(self.expression(depth - 1)), self.rng.choice([1, 2, 3, 6, 31])
        if kind < 0.85:
            return self.binary(self.rng.choice("+-"), a, Term(str(number), a.dtype, number))
        if kind < 0.92:
            return self.make(a.dtype, f"({a.text} // {number})", a.value // number, a)
        return self.make(a.dtype, f"({a.text} % {number})", a.value % number, a)

    def bounded(self) -> Term:
        """An expression that is small enough to be an extent."""
        term = self.expression()
        if bits(term.dtype) == 8 and self.rng.random() < 0.6:
            return term
        term, most = self.beside_number(term), self.rng.choice([5, 9, 40])
        number = Term(str(most), term.dtype, most)
        if self.rng.random() < 0.5:
            return self.make(term.dtype, f"({term.text} % {most})", term.value % most, term)
        return self.binary("min", term, number)

    def named(self, term: Term) -> Term:
        """The term, or a variable that holds it: a value, which wraps as values that are stored do."""
        if self.rng.random() < 0.7:
            return term
        name = f"x{len(self.lines)}"
        self.lines.append(f"{name}: T.{term.dtype} = {term.text}")
        return Term(name, term.dtype, term.value)

    # statements

    def loop(self) -> None:
        extent = self.named(self.bounded())
        self.count(f"range({extent.text})", 0, extent.value, extent)

    def loop_between(self) -> None:
        first, last = self.named(self.bounded()), self.named(self.bounded())
        if last.value - first.value < 70_000:
            self.count(f"range({first.text}, {last.text})", first.value, last.value, first, last)

    def count(self, domain: str, first: int, end: int, *parts: Term) -> None:
        self.overflows = self.overflows or any(part.overflows for part in parts)
        at = len(self.expected)
        trips = max(0, end - first)
        self.expected += [trips, end - 1 if trips else 0]
        self.lines += [
            f"for i{at} in {domain}:",
            f'    with T.block("B{at}"):',
            f"        v = T.axis.opaque({domain[6:-1] if ',' not in domain else '(' + domain[6:-1] + ')'}, i{at})",
            f"        C[{at}] = C[{at}] + T.int64(1)",
            f'        C[{at + 1}] = T.Cast("int64", v)',
        ]

    def index(self) -> None:
        term = self.beside_number(self.expression())
        place = self.named(self.make(term.dtype, f"{term.text} % {SIZE}", term.value % SIZE, term))
        self.overflows = self.overflows or place.overflows
        at = len(self.expected)
        self.expected += [3 * place.value + 1, 0]
        self.lines += [
            f"for i{at} in range(4):",
            f'    with T.block("B{at}"):',
            f"        v = T.axis.spatial(4, i{at})",
            f"        C[{at} + v // 4] = A[{place.text}]",
        ]

    def source(self) -> str:
        head = f"N: T.Buffer((4,), '{self.dtypes[0]}'), M: T.Buffer((4,), '{self.dtypes[1]}'), "
        head += f"A: T.Buffer(({SIZE},), 'int64'), C: T.Buffer((12,), 'int64')"
        return f"@T.prim_func\ndef main({head}):\n" + "\n".join("    " + line for line in self.lines)

    def run(self, kernel: tw.Kernel) -> list[int]:
        found = np.zeros(12, np.int64)
        kernel(*self.data, 3 * np.arange(SIZE, dtype=np.int64) + 1, found)
        return found.tolist()[: len(self.expected)]


def tiled(program: tw.ir.PrimFunc, rng: random.Random) -> tw.Schedule:
    sch = tw.Schedule(program)
    for block in sch.get_child_blocks("root"):
        with contextlib.suppress(tw.ScheduleError):
            loops = sch.split(sch.get_loops(block)[0], [None, rng.choice([2, 3, 7, 32, 300])])
            rng.choice([sch.unroll, sch.vectorize, lambda _: None])(rng.choice(loops))
    return sch


@pytest.mark.parametrize("part", range(6))
def test_random_programs_over_narrow_data(part: int) -> None:
    ran = 0
    for seed in range(part * 25, part * 25 + 25):
        rng = random.Random(seed)
        case = Program(rng)
        text = f"seed {seed}: {case.dtypes} {[data.tolist() for data in case.data]}\n{case.source()}"
        program = from_source(case.source())
        assert program.script() == from_source(program.script()).script(), text
        if case.overflows:
            # A bound or an index leaves int32 on the way, which it must not: either that is reported, or it made no
            # difference to the number.
            try:
                found = case.run(tw.compile(program, target="interpreter"))
            except tw.Error as error:
                assert error.code == "interpret/extent", text
            else:
                assert found == case.expected, text
            continue
        sch = tiled(program, rng)
        for module, options in [
            (program, {"target": "interpreter"}),
            (program, {"schedule": "as written"}),
            (program, {}),
            (sch, {"target": "interpreter"}),
            (sch, {}),
        ]:
            assert case.run(tw.compile(module, **options)) == case.expected, f"{text}\n{options}\n{module}"
        ran += 1
    assert ran > 10


def program(line: str, body: str, dtype: str) -> tw.ir.PrimFunc:
    return from_source(f"""
@T.prim_func
def main(n: T.int32, N: T.Buffer((4,), "{dtype}"), A: T.Buffer((7,), "int64"), C: T.Buffer((4,), "int64")):
    {line}
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            {body}
""")


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("pass", "C[v] = A[(N[v] - 6) % 7]"),
        ("x: T.int32 = N[2]", "C[v] = A[(x - 6) % 7]"),
        ("pass", "C[v] = A[(n - 6) % 7]"),
        ("pass", "C[v] = A[T.Select(v < 9, N[v] - 6, 0) % 7]"),
        ("pass", "C[v] = A[T.truncmod(N[v] - 6, 7) + 6]"),
    ],
)
def test_the_interpreter_reports_indices_whose_data_wrap(line: str, body: str) -> None:
    """A kernel computes them in 64 bits; data that do not wrap give the same everywhere."""
    function = program(line, body, "int32")
    at = 3 * np.arange(7)
    for number in (-(2**31), -(2**31) + 5):
        with pytest.raises(tw.Error, match="leaves its type with the data that it reads") as caught:
            tw.compile(function, target="interpreter")(number, np.full(4, number, np.int32), at, np.zeros(4, np.int64))
        assert caught.value.code == "interpret/extent" and caught.value.hint
    for number in (-(2**31) + 6, -3, 0, 5, 2**31 - 1):
        place = int(math.fmod(number - 6, 7)) + 6 if "trunc" in body else (number - 6) % 7
        for target in ("interpreter", "native"):
            found = np.zeros(4, np.int64)
            if place < 7:
                tw.compile(function, target=target)(number, np.full(4, number, np.int32), at, found)
                assert found.tolist() == [3 * place] * 4, (number, target)


def test_variables_hold_values_which_wrap() -> None:
    function = program("x: T.int32 = N[2] * 1664525 + 1013904223", "C[v] = A[x % 7]", "int32")
    for number in (1, 12345678, -(2**31)):
        for target in ("interpreter", "native"):
            found = np.zeros(4, np.int64)
            tw.compile(function, target=target)(0, np.full(4, number, np.int32), 3 * np.arange(7), found)
            assert found.tolist() == [3 * (wrap("int32", number * 1664525 + 1013904223) % 7)] * 4


def test_a_hash_of_uint32_is_an_index() -> None:
    function = program("pass", "C[v] = A[(N[v] * 0x9E3779B1 + 12345) % 7]", "uint32")
    numbers = np.array([1, 77, 2**31, 2**32 - 1], np.uint32)
    for target in ("interpreter", "native"):
        found = np.zeros(4, np.int64)
        tw.compile(function, target=target)(0, numbers, 3 * np.arange(7), found)
        assert found.tolist() == [3 * ((int(x) * 0x9E3779B1 + 12345) % 2**32 % 7) for x in numbers]


def test_loops_run_over_int32_or_int64() -> None:
    """Whatever the bounds are: tiles end beyond 255, and the axis of uint8 200 would be -56 in int8."""
    function = from_source("""
@T.prim_func
def main(n: T.uint8, m: T.uint32, C: T.Buffer((300,), "int64")):
    for i in range(T.uint8(200)):
        with T.block("C"):
            v = T.axis.remap("S", [i])
            C[v] = T.Cast("int64", v)
    for i in range(n):
        for j in range(m, m + T.uint32(3)):
            C[i] = T.Cast("int64", j)
""")
    found: dict[str, str] = {}
    tw.ir.visit(
        function, lambda e: found.setdefault(str(e.extent), e.loop_var.dtype) if isinstance(e, tw.ir.For) else None
    )
    assert sorted(found.values()) == ["int32", "int32", "int64"], found
    for target in ("interpreter", "native"):
        values = np.zeros(300, np.int64)
        tw.compile(function, target=target)(255, 7, values)
        assert values.tolist() == [9] * 255 + [0] * 45


def test_heuristics_look_at_extents_that_name_variables_of_any_type() -> None:
    for dtype in ("uint8", "float32", "bool", "uint64"):
        function = from_source(f"""
@T.prim_func
def main(N: T.Buffer((4,), "{dtype}"), C: T.Buffer((1,), "int64")):
    x: T.{dtype} = N[0]
    for i in range(T.Cast("int32", x)):
        with T.block("B"):
            v = T.axis.opaque(T.Cast("int32", x), i)
            C[0] = C[0] + T.int64(1)
""")
        count = np.zeros(1, np.int64)
        tw.compile(function)(np.ones(4, dtype), count)
        assert count.tolist() == [1]
