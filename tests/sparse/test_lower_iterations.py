"""Sparse programs lowered to blocks over arrays: compiled and interpreted, against NumPy."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import CASES, MASKED, STRUCTURES, function

import tilewright as tw
from tilewright import _core, ir

CASE_NAMES = sorted(CASES)


def lowered(func: ir.PrimFunc) -> Any:
    return _core.lower_sparse_iterations(_core.as_module(func))


def run(kernel: Any, args: list[Any], output: int) -> np.ndarray[Any, Any]:
    """Call with copies; what the output holds then."""
    args = copy.deepcopy(args)
    kernel(*args)
    return args[output]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", CASE_NAMES)
def test_the_interpreter_runs_both_stages_alike(name: str, structure: str) -> None:
    case = CASES[name]
    func = function(case.text)
    args, output, want = case.make(np.random.default_rng(1), structure)
    for program in (func, lowered(func)):
        got = run(tw.compile(program, target="interpreter"), args, output)
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", CASE_NAMES)
def test_compiled_programs_equal_numpy(name: str) -> None:
    case = CASES[name]
    func = function(case.text)
    for kernel in (tw.compile(func), tw.compile(func, schedule="as written"), tw.compile(func, check_bounds=True)):
        for threads in (1, 2):
            kernel.threads = threads
            for number, structure in enumerate(STRUCTURES):
                args, output, want = case.make(np.random.default_rng(number), structure)
                np.testing.assert_allclose(run(kernel, args, output), want, rtol=1e-12, err_msg=structure)


#: reads beyond the ends of axes that have a parent
BEYOND = """
def f(a: T.handle, r: T.handle, y: T.handle, z: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32,
      nnz: T.int32, s: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    L = T.sp.dense_varied(I, (n, nnz), p)
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64", default_value=2.5)
    R = T.sp.match_buffer(r, (I, L), "float64", default_value=-1.5)
    Y = T.sp.match_buffer(y, (I, J_all), "float64")
    Z = T.sp.match_buffer(z, (I, J_all), "float64")
    with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
        Y[i, j] = A[i, j + s]
        Z[i, j] = R[i, j + s]
"""


#: a search for coordinates that are read from a table, which is within bounds only on a condition
LOOKUP = """
def f(a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    J_all = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I, J_all), "float64")
    with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
        Y[i, j] = 0.0
