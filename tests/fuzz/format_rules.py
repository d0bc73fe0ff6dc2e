"""Random format rules, and the products of programs over such formats.

Its keys are two numbers that determine row and column, perhaps as quotients and remainders: no two nonzeros share a
position. The numbers are coordinates, places, ranks of rows, or affine in row and column with any signs. An axis may
store row or column, which several nonzeros at one of its positions may differ in: such a rule is refused.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tilewright as tw
from fuzz.judge import Finding
from tilewright import script
from tilewright.sparse import (
    FormatRewriteRule,
    Nonzeros,
    compressed,
    conversion,
    convert_structure,
    decompose_format,
    dense,
    formats,
    varied,
)

#: from a nonzero to a key, the number of keys, and how it is written
Key = tuple[Callable[[Any], Any], int, str]

SPMV = script.from_source("""@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32,
         nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    X = T.sp.match_buffer(x, (J_all,), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = T.float64(0)
        Y[i] += A[i, j] * X[j]
""")
#: the same product by a let and a loop
SPMV_IN_STEPS = script.from_source(
    SPMV.script().replace(
        "Y[i] = Y[i] + A[i, j] * X[j]",
        """w: T.float64 = A[i, j] * T.float64(0.5)
        for q in range(2):
            if q < 1 or A[i, j] != T.float64(0):
                Y[i] = Y[i] + w * X[j]""",
    )
)


def affine(random: np.random.Generator, m: int, n: int, least: int, of_column: bool) -> Key:
    """Row times one number plus column times another plus a third, 0 or more; it determines the column where that has
    a factor other than 0 and the row is known, and the other way round."""
    needed, free = int(random.choice([-2, -1, 1, 1, 1, 2])), int(random.integers(-2, 3))
    r, c = (free, needed) if of_column else (needed, free)
    corners = [r * i + c * j for i in (0, max(m - 1, 0)) for j in (least, max(n - 1, least))]
    offset = int(random.integers(0, 3)) - min(corners)
    extent = max(corners) + offset + 1
    return (lambda z: z.row * r + z.column * c + offset), extent, f"{r} * row + {c} * column + {offset}"


def split(random: np.random.Generator, key: Key) -> list[Key]:
    """The key itself, or its quotient and its remainder."""
    whole, extent, text = key
    if random.random() < 0.5:
        return [key]
    b = int(random.integers(1, 5))
    quotient: Key = ((lambda z: whole(z) // b), -(-extent // b), f"({text}) // {b}")
    return [quotient, ((lambda z: whole(z) % b), b, f"({text}) % {b}")]


def random_rule(random: np.random.Generator, m: int, n: int, least: int = 0) -> FormatRewriteRule:
    """Return a rule that takes all nonzeros of a matrix (m, n), along axes of any kind and in any order; its name says
    what its keys are.

    Args:
        random: where choices come from.
        m: rows.
        n: columns.
        least: no nonzero has a lower column, so that keys may be the column less this number.
    """
    row: Key = ((lambda z: z.row), m, "row")
    column: Key = ((lambda z: z.column), n, "column")
    chosen = random.choice(["row", "rank", "affine"], p=[0.5, 0.25, 0.25])
    if chosen == "rank":
        window, descending = int(random.integers(1, m + 1)), bool(random.integers(2))

        def rank(z: Any) -> Any:
            return z.rank(lambda r: -r.length if descending else r.length % 3, window)

        row = rank, m, f"rank {descending} in {window}"
    elif chosen == "affine":
        row = affine(random, m, n, least, of_column=False)
    if chosen != "affine":  # what is affine in the row determines it only with the column
        other = random.choice(["column", "place", "affine"], p=[0.25, 0.25, 0.5])
        if other == "place":
            column = (lambda z: z.place), n, "place"
        elif other == "affine":
            column = affine(random, m, n, least, of_column=True)
    keys = [*split(random, row), *split(random, column)]
    keys = [keys[at] for at in random.permutation(len(keys))]
    kinds = [str(random.choice(["dense", "varied", "compressed"], p=[0.3, 0.2, 0.5])) for _ in keys]
    axes = tuple(
        dense(f"A{d}", extent) if kind == "dense" else {"varied": varied, "compressed": compressed}[kind](f"A{d}")
        for d, (kind, (_, extent, _)) in enumerate(zip(kinds, keys, strict=True))
    )
    stored = random.choice(["", "row", "column"], p=[0.6, 0.2, 0.2])
    at = int(random.integers(len(keys))) if random.random() < 0.3 else len(keys) - 1

    def index_map(z: Any) -> list[Any]:
        return [(key(z), getattr(z, stored)) if stored and d == at else key(z) for d, (key, _, _) in enumerate(keys)]

    described = ", ".join(f"{kind} {text}" for kind, (_, _, text) in zip(kinds, keys, strict=True))
    index_map.__doc__ = f"{described}{f', the axis {at} stores the {stored}' if stored else ''}"
    return FormatRewriteRule("random", axes, index_map)


def stores_several(rule: FormatRewriteRule, shape: tuple[int, int], coordinates: tuple[np.ndarray, ...]) -> bool:
    """Return whether nonzeros share a position of an axis of a rule that stores a coordinate they differ in."""
    nonzeros = rule.taken(Nonzeros(shape, coordinates, np.arange(len(coordinates[0])), shape[0]))
    entries, rows = rule.index_map(nonzeros), nonzeros.row
    known: dict[tuple[int, ...], int] = {}
    for d, entry in enumerate(entries):
        if not isinstance(entry, tuple):
            continue
        keys = [np.broadcast_to(e[0] if isinstance(e, tuple) else e, rows.shape) for e in entries[: d + 1]]
        for nonzero, coordinate in enumerate(np.broadcast_to(entry[1], rows.shape)):
            path = tuple(int(key[nonzero]) for key in keys)
            if known.setdefault((d, *path), int(coordinate)) != coordinate:
                return True
    return False


def _composed(random: np.random.Generator, rule: FormatRewriteRule, m: int, n: int) -> list[FormatRewriteRule]:
    """Return the rule for one part of the nonzeros, and a format that holds any of them for the others."""
    least, part = int(random.integers(0, 3)), int(random.integers(2))
    conditions: list[Callable[[Any], Any]] = [
        lambda z: (z.column + z.row) % 2 == part,
        lambda z: z.length > least,
        lambda z: z.place < least,
    ]
    chosen = conditions[int(random.integers(len(conditions)))]
    given: list[list[FormatRewriteRule]] = [
        *(formats.csr(m, n), formats.csc(m, n), formats.coo(m, n), formats.bsr(m, n, 2)),
        *(formats.sell(m, n, 2), formats.sr_bcrs(m, n, 2, 2)),
    ]
    (other,) = given[int(random.integers(len(given)))]
    return [rule.when(chosen), other.when(lambda z: np.logical_not(chosen(z)))]


@contextlib.contextmanager
def _kernels_for(small_matrices: bool) -> Iterator[None]:
    """Evaluate formulas by kernels, which only large matrices are worth, for small ones, too."""
    before = conversion.MANY_NONZEROS
    conversion.MANY_NONZEROS = 0 if small_matrices else before
    try:
        yield
    finally:
        conversion.MANY_NONZEROS = before


def judge(number: int, counts: Counter[str]) -> None:
    """Compare a product over a random format, interpreted and compiled, with NumPy. Values are small integers, so that
    sums are exact in any order.

    Raises:
        Finding: they differ, or something fails that must not.
    """
    random = np.random.default_rng(number)
    m, n = (int(random.integers(1, 9)) for _ in range(2))
    least = int(random.integers(0, 2))
    mask = random.random((m, n)) < random.choice([0.2, 0.5, 1])
    mask[:, :least] = False
    rule = random_rule(random, m, n, least)
    matrix = np.where(mask, random.integers(1, 5, (m, n)), 0).astype("float64")
    rows, columns = (along.astype("int32") for along in np.nonzero(mask))
    indptr = np.searchsorted(rows, np.arange(m + 1)).astype("int32")
    x = random.integers(-4, 5, n).astype("float64")
    what = f"sparse: the format {rule.index_map.__doc__} of a matrix {m} x {n} of number {number}"
    func, rules = (SPMV_IN_STEPS, _composed(random, rule, m, n)) if number % 3 == 0 else (SPMV, [rule])
    rule = rules[0]
    try:
        program = decompose_format(func, "A", rules)
    except tw.ArgumentError as error:
        if "stands below several dense axes" not in str(error):
            raise Finding(what, str(error)) from error
        counts["formats refused"] += 1
        return
    try:
        with _kernels_for(number % 2 == 0):
            converted = convert_structure(rules, mask.shape, (rows, columns))
    except tw.ArgumentError as error:
        if error.code != "sparse/bijection" or not stores_several(rule, (m, n), (rows, columns)):
            raise Finding(what, str(error)) from error
        counts["formats that are no bijections"] += 1
        return
    if stores_several(rule, (m, n), (rows, columns)):
        raise Finding(what, "one position has several coordinates, and the rule is accepted")
    try:
        more = program.arguments(converted, converted.convert_values(matrix[rows, columns]))
        for target in ("interpreter", "native"):
            y = np.full(m, np.nan)
            tw.compile(program.function, target)(x, y, indptr, columns, m, n, len(columns), *more)
            if not np.array_equal(y, matrix @ x):
                raise Finding(what, f"{target}: {y}\ninstead of\n{matrix @ x}\n{program.function.script()}")
    except tw.Error as error:
        raise Finding(what, f"{error}\n{program.function.script()}") from error
    counts["formats"] += 1
