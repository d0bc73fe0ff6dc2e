"""Pickled and copied matrices cannot be written through either, and take no conversions along."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw

sparse = pytest.importorskip("scipy.sparse")


def pickled(matrix: Any) -> Any:
    return pickle.loads(pickle.dumps(matrix))


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("is_prepared", [False, True])
def test_arrays_stay_read_only(again: Callable[[Any], Any], kind: str, is_prepared: bool) -> None:
    given = sparse.random(12, 8, 0.4, dtype="float32", random_state=1).asformat(kind)
    matrix, x = tw.sparse.from_scipy(given), np.arange(8, dtype="float32")
    expected = tw.sparse.spmv(matrix, x)
    if is_prepared:
        tw.sparse.prepare_spmv(matrix)
    other = again(matrix)
    np.testing.assert_array_equal(tw.sparse.spmv(other, x), expected)
    structure = other.structure
    for array in (other.values, structure.indices, structure.indptr, structure.rows):
        assert array is None or not array.flags.writeable


def test_a_shallow_copy_sees_changes_of_the_values() -> None:
    given = sparse.random(12, 8, 0.4, dtype="float32", random_state=1).tocsc()
    matrix, x = tw.sparse.from_scipy(given), np.ones(8, "float32")
    other = copy.copy(matrix)
    given.data *= 2
    for each in (matrix, other):
        np.testing.assert_allclose(tw.sparse.spmv(each, x), given @ x, rtol=1e-5)
