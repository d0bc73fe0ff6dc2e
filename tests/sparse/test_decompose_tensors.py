"""Products of tensors of three dimensions over their formats, alone and in pairs, against NumPy.

Programs are interpreted, and compiled for one thread and two. Padding points to a NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.schedule.test_verify_formats import RELATIONS
from tests.sparse_programs import CSF, csf, function

import tilewright as tw
from tilewright import ir
from tilewright.sparse import FormatRewriteRule, convert_structure, decompose_format, formats

SHAPE = (3, 6, 8)
STRUCTURES = ("random", "empty", "dense plane")
FORMATS = {
    "csf": formats.csf(*SHAPE),
    "relational": formats.relational(SHAPE, 2),
    "relational of cut rows": formats.relational(SHAPE, 0),
}


def tensor_of(structure: str, dtype: str) -> np.ndarray[Any, Any]:
    """Small integers, so that sums are exact. No nonzero is in column 0."""
    random = np.random.default_rng(len(structure))
    mask = random.random(SHAPE) < (0 if structure == "empty" else 0.3)
    mask[1] |= structure == "dense plane"
    mask[:, :, 0] = False
    return np.where(mask, random.integers(1, 5, SHAPE), 0).astype(dtype)


def integers(*shape: int, dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def check(func: ir.PrimFunc, rules: list[FormatRewriteRule], calls: list[tuple[Any, list[Any], int, Any]]) -> None:
    """Compare calls: a tensor, the other arguments, the position of the result among them, and what it will be."""
    program = decompose_format(func, "A", rules)
    kernels = [tw.compile(program.function, target) for target in ("interpreter", "native -num-cores=2")]
    for tensor, arguments, output, want in calls:
        coordinates = tuple(along.astype("int32") for along in np.nonzero(tensor))
        converted = convert_structure(rules, SHAPE, coordinates)
        more = program.arguments(converted, converted.convert_values(tensor[coordinates]))
        for kernel, threads in ((kernels[0], 0), (kernels[1], 1), (kernels[1], 2)):
            if threads:
                kernel.threads = threads
            arguments[output] = np.full(want.shape, np.nan, want.dtype)
            kernel(*arguments, *more)
            np.testing.assert_array_equal(arguments[output], want)


def mttkrp(tensor: np.ndarray[Any, Any]) -> tuple[Any, list[Any], int, Any]:
    """A tensor times a matrix along each of two dimensions."""
    b, c = integers(SHAPE[1], 4, dtype="float64"), integers(SHAPE[2], 4, dtype="float64")
    want = np.einsum("ijk,js,ks->is", tensor, b, c)
    c[0] = [np.nan, np.inf, -np.inf, np.nan]
    _, p1, q1, p2, q2 = csf(tensor)
    return tensor, [b, c, want, p1, q1, p2, q2, *SHAPE, len(q1), len(q2), 4], 2, want


def relations(tensor: np.ndarray[Any, Any]) -> tuple[Any, list[Any], int, Any]:
    """A graph of several relations, each with weights of its own."""
    x, w = integers(SHAPE[2], 2, dtype="float32"), integers(SHAPE[0], 2, 3, dtype="float32")
    want = np.einsum("rij,jk,rkf->if", tensor, x, w)
    x[0] = [np.nan, np.inf]
    _, *structure = csf(tensor)
    return tensor, [x, w, want, *structure, len(structure[1]), len(structure[3])], 2, want


@pytest.mark.parametrize("name", FORMATS)
def test_tensors_times_two_matrices(name: str) -> None:
    check(function(CSF), FORMATS[name], [mttkrp(tensor_of(each, "float64")) for each in STRUCTURES])


@pytest.mark.parametrize("name", FORMATS)
def test_graphs_of_several_relations(name: str) -> None:
    check(function(RELATIONS), FORMATS[name], [relations(tensor_of(each, "float32")) for each in STRUCTURES])


def test_pairs() -> None:
    rules = [
        FormatRewriteRule(f"{rule.name}_{odd}", rule.axes, rule.index_map, (parity, *rule.conditions))
        for odd, parity, name in (
            (0, lambda z: z.column % 2 == 0, "csf"),
            (1, lambda z: z.column % 2 == 1, "relational"),
        )
        for rule in FORMATS[name]
    ]
    check(function(CSF), rules, [mttkrp(tensor_of(each, "float64")) for each in STRUCTURES])
    check(function(RELATIONS), rules, [relations(tensor_of(each, "float32")) for each in STRUCTURES])
