"""Rules and tensors that break assumptions: keys by position, huge extents and keys, conditions about averages."""

import pickle
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.sparse import FormatRewriteRule, Structure, compressed, convert_structure, dense, formats, varied
from tilewright.sparse.by_nonzeros import MANY_NONZEROS
from tilewright.sparse.fill import NotByRows, by_rows_of
from tilewright.timing import limit_threads

Array = Any


def one(axes: tuple[Any, ...], index_map: Any, *conditions: Any) -> FormatRewriteRule:
    return FormatRewriteRule("own", axes, index_map, conditions)


def structure(m: int, n: int, density: float, seed: int = 0) -> tuple[Array, Array]:
    rows, columns = np.nonzero(np.random.default_rng(seed).random((m, n)) < density)
    return rows.astype("int32"), columns.astype("int32")


@pytest.mark.parametrize("axis", [dense("J", 15), varied("J")])
def test_keys_by_the_position_of_a_nonzero(axis: Any) -> None:
    """The key of the last nonzero is in range, and those before it are negative: nothing is stored before an array."""
    rule = one((dense("I", 1), axis), lambda z: (z.row, (z.position - 5, z.column)))
    with pytest.raises(tw.ArgumentError, match="key of nonzero 0 along axis 'J' is -5") as caught:
        convert_structure([rule], (1, 20), (np.zeros(20, "int32"), np.arange(20, dtype="int32")))
    assert caught.value.code == "sparse/key"
    # A position that ascends from 0 does so in each row, too.
    ascending = one((dense("I", 1), dense("J", 20)), lambda z: (z.row, (z.position, z.column)))
    assert by_rows_of(ascending, (1, 20)).rule is ascending
    by_fives = one((dense("I", 4), varied("J")), lambda z: (z.position // 5, (z.position % 5, z.column)))
    with pytest.raises(NotByRows):
        by_rows_of(by_fives, (2, 20))
    rows = np.array([0] * 12 + [1] * 8, "int32")
    columns = np.concatenate([np.arange(12), np.arange(8)]).astype("int32")
    (part,) = convert_structure([by_fives], (2, 20), (rows, columns)).parts
    assert part.axes["J"].indptr is not None and part.axes["J"].indptr.tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_array_equal(part.source, np.arange(20))


def test_keys_that_overflow_within_a_row() -> None:
    """The key of place 4 is 0 in 64 bits, and those before it are far outside of the array."""
    rule = one((dense("I", 1), dense("J", 3)), lambda z: (z.row, (z.place * (1 << 62), z.column)))
    with pytest.raises(tw.ArgumentError) as caught:
        convert_structure([rule], (1, 9), (np.zeros(5, "int32"), np.arange(5, dtype="int32")))
    assert caught.value.code == "sparse/key"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("key", [(1 << 62) - 1, 1 << 62, (1 << 63) - 2, (1 << 63) - 1])
def test_keys_along_a_varied_axis_that_no_memory_holds(key: int, dtype: str) -> None:
    for index_map in (lambda z: (z.row, (z.column * 0 + key, z.column)), lambda z: (z.row, (key, z.column))):
        for count in (2, MANY_NONZEROS):
            given = [np.arange(count, dtype=dtype), np.zeros(count, dtype)]
            with pytest.raises(tw.ArgumentError, match="stored elements with indices of") as caught:
                convert_structure([one((dense("I", count), varied("J")), index_map)], (count, 3), given)
            assert caught.value.code == "sparse/index-type"
    (part,) = convert_structure(
        [one((dense("I", 2), compressed("J")), lambda z: (z.row, (z.column * 0 + key, z.column)))],
        (2, 3),
        (np.array([0, 1], dtype), np.array([2, 1], dtype)),
    ).parts
    assert part.axes["J"].indices is not None and part.axes["J"].indices.tolist() == [2, 1]


def test_a_key_beyond_the_type_of_the_offsets() -> None:
    """2**31 is no int32: its count must not be taken for none."""
    rule = one((dense("I", 2), varied("J")), lambda z: (z.row, (z.row * 0 + (1 << 40), z.column)))
    with pytest.raises(tw.ArgumentError) as caught:
        convert_structure([rule], (2, 3), (np.array([0, 1], "int32"), np.array([0, 1], "int32")))
    assert caught.value.code == "sparse/index-type"


def test_positions_by_key_saturate() -> None:
    for keys in ([(1 << 63) - 1], [1 << 62, 1 << 62], [0, (1 << 63) - 1]):
        base, positions = np.arange(len(keys)), np.full(len(keys), 7)
        offsets = np.zeros(len(keys) + 1, "int64")
        found, fault = _core.axis_positions(False, base, 1, None, np.array(keys), positions, offsets)
        assert (found, fault) == ((1 << 63) - 1, -1) and (positions == 7).all()


def _sorted_tensor(shape: tuple[int, ...], count: int, dtype: str) -> list[Array]:
    random = np.random.default_rng(3)
    coordinates = [random.integers(0, extent, count) for extent in shape]
    order = np.lexsort(coordinates[::-1])
    return [along[order].astype(dtype) for along in coordinates]


@pytest.mark.parametrize("count", [100, 2 * MANY_NONZEROS])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((100_000, 100_000, 1 << 30), "int32"),
        ((1 << 20, 1 << 20, 1 << 20), "int32"),
        ((1 << 40, 1 << 20, 1 << 50), "int64"),
    ],
)
def test_tensors_of_more_rows_than_memory_holds_numbers(shape: tuple[int, ...], dtype: str, count: int) -> None:
    coordinates = _sorted_tensor(shape, count, dtype)
    (part,) = convert_structure(formats.csf(*shape), shape, coordinates).parts
    np.testing.assert_array_equal(part.axes["I2"].indices, coordinates[2])
    assert part.axes["I0"].indices is not None
    np.testing.assert_array_equal(part.axes["I0"].indices, np.unique(coordinates[0]))
    places = one((compressed("R"), dense("P", 8)), lambda z: (z.row, (z.place, z.column)))
    if dtype == "int32":  # some rows have numbers that int32 does not hold
        with pytest.raises(tw.ArgumentError, match="stores the number") as caught:
            convert_structure([places], shape, coordinates)
        assert caught.value.code == "sparse/index-type"
    coordinates = [along.astype("int64") for along in coordinates]
    (part,) = convert_structure([places], shape, coordinates).parts
    np.testing.assert_array_equal(part.axes["R"].indices, np.unique(coordinates[0] * shape[1] + coordinates[1]))
    np.testing.assert_array_equal(part.source[part.source >= 0], np.arange(count))