"""
#: statements, and what they add to an element of row i > 0, given row X[i - 1] of A, or None where there is no such row
CONDITIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "nested": (
        "if i > 0:\n    if X[i - 1] < m:\n        Y[i, j] += A[X[i - 1], j]",
        lambda row: 0 if row is None else row,
    ),
    "and": (
        "if i > 0 and X[i - 1] < m and A[X[i - 1], j] > 0.0:\n    Y[i, j] = 1.0",
        lambda row: 0 if row is None else row > 0,
    ),
    "or": (
        "if not (i == 0 or X[i - 1] >= m or A[X[i - 1], j] == 0.0):\n    Y[i, j] = 1.0",
        lambda row: 0 if row is None else row > 0,
    ),
    "else": (
        "if i == 0:\n    Y[i, j] = 0.0\nelse:\n    if X[i - 1] >= m:\n        Y[i, j] = 4.0\n    else:\n"
        "        Y[i, j] = A[X[i - 1], j]",
        lambda row: 4 if row is None else row,
    ),
    "value": (
        "Y[i, j] = T.if_then_else(i > 0, T.if_then_else(X[i - 1] < m, A[X[i - 1], j], 4.0), 0.0)",
        lambda row: 4 if row is None else row,
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_guard_searches_from_the_outside_in(name: str) -> None:
    generator = np.random.default_rng(0)
    chosen = generator.random((7, 6)) < 0.4
    rows, columns = chosen.nonzero()
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))]).astype("int32")
    values, x = np.arange(len(rows)) + 1.0, generator.integers(0, 9, 7).astype("int32")
    statements, value_of = CONDITIONS[name]
    dense, want = np.zeros((7, 6)), np.zeros((7, 6))
    dense[chosen] = values
    for i in range(1, 7):
        want[i] = value_of(dense[x[i - 1]] if x[i - 1] < 7 else None)
    func = function(LOOKUP + "".join(f"        {line}\n" for line in statements.splitlines()))
    for kernel in (
        tw.compile(func, target="interpreter"),
        tw.compile(lowered(func), target="interpreter"),
        tw.compile(func),
        tw.compile(func, check_bounds=True),
    ):
        y = np.full((7, 6), -1.0)
        kernel(values, x, y, indptr, columns.astype("int32"), 7, 6, len(rows))
        np.testing.assert_array_equal(y, want)


#: parts of a program after LOOKUP's declarations, whose searches depend on what stands around them: statements, X, and
#: the expected value of row i of Y for i of 7, from the rows of A
AROUND: dict[str, tuple[str, list[int], Callable[[Any, int], Any]]] = {
    "let before a store": (
        """
        v: T.int32 = X[0]
        X[0] = 5
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = A[v, j]
        """,
        [2, 0, 0, 0, 0, 0, 0],
        lambda a, i: a[2],
    ),
    "condition before a store": (
        """
        if X[0] > 0:
            X[0] = 0
            with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
                Y[i, j] = A[2, j]
        """,
        [2, 0, 0, 0, 0, 0, 0],
        lambda a, i: a[2],
    ),
    "loop without iterations": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            for t in range(T.if_then_else(i > 0, T.if_then_else(X[i - 1] < m, 1, 0), 0)):
                Y[i, j] = A[X[i - 1], j]
        """,
        [1, 9, 2, 9, 0, 9, 9],
        lambda a, i: a[[1, 2, 0][i // 2]] if i % 2 else 0,
    ),
    "rows without nonzeros": (
        """
        with T.sp.iteration([I, J_all], "SS", "zero") as [i, j]:
            Y[i, j] = 0.0
        with T.sp.iteration([I, J], "SS", "read") as [i, j]:
            Y[i, j] = A[X[i], 0]
        """,
        [1, 2, 0, -9, 4, 5, 2],
        lambda a, i: np.where(a[i] > 0, a[[1, 2, 0, 0, 4, 5, 2][i], 0], 0),
    ),
    "while": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            while i > 0 and X[i - 1] < m and Y[i, j] < 0.5:
                Y[i, j] = 1.0 + A[X[i - 1], j]
        """,
        [1, 9, 2, 9, 0, 9, 9],
        lambda a, i: 1 + a[[1, 2, 0][i // 2]] if i % 2 else 0,
    ),
    "start of a loop": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            for u in range(i, i + 3):
                Y[i, j] = Y[i, j] + A[X[u % 7], j]
        """,
        [1, 4, 0, 5, 1, 2, 0],
        lambda a, i: sum(a[[1, 4, 0, 5, 1, 2, 0][u % 7]] for u in range(i, i + 3)),
    ),
    "extent by a let": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            e: T.int32 = T.min(m, 3)
            for u in range(e):
                Y[i, j] = Y[i, j] + A[X[u], j]
        """,
        [1, 4, 0, 5, 1, 2, 0],
        lambda a, i: a[1] + a[4] + a[0],
    ),
    "extent by a let outside": (
        """
        e: T.int32 = T.min(m, 3)
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            for u in range(e):
                Y[i, j] = Y[i, j] + A[X[u], j]
        """,
        [1, 4, 0, 5, 1, 2, 0],
        lambda a, i: a[1] + a[4] + a[0],
    ),
    "extent by a loop outside": (
        """
        with T.sp.iteration([I, J_all], "SS", "zero") as [i, j]:
            Y[i, j] = 0.0
        for t in range(4):
            with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
                for u in range(t):
                    Y[i, j] = Y[i, j] + A[X[u], j]
        """,
        [1, 4, 0, 5, 1, 2, 0],
        lambda a, i: 3 * a[1] + 2 * a[4] + a[0],
    ),
    "extent that the function writes": (
        """
        X[0] = 4
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            for u in range(X[0]):
                Y[i, j] = Y[i, j] + A[u, j]
        """,
        [0, 0, 0, 0, 0, 0, 0],
        lambda a, i: a[:4].sum(0),
    ),
    "extent that is searched for": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            for u in range(T.Cast("int32", A[2, i % n]) % 8):
                Y[i, j] = Y[i, j] + A[u, j]
        """,
        [0, 0, 0, 0, 0, 0, 0],
        lambda a, i: a[: int(a[2, i % 6]) % 8].sum(0),
    ),
    "coordinates that the iteration computes": (
        """
        with T.sp.iteration([I], "S", "row") as [i]:
            v: T.int32 = X[i]
            X[i] = (v + 1) % m
            with T.sp.iteration([J_all], "S", "read") as [j]:
                Y[i, j] = A[X[i], j] + 100.0 * A[v, j]
        """,
        [1, 4, 0, 5, 6, 2, 0],
        lambda a, i: a[([1, 4, 0, 5, 6, 2, 0][i] + 1) % 7] + 100 * a[[1, 4, 0, 5, 6, 2, 0][i]],
    ),
    "condition that does not hold any more": (
        """
        with T.sp.iteration([I, J_all], "SS", "read") as [i, j]:
            Y[i, j] = 0.0
            if Y[i, j] < 1.0:
                Y[i, j] = 5.0
                Y[i, j] = Y[i, j] + A[X[i], j]
                if A[X[i], j] > 0.0 and Y[i, j] > 5.0:
                    Y[i, j] = -A[X[i], j]
        """,
        [1, 4, 0, 5, 6, 2, 0],
        lambda a, i: np.where((row := a[[1, 4, 0, 5, 6, 2, 0][i]]) > 0, -row, 5),
    ),
}


