"""Reductions over loops that were fused, of which axes and conditions take digits: which inits are proved to run first.

Sizes are open, so nothing can be enumerated. Python enumerates the steps at some sizes, and says what is meant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source

CODE = "verify/init-skipped"
SIZES = ((3, 4, 2), (1, 1, 1), (2, 5, 4), (5, 2, 3), (4, 4, 1))


def reduction(grid: str, row: str, step: str, condition: str, extent: str = "m") -> ir.PrimFunc:
    """C[row] = C[row] * 3 + A[row, step] over loops f, or f0 and f1."""
    names = "f" if "," not in grid else "f0, f1"
    where = f"            T.where({condition})\n" if condition else ""
    loops = f"T.grid({grid})" if "," in grid else f"range({grid})"
    return from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle, p: T.handle):
    n, m, l = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    P = T.match_buffer(p, (l,), "int32")
    for {names} in {loops}:
        with T.block("C"):
            vi = T.axis.spatial(n, {row})
            vk = T.axis.reduce({extent}, {step})
{where}            T.reads(C[vi], A[vi, vk], P[0:l])
            T.writes(C[vi])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] * 3 + A[vi, vk]
""")


def iterations(grid: str, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    extents = eval(f"({grid},)", {}, sizes)
    for point in np.ndindex(*extents):
        yield dict(zip(("f",) if len(extents) == 1 else ("f0", "f1"), map(int, point), strict=True))


def expected(program: tuple[str, str, str, str], size: tuple[int, int, int], given: np.ndarray) -> list[int] | None:
    """What the loops compute, nothing where the first step of an element does not begin it."""
    grid, row, step, condition = program
    sizes = dict(zip("nml", size, strict=True))
    out: dict[int, int] = {}
    for at in iterations(grid, sizes):
        names = sizes | at
        if condition and not eval(condition, {}, names):
            continue
        i, k = eval(row, {}, names), eval(step, {}, names)
        if k == 0:
            out[i] = 0
        elif i not in out:
            return None
        out[i] = (out[i] * 3 + int(given[i, k]) + 2**31) % 2**32 - 2**31
    return [out.get(i, 100) for i in range(sizes["n"])]


def judge(program: tuple[str, str, str, str]) -> bool:
    """Whether the program is accepted; then it computes what Python does, and begins all of its elements."""
    function = reduction(*program)
    try:
        kernel = tw.compile(function, schedule="as written")
    except tw.Error as error:
        assert error.code == CODE, str(error)
        return False
    for size in SIZES:
        n, m, l = size
        given, out = np.arange(1, n * m + 1, dtype="int32").reshape(n, m), np.full(n, 100, "int32")
        kernel(given, out, np.zeros(l, "int32"))
        want = expected(program, size, given)
        assert want is not None, function.script()
        np.testing.assert_array_equal(out, want, err_msg=function.script())
    return True


def fits(program: tuple[str, str, str, str]) -> bool:
    """Whether the init comes first at all sizes."""
    return all(expected(program, size, np.ones(size[:2], "int32")) is not None for size in SIZES)


@pytest.mark.parametrize(
    "program",
    [
        ("n * m", "(f // m + 2) % n", "f % m", ""),  # rows in an order that is no product of loops
        ("n * m * l", "f // (m * l)", "f % (m * l) // l", "f % l < 1"),  # a digit that only the condition takes
        ("n * m * l", "f // l // m", "f // l % m", "f % l == l - 1"),
        ("n * m * 2", "f // (m * 2)", "f % (m * 2) // 2", "f % 2 != 0"),
        ("n * m * l", "f // m % n", "f % m", "f // m // n < 3"),  # all rows again and again
        ("n * m * (l // 2 + 1)", "f // (m * (l // 2 + 1))", "f % (m * (l // 2 + 1)) // (l // 2 + 1)", ""),
        ("(n * m + 7) // 8, 8", "((f0 * 8 + f1) // m + 1) % n", "(f0 * 8 + f1) % m", "f0 * 8 + f1 < n * m"),
        ("n * m, l", "(f0 // m + 1) % n", "f0 % m", "f1 < 2"),
    ],
)
def test_digits_begin(program: tuple[str, str, str, str]) -> None:
    assert judge(program)


@pytest.mark.parametrize(
    "program",
    [
        ("n * m", "(f // m + 2) % n", "f % m", "f % m != 0"),
        ("n * m", "(f // m + 2) % n", "(f + 1) % m", ""),
        ("n * m", "(f // m + 2) % n", "m - 1 - f % m", ""),
        ("n * m * l", "f // (m * l)", "f % (m * l) // l", "f % (m * l) > 0 and f % l < 1"),
        ("n * m * l", "f // (m * l)", "f % (m * l) // l", "f % l < f % (m * l) // l"),
        ("n * m * l", "f // (m * l)", "f % (m * l) // l", "f > 0"),
        ("n * m", "f % n", "f // n % m", "f >= n"),
        ("8, (n * m + 7) // 8", "((f1 * 8 + f0) // m + 1) % n", "(f1 * 8 + f0) % m", "f1 * 8 + f0 < n * m"),
        ("(n * m + 7) // 8, 8", "((f0 * 8 + f1) // m + 1) % n", "(f0 * 8 + f1) % m", "f1 > 0 and f0 * 8 + f1 < n * m"),
    ],
)
def test_digits_that_skip_the_first_step(program: tuple[str, str, str, str]) -> None:
    assert not fits(program) and not judge(program)


@pytest.mark.parametrize("part", range(4))
def test_random_digits(part: int) -> None:
    """Whatever is accepted begins every element; few of those that begin are refused."""
    accepted = refused = unproved = 0
    for seed in seeds(part, 40):
        rng = random.Random(seed)
        whole = rng.choice(["f", "(f0 * 4 + f1)", "(f0 * l + f1)"])
        order = rng.sample(["n", "m", rng.choice(["l", "2"])], 3)
        total = " * ".join(order)
        grid = {
            "f": total,
            "(f0 * 4 + f1)": f"({total} + 3) // 4, 4",
            "(f0 * l + f1)": f"({total} + l - 1) // l, l",
        }[whole]
        digits = {}
        for at, size in enumerate(order):
            inner = " * ".join(order[at + 1 :])
            outer = f"{whole} // ({inner})" if inner else whole
            digits[size] = f"{outer} % {size}" if at else outer
        row = digits["n"] if rng.random() < 0.6 else f"({digits['n']} + {rng.randint(1, 3)}) % n"
        third = digits["l"] if "l" in digits else digits["2"]
        step = (
            digits["m"] if rng.random() < 0.85 else rng.choice(["m - 1 - " + digits["m"], f"({digits['m']} + 1) % m"])
        )
        terms = [f"{whole} < {total}"] if whole != "f" else []
        if rng.random() < 0.6:
            a, b = rng.choice([third, digits["m"], row, whole]), rng.choice([third, digits["n"], "1", "2"])
            terms.append(f"{a} {rng.choice(['<', '<=', '!=', '>=', '=='])} {b}")
        program = (grid, row, step, " and ".join(terms))
        good = fits(program)
        if judge(program):
            accepted += 1
        else:
            refused += not good
            unproved += good
    assert accepted > 12 and refused > 3 and unproved <= accepted // 5, (accepted, refused, unproved)