@pytest.mark.parametrize("count", [100, 2 * MANY_NONZEROS])
def test_matrices_of_more_rows_than_memory_holds_offsets(count: int) -> None:
    shape = (1 << 40, 1 << 30)
    rows, columns = _sorted_tensor(shape, count, "int64")
    (part,) = convert_structure(formats.dcsr(*shape), shape, (rows, columns)).parts
    different, counts = np.unique(rows, return_counts=True)
    assert part.axes["I"].indices is not None and part.axes["J"].indptr is not None
    np.testing.assert_array_equal(part.axes["I"].indices, different)
    np.testing.assert_array_equal(np.diff(part.axes["J"].indptr), counts)
    for name in ("coo", "csf"):
        (part,) = convert_structure(getattr(formats, name)(*shape), shape, (rows, columns)).parts
        np.testing.assert_array_equal(part.source, np.arange(count))
    parts = convert_structure(formats.hyb(*shape, 1, 1), shape, (rows, columns)).parts
    for part, length in zip(parts, (1, 2), strict=True):
        assert part.axes["I"].indices is not None
        np.testing.assert_array_equal(part.axes["I"].indices, different[counts == length])


def test_tensors_whose_rows_have_no_numbers() -> None:
    shape = (1 << 40, 1 << 40, 5)
    with pytest.raises(tw.ArgumentError, match="has 1208925819614629174706176 rows") as caught:
        convert_structure(formats.csf(*shape), shape, ([0], [0], [0]))
    assert caught.value.code == "sparse/shape"


