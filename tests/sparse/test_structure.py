"""Structures from outside: what is refused, with the first position that breaks a rule, and what is observed."""

import itertools
import re

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from tilewright import _core
from tilewright.sparse import Structure
from tilewright.sparse.structure import check_offset_type
from tilewright.timing import limit_threads

INDEX_TYPES = ["int32", "int64"]


def csr(indptr, indices, shape, dtype="int32", **facts):
    return Structure("csr", shape, np.array(indices, dtype), np.array(indptr, dtype), **facts)


def zeros(count):
    return np.zeros(count, "int32")


def refused(code: str, message: str, make) -> None:
    with pytest.raises(tw.ArgumentError, match=re.escape(message)) as caught:
        make()
    assert caught.value.code == code and caught.value.hint


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize(
    ("code", "message", "indptr", "indices"),
    [
        ("sparse/indptr", "indptr has 3 entries for 3 rows; it has 4", [0, 1, 2], [0, 1]),
        ("sparse/indptr", "indptr has 0 entries", [], []),
        ("sparse/indptr", "indptr[0] is 1, not 0", [1, 1, 2, 2], [0, 1]),
        ("sparse/indptr", "indptr[3] is 1, not 2", [0, 1, 1, 1], [0, 1]),
        ("sparse/indptr", "indptr[2] is 1, less than indptr[1], 2", [0, 2, 1, 2], [0, 1]),
        ("sparse/indptr", "indptr[1] is -1, which is not in 0 to 2", [0, -1, 5, 2], [0, 1]),
        ("sparse/indptr", "indptr[2] is 5, which is not in 0 to 2", [0, 1, 5, 2], [0, 1]),
        ("sparse/index", "indices[1] is 4, which is not in 0 to before 4", [0, 1, 2, 3], [0, 4, -1]),
        ("sparse/index", "indices[2] is -1, which is not in 0 to before 4", [0, 1, 2, 3], [0, 3, -1]),
    ],
)
def test_damaged_rows(code: str, message: str, indptr: list[int], indices: list[int], dtype: str) -> None:
    refused(code, message, lambda: csr(indptr, indices, (3, 4), dtype))


def test_demands() -> None:
    refused(
        "sparse/sorted",
        "indices[3] is 0, behind 2 in the same row",
        lambda: csr([0, 2, 4], [0, 1, 2, 0], (2, 3), sorted=True),
    )
    refused(
        "sparse/duplicate",
        "indices[3] is 2, which the same row holds earlier",
        lambda: csr([0, 2, 4], [0, 1, 2, 2], (2, 3), unique=True),
    )
    refused(
        "sparse/duplicate",
        "indices[4] is 2, which the same row holds earlier",
        lambda: csr([0, 2, 5], [0, 2, 2, 1, 2], (2, 3), unique=True),
    )
    demanded = csr([0, 2, 4], [0, 1, 1, 0], (2, 3), unique=True)
    assert demanded.unique and not demanded.sorted


def test_what_is_observed() -> None:
    observed = csr([0, 0, 2, 4], [1, 2, 0, 1], (3, 3))
    assert observed.sorted and observed.unique and observed.nnz == 4
    repeated = csr([0, 2, 4], [1, 1, 0, 1], (2, 3))
    assert repeated.sorted and repeated.unique is False
    unsorted = csr([0, 2, 4], [2, 1, 0, 1], (2, 3))
    assert unsorted.sorted is False and unsorted.unique is None
    assert "2 x 3, 4 nonzeros, int32, sorted" in repr(repeated)
    assert "ms" in repr(observed) and observed.validation_seconds > 0


