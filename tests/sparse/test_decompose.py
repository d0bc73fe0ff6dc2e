"""Sparse programs over formats, interpreted and compiled, against dense products: each format alone, and pairs."""

import itertools
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from fuzz.format_rules import random_rule, stores_several
from tilewright import script
from tilewright.script import tir as T
from tilewright.sparse import FormatRewriteRule, compressed, convert_structure, decompose_format, dense, formats, varied

M, N, K = 12, 18, 3


@T.prim_func
def spmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
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
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_all, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "spmm") as [i, j, s]:
        with T.init():
            C[i, s] = T.float32(0)
        C[i, s] += A[i, j] * B[j, s]


@T.prim_func
def sddmm(
    a: T.handle,
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
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_all, K), "float32")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, s]:
        with T.init():
            A[i, j] = T.float32(0)
        A[i, j] += X[i, s] * Y[j, s]


def mask_of(what: str) -> np.ndarray:
    random = np.random.default_rng(len(what))
    mask = random.random((M, N)) < 0.2
    if what == "empty":
        mask[:] = False
    if what == "one dense row":
        mask[:] = False
        mask[M // 2] = True
    mask[:, 0] = False
    return mask


FORMATS = {
    "csr": formats.csr(M, N),
    "csc": formats.csc(M, N),
    "dcsr": formats.dcsr(M, N),
    "coo": formats.coo(M, N),
    "csf": formats.csf(M, N),
    "bsr": formats.bsr(M, N, 3),
    "dbsr": formats.dbsr(M, N, 2, 3),
    "ell": formats.ell(M, N, N),
    "padded_csr": formats.padded_csr(M, N, 4),
    "hyb": formats.hyb(M, N, 2, 1),
    "sell": formats.sell(M, N, 4),
    "ragged": formats.ragged(M, N),
    "banded": formats.banded(M, N, M, N),
    "strided": formats.strided(M, N, 1),
    "sr_bcrs": formats.sr_bcrs(M, N, 4, 2),
}


def operands(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of small integers, and a dense operand with a NaN where padding points: no nonzero is in column 0."""
    random = np.random.default_rng(1)
    values = random.integers(-4, 5, int(mask.sum())).astype("float32")
    b = random.integers(-4, 5, (N, K)).astype("float32")
    b[0] = [np.nan, np.inf, -np.inf]
    dense = np.zeros((M, N), "float32")
    dense[mask] = values
    return values, b, dense


def run_spmm(
    rules: list[FormatRewriteRule], mask: np.ndarray, values: np.ndarray, b: np.ndarray, target: str = "interpreter"
) -> np.ndarray:
    program = decompose_format(spmm, "A", rules)
    converted = convert_structure(rules, mask.shape, tuple(along.astype("int32") for along in np.nonzero(mask)))
    c = np.full((M, K), np.nan, "float32")
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    indices = np.nonzero(mask)[1].astype("int32")
    more: list[Any] = program.arguments(converted, converted.convert_values(values))
    kernel = tw.compile(program.function, target)
    kernel(b, c, indptr, indices, M, N, K, len(values), *more)
    return c


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("what", ["random", "empty", "one dense row"])
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_product(name: str, what: str, target: str) -> None:
    mask = mask_of(what)
    values, b, dense = operands(mask)
    np.testing.assert_array_equal(run_spmm(FORMATS[name], mask, values, b, target), dense[:, 1:] @ b[1:])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_sampled_product(name: str, target: str) -> None:
    """A sparse output is written in the format, and converted back."""
    mask = mask_of("random")
    rules = FORMATS[name]
    program = decompose_format(sddmm, "A", rules)
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    converted = convert_structure(rules, mask.shape, coordinates)
    random = np.random.default_rng(1)
    x, y = (random.integers(-4, 5, (extent, K)).astype("float32") for extent in (M, N))
    y[0] = np.nan
    stored = [np.zeros(len(part.source), "float32") for part in converted.parts]
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    kernel = tw.compile(program.function, target)
    more = program.arguments(converted, stored)
    kernel(x, y, indptr, coordinates[1], M, N, K, len(coordinates[0]), *more)
    np.testing.assert_array_equal(converted.values_back(stored), (x @ y.T)[mask])


def parity(odd: int) -> Any:
    return lambda z: z.column % 2 == odd


PAIRS = [*itertools.combinations(FORMATS, 2)]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pairs(pair: tuple[str, str]) -> None:
    """Columns of even numbers in one format, odd ones in the other: both update all rows, which are set once."""
    mask = mask_of("random")
    values, b, dense = operands(mask)
    rules = []
    for odd, name in enumerate(pair):
        for rule in FORMATS[name]:
            half = FormatRewriteRule(
                f"{rule.name}_{odd}",
                rule.axes,
                rule.index_map,
                (lambda z, odd=odd: z.column % 2 == odd, *rule.conditions),
            )
            rules.append(half)
    for target in ("interpreter", "native") if PAIRS.index(pair) % 3 == 0 else ("interpreter",):
        np.testing.assert_array_equal(run_spmm(rules, mask, values, b, target), dense[:, 1:] @ b[1:])


def test_random_rules() -> None:
    random = np.random.default_rng(9)
    done = 0
    while done < 60:
        rules = [random_rule(random, M, N, least=1)]  # no nonzero is in column 0
        mask = mask_of("random")
        values, b, dense = operands(mask)
        try:
            c = run_spmm(rules, mask, values, b)
        except tw.ArgumentError as error:
            if error.code == "sparse/bijection":
                assert stores_several(rules[0], mask.shape, np.nonzero(mask))
            else:
                assert error.code == "sparse/decompose" and "stands below several dense axes" in str(error)
            continue
        np.testing.assert_array_equal(c, dense[:, 1:] @ b[1:])
        done += 1


#: keys of a compressed axis below the row from which the column is computed
AFFINE = {
    "column - 1": lambda z: z.column - 1,
    "column + 1": lambda z: z.column + 1,
    "column + row": lambda z: z.column + z.row,
    "column - row": lambda z: z.column - z.row + M,
    "column + 2 row": lambda z: z.column + 2 * z.row,
    "N - column": lambda z: N - z.column,
    "2 column": lambda z: 2 * z.column,
}


@pytest.mark.parametrize("name", AFFINE)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_compressed_keys_that_are_sums(name: str, target: str) -> None:
    """The coordinate follows from the key that is stored, not from its position."""
    mask = mask_of("random")
    values, b, dense_matrix = operands(mask)
    for first in (dense("I", M), compressed("I")):
        rule = FormatRewriteRule("sums", (first, compressed("J")), lambda z: (z.row, AFFINE[name](z)))
        np.testing.assert_array_equal(run_spmm([rule], mask, values, b, target), dense_matrix[:, 1:] @ b[1:])


@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_a_row_that_is_a_sum_with_quotients_of_the_column(target: str) -> None:
    mask = mask_of("random")
    values, b, dense_matrix = operands(mask)
    axes = (compressed("S"), compressed("Q"), compressed("R"))
    rule = FormatRewriteRule("sums", axes, lambda z: (z.row - z.column + N, z.column // 5, z.column % 5))
    np.testing.assert_array_equal(run_spmm([rule], mask, values, b, target), dense_matrix[:, 1:] @ b[1:])


def test_diagonals_in_blocks_of_rows() -> None:
    """The rule of docs/sparse-products.md."""
    mask = mask_of("random")
    values, b, dense_matrix = operands(mask)
    axes = (dense("block", M // 4), compressed("diagonal"), dense("row", 4))
    rule = FormatRewriteRule("diagonals", axes, lambda z: (z.row // 4, z.column - z.row + M, z.row % 4))
    for target in ("interpreter", "native"):
        np.testing.assert_array_equal(run_spmm([rule], mask, values, b, target), dense_matrix[:, 1:] @ b[1:])


def test_divisors_that_are_no_numbers() -> None:
    """The quotient by the length of the row says nothing of the column."""
    mask = mask_of("random")
    values, b, dense_matrix = operands(mask)
    by_length = lambda z: (z.row, z.column // z.length, z.column % z.length)  # noqa: E731
    rule = FormatRewriteRule("lengths", (dense("I", M), varied("Q"), varied("R")), by_length)
    np.testing.assert_array_equal(run_spmm([rule], mask, values, b), dense_matrix[:, 1:] @ b[1:])


def test_index_maps_with_another_number_of_keys() -> None:
    short = FormatRewriteRule("short", (dense("I", M), compressed("J")), lambda z: (z.row,))
    with pytest.raises(tw.ArgumentError, match="gives 1 keys for 2 axes") as caught:
        decompose_format(spmm, "A", [short])
    assert caught.value.code == "sparse/index-map"


def test_what_is_read_as_text() -> None:
    program = decompose_format(spmm, "A", formats.bsr(M, N, 3)).function
    text = program.script()
    assert text.count("T.sp.iteration") == 2 and '"spmm_init"' in text and '"spmm_bsr"' in text
    tw.ir.assert_structural_equal(script.from_source(text), program)


def test_programs_of_64_bit_coordinates_are_read_as_they_are_printed() -> None:
    text = (
        spmm.script()
        .replace("dense_fixed(m)", 'dense_fixed(m, "int64")')
        .replace("(indptr, indices))", '(indptr, indices), "int64")')
    )
    func = script.from_source(text)
    assert text.count("int64") == 2 and func.axes[1].idtype == "int64"
    for rules in FORMATS.values():
        program = decompose_format(func, "A", rules).function
        tw.ir.assert_structural_equal(script.from_source(program.script()), program)


def test_programs_that_cannot_be_decomposed() -> None:
    def refused(text: str, func: Any, name: str = "A") -> None:
        with pytest.raises(tw.ArgumentError, match=text) as caught:
            decompose_format(func, name, formats.csr(M, N))
        assert caught.value.code == "sparse/decompose" and caught.value.hint

    refused("no sparse buffer 'Z'", spmm, "Z")
    refused("no sparse buffer 'C'", spmm, "C")
    rows = script.from_source(sddmm.script().replace("A[i, j] + X", "A[i, 0] + X"))
    refused("at other coordinates", rows)
    transposed = script.from_source(spmm.script().replace("A[i, j]", "A[j, i]"))
    refused("at other coordinates", transposed)


def test_coordinates_of_another_type_than_axes() -> None:
    """NumPy gives int64; axes are int32 unless they say otherwise."""
    mask = mask_of("random")
    values, b, dense_matrix = operands(mask)
    for rules in (formats.csf(M, N), formats.csr(M, N), formats.bsr(M, N, 3)):
        program = decompose_format(spmm, "A", rules)
        converted = convert_structure(rules, mask.shape, np.nonzero(mask))
        c = np.full((M, K), np.nan, "float32")
        indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
        more = program.arguments(converted, converted.convert_values(values))
        columns = np.nonzero(mask)[1].astype("int32")
        tw.compile(program.function, "interpreter")(b, c, indptr, columns, M, N, K, len(values), *more)
        np.testing.assert_array_equal(c, dense_matrix[:, 1:] @ b[1:])