def _conditions() -> dict[str, tuple[Any, Any]]:
    return {
        "mean": (lambda z: z.length <= z.length.mean(), lambda z: z.length > z.length.mean()),
        "np.mean": (lambda z: z.length <= np.mean(z.length), lambda z: z.length > np.mean(z.length)),
        "least": (lambda z: z.length == z.length.min(), lambda z: z.length > z.length.min()),
        "median": (lambda z: z.length <= np.median(z.length), lambda z: z.length > np.median(z.length)),
        "sum": (
            lambda z: z.length * 8 <= np.add.reduce(z.length) / len(z.length),
            lambda z: z.length * 8 > z.length.mean(),
        ),
        "mean of rows": (lambda z: z.row <= z.row.mean(), lambda z: z.row > z.row.mean()),
        "sorted": (lambda z: z.length <= np.sort(z.length)[-9], lambda z: z.length > np.sort(z.length)[-9]),
    }


@pytest.mark.parametrize("name", _conditions())
def test_conditions_about_all_nonzeros(name: str) -> None:
    """The mean of a property is that over nonzeros, as documented, whatever conditions are evaluated on."""
    rows, columns = structure(200, 300, 0.05)
    lengths = np.bincount(rows, minlength=200)

    class Each:
        length, row = lengths[rows], rows.astype("int64")

    rules = [formats.csr(200, 300)[0].when(condition) for condition in _conditions()[name]]
    parts = convert_structure(rules, (200, 300), (rows, columns)).parts
    for part, condition in zip(parts, _conditions()[name], strict=True):
        np.testing.assert_array_equal(part.source, np.flatnonzero(condition(Each)))


def test_conditions_that_are_decisions() -> None:
    """`in` asks for the truth of a comparison, which an array does not have."""
    rows, columns = structure(40, 50, 0.1)
    rules = [formats.csr(40, 50)[0].when(lambda z: z.length in (1, 2))]
    with pytest.raises(ValueError, match="ambiguous"):
        convert_structure(rules, (40, 50), (rows, columns))


KEYS = {
    "about all rows": lambda r: np.abs(r.length - np.median(r.length)).astype("int64"),
    "by a mean": lambda r: r.length > r.length.mean(),
    "of float": lambda r: 1 / (1 + r.length),
    "far apart": lambda r: r.length * 1_000_000_000_000 + r.row % 3,
    "beyond int64": lambda r: r.length.astype("uint64") + np.uint64((1 << 63) + 5),
    "of few bits": lambda r: (r.length * 29 % 256).astype("uint8").view("int8"),
    "all equal": lambda r: 7,
}