@pytest.mark.parametrize(
    ("code", "message", "make"),
    [
        ("sparse/kind", "kind 'dia'", lambda: Structure("dia", (1, 1), np.zeros(0, "int32"))),
        ("sparse/shape", "(1, -1)", lambda: csr([0, 0], [], (1, -1))),
        ("sparse/arrays", "has no 'indptr'", lambda: Structure("csr", (1, 1), np.zeros(0, "int32"))),
        ("sparse/arrays", "it is", lambda: Structure("csr", (0, 0), [], np.zeros(1, "int32"))),
        (
            "sparse/arrays",
            "not contiguous",
            lambda: Structure("csr", (0, 0), np.zeros(4, "int32")[::2], np.zeros(1, "int32")),
        ),
        ("sparse/index-type", "float64", lambda: csr([0, 0], [], (1, 1), "float64")),
        (
            "sparse/index-type",
            "indptr is int64, indices is int32",
            lambda: Structure("csr", (1, 1), np.zeros(0, "int32"), np.zeros(2, "int64")),
        ),
        (
            "sparse/block",
            "(2, 2)",
            lambda: Structure("csr", (2, 2), np.zeros(0, "int32"), np.zeros(3, "int32"), block=(2, 2)),
        ),
        (
            "sparse/block",
            "(3, 2)",
            lambda: Structure("bsr", (4, 4), np.zeros(0, "int32"), np.zeros(2, "int32"), block=(3, 2)),
        ),
        (
            "sparse/arrays",
            "1 rows and 2 indices",
            lambda: Structure("coo", (2, 2), np.zeros(2, "int32"), rows=np.zeros(1, "int32")),
        ),
        (
            "sparse/index-type",
            "2147483648 nonzeros with offsets of int32",
            lambda: check_offset_type(2**31, np.dtype("int32")),
        ),
    ],
)
def test_arrays_that_do_not_fit(code: str, message: str, make) -> None:
    if message == "it is":
        with pytest.raises(tw.ArgumentError, match="indices is"):
            make()
    else:
        refused(code, message, make)
    check_offset_type(2**31, "int64")


def test_pairs() -> None:
    def coo(rows, columns, **facts):
        return Structure("coo", (3, 4), np.array(columns, "int32"), rows=np.array(rows, "int32"), **facts)

    assert coo([0, 0, 2], [1, 3, 0]).sorted
    assert not coo([0, 2, 0], [1, 3, 0]).sorted and not coo([0, 0, 2], [3, 1, 0]).sorted
    refused("sparse/index", "rows[1] is 3, which is not in 0 to before 3", lambda: coo([0, 3, 0], [1, 3, 0]))
    refused("sparse/index", "indices[2] is 4, which is not in 0 to before 4", lambda: coo([0, 1, 0], [1, 3, 4]))
    refused("sparse/sorted", "position 2 is before position 1", lambda: coo([0, 2, 0], [1, 3, 0], sorted=True))
    refused("sparse/sorted", "indices[1] is 1, behind 3", lambda: coo([0, 0, 2], [3, 1, 0], sorted=True))
    refused("sparse/duplicate", "row 2, column 3 at position 2", lambda: coo([2, 0, 2], [3, 1, 3], unique=True))
    refused("sparse/duplicate", "indices[2] is 1", lambda: coo([0, 2, 2], [3, 1, 1], unique=True))


