"""Random `and`, `or` and `not`: in conditions, any number holds as in Python; as values, operands are bool."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

EXTENT = 6
TYPES = ["int32", "float32", "uint8", "int64", "float64"]


class Drawn:
    """Texts that are scripts and Python: of elements A[v], C[v] (numbers), P[v] (bool) and the axis v."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(TYPES)

    def number(self, depth: int) -> str:
        kind = self.rng.randrange(6)
        if depth == 0 or kind < 3:
            return self.rng.choice(["A[v]", "C[v]", "v", str(self.rng.randint(-2, 9))])
        if kind == 3:
            return f"({self.number(depth - 1)} + {self.number(depth - 1)})"
        if kind == 4:
            return f"({self.number(depth - 1)} * {self.rng.randint(0, 3)})"
        return f"({self.number(depth - 1)} if {self.condition(depth - 1)} else {self.number(depth - 1)})"

    def truth(self, depth: int) -> str:
        """Of type bool."""
        kind = self.rng.randrange(6)
        if depth == 0 or kind < 3:
            return f"({self.number(0)} {self.rng.choice(['<', '>', '==', '!=', '<=', '>='])} {self.number(0)})"
        if kind == 3:
            return f"({self.truth(depth - 1)} {self.rng.choice(['and', 'or'])} {self.truth(depth - 1)})"
        return f"(not {self.condition(depth - 1)})" if kind == 4 else "P[v]"

    def condition(self, depth: int) -> str:
        """A number or a bool."""
        kind = self.rng.randrange(4)
        if depth == 0 or kind == 0:
            return self.number(0) if self.rng.random() < 0.5 else self.truth(0)
        if kind == 1:
            return f"({self.condition(depth - 1)} {self.rng.choice(['and', 'or'])} {self.condition(depth - 1)})"
        return f"(not {self.condition(depth - 1)})" if kind == 2 else self.truth(depth - 1)

    def arrays(self) -> dict[str, np.ndarray]:
        numbers = np.random.default_rng(self.rng.randrange(2**31))
        low = 0 if self.dtype.startswith("u") else -2
        drawn = {name: numbers.integers(low, 3, EXTENT).astype(self.dtype) for name in "AC"}
        if self.dtype.startswith("float"):
            drawn["A"][self.rng.randrange(EXTENT)] = np.nan
            drawn["C"][0] = -0.0
        return {**drawn, "P": numbers.integers(0, 2, EXTENT).astype(bool)}


def program(statement: str, dtype: str) -> str:
    return f"""
@T.prim_func
def main(A: T.Buffer(({EXTENT},), {dtype!r}), C: T.Buffer(({EXTENT},), {dtype!r}), P: T.Buffer(({EXTENT},), "bool"),
         B: T.Buffer(({EXTENT},), "int32")):
    for v in range({EXTENT}):
        B[v] = 0
        {statement}
"""


STATEMENTS = {
    "if {}:\n            B[v] = 1": bool,
    "if {}:\n            B[v] = 1\n        else:\n            B[v] = 2": lambda holds: 1 if holds else 2,
    "B[v] = 1 if {} else 2": lambda holds: 1 if holds else 2,
    "while ({}) and B[v] < 3:\n            B[v] = B[v] + 1": lambda holds: 3 if holds else 0,
    "B[v] = not {}": lambda holds: not holds,
}


@pytest.mark.parametrize("part", range(2))
def test_conditions(part: int) -> None:
    for seed in seeds(part, 40):
        drawn = Drawn(seed)
        statement, meaning = drawn.rng.choice(list(STATEMENTS.items()))
        condition = drawn.condition(3)
        function = from_source(program(statement.format(condition), drawn.dtype))
        given = drawn.arrays()
        # NumPy would compute in the types of the elements, of which a sum wraps.
        items: dict[str, Any] = {name: array.tolist() for name, array in given.items()}
        want = [int(meaning(eval(condition, {"v": v, **items}))) for v in range(EXTENT)]
        for target in ("native", "interpreter"):
            b = np.full(EXTENT, -1, "int32")
            tw.compile(function, target=target, schedule="as written")(*given.values(), b)
            assert b.tolist() == want, f"seed {seed}, {target}: {condition}"


def test_values() -> None:
    for seed in seeds(0, 60):
        drawn = Drawn(seed)
        element = drawn.rng.choice(["A[v]", "C[v]", "v", "(A[v] + 1)"])
        other = drawn.rng.choice([drawn.truth(1), drawn.number(1), element])
        operands = [element, other]
        if drawn.rng.random() < 0.5 and ("A[" in other or "C[" in other or "P[" in other):
            operands.reverse()  # Python itself decides where the first operand is a number
        value = f"({operands[0]} {drawn.rng.choice(['and', 'or'])} {operands[1]})"
        statement = drawn.rng.choice(["B[v] = {}", "B[v] = {} + 1", "B[v] = T.max({}, v)", "x = {}", "B[v] = A[{}]"])
        with pytest.raises(tw.ScriptError) as refused:
            from_source(program(statement.format(value), drawn.dtype))
        assert "!= 0" in str(refused.value) or "T.if_then_else" in str(refused.value), str(refused.value)


def test_conditions_in_functions() -> None:
    """A function of Python that a script calls decides while parsing: it is refused, or right for all elements."""
    refused = 0
    for seed in seeds(0, 80):
        drawn = Drawn(seed)
        condition = drawn.truth(2) if seed % 2 else drawn.condition(2)
        names = {"A[v]": "a", "C[v]": "c", "P[v]": "p"}
        inside = condition
        for element, name in names.items():
            inside = inside.replace(element, name)
        chosen = eval(f"lambda a, c, p, v: 1 if {inside} else 2")
        try:
            function = from_source(
                program("B[v] = chosen(A[v], C[v], P[v], v)", drawn.dtype), extra_vars={"chosen": chosen}
            )
        except tw.ScriptError as error:
            assert error.hint, str(error)
            refused += 1
            continue
        given = drawn.arrays()
        items: dict[str, Any] = {name: array.tolist() for name, array in given.items()}
        b = np.full(EXTENT, -1, "int32")
        tw.compile(function, target="interpreter")(*given.values(), b)
        assert b.tolist() == [1 if eval(condition, {"v": v, **items}) else 2 for v in range(EXTENT)], condition
    assert refused
