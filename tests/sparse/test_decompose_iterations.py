"""Iterations that write a tensor and other buffers, and several tensors over one structure, in each format."""

import textwrap
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import function

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T
from tilewright.sparse import convert_structure, decompose_format, formats

from .test_decompose import FORMATS, K, M, N, mask_of


def over_csr(y_axes: str, iteration: str, body: str) -> Any:
    """A function of one iteration over a tensor A in CSR and a buffer Y."""
    return function(
        f"""
def f(a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(n)
    K_axis = T.sp.dense_fixed({K})
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, ({y_axes}), "float32")
    with T.sp.iteration({iteration}:
{textwrap.indent(textwrap.dedent(body), " " * 8)}"""
    )


SCALED_SUMS = over_csr(
    "I,",
    '[I, J], "SR", "sums") as [i, j]',
    """
    with T.init():
        Y[i] = T.float32(3)
    A[i, j] = A[i, j] * T.float32(2)
    Y[i] += A[i, j]
    """,
)
COUNTED = over_csr(
    "I, J_all",
    '[I, J, K_axis], "SSR", "counted") as [i, j, k]',
    """
    with T.init():
        A[i, j] = T.float32(1)
        Y[i, j] = T.float32(5)
    A[i, j] += T.Cast("float32", k)
    Y[i, j] += T.float32(2)
    """,
)
BEGUN = over_csr(
    "I, J_all",
    '[I, J, K_axis], "SSR", "begun") as [i, j, k]',
    """
    with T.init():
        Y[i, j] = A[i, j]
    Y[i, j] += A[i, j] * T.Cast("float32", k)
    """,
)