@pytest.mark.parametrize("window", [None, 7, 16, 200, 1000])
@pytest.mark.parametrize("name", KEYS)
def test_ranks(name: str, window: int | None) -> None:
    """Ranks are stable, within windows that need not divide the rows, by keys of any kind."""
    rows, columns = structure(200, 300, 0.05)
    lengths = np.bincount(rows, minlength=200)

    class Rows:
        length, row = lengths, np.arange(200)

    rule = one((dense("S", 200), varied("P")), lambda z: (z.rank(KEYS[name], window), (z.place, z.column)))
    (part,) = convert_structure([rule], (200, 300), (rows, columns)).parts
    keys = np.broadcast_to(KEYS[name](Rows), 200)
    order = sorted(range(200), key=lambda row: (row // (window or 200), keys[row], row))
    begins = np.cumsum(lengths) - lengths
    np.testing.assert_array_equal(part.source, np.concatenate([begins[r] + np.arange(lengths[r]) for r in order]))


def test_values_back_of_parts_of_different_types() -> None:
    rows, columns = structure(60, 70, 0.1)
    rules = [formats.csr(60, 70)[0].when(condition) for condition in (lambda z: z.length < 7, lambda z: z.length > 6)]
    converted = convert_structure(rules, (60, 70), (rows, columns))
    values = np.random.default_rng(1).random(len(rows))
    short, long = converted.convert_values(values)
    back = converted.values_back([np.ones(len(short), "int32"), long])
    np.testing.assert_array_equal(back, np.where(np.bincount(rows, minlength=60)[rows] < 7, 1, values))


@pytest.mark.parametrize("shape", [(3.0, 4.0), "ab", (True, 4), (3,), 5, (3, None)])
def test_shapes_that_are_none(shape: Any) -> None:
    with pytest.raises(tw.ArgumentError, match="shape is") as caught:
        Structure("csr", shape, np.zeros(0, "int32"), np.zeros(4, "int32"))
    assert caught.value.code == "sparse/shape" and isinstance(caught.value, TypeError)
    with pytest.raises(tw.ArgumentError, match="block is") as caught:
        Structure("bsr", (4, 4), np.zeros(0, "int32"), np.zeros(3, "int32"), block=shape)
    assert caught.value.code == "sparse/block"


def test_shapes_of_numpy() -> None:
    made = Structure("csr", [np.int64(3), np.int32(4)], np.zeros(0, "int32"), np.zeros(4, "int32"))  # type: ignore[arg-type]
    assert made.shape == (3, 4) and all(type(extent) is int for extent in made.shape)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("most", [1, 8, 9, 16, 17, 32, 33, 100])
def test_positions_below_parents_with_few_keys(most: int, dtype: str) -> None:
    """Ranks of keys among the different ones of their parent, in any order, with repeated ones and parents without."""
    random = np.random.default_rng(most)
    for wide in (most // 2 + 1, 1 << 20):
        counts = random.integers(0, most + 1, 400)
        counts[-1] = most
        parents = np.repeat(np.arange(400), counts).astype(dtype)
        keys = random.integers(0, wide, len(parents)).astype(dtype)
        positions, offsets = np.empty(len(keys), dtype), np.empty(401, dtype)
        found, fault = _core.axis_positions(True, parents, 1, None, keys, positions, offsets)
        pairs = np.unique(np.stack([parents, keys]), axis=1)
        assert (found, fault) == (pairs.shape[1], -1)
        np.testing.assert_array_equal(pairs[:, positions], [parents, keys])
        np.testing.assert_array_equal(np.diff(offsets), np.bincount(pairs[0], minlength=400))
    keys[len(keys) // 2] = -1
    _, fault = _core.axis_positions(True, parents, 1, None, keys, positions, offsets)
    assert fault == len(keys) // 2


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("num_keys", [1, 5, 255, 256, 257, 3000])
@pytest.mark.parametrize("count", [0, 1, 50, 5000, 70_000])
def test_sorts_by_keys_and_by_lengths(count: int, num_keys: int, dtype: str) -> None:
    """Keys that fit into bytes and others, in one range and in several, on one thread and on two."""
    random = np.random.default_rng(count + num_keys)
    keys = random.integers(0, num_keys, count).astype(dtype)
    keys[: count // 2] = num_keys - 1
    lengths = random.integers(0, 40, count)
    segments = np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)
    table = random.integers(0, num_keys, 30).astype("int32")
    for threads in (1, 2):
        with limit_threads(threads):
            for own, sort in (
                (keys, lambda *results: _core.sort_by_key(keys, *results)),
                (table[np.minimum(lengths, 29)], lambda *results: _core.sort_by_length(segments, table, *results)),
            ):
                offsets, order = np.full(num_keys + 1, -1, dtype), np.full(count, -1, dtype)
                sort(offsets, order)
                np.testing.assert_array_equal(order, np.argsort(own, kind="stable"))
                np.testing.assert_array_equal(np.diff(offsets), np.bincount(own, minlength=num_keys))


#: formats with much padding, of which rows alone do not say where elements are
PADDED = {
    "bsr": lambda m, n: formats.bsr(m, n, 4, 3),
    "dbsr": lambda m, n: formats.dbsr(m, n, 5),
    "sr_bcrs": lambda m, n: formats.sr_bcrs(m, n, 4, 8),
    "diagonals": lambda m, n: [
        one(
            (dense("B", -(-m // 4)), compressed("D"), dense("R", 4)),
            lambda z: (z.row // 4, z.column - z.row + m, z.row % 4),
        )
    ],
    "blocks of some rows": lambda m, n: [
        formats.bsr(m, n, 4)[0].when(lambda z: z.row % 8 < 4),
        formats.sr_bcrs(m, n, 4, 8)[0].when(lambda z: z.row % 8 >= 4),
    ],
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("name", PADDED)
def test_values_are_stored_at_their_positions(name: str, dtype: str) -> None:
    rows, columns = structure(500, 800, 0.12)
    assert len(rows) > 2 * MANY_NONZEROS
    converted = convert_structure(PADDED[name](500, 800), (500, 800), (rows, columns))
    values = np.random.default_rng(2).integers(1, 2 if dtype == "bool" else 100, len(rows)).astype(dtype)
    stored = converted.convert_values(values)
    for part, elements in zip(converted.parts, stored, strict=True):
        assert part.size == len(part.source) == len(elements) > 1.25 * np.count_nonzero(part.source >= 0)
        want = np.where(part.source >= 0, values[part.source], 0).astype(dtype)
        np.testing.assert_array_equal(elements, want, strict=True)
        if part.rule.shape and not part.rule.conditions:
            again = pickle.loads(pickle.dumps(part))
            np.testing.assert_array_equal(again.stored(values), want, strict=True)
    np.testing.assert_array_equal(converted.values_back(stored), values)
    by_place = np.concatenate([part.source[part.source >= 0] for part in converted.parts])
    np.testing.assert_array_equal(np.sort(by_place), np.arange(len(rows)))


@pytest.mark.parametrize(
    ("axes", "index_map"),
    [
        ((dense("I", 250), dense("J", 400)), lambda z: (z.row // 2, z.column // 2)),
        ((dense("I", 125), dense("J", 800), dense("R", 2)), lambda z: (z.row // 4, z.column, z.row % 2)),
        ((compressed("I"), dense("J", 800)), lambda z: (z.row // 2, z.column)),
    ],
)
def test_positions_of_several_nonzeros(axes: Any, index_map: Any) -> None:
    """Quotients without their remainder, and remainders of another divisor, do not tell nonzeros apart."""
    rows, columns = structure(500, 800, 0.12)
    with pytest.raises(tw.ArgumentError) as caught:
        convert_structure([one(axes, index_map)], (500, 800), (rows, columns))
    assert caught.value.code == "sparse/bijection"


def test_the_only_parent_of_a_varied_first_axis_is_the_root() -> None:
    """Offsets of one parent, however many rows there are (random format 62050696)."""
    axes = (varied("A"), dense("B", 1), dense("C", 3), dense("D", 1))
    rule = one(axes, lambda z: (z.row // 1, z.row % 1, z.place % 3, (z.place // 3, z.column)))
    rows, columns = structure(5, 2, 0.6)
    (part,) = convert_structure([rule], (5, 2), (rows, columns)).parts
    assert part.axes["A"].indptr is not None and part.axes["A"].indptr.tolist() == [0, rows.max() + 1]
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    assert part.source[rows * 3 + places].tolist() == list(range(len(rows)))