def first(found: list[int]) -> int:
    return found[0] if found else -1


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("segment_dtype", INDEX_TYPES)
def test_examine_values_against_all_positions(dtype: str, segment_dtype: str) -> None:
    random = np.random.default_rng(3)
    for round in range(60):
        count = int(random.choice([0, 1, 7, 300, 40_000, 70_000], p=[0.05, 0.05, 0.4, 0.4, 0.05, 0.05]))
        ends = np.sort(random.integers(0, count + 1, int(random.integers(0, count // 3 + 3))))
        segments = np.concatenate([[0], ends, [count]]).astype(segment_dtype)
        parts = [np.sort(random.choice(90_000, size, replace=False)) for size in np.diff(segments)]
        values = np.concatenate(parts).astype(dtype)
        for _ in range(int(random.integers(0, 4)) if count else 0):
            at = int(random.integers(count))
            values[at] = random.choice([-1, 90_000, values[at - 1], 0, np.iinfo(dtype).max, np.iinfo(dtype).min])
        starts = np.zeros(count + 1, bool)
        starts[segments if round % 2 else [0]] = True
        inside = ~starts[1:count] if count else np.zeros(0, bool)
        steps = np.diff(values.astype("float64"))
        want = (
            first([*np.flatnonzero((values < 0) | (values >= 90_000))]),
            first([*(np.flatnonzero(inside & (steps < 0)) + 1)]),
            first([*(np.flatnonzero(inside & (steps == 0)) + 1)]),
        )
        assert _core.examine_values(values, 0, 90_000, segments if round % 2 else None) == want


def test_ends_that_a_type_does_not_hold() -> None:
    ends = np.array([-(2**31), 2**31 - 1], "int32")
    assert _core.examine_values(ends, -(2**31), 2**31)[0] == -1
    assert _core.examine_values(ends, -(2**40), 2**40)[0] == -1
    assert _core.examine_values(ends, -(2**31), 2**31 - 1)[0] == 1
    assert _core.examine_values(ends, 2**40, 2**41)[0] == 0
    assert _core.examine_values(ends, 5, 5)[0] == 0


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_sorting_by_length_against_numpy(dtype: str, threads: int) -> None:
    """Few keys, of which each thread counts several ranges in turn, and as many as there are lengths."""
    random = np.random.default_rng(5)
    for count in (0, 1, 7, 50, 1000, 70_001):
        for longest, keys in ((0, 1), (3, 2), (3, 5), (300, 301)):
            lengths = random.integers(0, longest + 1, count)
            segments = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
            table = random.integers(0, keys, longest + 1).astype("int32")
            offsets, order = np.empty(keys + 1, dtype), np.empty(count, dtype)
            with limit_threads(threads):
                _core.sort_by_length(segments, table, offsets, order)
            key = table[lengths]
            np.testing.assert_array_equal(order, np.argsort(key, kind="stable"))
            np.testing.assert_array_equal(offsets, np.searchsorted(np.sort(key), np.arange(keys + 1)))
            # Lengths that the table does not have are sorted as the longest one.
            if longest > 1:
                offsets, order = np.empty(keys + 1, dtype), np.empty(count, dtype)
                _core.sort_by_length(segments, table[:2], offsets, order)
                np.testing.assert_array_equal(order, np.argsort(table[np.minimum(lengths, 1)], kind="stable"))


def test_sorting_by_length_refuses_other_keys_and_arrays() -> None:
    segments, order = np.array([0, 1, 3], "int32"), np.empty(2, "int32")
    for table, offsets, result in (
        (np.array([0, 1, 2], "int32"), np.empty(3, "int32"), order),
        (np.array([0, -1], "int32"), np.empty(3, "int32"), order),
        (np.array([0, 1], "int64"), np.empty(3, "int32"), order),
        (np.array([], "int32"), np.empty(3, "int32"), order),
        (np.array([0, 1], "int32"), np.empty(3, "int64"), order),
        (np.array([0, 1], "int32"), np.empty(3, "int32"), np.empty(3, "int32")),
    ):
        with pytest.raises(tw.ArgumentError) as error:
            _core.sort_by_length(segments, table, offsets, result)
        assert error.value.code == "sparse/keys"


@pytest.mark.parametrize("dtype", INDEX_TYPES)
def test_duplicates_and_sorting_against_numpy(dtype: str) -> None:
    random = np.random.default_rng(4)
    for _ in range(30):
        count, keys = int(random.choice([0, 1, 50, 70_000])), int(random.choice([1, 9, 5000]))
        values = random.integers(0, keys, count).astype(dtype)
        indptr, order = np.empty(keys + 1, dtype), np.empty(count, dtype)
        _core.sort_by_key(values, indptr, order)
        np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
        np.testing.assert_array_equal(indptr, np.searchsorted(values[order], np.arange(keys + 1)))
        ends = np.sort(random.integers(0, count + 1, 20))
        segments = np.concatenate([[0], ends, [count]]).astype(dtype)
        found = [
            begin + at
            for begin, end in itertools.pairwise(segments)
            for at in [int(p) for p in {*range(end - begin)} - {*np.unique(values[begin:end], return_index=True)[1]}]
        ]
        assert _core.find_duplicate(values, keys, segments) == min(found, default=-1)


def axis_of(random: np.random.Generator, order: str, count: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Parents, keys and the number of parents: in order, with ascending keys of each parent, or in any order."""
    num_parents, num_keys = int(random.choice([1, 7, 5000])), int(random.choice([1, 9, 300, 1 << 24]))
    parents, keys = random.integers(0, num_parents, count), random.integers(0, num_keys, count)
    if order == "parents":
        parents.sort()
    elif order != "any":
        by = np.lexsort((keys, parents))
        parents, keys = parents[by], keys[by]
    if order == "ascending":  # of each parent, whose nonzeros are not next to each other
        mixed = random.permutation(parents)
        by = np.argsort(mixed, kind="stable")
        parents, keys[by] = mixed, keys.copy()
    return parents, keys, num_parents


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("key_dtype", INDEX_TYPES)
@pytest.mark.parametrize("order", ["sequential", "ascending", "parents", "any"])
def test_positions_along_an_axis_against_numpy(dtype: str, key_dtype: str, order: str) -> None:
    random = np.random.default_rng(len(order))
    for round in range(30):
        count = int(random.choice([0, 1, 50, 3000, 70_000], p=[0.1, 0.1, 0.3, 0.3, 0.2]))
        parents, keys, num_parents = axis_of(random, order, count)
        given = (parents // 3).astype(dtype), 3, (parents % 3).astype(key_dtype)
        if round % 2:
            given = parents.astype(dtype), 1, None  # type: ignore[assignment]
        positions, offsets = np.empty(count, dtype), np.empty(num_parents + 1, dtype)
        found = _core.axis_positions(True, *given, keys.astype(key_dtype), positions, offsets)
        pairs, ranks = np.unique(np.stack([parents, keys]), axis=1, return_inverse=True)
        np.testing.assert_array_equal(positions, ranks.ravel())
        np.testing.assert_array_equal(offsets, np.searchsorted(pairs[0], np.arange(num_parents + 1)))
        assert found == (pairs.shape[1], -1)
        keys %= 1000
        found = _core.axis_positions(False, *given, keys.astype(key_dtype), positions, offsets)
        ends = np.zeros(num_parents, "int64")
        np.maximum.at(ends, parents, keys + 1)
        np.testing.assert_array_equal(offsets, np.append(0, np.cumsum(ends)))
        np.testing.assert_array_equal(positions, offsets[parents] + keys)
        assert found == (ends.sum(), -1)


def test_keys_that_no_axis_has() -> None:
    for kind in (True, False):
        for count in (9, 70_000):
            keys, parents = np.arange(count, dtype="int32"), np.arange(count, dtype="int32") % 3
            keys[5] = keys[8] = -1
            positions, offsets = np.empty(count, "int32"), np.empty(4, "int32")
            assert _core.axis_positions(kind, parents, 1, None, keys, positions, offsets)[1] == 5
            assert _core.axis_positions(kind, parents, 2, None, abs(keys), positions, offsets)[1] == 2
            wide = np.full(count, 2**31 - 2, "int32")
            if not kind:  # more positions than int32 holds are counted
                assert _core.axis_positions(kind, parents, 1, None, wide, positions, offsets)[0] > 2**31
    with pytest.raises(tw.ArgumentError, match="different lengths or types") as caught:
        _core.axis_positions(True, parents[1:], 1, None, keys, positions, offsets)
    assert caught.value.code == "sparse/keys"


def test_values_that_are_scattered() -> None:
    for count in (7, 70_000):
        at = np.random.default_rng(count).permutation(count).astype("int64")
        out, values = np.zeros(2 * count, "int64"), np.arange(count) + 5
        assert _core.scatter_values(at, 2, np.ones(count, "int32"), count, values, True, out) == -1
        np.testing.assert_array_equal(out[2 * at + 1], values)
        assert _core.scatter_values(at, 1, None, count, None, True, out) == -1
        np.testing.assert_array_equal(out[at], np.arange(count))
        assert _core.scatter_values(at, 3, None, count, None, False, out) == np.argmax(3 * at >= 2 * count)
        at[3] = at[5]
        assert _core.scatter_values(at, 1, None, count, None, False, out) == -1
        assert _core.scatter_values(at, 1, None, count, None, True, out) in (3, 5)
    with pytest.raises(tw.ArgumentError, match="different lengths or types"):
        _core.scatter_values(at, 1, None, count, values[1:], True, out)


def test_arrays_of_the_core() -> None:
    with pytest.raises(tw.ArgumentError, match="int32 or of int64") as caught:
        _core.examine_values(np.zeros(3), 0, 1)
    assert caught.value.code == "sparse/index-type"
    with pytest.raises(tw.ArgumentError, match="less than the number of offsets") as caught:
        _core.sort_by_key(np.array([5], "int32"), np.zeros(3, "int32"), np.zeros(1, "int32"))
    assert caught.value.code == "sparse/keys"


def test_more_columns_than_memory_can_mark() -> None:
    """Unsorted rows are looked through with a mark for each column."""
    with pytest.raises(tw.ResourceError, match="no memory") as caught:
        csr([0, 2], [2**59, 3], (1, 2**60), "int64", unique=True)
    assert caught.value.code == "sparse/memory"


def test_offsets_that_are_damaged_are_not_followed() -> None:
    values = np.arange(100, dtype="int32")
    for segments in ([0, 10**6, 5], [-(10**6), 3], [50, 20, 90], [10**6] * 3):
        array = np.array(segments, "int32")
        assert _core.examine_values(values, 0, 100, array)[0] == -1
        _core.find_duplicate(values, 100, array)


def test_scipy_arrays_are_not_copied() -> None:
    matrix = scipy.sparse.random(30, 20, 0.2, "csr", "float32", random_state=0)
    taken = tw.sparse.from_scipy(matrix)
    for own, theirs in (
        (taken.structure.indices, matrix.indices),
        (taken.structure.indptr, matrix.indptr),
        (taken.values, matrix.data),
    ):
        assert np.shares_memory(own, theirs)
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 1