def structure_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    return indptr, np.nonzero(mask)[1].astype("int32")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_what_an_iteration_adds_up_beside_the_tensor_that_it_writes_is_initialized_once(name: str, target: str) -> None:
    mask, rules = mask_of("random"), FORMATS[name]
    values = np.random.default_rng(0).integers(-4, 5, int(mask.sum())).astype("float32")
    matrix = np.zeros((M, N), "float32")
    matrix[mask] = values
    converted = convert_structure(rules, mask.shape, np.nonzero(mask))
    at_nonzeros = np.where(mask, np.float32(5 + 2 * K), np.float32(0))
    begun_at = matrix * (1 + K * (K - 1) // 2)
    wanted: list[tuple[Any, np.ndarray, np.ndarray]] = [
        (SCALED_SUMS, 2 * values, 3 + 2 * matrix.sum(1)),
        (COUNTED, np.full_like(values, 1 + K * (K - 1) // 2), at_nonzeros),
        (BEGUN, values, begun_at),
    ]
    for func, stored_values, y_values in wanted:
        program = decompose_format(func, "A", rules)
        stored, y = converted.convert_values(values), np.zeros_like(y_values, "float32")
        tw.compile(program.function, target)(
            y, *structure_of(mask), M, N, len(values), *program.arguments(converted, stored)
        )
        np.testing.assert_array_equal(converted.values_back(stored), stored_values)
        np.testing.assert_array_equal(y, y_values)


def test_inits_that_cannot_be_divided_are_refused() -> None:
    both = "if i > 2:\n                A[i, j] = T.float32(1.0)\n                Y[i, j] = T.float32(5.0)"
    separate = "A[i, j] = T.float32(1.0)\n            Y[i, j] = T.float32(5.0)"
    for change in (both, separate.replace("T.float32(5.0)", "A[i, j]")):
        text = COUNTED.script()
        assert separate in text
        func = script.from_source(text.replace(separate, change))
        with pytest.raises(tw.ArgumentError, match="and other buffers along with it") as caught:
            decompose_format(func, "A", formats.csr(M, N))
        assert caught.value.code == "sparse/decompose" and caught.value.hint


@T.prim_func
def weighted(
    a: T.handle,
    c: T.handle,
    x: T.handle,
    y: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int32,
    n: T.int32,
    k: T.int32,
    nnz: T.int32,
):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float64")
    C = T.sp.match_buffer(c, (I, J), "float32")
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_all, K), "float32")
    with T.sp.iteration([I, J, K], "SSR", "weighted") as [i, j, s]:
        with T.init():
            C[i, j] = T.float32(0)
        C[i, j] += T.Cast("float32", A[i, j]) * X[i, s] * Y[j, s]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_tensors_over_one_structure_are_decomposed_together(name: str, target: str) -> None:
    mask, rules, random = mask_of("random"), FORMATS[name], np.random.default_rng(1)
    x, y = (random.integers(-4, 5, (extent, K)).astype("float32") for extent in (M, N))
    y[0] = np.nan  # padding points there, and no nonzero does
    values = random.integers(-4, 5, int(mask.sum())).astype("float64")
    converted = convert_structure(rules, mask.shape, np.nonzero(mask))
    program = decompose_format(weighted, ["A", "C"], rules)
    assert [tensor.name for tensor in program.tensors] == ["A", "C"]
    results = converted.convert_values(np.full(len(values), np.nan, "float32"))
    more = program.arguments(converted, converted.convert_values(values), results)
    tw.compile(program.function, target)(x, y, *structure_of(mask), M, N, K, len(values), *more)
    np.testing.assert_array_equal(converted.values_back(results), values * (x @ y.T)[mask])


def test_tensors_that_cannot_be_decomposed_together() -> None:
    def refused(text: str, names: Any) -> None:
        with pytest.raises(tw.ArgumentError, match=text) as caught:
            decompose_format(weighted, names, formats.csr(M, N))
        assert caught.value.code == "sparse/decompose" and caught.value.hint

    refused("no sparse buffer 'Z'", ["A", "Z"])
    refused("no tensor is named", [])
    text = weighted.script()
    axis = "    J_2 = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))"
    other = f'{axis}\n    C = T.sp.match_buffer(c, (I, J_2), "float32")'
    line = next(line for line in text.splitlines() if " C = " in line)
    func = script.from_source(text.replace(line, other))
    with pytest.raises(tw.ArgumentError, match="'A' and 'C' have different axes"):
        decompose_format(func, ["A", "C"], formats.csr(M, N))
    program = decompose_format(weighted, ("A", "C"), formats.csr(M, N))
    converted = convert_structure(program.rules, (M, N), ([1, 2], [3, 4]))
    with pytest.raises(tw.ArgumentError, match="elements of 1 tensors, and the program is over formats of A, C"):
        program.arguments(converted, converted.convert_values(np.ones(2)))


@T.prim_func
def bound(a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "bound") as [i, j]:
        with T.init():
            start: T.float32 = T.Cast("float32", i)
            Y[i] = start
        doubled: T.float32 = A[i, j] * T.float32(2)
        for q in range(2):
            if q < 1 or j > 3:
                Y[i] += doubled


@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_variables_and_loops_of_a_body_are_those_of_each_rule(target: str) -> None:
    mask = mask_of("random")
    values = np.random.default_rng(0).integers(-4, 5, int(mask.sum())).astype("float32")
    matrix = np.zeros((M, N), "float32")
    matrix[mask] = values
    even, odd = (lambda z: z.column % 2 == 0), (lambda z: z.column % 2 == 1)
    rules = [formats.bsr(M, N, 3)[0].when(even), formats.ell(M, N, N)[0].when(odd)]
    program = decompose_format(bound, "A", rules)
    tw.ir.assert_structural_equal(script.from_source(program.function.script()), program.function)
    converted, y = convert_structure(rules, mask.shape, np.nonzero(mask)), np.full(M, np.nan, "float32")
    more = program.arguments(converted, converted.convert_values(values))
    tw.compile(program.function, target)(y, *structure_of(mask), M, N, len(values), *more)
    times = np.where(np.arange(N) > 3, 4, 2).astype("float32")
    np.testing.assert_array_equal(y, np.arange(M) + matrix @ times)