def looked_up(statements: str) -> Any:
    head, _, _ = LOOKUP.partition("    with T.sp.iteration")
    return function(head + textwrap.indent(textwrap.dedent(statements).strip("\n"), "    ") + "\n")


@pytest.mark.parametrize("name", AROUND)
def test_searches_see_what_stands_around_the_access(name: str) -> None:
    generator = np.random.default_rng(0)
    chosen = generator.random((7, 6)) < 0.4
    chosen[3] = False
    rows, columns = chosen.nonzero()
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))]).astype("int32")
    values, dense, want = np.arange(len(rows)) + 1.0, np.zeros((7, 6)), np.zeros((7, 6))
    dense[chosen] = values
    statements, x, row_of = AROUND[name]
    for i in range(7):
        want[i] = row_of(dense, i)
    func = looked_up(statements)
    for kernel in (
        tw.compile(func, target="interpreter"),
        tw.compile(lowered(func), target="interpreter"),
        tw.compile(func, check_bounds=True),
    ):
        y = np.full((7, 6), -1.0)
        kernel(values, np.array(x, "int32"), y, indptr, columns.astype("int32"), 7, 6, len(rows))
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("shift", [-2, 0, 3])
def test_coordinates_beyond_the_length_of_an_axis_are_absent(shift: int) -> None:
    chosen = np.random.default_rng(4).random((7, 6)) < 0.4
    rows, columns = chosen.nonzero()
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(1))]).astype("int32")
    values = np.arange(len(rows)) + 1.0
    want, ragged = np.full((7, 6), 2.5), np.full((7, 6), -1.5)
    for row in range(7):
        of_row = values[indptr[row] : indptr[row + 1]]
        stored = dict(zip(columns[rows == row], of_row, strict=True))
        want[row] = [stored.get(j + shift, 2.5) for j in range(6)]
        ragged[row] = [of_row[j + shift] if 0 <= j + shift < len(of_row) else -1.5 for j in range(6)]
    func = function(BEYOND)
    args = [values, values, np.full((7, 6), np.nan), np.full((7, 6), np.nan), indptr, columns.astype("int32")]
    args += [7, 6, len(values), shift]
    kernels = [tw.compile(func, target="interpreter"), tw.compile(lowered(func), target="interpreter")]
    for kernel in (*kernels, tw.compile(func), tw.compile(func, check_bounds=True)):
        given = copy.deepcopy(args)
        kernel(*given)
        np.testing.assert_array_equal(given[2], want)
        np.testing.assert_array_equal(given[3], ragged)


def test_a_store_beyond_the_length_of_an_axis_is_reported() -> None:
    text = BEYOND.replace("Y[i, j] = A[i, j + s]", "A[i, j + s] = T.float64(1)").replace("Z[i, j] =", "A[i, j] =")
    args = [
        np.ones(2),
        np.ones(2),
        np.ones((2, 1)),
        np.ones((2, 1)),
        *(np.array(x, "int32") for x in ([0, 1, 2], [0, 0])),
    ]
    with pytest.raises(tw.Error, match="is stored to coordinates that 'A' does not hold") as caught:
        tw.compile(function(text), target="interpreter")(*args, 2, 1, 2, 1)
    assert caught.value.code == "interpret/absent"


