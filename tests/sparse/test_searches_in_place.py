"""Searches that cannot run ahead of an iteration: they run in front of the statement with the access."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from tests.sparse_programs import function

import tilewright as tw
from tilewright import _core

DECLARED = """
def f(a: T.handle, y: T.handle, p: T.handle, q: T.handle, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), SORTED)
    K = T.sp.compressed_varied(I, (n, nnz), (p, q), SORTED)
    A = T.sp.match_buffer(a, (I, J), "int32")
    Y = T.sp.match_buffer(y, (I,), "int32")
"""
#: the triangles at each node of a graph, and the common neighbors of each edge
TRIANGLES = {
    "attached": """
    with T.sp.iteration([I, J, T.sp.attach(J, J)], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        Y[i] += A[i, j] * A[j, k] * A[i, k]
""",
    "attached, on a condition": """
    with T.sp.iteration([I, J, T.sp.attach(J, J)], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        if j != k and A[i, k] > 0:
            Y[i] = Y[i] + A[i, j] * A[j, k]
""",
    "nested": """
    with T.sp.iteration([I], "S", "row") as [i]:
        with T.sp.iteration([J], "R", "neighbors") as [j]:
            with T.init():
                Y[i] = 0
            with T.sp.iteration([T.sp.attach(J, J)], "R", "count") as [k]:
                Y[i] = Y[i] + A[i, j] * A[j, k] * A[i, k]
""",
    "pairs of one row": """
    with T.sp.iteration([I, J, K], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        Y[i] += A[j, k]
""",
    "a let": """
    with T.sp.iteration([I, J, K], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        found: T.int32 = A[j, k]
        if found > 0:
            Y[i] = Y[i] + found
""",
    "a loop to a value that is searched for": """
    with T.sp.iteration([I, J, K], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        for step in range(A[j, k]):
            Y[i] = Y[i] + 1
""",
}


def graph(nodes: int, degree: int) -> Any:
    """A graph without loops, whose edges are symmetric."""
    ends = np.random.default_rng(0).integers(nodes, size=(2, nodes * degree // 2), dtype="int32")
    ends = ends[:, ends[0] != ends[1]]
    both = np.concatenate([ends, ends[::-1]], axis=1)
    matrix = scipy.sparse.csr_array((np.ones(both.shape[1], "int32"), both), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def counted(matrix: Any) -> np.ndarray[Any, Any]:
    return np.asarray(((matrix @ matrix) * matrix).sum(axis=1)).reshape(-1)


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("name", TRIANGLES)
def test_triangles(name: str, is_sorted: bool) -> None:
    func = function(DECLARED.replace("SORTED", f"sorted={is_sorted}") + TRIANGLES[name])
    sch = tw.Schedule(func)
    sch.lower_sparse_iter()
    matrix = graph(40, 4)
    if not is_sorted:
        for row in range(40):
            part = slice(*matrix.indptr[row : row + 2])
            matrix.indices[part] = matrix.indices[part][::-1].copy()
    for kernel in (
        tw.compile(func, target="interpreter"),
        tw.compile(sch, target="interpreter"),
        tw.compile(func),
        tw.compile(func, check_bounds=True),
        tw.compile(func, target="opencl"),
    ):
        y = np.full(40, -1, "int32")
        kernel(matrix.data, y, matrix.indptr, matrix.indices, 40, matrix.nnz)
        np.testing.assert_array_equal(y, counted(graph(40, 4)))


@pytest.mark.parametrize("name", ["attached", "pairs of one row"])
def test_rows_run_in_parallel(name: str) -> None:
    sch = tw.Schedule(function(DECLARED.replace("SORTED", "sorted=True") + TRIANGLES[name]))
    sch.lower_sparse_iter()
    rows = sch.get_loops("count0")[0]
    sch.parallel(rows)
    sch.balance(rows, "count0", "p_data")
    sch.verify()
    matrix = graph(3000, 6)
    y = np.empty(3000, "int32")
    tw.compile(sch)(matrix.data, y, matrix.indptr, matrix.indices, 3000, matrix.nnz)
    np.testing.assert_array_equal(y, counted(matrix))


def test_pairs_of_one_row_need_no_array_of_all_pairs() -> None:
    """Pairs of its 120,000 nonzeros would take 58 GB."""
    func = function(DECLARED.replace("SORTED", "sorted=True") + TRIANGLES["pairs of one row"])
    matrix = graph(20_000, 6)
    y = np.empty(20_000, "int32")
    tw.compile(func)(matrix.data, y, matrix.indptr, matrix.indices, 20_000, matrix.nnz)
    np.testing.assert_array_equal(y, counted(matrix))


def test_places_where_no_search_can_be_put() -> None:
    text = DECLARED.replace("SORTED", "sorted=True") + TRIANGLES["attached, on a condition"]
    for change, message in (
        (("if j != k and A[i, k] > 0:", "while Y[i] < A[i, k]:"), "in the condition of a loop"),
        (
            ("if j != k and A[i, k] > 0:\n            Y[i]", "for u in T.parallel(j):\n            Y[u]"),
            "in a loop that is not serial",
        ),
    ):
        changed = text.replace(*change).replace("+ A[i, j] * A[j, k]", "+ A[i, k]")
        assert change[1] in changed
        with pytest.raises(tw.ScriptError, match=message) as caught:
            _core.lower_sparse_iterations(_core.as_module(function(changed)))
        assert caught.value.code == "sparse/search" and "^" in str(caught.value) and caught.value.hint


def test_a_hoisted_search_does_not_read_a_position_that_is_found_in_place() -> None:
    """The second coordinate depends on a value that is searched for in front of the let."""
    func = function(
        DECLARED.replace("SORTED", "sorted=True")
        + """
    with T.sp.iteration([I, J, K], "SRR", "count") as [i, j, k]:
        with T.init():
            Y[i] = 0
        row: T.int32 = (A[j, k] + i) % n
        if A[row, k] > 0:
            Y[i] = Y[i] + A[i, row]
"""
    )
    matrix = graph(12, 6)
    dense = matrix.toarray()
    want = np.zeros(12, "int32")
    for i in range(12):
        for j in np.nonzero(dense[i])[0]:
            for k in np.nonzero(dense[i])[0]:
                row = (dense[j, k] + i) % 12
                want[i] += dense[i, row] if dense[row, k] > 0 else 0
    assert want.any()
    for kernel in (tw.compile(func, target="interpreter"), tw.compile(func), tw.compile(func, check_bounds=True)):
        y = np.full(12, -1, "int32")
        kernel(matrix.data, y, matrix.indptr, matrix.indices, 12, matrix.nnz)
        np.testing.assert_array_equal(y, want)
