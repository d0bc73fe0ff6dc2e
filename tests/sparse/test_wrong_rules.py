"""Rules, structures and elements that are given wrongly: each refusal says what was given, and what to give."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from tilewright.errors import ArgumentTypeError
from tilewright.sparse import (
    FormatRewriteRule,
    compressed,
    convert_structure,
    decompose_format,
    dense,
    formats,
    template_rules,
)

from .test_decompose import spmm

M, N = 12, 18
AXES = (dense("i", M), compressed("j"))


def refused(code: str, text: str, make: Any, kind: Any = tw.ArgumentError) -> None:
    with pytest.raises(kind, match=text) as caught:
        make()
    assert caught.value.code == code and caught.value.hint


def test_rules_that_are_none() -> None:
    rule = FormatRewriteRule("rows", AXES, lambda z: (z.row, z.column))
    wrong: list[tuple[Any, str]] = [("csr", "rules is 'csr'"), (rule, "rules is the rule 'rows'"), ([1], "type int")]
    for rules, text in wrong:
        refused("sparse/rules", text, lambda: decompose_format(spmm, "A", rules), ArgumentTypeError)  # noqa: B023
        refused("sparse/rules", text, lambda: convert_structure(rules, (M, N), ([0], [0])))  # noqa: B023
    both = [*formats.csr(M, N), *formats.ell(M, N + 1, 3)]
    refused("sparse/rules", r"for the shape \(12, 18\), and rule 'ell'", lambda: decompose_format(spmm, "A", both))


def test_programs_and_lists_that_are_none() -> None:
    module = tw.Schedule(spmm).mod
    sparse = tw.sparse
    calls: list[tuple[str, Any]] = [
        ("sparse/decompose", lambda: decompose_format(module, "A", formats.csr(M, N))),
        ("sparse/specialize", lambda: sparse.specialize_buffer(module, "q", lambda i: (i,))),
        ("sparse/preprocess", lambda: sparse.extract_preprocess(module)),
        ("sparse/preprocess", lambda: sparse.remove_unused_arguments(module)),
    ]
    for code, call in calls:
        refused(code, "the program is of type Module", call, ArgumentTypeError)
    refused("sparse/decompose", "there is no rule", lambda: decompose_format(spmm, "A", []))
    number: Any = 3
    for convert in (sparse.prepare_spmv, sparse.conversions):
        refused("sparse/matrix", "a is of type int", lambda: convert(number), ArgumentTypeError)  # noqa: B023
    refused("sparse/shape", "the shape is 3", lambda: formats.relational(number, 1))
    refused("arguments/number", r"csf of \(\)", lambda: formats.csf(), ArgumentTypeError)
    refused("arguments/number", r"csf of \(\(3, 4\),\)", lambda: formats.csf((3, 4)), ArgumentTypeError)  # type: ignore[arg-type]


def test_parts_of_rules_that_are_none() -> None:
    number: Any = 3
    keys = lambda z: (z.row, z.column)  # noqa: E731
    refused("sparse/rules", r"axes of rule 'x' are \(\)", lambda: FormatRewriteRule("x", (), keys), ArgumentTypeError)
    refused("sparse/rules", "has 3 where", lambda: FormatRewriteRule("x", AXES, number), ArgumentTypeError)
    refused("sparse/rules", "has 3 where", lambda: FormatRewriteRule("x", AXES, keys, (number,)), ArgumentTypeError)
    refused("sparse/rules", "the name of an axis is 3", lambda: dense(number, 3), ArgumentTypeError)
    below = (dense("i", M), dense("j", N, parent="k"))
    refused("sparse/rules", "stands below 'k', which is no axis", lambda: FormatRewriteRule("x", below, keys))


def test_axes_that_are_none() -> None:
    keys = lambda z: (z.row, z.column)  # noqa: E731
    strings: Any = ("i", "j")
    refused("sparse/rules", "axes of rule 'x' are", lambda: FormatRewriteRule("x", strings, keys), ArgumentTypeError)
    twice = (dense("i", M), compressed("i"))
    refused("sparse/rules", "two axes of rule 'x' are called 'i'", lambda: FormatRewriteRule("x", twice, keys))


@pytest.mark.parametrize("index_map", [lambda z: (z.row / 2, z.column), lambda z: (z.row, (z.place, z.column * 0.5))])
def test_keys_that_are_no_integers(index_map: Any) -> None:
    rule = FormatRewriteRule("halves", AXES, index_map)
    refused("sparse/index-map", "of float", lambda: decompose_format(spmm, "A", [rule]))
    refused("sparse/index-map", "of float", lambda: convert_structure([rule], (M, N), ([0, 1], [3, 4])))


def test_a_shape_that_is_none() -> None:
    shape: Any = (3.0, 3)
    refused("arguments/number", r"shape\[0\] is 3.0", lambda: convert_structure(formats.csr(3, 3), shape, ([0], [0])))


@pytest.mark.parametrize("axes", [(dense("i", M), dense("j", N)), AXES])
def test_both_nonzeros_of_a_position_are_named(axes: Any) -> None:
    """In the order of rows, and by keys."""
    rule = FormatRewriteRule("halves", axes, lambda z: (z.row, z.column // 2))
    text = r"gives the position of nonzero 1 at \(2, 6\) to another one, too: 2 at \(2, 7\)"
    refused("sparse/bijection", text, lambda: convert_structure([rule], (M, N), ([1, 2, 2], [6, 6, 7])))


def test_arguments_of_other_structures_and_elements() -> None:
    matrix = scipy.sparse.random(M, N, 0.3, "csr", dtype="float32", random_state=0)
    matrix.sort_indices()
    rules = formats.hyb(M, N, 1, 2)
    program = decompose_format(spmm, "A", rules)
    converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
    stored = converted.convert_values(matrix.data)
    other = convert_structure(formats.csr(M, N), matrix.shape, matrix.tocoo().coords)
    values = other.convert_values(matrix.data)
    none: Any = matrix
    refused(
        "sparse/rules", "by the rules csr, and the program is over hyb_0_0", lambda: program.arguments(other, values)
    )
    refused("sparse/arrays", "converted is of type", lambda: program.arguments(none, stored), ArgumentTypeError)
    refused("sparse/values", "2 arrays of elements for 3 parts", lambda: program.arguments(converted, stored[:-1]))
    refused("sparse/values", "elements for rule 'hyb_0_0'", lambda: program.arguments(converted, stored[::-1]))
    one: Any = matrix.data
    refused("sparse/values", "stored is one array of shape", lambda: program.arguments(converted, one))
    narrow = formats.ell(M, N, 9)
    wide = convert_structure(formats.ell(M, N, 12), matrix.shape, matrix.tocoo().coords)
    refused(
        "sparse/rules",
        "have other axes than those of the program",
        lambda: decompose_format(spmm, "A", narrow).arguments(wide, wide.convert_values(matrix.data)),
    )


def test_operands_of_products() -> None:
    a = tw.sparse.from_scipy(scipy.sparse.eye(4, format="csr", dtype="float32"))
    b, out = np.ones((4, 2), "float32"), np.ones((4, 4), "float32")[:, ::2]
    listed: Any = [[1.0, 2.0]]
    refused("sparse/arrays", "b is of type list", lambda: tw.sparse.spmm(a, listed), ArgumentTypeError)
    refused("sparse/arrays", "out is of type list", lambda: tw.sparse.spmm(a, b, listed), ArgumentTypeError)
    with pytest.raises(tw.ArgumentError, match="out is not contiguous") as caught:
        tw.sparse.spmm(a, b, out)
    assert "copy the result into your array" in str(caught.value.hint) and "ascontiguousarray" not in str(caught.value)


@pytest.mark.parametrize("kind, line", [("csr", "row"), ("csc", "column"), ("bsr", "row of blocks")])
def test_faults_name_rows_or_columns(kind: Any, line: str) -> None:
    arrays = np.array([1, 0], "int32"), np.array([0, 2, 2], "int32")
    block = (1, 1)
    refused(
        "sparse/sorted",
        f"behind 1 in the same {line}$|behind 1 in the same {line}\n",
        lambda: tw.sparse.Structure(kind, (2, 2), *arrays, None, block, True),
    )
    twice = np.array([1, 1], "int32")
    refused(
        "sparse/duplicate",
        f"the same {line} holds earlier",
        lambda: tw.sparse.Structure(kind, (2, 2), twice, arrays[1], None, block, None, True),
    )


def by_rows(z: Any) -> Any:
    return z.row, z.column


def test_rules_that_are_pickled() -> None:
    """Shipped rules as the calls that make them, own ones by the names of their functions."""
    own = FormatRewriteRule("own", AXES, by_rows, shape=(M, N))
    named = formats.csr(M, N)[0].renamed("rows")
    template = template_rules("hyb", [M, N, 2, 1], 6)
    matrix = scipy.sparse.random(M, N, 0.3, "csr", dtype="float32", random_state=0)
    matrix.sort_indices()
    for rules in ([own], [named], formats.hyb(M, N, 2, 1), formats.sell(M, N, rows=4, window=8), template):
        again = pickle.loads(pickle.dumps(rules))
        assert [(rule.name, rule.axes, rule.disjoint_rows, rule.shape) for rule in again] == [
            (rule.name, rule.axes, rule.disjoint_rows, rule.shape) for rule in rules
        ]
        sources = [
            [part.source.tolist() for part in convert_structure(given, matrix.shape, matrix.tocoo().coords).parts]
            for given in (rules, again)
        ]
        assert sources[0] == sources[1]
    assert copy.deepcopy(own) is own and copy.copy(named) is named


def test_rules_that_cannot_be_pickled() -> None:
    own = FormatRewriteRule("own", AXES, lambda z: (z.row, z.column))
    refused("sparse/rules", "because its index map cannot", lambda: pickle.dumps(own), ArgumentTypeError)
    part = FormatRewriteRule("own", AXES, by_rows).when(lambda z: z.row > 2)
    refused("sparse/rules", "because its condition cannot", lambda: pickle.dumps(part), ArgumentTypeError)


def test_facts_that_nonzeros_do_not_have() -> None:
    rule = FormatRewriteRule("own", AXES, lambda z: (z.rows, z.column))
    refused("sparse/index-map", "nonzeros have no 'rows'", lambda: convert_structure([rule], (M, N), ([0], [1])))
    refused("sparse/index-map", "did you mean row", lambda: decompose_format(spmm, "A", [rule]))
    rank = FormatRewriteRule("own", AXES, lambda z: (z.rank(lambda r: r.size), z.column))
    refused("sparse/index-map", "rows have no 'size'", lambda: convert_structure([rank], (M, N), ([0], [1])))


def test_rules_of_one_name() -> None:
    """Later ones get a number, in programs and in structures."""
    rules = [rule.when(lambda z, odd=odd: z.row % 2 == odd) for odd in (0, 1) for rule in formats.csr(M, N)]
    rules.append(formats.ell(M, N, 1)[0].renamed("csr_1").when(lambda z: z.row < 0))
    program = decompose_format(spmm, "A", rules)
    converted = convert_structure(rules, (M, N), ([0, 1, 1], [2, 3, 4]))
    names = ["csr", "csr_2", "csr_1"]
    assert [rule.name for rule in program.rules] == [part.rule.name for part in converted.parts] == names
    program.arguments(converted, converted.convert_values(np.ones(3, "float32")))


def test_parameters_that_are_lists() -> None:
    sch = tw.Schedule(spmm)
    nested: Any = [(2, 3, 4), 3]
    with pytest.raises(tw.ArgumentError, match=r"whose element 0 is \(2, 3, 4\)"):
        sch.decompose_format("A", "relational", nested)