@pytest.mark.parametrize("kind", ["fixed", "varied"])
@pytest.mark.parametrize("types", [("int32", "int64"), ("int64", "int32")])
def test_fused_axes_of_different_types(kind: str, types: tuple[str, str]) -> None:
    """The element at the variables of the iteration is stored, though one of them counts in another type."""
    structure = "(n, 2), q" if kind == "fixed" else "(n, 6), (p, q)"
    func = function(f"""
def f(a: T.handle, q: T.handle, {"" if kind == "fixed" else "p: T.handle, "}m: T.int32, n: T.int32):
    I = T.sp.dense_fixed(m, "{types[0]}")
    J = T.sp.compressed_{kind}(I, {structure}, "{types[1]}")
    A = T.sp.match_buffer(a, (I, J), "float64")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "store") as [i, j]:
        A[i, j] = T.Cast("float64", i * 10 + j)
""")
    want = [[1, 3], [10, 12], [20, 21]]
    for target in ("interpreter", "native"):
        a = np.zeros((3, 2)) if kind == "fixed" else np.zeros(6)
        arrays = [np.array([1, 3, 0, 2, 0, 1], types[1]), np.arange(0, 7, 2, types[1])]
        tw.compile(func, target)(a, *arrays[: 1 if kind == "fixed" else 2], 3, 4)
        np.testing.assert_array_equal(a.reshape(3, 2), want)


FREE_STORE = """
def f(a: T.handle, y: T.Buffer((4, 5), "float64"), p: T.handle, q: T.handle, nnz: T.int32):
    I = T.sp.dense_fixed(4)
    J = T.sp.compressed_varied(I, (5, nnz), (p, q))
    J_all = T.sp.dense_fixed(5)
    A = T.sp.match_buffer(a, (I, J), "float64")
    with T.sp.iteration([I, J_all], "SS", "store") as [i, j]:
        A[i, j] = y[i, j]
"""


def test_a_store_that_may_miss_is_refused() -> None:
    for use in (tw.compile, tw.lower, lambda func: tw.Schedule(func).lower_sparse_iter()):
        with pytest.raises(tw.ScriptError, match="coordinates of 'A' that it may not hold") as caught:
            use(function(FREE_STORE))
        assert caught.value.code == "sparse/store" and "^" in str(caught.value)


def test_searches_outside_of_iterations_are_refused() -> None:
    text = FREE_STORE.replace(
        '    with T.sp.iteration([I, J_all], "SS", "store") as [i, j]:\n        A[i, j] = y[i, j]',
        "    for i, j in T.grid(4, 5):\n        y[i, j] = A[i, j]",
    )
    with pytest.raises(tw.ScriptError, match="outside of all iterations") as caught:
        tw.compile(function(text))
    assert caught.value.code == "sparse/search"


FUSED_BY_WRITTEN = """
def f(a: T.handle, y: T.handle, p: T.handle, m: T.int32, nnz: T.int32):
    P = T.match_buffer(p, (m + 1,), "int32")
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (5, nnz), P)
    A = T.sp.match_buffer(a, (I, J), "float64")
    Y = T.sp.match_buffer(y, (I,), "float64")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scale") as [i, j]:
        A[i, j] = A[i, j] * Y[i]
    P[0] = 0
"""


def test_fused_axes_over_a_structure_that_is_written_are_refused() -> None:
    with pytest.raises(tw.ScriptError, match="is fused, and the function writes its indptr") as caught:
        tw.compile(function(FUSED_BY_WRITTEN))
    assert caught.value.code == "sparse/search"
    tw.compile(function(FUSED_BY_WRITTEN.replace("T.sp.fuse(I, J)", "I, J")))


def searches(func: Any) -> int:
    return str(lowered(func).script()).count("while ")


def test_equal_searches_are_done_once_and_ahead_of_other_loops() -> None:
    text = MASKED.replace("SORTED", "True")
    assert searches(function(text)) == 1  # B[i, j] stands there twice
    other = text.replace("+ B[i, j]", "+ B[i, T.max(j - 1, 0)]")
    assert searches(function(other)) == 2
    deeper = text.replace('[I, J], "SS"', '[I, J, K], "SSR"').replace("as [i, j]", "as [i, j, k]")
    deeper = deeper.replace("    A = T.sp", "    K = T.sp.dense_fixed(8)\n    A = T.sp", 1)
    module = lowered(function(deeper))
    assert "L_position = T.alloc_buffer((za,)" in module.script()  # an element for each (i, j), none for k


