"""Kernels decide conditions, and compute values, of loop variables and of data of all integer types as Python does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.samples import samples
from tests.typed_expressions import INTEGERS, Sampler, UndefinedValueError, limits, value_of, wrapped

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T

LOOPS = {"s": T.serial, "u": T.unroll, "v": T.vectorized, "p": T.parallel}


class Case:
    """Two loops over data; `rows` are expressions of their variables and of an element of each."""

    def __init__(self, seed: int) -> None:
        self.sampler = Sampler(seed)
        rng = self.sampler.rng
        self.loops = rng.choice(["ss", "sv", "sv", "su", "ps", "pv", "us"])
        self.types = [rng.choice(["int32", "int32", "int64"]) for _ in range(2)]
        self.types += [rng.choice(INTEGERS) for _ in range(2)]
        self.ranges = [self.range_of(dtype) for dtype in self.types[:2]]
        self.data = [self.numbers(*of) for of in zip(self.types[2:], self.ranges, strict=True)]
        self.output = rng.choice(INTEGERS)
        self.sampler.variables = [_core.Var(f"x{number}", dtype) for number, dtype in enumerate(self.types)]
        self.conditions = self.rows("bool")
        self.values = self.rows(self.output)

    def range_of(self, dtype: str) -> tuple[int, int]:
        rng, (low, high) = self.sampler.rng, limits(dtype)
        return rng.choice([0, 0, 0, 1, 5, -1, -3, low, high - 20]), rng.choice([1, 2, 3, 5, 7, 8, 13, 16, 17])

    def numbers(self, dtype: str, of: tuple[int, int]) -> np.ndarray:
        rng, (low, high) = self.sampler.rng, limits(dtype)
        near = [0, 1, 2, 3, -1, -2, low, low + 1, high, high - 1, high // 2 + 1]
        return np.array([wrapped(dtype, rng.choice([*near, rng.randint(low, high)])) for _ in range(of[1])], dtype)

    def rows(self, dtype: str) -> list[tuple[Any, list[list[int]]]]:
        """Expressions that are defined everywhere, and their values."""
        rows = []
        for _ in range(12):
            expression = self.sampler.expression(dtype, self.sampler.rng.randint(2, 4))
            try:
                rows.append((expression, self.wanted(expression)))
            except UndefinedValueError:
                continue
        return rows[:6] or [(_core.const(0, dtype), self.wanted(_core.const(0, dtype)))]

    def wanted(self, expression: Any) -> list[list[int]]:
        (first, rows), (left, columns) = self.ranges
        return [
            [
                value_of(expression, dict(zip(self.sampler.variables, (first + i, left + j, *of), strict=True)))
                for j in range(columns)
                for of in [(int(self.data[0][i]), int(self.data[1][j]))]
            ]
            for i in range(rows)
        ]

    def program(self) -> Any:
        (first, rows), (left, columns) = self.ranges
        outer, inner = (LOOPS[kind] for kind in self.loops)
        types, variables = self.types, self.sampler.variables
        conditions = [(number, row[0]) for number, row in enumerate(self.conditions)]
        values = [(number, row[0]) for number, row in enumerate(self.values)]
        ends = [_core.const(end, types[0]) for end in (first, first + rows)]
        sides = [_core.const(end, types[1]) for end in (left, left + columns)]

        def of(expression: Any, *present: Any) -> Any:
            return _core.substitute(expression, dict(zip(variables, present, strict=True)))

        @T.prim_func
        def func(
            A: T.Buffer((rows,), types[2]),
            B: T.Buffer((columns,), types[3]),
            C: T.Buffer((len(conditions), rows, columns), "int32"),
            D: T.Buffer((len(values), rows, columns), self.output),
        ):
            for i in outer(*ends):
                x = A[T.Cast("int64", i) - first]
                for j in inner(*sides):
                    y = B[T.Cast("int64", j) - left]
                    for number, condition in conditions:
                        if of(condition, i, j, x, y):
                            C[number, T.Cast("int64", i) - first, T.Cast("int64", j) - left] = 1
                        else:
                            C[number, T.Cast("int64", i) - first, T.Cast("int64", j) - left] = 0
                    for number, value in values:
                        D[number, T.Cast("int64", i) - first, T.Cast("int64", j) - left] = of(value, i, j, x, y)

        return func


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
@pytest.mark.parametrize("seed", range(samples(40)))
def test_kernels_compute_what_python_does(seed: int) -> None:
    case = Case(seed)
    program = case.program()
    wanted = np.array([row[1] for row in case.conditions], "int32")
    values = np.array([row[1] for row in case.values], object).astype(case.output)
    for options in ({"target": "interpreter"}, {"schedule": "as written"}):
        found, computed = np.zeros(wanted.shape, "int32"), np.zeros(values.shape, case.output)
        tw.compile(program, **options)(*case.data, found, computed)
        np.testing.assert_array_equal(found, wanted, f"{seed} {options}\n{program.script()}")
        np.testing.assert_array_equal(computed, values, f"{seed} {options}\n{program.script()}")