def test_what_runs_ahead_of_an_init_is_apart() -> None:
    """An init that hits one element for all rows runs before all of them."""
    text = """
def f(a: T.handle, y: T.Buffer((1,), "float64"), p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float64")
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            y[0] = T.float64(0)
        y[0] = y[0] + A[i, j]
"""
    values, indptr = np.arange(6.0), np.array([0, 2, 2, 6], "int32")
    for target in ("interpreter", "native"):
        y = np.array([np.nan])
        tw.compile(function(text), target=target)(values, y, indptr, np.array([0, 1, 0, 1, 2, 3], "int32"), 3, 4, 6)
        assert y[0] == 15


def test_an_indptr_of_fused_axes_covers_all_positions() -> None:
    func = function(CASES["sddmm"].text)
    args, _, _ = CASES["sddmm"].make(np.random.default_rng(0), "full")
    args[3][0] = 1
    with pytest.raises(tw.Error, match="does not run from 0 to nnz") as caught:
        tw.compile(func, target="interpreter")(*args)
    assert caught.value.code == "interpret/structure"


def test_indices_of_64_bits() -> None:
    text = CASES["masked"].text.replace("(p, q)", '(p, q), "int64"').replace("(r, s)", '(r, s), "int64"')
    args, output, want = CASES["masked"].make(np.random.default_rng(3), "random")
    args = [a.astype("int64") if isinstance(a, np.ndarray) and a.dtype == "int32" else a for a in args]
    for target in ("interpreter", "native"):
        np.testing.assert_array_equal(run(tw.compile(function(text), target=target), args, output), want)


def test_a_function_without_axes_stays() -> None:
    func = function("\ndef f(x: T.Buffer((4,))):\n    for i in range(4):\n        x[i] = x[i] + T.float32(1)\n")
    module = _core.as_module(func)
    assert _core.lower_sparse_iterations(module).same_as(module)


def test_a_sparse_program_is_tuned_and_found_in_a_database(tmp_path: Path) -> None:
    func, database = function(CASES["spmm"].text), tmp_path / "records.db"
    args, output, want = CASES["spmm"].make(np.random.default_rng(0), "dense row")
    a, b, _, p, q, *_ = args
    sizes = dict(zip(("m", "n", "nnz"), args[5:], strict=True))
    tw.tune(func, trials=2, database=database, inputs={"A": a, "B": b, "p_data": p, "q_data": q}, sizes=sizes)
    kernel = tw.compile(func, database=database)
    assert kernel.schedule == "recorded"
    np.testing.assert_array_equal(run(kernel, args, output), want)


@pytest.mark.parametrize(
    ("name", "inits"), [("sddmm", 0), ("sddmm of 3 columns", 1), ("sddmm of 3 columns by rows", 1), ("spmm", 0)]
)
def test_a_reduction_that_surely_has_steps_has_the_init_of_its_block(name: str, inits: int) -> None:
    assert str(lowered(function(CASES[name].text)).script()).count("with T.init():") == inits


def test_blocks_of_an_iteration_have_different_names() -> None:
    text = CASES["softmax"].text.replace("B[i, j] = T.exp", "B[i, j] = 1.0 * T.exp") + "        M[i] = T.float64(0)\n"
    sch = tw.Schedule(function(text))
    sch.lower_sparse_iter()
    for name in ("softmax0", "max_init", "max0", "softmax_step0", "sum0", "quotient0", "softmax_step1"):
        sch.get_block(name)


@pytest.mark.parametrize("name", ["sddmm of 3 columns by rows", "masked", "softmax"])
def test_rows_that_write_their_own_elements_run_in_parallel(name: str) -> None:
    sch = tw.Schedule(function(CASES[name].text))
    sch.lower_sparse_iter()
    block = {"masked": "masked0", "softmax": "softmax0"}.get(name, "sddmm0")
    sch.parallel(sch.get_loops(block)[0])
    sch.verify()


TWICE = """
def f(a: T.handle, s: T.handle, p: T.handle, q: T.handle, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    S = T.sp.match_buffer(s, (I, J), "float32")
    with T.sp.iteration([I], "S", "row") as [i]:
        with T.sp.iteration([J], "S", "first") as [j]:
            S[i, j] = A[i, j] + T.float32(1)
        with T.sp.iteration([J], "S", "then") as [j]:
            S[i, j] = S[i, j] * A[i, j]
"""


def test_rows_that_are_written_twice_are_apart() -> None:
    """The union of two regions that are the same is that region, so rows run in parallel."""
    sch = tw.Schedule(function(TWICE))
    sch.lower_sparse_iter()
    row = sch.get(sch.get_block("row0"))
    assert [str(region) for region in row.writes] == ["S[p_data[vi]:p_data[vi + 1]]"]
    assert "A[p_data[vi]:p_data[vi + 1]]" in [str(region) for region in row.reads]
    sch.parallel(sch.get_loops("row0")[0])
    a, s = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    offsets, columns = np.array([0, 2, 2, 5], "int32"), np.array([0, 2, 0, 1, 2], "int32")
    tw.compile(sch)(a, s, offsets, columns, 3, 5)
    np.testing.assert_array_equal(s, (a + 1) * a)


def test_what_is_declared_of_a_sparse_buffer_is_declared_of_its_array() -> None:
    text = """
def f(a: T.handle, y: T.handle, p: T.handle, r: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, nnz), p)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float64")
    R = T.sp.match_buffer(r, (I, J), "int32")
    Y = T.sp.match_buffer(y, (N,), "float64")
    T.assume_buffer_domain(R, [0, n])
    with T.sp.iteration([I, J], "RR", "it") as [i, j]:
        Y[R[i, j]] = Y[R[i, j]] + A[i, j]
"""
    func = function(text)
    script = lowered(func).script()
    assert "T.assume_buffer_domain(R, [0, n])" in script and "alloc_buffer" not in script
    indptr, columns = np.array([0, 2, 3], "int32"), np.array([1, 3, 3], "int32")
    want = np.array([0, 1, 0, 5.0])
    for kernel in (tw.compile(func, "interpreter"), tw.compile(lowered(func), "interpreter"), tw.compile(func)):
        y = np.zeros(4)
        kernel(np.array([1, 2, 3.0]), y, indptr, columns, 2, 4, 3)
        np.testing.assert_array_equal(y, want)
    for program in (func, lowered(func)):
        with pytest.raises(tw.Error, match=r"the values of 'R' are in \[0, n\)"):
            tw.compile(program, "interpreter")(np.ones(3), np.zeros(4), indptr, columns + 1, 2, 4, 3)


SHARED = """
def f(x: T.handle, y: T.handle, z: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, k: T.int32,
      nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), sorted=False)
    L = T.sp.compressed_varied(I, (k, nnz), (p, q))
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    X = T.sp.match_buffer(x, (N,), "float64")
    Y = T.sp.match_buffer(y, (K,), "float64")
    Z = T.sp.match_buffer(z, (I,), "float64")
    with T.sp.iteration([I], "S", "row") as [i]:
        Z[i] = T.float64(0)
        with T.sp.iteration([J], "R", "long") as [j]:
            Z[i] = Z[i] + X[j]
        with T.sp.iteration([L], "R", "short") as [l]:
            Z[i] = Z[i] + Y[l]
"""


@pytest.mark.parametrize(("n", "k"), [(9, 5), (5, 9)])
def test_axes_that_share_arrays_declare_what_each_of_them_says(n: int, k: int) -> None:
    kernel = tw.compile(function(SHARED))
    x, y, z, p = np.arange(n, dtype="float64"), np.ones(k), np.empty(2), np.array([0, 2, 3], "int32")
    good, large, unsorted = (np.array(q, "int32") for q in ([1, 4, 0], [1, 4, 7], [4, 1, 0]))
    kernel.validate(x, y, z, p, good, 2, n, k, 3)
    kernel(x, y, z, p, good, 2, n, k, 3)
    np.testing.assert_array_equal(z, [5 + 2, 0 + 1])
    for q, message in ((large, r"q_data\[2\] is not in"), (unsorted, r"q_data\[1\] does not exceed")):
        with pytest.raises(tw.ArgumentError, match=message):
            kernel.validate(x, y, z, p, q, 2, n, k, 3)
        with pytest.raises(tw.Error):
            tw.compile(lowered(function(SHARED)), "interpreter")(x, y, z, p, q, 2, n, k, 3)


#: the same row, by another expression than the variable; and rows of a chain of two unsorted axes
REPEATED = """
def f(a: T.handle, b: T.handle, y: T.handle, z: T.handle, q: T.handle, r: T.handle, m: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (4, 3), q, sorted=False)
    K = T.sp.compressed_fixed(J, (2, 2), r, sorted=False)
    A = T.sp.match_buffer(a, (I, J), "float64", default_value=9)
    B = T.sp.match_buffer(b, (I, J, K), "float64", default_value=9)
    Y = T.sp.match_buffer(y, (I, J), "float64")
    Z = T.sp.match_buffer(z, (I, J, K), "float64")
    with T.sp.iteration([I, J], "SS", "rows") as [i, j]:
        Y[i, j] = A[T.min(i, 0), j]
    with T.sp.iteration([I, J, K], "SSS", "below") as [i, j, k]:
        Z[i, j, k] = B[T.min(i, 0), j, k] + B[T.max(i, 1), j, 1]
"""


def test_a_variable_over_coordinates_that_repeat_is_the_one_at_its_position_below_the_same_row() -> None:
    q, r = [[2, 2, 1], [2, 3, 1]], [[0, 0], [1, 0], [1, 1], [1, 0], [0, 1], [0, 0]]
    a, b = np.arange(6.0).reshape(2, 3), np.arange(10.0, 22).reshape(2, 3, 2)

    def element(row: int, place: int | None, k: int, own: int | None) -> float:
        """Of B, where `own` is the position of the variable if the row is its own; else the first that is equal."""
        if place is None:
            return 9
        below = r[3 * row + place]
        at = own if own is not None else below.index(k) if k in below else None
        return 9 if at is None else float(b[row, place, at])

    want_y, want_z = np.empty((2, 3)), np.empty((2, 3, 2))
    for i in range(2):
        for j, c in enumerate(q[i]):
            places = [j if i == row else q[row].index(c) if c in q[row] else None for row in range(2)]
            want_y[i, j] = 9 if places[0] is None else a[0, places[0]]
            for k, below in enumerate(r[3 * i + j]):
                first = element(0, places[0], below, k if i == 0 else None)
                want_z[i, j, k] = first + element(1, places[1], 1, None)
    arrays = [np.array(q, "int32").reshape(-1), np.array(r, "int32").reshape(-1)]
    func = function(REPEATED)
    for program, target in ((func, "interpreter"), (lowered(func), "interpreter"), (func, "native")):
        y, z = np.empty((2, 3)), np.empty((2, 3, 2))
        tw.compile(program, target=target)(a, b, y, z, *arrays, 2)
        np.testing.assert_array_equal(y, want_y)
        np.testing.assert_array_equal(z, want_z)


@pytest.mark.parametrize(
    ("indptr", "message"),
    [
        ([1, 2, 4], r"p_data\[0\] is not 0, with which offsets begin"),
        ([0, 2, 3], r"p_data\[2\] is not .*, with which offsets end"),
        ([2, 2, 2], r"p_data\[0\] is not 0"),
        ([0, 3, 2], r"p_data\[2\] is less than"),
    ],
)
def test_offsets_of_fused_axes_are_validated_to_cover_all_positions(indptr: list[int], message: str) -> None:
    """A position without a row would have any number for its row."""
    func = function(CASES["sddmm"].text)
    kernel = tw.compile(func)
    a, x, y, q = np.zeros(4), np.ones((2, 3)), np.ones((5, 3)), np.array([0, 1, 2, 3], "int32")
    kernel.validate(a, x, y, np.array([0, 2, 4], "int32"), q, 2, 5, 3, 4)
    arguments = [a, x, y, np.array(indptr, "int32"), q, 2, 5, 3, 4]
    with pytest.raises(tw.ArgumentError, match=message):
        kernel.validate(*arguments)
    with pytest.raises(tw.Error, match="p_data"):
        tw.compile(lowered(func), "interpreter")(*arguments)
    by_rows = tw.compile(function(CASES["sddmm by rows"].text))
    if indptr != [0, 3, 2]:
        by_rows.validate(*arguments)
