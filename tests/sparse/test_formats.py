"""Formats as rules: each nonzero is stored once, at the coordinates that the format says, and comes back bit by bit."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from fuzz.format_rules import random_rule, stores_several
from tilewright.sparse import by_nonzeros, conversion, formats
from tilewright.sparse.conversion import StoredPart, convert_structure
from tilewright.sparse.fill import NotByRows, by_rows_of
from tilewright.sparse.format_rule import FormatRewriteRule, compressed, dense, varied
from tilewright.sparse.row_copies import row_copies
from tilewright.sparse.taken_rows import rows_of_rules

M, N = 24, 36


def structure(kind: str, m: int = M, n: int = N) -> np.ndarray:
    """A mask of nonzeros."""
    random = np.random.default_rng(len(kind) + m)
    mask = random.random((m, n)) < 0.15
    if kind == "empty":
        mask[:] = False
    if kind == "full":
        mask[:] = True
    if kind == "one dense row" and m:
        mask[:] = False
        mask[m // 3] = True
    if kind == "one dense column" and n:
        mask[:] = False
        mask[:, n // 3] = True
    if kind == "empty rows":
        mask[1::2] = False
    if kind == "diagonal":
        mask[:] = np.eye(m, n, dtype=bool)
    return mask


STRUCTURES = ["random", "empty", "full", "one dense row", "one dense column", "empty rows", "diagonal"]


def special_values(count: int, dtype: str) -> np.ndarray:
    """All different, with NaN, infinities and signed zeros."""
    values = np.random.default_rng(count).standard_normal(count).astype(dtype)
    values[: len(values) // 2][:4] = [np.nan, np.inf, -np.inf, -0.0][: len(values[: len(values) // 2][:4])]
    return values


def same_bits(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


def paths(part: StoredPart):
    """For each stored element the coordinates along the axes that store some, else the keys; by walking over the axes
    from the root, as a kernel does."""

    def below(axes, position):
        if not axes:
            yield ()
            return
        axis, *rest = axes
        stored = part.axes[axis.name]
        if stored.indptr is None:
            positions = range(position * axis.extent, (position + 1) * axis.extent)
        else:
            positions = range(stored.indptr[position], stored.indptr[position + 1])
        for key, at in enumerate(positions):
            own = key if stored.indices is None else int(stored.indices[at])
            for others in below(rest, at):
                yield (own, *others)

    return list(below(list(part.rule.axes), 0))


#: the format, and row and column from what is stored along its axes (`rows`: those of SELL in its order)
FORMATS = {
    "csr": (formats.csr(M, N), lambda i, j: (i, j)),
    "csc": (formats.csc(M, N), lambda j, i: (i, j)),
    "dcsr": (formats.dcsr(M, N), lambda i, j: (i, j)),
    "coo": (formats.coo(M, N), lambda i, j: (i, j)),
    "csf": (formats.csf(M, N), lambda i, j: (i, j)),
    "bsr3": (formats.bsr(M, N, 3), lambda io, jo, ii, ji: (3 * io + ii, 3 * jo + ji)),
    "bsr2x4": (formats.bsr(M, N, 2, 4), lambda io, jo, ii, ji: (2 * io + ii, 4 * jo + ji)),
    "dbsr": (formats.dbsr(M, N, 3), lambda io, jo, ii, ji: (3 * io + ii, 3 * jo + ji)),
    "ell": (formats.ell(M, N, N), lambda i, j: (i, j)),
    "padded_csr": (formats.padded_csr(M, N, 4), lambda i, _, j: (i, j)),
    "hyb": (formats.hyb(M, N, 1, 2), lambda i, j: (i, j)),
    "hyb3": (formats.hyb(M, N, 3, 1), lambda i, j: (i, j)),
    "hyb whole": (formats.hyb(M, N, 2, 1, cut=False), lambda i, j: (i, j)),
    "sell": (formats.sell(M, N, 4), None),
    "sell4x8": (formats.sell(M, N, 4, 8), None),
    "ragged": (formats.ragged(M, N), lambda i, j: (i, j)),
    "banded": (formats.banded(M, N, M, N), lambda i, d: (i, i + d - M)),
    "strided": (formats.strided(M, N, 1), lambda i, j: (i, j)),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", STRUCTURES)
def test_stored_elements_are_the_nonzeros(name: str, kind: str) -> None:
    """Rebuild the matrix from axes and elements alone."""
    mask = structure(kind)
    rules, place = FORMATS[name]
    for dtype, index in (("float32", "int32"), ("float64", "int64")):
        rows, columns = (along.astype(index) for along in np.nonzero(mask))
        converted = convert_structure(rules, mask.shape, (rows, columns))
        values = special_values(len(rows), dtype)
        stored = converted.convert_values(values)
        same_bits(converted.values_back(stored), values)
        found: dict[tuple[int, int], bytes] = {}
        for part, elements in zip(converted.parts, stored, strict=True):
            assert len(elements) == len(part.source)
            assert all(axis.indices is None or axis.indices.dtype == index for axis in part.axes.values())
            for own, element, source in zip(paths(part), elements, part.source, strict=True):
                if source < 0:
                    assert element == 0
                    continue
                # Lanes of SELL are rows by their ranks.
                where = (int(rows[source]), own[2]) if place is None else place(*own)
                assert where not in found
                found[where] = element.tobytes()
        want = {(int(i), int(j)): value.tobytes() for i, j, value in zip(rows, columns, values, strict=True)}
        assert found == want


def test_sell_sorts_rows_within_windows() -> None:
    mask = structure("random")
    lengths = mask.sum(1)
    for window in (None, 8):
        (part,) = convert_structure(formats.sell(M, N, 4, window), mask.shape, np.nonzero(mask)).parts
        indptr = part.axes["P"].indptr
        size = window or M
        in_order = [
            row
            for begin in range(0, M, size)
            for row in sorted(range(begin, min(M, begin + size)), key=lambda r: -lengths[r])
        ]
        widths = [max(lengths[row] for row in in_order[s : s + 4]) for s in range(0, M, 4)]
        np.testing.assert_array_equal(np.diff(indptr), widths)
        rows = np.nonzero(mask)[0]
        lanes = part.source.reshape(-1, 4)
        for slice_number in range(M // 4):
            for lane in range(4):
                own = lanes[indptr[slice_number] : indptr[slice_number + 1], lane]
                row = in_order[4 * slice_number + lane]
                np.testing.assert_array_equal(own[own >= 0], np.flatnonzero(rows == row))


def test_hyb_buckets() -> None:
    """Rows of lengths 0 to 9 in buckets of widths 1, 2 and 4; longer ones are cut."""
    mask = np.tril(np.ones((10, 10), bool), -1)
    converted = convert_structure(formats.hyb(10, 10, 1, 2), mask.shape, np.nonzero(mask))
    lists = [part.axes["I"].indices.tolist() for part in converted.parts]
    assert lists == [[1], [2], [3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9]]
    assert [len(part.source) for part in converted.parts] == [1, 2, 52]
    assert converted.parts[2].padding == pytest.approx(10 / 52)


def test_strips_share_columns() -> None:
    mask = structure("random")
    (part,) = convert_structure(formats.sr_bcrs(M, N, 4, 3), mask.shape, np.nonzero(mask)).parts
    groups = part.axes["JO"].indptr
    columns = part.axes["JI"].indices.reshape(-1, 3)
    tiles = part.source.reshape(-1, 4, 3)
    rows, at = np.nonzero(mask)
    for strip in range(M // 4):
        distinct = np.flatnonzero(mask[4 * strip : 4 * strip + 4].any(0))
        own = columns[groups[strip] : groups[strip + 1]].reshape(-1)
        np.testing.assert_array_equal(own[: len(distinct)], distinct)
        for group, row, slot in itertools.product(range(groups[strip], groups[strip + 1]), range(4), range(3)):
            source = tiles[group, row, slot]
            if source >= 0:
                assert (rows[source], at[source]) == (4 * strip + row, columns[group, slot])
    assert sorted(part.source[part.source >= 0]) == list(range(len(rows)))


def test_tensors_of_three_dimensions() -> None:
    random = np.random.default_rng(5)
    mask = random.random((3, 8, 9)) < 0.2
    mask[1, 2] = True
    coordinates = np.nonzero(mask)
    values = special_values(len(coordinates[0]), "float32")
    for rules in (formats.csf(3, 8, 9), formats.relational((3, 8, 9), 2)):
        converted = convert_structure(rules, mask.shape, coordinates)
        stored = converted.convert_values(values)
        same_bits(converted.values_back(stored), values)
        found = sorted(
            (own, int(source))
            for part in converted.parts
            for own, source in zip(paths(part), part.source, strict=True)
            if source >= 0
        )
        want = sorted(
            zip(zip(*(map(int, along) for along in coordinates), strict=True), range(len(values)), strict=True)
        )
        assert found == want


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices(shape: tuple[int, int]) -> None:
    none = np.zeros(0, "int32")
    for rules in (formats.csr(*shape), formats.csc(*shape), formats.sell(*shape), formats.hyb(*shape, 2, 2)):
        converted = convert_structure(rules, shape, (none, none))
        same_bits(converted.values_back(converted.convert_values(none.astype("float32"))), none.astype("float32"))


def test_random_rules_keep_values_bit_by_bit() -> None:
    random, refused_rules = np.random.default_rng(6), 0
    for _ in range(150):
        m, n = (int(random.integers(1, 20)) for _ in range(2))
        coordinates = np.nonzero(random.random((m, n)) < random.choice([0.05, 0.3, 1]))
        rules = [random_rule(random, m, n)]
        if random.random() < 0.5:  # two formats, by the column
            half, other = int(random.integers(n + 1)), random_rule(random, m, n)
            rules = [
                rules[0].when(lambda z, half=half: z.column < half),
                other.when(lambda z, half=half: z.column >= half),
            ]
        if any(stores_several(rule, (m, n), coordinates) for rule in rules):
            with pytest.raises(tw.ArgumentError, match="that stores another coordinate"):
                convert_structure(rules, (m, n), coordinates)
            refused_rules += 1
            continue
        converted = convert_structure(rules, (m, n), coordinates)
        for dtype in ("float32", "float64"):
            values = special_values(len(coordinates[0]), dtype)
            same_bits(converted.values_back(converted.convert_values(values)), values)
    assert 0 < refused_rules < 50


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_positions_without_a_nonzero_hide_no_second_coordinate(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both nonzeros are in row 1, whose position stores one column, and row 0 has a position, too."""
    monkeypatch.setattr(conversion, "MANY_NONZEROS", many)
    axes = (varied("I"), compressed("J"))
    rule = FormatRewriteRule("two", axes, lambda z: [(z.row, z.column), z.column])
    with pytest.raises(tw.ArgumentError, match="that stores another coordinate"):
        convert_structure([rule], (2, 3), (np.array([1, 1], "int32"), np.array([1, 2], "int32")))


def test_hyb_with_whole_rows() -> None:
    """Rows longer than the widest bucket stay as they are, so that no row is stored twice."""
    mask = structure("random")
    mask[3] = True
    converted = convert_structure(formats.hyb(M, N, 1, 1, cut=False), mask.shape, np.nonzero(mask))
    rows = [part.axes["I"].indices for part in converted.parts]
    lengths = mask.sum(1)
    for stored, (least, most) in zip(rows, ((0, 1), (1, 2), (2, N)), strict=True):
        np.testing.assert_array_equal(stored, np.flatnonzero((lengths > least) & (lengths <= most)))
    assert converted.parts[-1].rule.name == "hyb_0_rest" and converted.parts[-1].padding == 0


def refused(code: str, text: str, rules: list[FormatRewriteRule]) -> None:
    with pytest.raises(tw.ArgumentError, match=text) as caught:
        convert_structure(rules, (M, N), np.nonzero(structure("random")))
    assert caught.value.code == code and caught.value.hint


def test_dropped_and_doubled_nonzeros_are_noticed() -> None:
    (csr,) = formats.csr(M, N)
    (csc,) = formats.csc(M, N)
    rows, columns = np.nonzero(structure("random"))
    first = int(np.flatnonzero(columns == 7)[0])
    place = rf"nonzero {first} at \({rows[first]}, 7\)"
    refused("sparse/partition", f"no rule takes {place}", [csr.when(lambda z: z.column != 7)])
    refused("sparse/partition", f"several rules take {place}", [csr, csc.when(lambda z: z.column == 7)])
    even, odd = (replace(csr.when(lambda z, o=o: z.column % 2 == o), disjoint_rows="rows") for o in (0, 1))
    refused("sparse/disjoint", r"rules 'csr' and 'csr_1' of group 'rows' both take nonzeros of row \d+", [even, odd])
    shared = FormatRewriteRule("halves", (dense("I", M), varied("J")), lambda z: (z.row, z.place // 2))
    refused("sparse/bijection", "'halves' gives the position of nonzero .* to another one", [shared])
    refused("sparse/key", "of nonzero .* along axis 'J' is ., not in 0 to before 2", formats.ell(M, N, 2))
    refused("sparse/key", "is -1, not 0 or more", [FormatRewriteRule("below", (varied("I"),), lambda z: (z.row - 1,))])
    refused("sparse/index-map", "gives 1 keys for 2 axes", [FormatRewriteRule("short", csr.axes, lambda z: (z.row,))])
    refused("sparse/index-map", "gives ndarray", [FormatRewriteRule("one", (dense("I", M),), lambda z: z.row)])


def test_positions_of_several_coordinates_are_refused() -> None:
    """A position along an axis stores one coordinate: rows 0 and 1 must not share one that stores the row."""
    rows, columns = np.nonzero(structure("random"))
    in_order = np.lexsort((columns, rows // 2))
    first = next(int(at) for at in np.sort(in_order) if any((rows // 2 == rows[at] // 2) & (rows != rows[at])))
    for axis in (dense("I", M // 2), varied("I"), compressed("I")):
        axes = (axis, dense("II", 2), dense("J", N))
        pairs = FormatRewriteRule("pairs", axes, lambda z: ((z.row // 2, z.row), z.row % 2, z.column))
        refused("sparse/bijection", f"gives nonzero {first} a position of axis 'I' that stores another", [pairs])


def test_offsets_that_contradict_coordinates_are_refused() -> None:
    rows, columns = (along.astype("int32") for along in np.nonzero(structure("empty rows")))
    offsets = np.searchsorted(rows, np.arange(M + 1)).astype("int32")
    for rules in (formats.csr(M, N), formats.ell(M, N, N), formats.csc(M, N)):
        expected = convert_structure(rules, (M, N), (rows, columns)).parts[0]
        for dtype in ("int32", "int64"):
            part = convert_structure(rules, (M, N), (rows, columns), offsets.astype(dtype)).parts[0]
            np.testing.assert_array_equal(part.source, expected.source)

        def refused_with(code: str, text: str, indptr: object, rules: list[FormatRewriteRule] = rules) -> None:
            with pytest.raises(tw.ArgumentError, match=text) as caught:
                convert_structure(rules, (M, N), (rows, columns), indptr)
            assert caught.value.code == code and caught.value.hint

        for at in (0, 1, M // 2, M):
            wrong = offsets.copy()
            wrong[at] += 1
            before = rf"indptr\[{at}\] is {wrong[at]}, and {offsets[at]} coordinates are in the rows before row {at}"
            refused_with("sparse/indptr", before, wrong)
        refused_with("sparse/indptr", f"indptr has {M} entries for {M} rows", offsets[:-1])
        refused_with("sparse/arrays", "indptr is an array of float64", offsets.astype("float64"))
        with pytest.raises(tw.ArgumentError, match="is in an earlier row"):
            convert_structure(rules, (M, N), (rows[::-1].copy(), columns), offsets)


def test_values_of_another_size() -> None:
    coordinates = np.nonzero(structure("random"))
    converted = convert_structure(formats.csr(M, N), (M, N), coordinates)
    for wrong in (lambda: converted.convert_values(np.zeros(3)), lambda: converted.values_back([np.zeros(3)] * 1)):
        with pytest.raises(tw.ArgumentError, match="values of shape") as caught:
            wrong()
        assert caught.value.code == "sparse/values"
    with pytest.raises(tw.ArgumentError, match="there are 1 parts"):
        converted.values_back([])


@pytest.mark.parametrize("dtype", ["bool", "int8", ">i4", "uint64", "float16", ">f4", ">f8"])
def test_values_of_any_type_and_byte_order(dtype: str) -> None:
    converted = convert_structure(formats.csr(3, 3), (3, 3), ([0, 1, 2], [0, 1, 2]))
    values = np.array([1, 0, 3]).astype(dtype)
    stored = converted.convert_values(values)
    assert np.array_equal(stored[0], values) and np.array_equal(converted.values_back(stored), values)


@pytest.mark.parametrize("values", [np.zeros(3, "complex64"), np.zeros(3, np.longdouble)])
def test_values_of_types_that_kernels_lack(values: np.ndarray) -> None:
    converted = convert_structure(formats.csr(3, 3), (3, 3), ([0, 1, 2], [0, 1, 2]))
    with pytest.raises(tw.ArgumentError, match="values of ") as caught:
        converted.convert_values(values)
    assert caught.value.code == "sparse/values"


def test_more_stored_elements_than_indices_count() -> None:
    coordinates = tuple(along.astype("int32") for along in np.nonzero(np.ones((2, 2))))
    with pytest.raises(tw.ArgumentError, match="2200000000 stored elements with indices of int32") as caught:
        convert_structure(formats.ell(2, 2, 1_100_000_000), (2, 2), coordinates)
    assert caught.value.code == "sparse/index-type"


def test_coordinates_that_are_damaged() -> None:
    rows, columns = (along.astype("int32") for along in np.nonzero(structure("random")))
    csr = formats.csr(M, N)

    def refused_with(code: str, text: str, *coordinates: np.ndarray) -> None:
        with pytest.raises(tw.ArgumentError, match=text) as caught:
            convert_structure(csr, (M, N), coordinates)
        assert caught.value.code == code and caught.value.hint

    refused_with("sparse/arrays", "1 arrays of coordinates", rows)
    refused_with("sparse/arrays", "2 arrays of coordinates", rows, columns[1:])
    refused_with("sparse/sorted", "is in an earlier row than nonzero", rows[::-1].copy(), columns)
    wrong = columns.copy()
    wrong[3] = N
    refused_with("sparse/index", r"coordinates\[1\]\[3\] is 36", rows, wrong)


def test_keys_below_zero_are_refused_wherever_they_are() -> None:
    """The key of the last nonzero of a row says nothing of the first one."""
    below = FormatRewriteRule("below", (dense("I", M), dense("J", 2 * N)), lambda z: (z.row, (z.place - 2, z.column)))
    refused("sparse/key", "along axis 'J' is -2, not in 0", [below])


def test_index_maps_of_arrays_alone() -> None:
    rule = FormatRewriteRule(
        "numpy", (dense("I", M), dense("J", N)), lambda z: (np.maximum(z.row, 0), (np.minimum(z.column, N), z.column))
    )
    mask = structure("random")
    converted = convert_structure([rule], mask.shape, np.nonzero(mask))
    np.testing.assert_array_equal(converted.parts[0].source.reshape(M, N) >= 0, mask)


@pytest.mark.parametrize(
    "make",
    [
        lambda: formats.bsr(30, 40, 0),
        lambda: formats.bsr(30, 40, (5, 4)),  # type: ignore[arg-type]
        lambda: formats.dbsr(30, 40, 2, -1),
        lambda: formats.hyb(30, 40, 0, 1),
        lambda: formats.hyb(30, 40, 2, -1),
        lambda: formats.sell(30, 40, 0),
        lambda: formats.sell(-3, 40),
        lambda: formats.sell(30, 40, 4, 0),
        lambda: formats.strided(5, 5, 0),
        lambda: formats.ell(30, 40, -1),
        lambda: formats.ell(30, 40, 2.5),  # type: ignore[arg-type]
        lambda: formats.padded_csr(30, 40, 0),
        lambda: formats.banded(30, 40, -5, 3),
        lambda: formats.sr_bcrs(30, 40, 4, 0),
        lambda: formats.csf(3, -1),
        lambda: formats.relational((2, 3, -4), 1),
        lambda: dense("I", -1),
    ],
)
def test_numbers_that_no_format_has(make) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        make()
    assert caught.value.code == "arguments/number"


def test_lists_as_coordinates_and_values() -> None:
    for rules in (formats.coo(5, 9), formats.csr(5, 9), formats.ell(5, 9, 2)):
        converted = convert_structure(rules, (5, 9), ([0, 0, 1], [1, 2, 4]))
        stored = converted.convert_values([1.0, 2.0, 3.0])
        assert converted.values_back([each.tolist() for each in stored]).tolist() == [1, 2, 3]
    with pytest.raises(tw.ArgumentError) as caught:
        convert_structure(formats.coo(5, 9), (5, 9), ([0.5, 1], [1, 2]))
    assert caught.value.code == "sparse/index-type"
    with pytest.raises(tw.ArgumentError) as caught:
        convert_structure(formats.coo(5, 9)[0], (5, 9), ([0], [1]))
    assert caught.value.code == "sparse/rules"


@pytest.mark.parametrize("name", FORMATS)
def test_nonzeros_at_one_position_are_refused(name: str) -> None:
    """Whether columns of the row ascend or not."""
    for columns in ([5, 3, 3, 7], [5, 7, 3, 7]):
        with pytest.raises(tw.ArgumentError, match="has occurred before") as caught:
            convert_structure(FORMATS[name][0], (M, N), ([0, 1, 1, 1], columns))
        assert caught.value.code == "sparse/duplicate"


@pytest.mark.parametrize("density", [0.0, 0.15, 0.6])
def test_rows_that_kernels_fill(monkeypatch: Any, density: float) -> None:
    """A kernel over rows stores what passes over all nonzeros do: where rows are listed, and where rules take some."""
    matrix = scipy.sparse.random(30, 40, density, "csr", random_state=4)
    matrix.sort_indices()
    coordinates = tuple(along.astype("int32") for along in matrix.tocoo().coords)
    (ell,) = formats.ell(30, 40, 40)
    halves = [ell.when(lambda z, odd=odd: z.row % 2 == odd) for odd in (0, 1)]
    listed = FormatRewriteRule("listed", (compressed("I"), varied("P"), dense("L", 3)), lambda z: (
        z.row, z.place // 3, (z.place % 3, z.column)
    ))  # fmt: skip
    for rules in (
        *(formats.dcsr(30, 40), formats.hyb(30, 40, 1, 3), formats.hyb(30, 40, 2, 2, cut=False), halves, [listed]),
        *(formats.coo(30, 40), formats.dbsr(30, 40, 2)),
    ):
        by_rows = convert_structure(rules, (30, 40), coordinates)
        with monkeypatch.context() as patched:
            patched.setattr(conversion, "by_rows_of", _none_by_rows)
            by_passes = convert_structure(rules, (30, 40), coordinates)
        same_parts(by_rows, by_passes)


@pytest.mark.parametrize(
    ("keys", "is_filled"),
    [
        (lambda z: ((z.row * z.longest + z.place // 2, z.row), (z.place % 2, z.column)), True),
        (lambda z: ((z.position // 1, z.row), (0, z.column)), True),
        # Rows one after another, but not in the order of their keys.
        (lambda z: (((29 - z.row) * z.longest + z.place // 2, z.row), (z.place % 2, z.column)), False),
        # Two rows share a position of the first axis.
        (lambda z: ((z.row // 2 * z.longest + z.place, z.row // 2), (z.row % 2, z.column)), None),
        # Keys that leave some out, in a row.
        (lambda z: ((z.row * 1000 + 2 * z.place, z.row), (0, z.column)), None),
    ],
)
def test_rows_are_cut_along_a_compressed_axis(keys: Any, is_filled: bool | None, monkeypatch: Any) -> None:
    """None: rules that are not filled by rows. False: only the structure shows that it cannot be."""
    rule = FormatRewriteRule("cut", (compressed("I"), dense("J", 2)), keys)
    mask = np.random.default_rng(4).random((30, 40)) < 0.2
    mask[[0, 3, 4, 29]], mask[7] = False, True
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    if is_filled is None:
        with pytest.raises(NotByRows):
            by_rows_of(rule, (30, 40))
    else:
        assert by_rows_of(rule, (30, 40)).is_cut
    counted = []
    monkeypatch.setattr(conversion, "row_copies", lambda *given: (counted.append(1), row_copies(*given))[1])
    by_rows = convert_structure([rule], (30, 40), coordinates)
    assert len(counted) == (is_filled is True)
    monkeypatch.setattr(conversion, "by_rows_of", _none_by_rows)
    same_parts(by_rows, convert_structure([rule], (30, 40), coordinates))


def same_parts(one: Any, other: Any) -> None:
    """Compare all arrays of two converted structures, and their types."""
    for part, same in zip(one.parts, other.parts, strict=True):
        arrays = [(part.source, same.source)]
        for name, axis in part.axes.items():
            also = same.axes[name]
            assert axis.count == also.count
            arrays += [(axis.indptr, also.indptr), (axis.indices, also.indices)]
        for array, expected in arrays:
            assert (array is None) == (expected is None)
            if array is not None:
                np.testing.assert_array_equal(array, expected)
                assert array.dtype == expected.dtype


@pytest.mark.parametrize("name", [*FORMATS, "sr_bcrs", "square blocks", "csf of 3", "relational"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_formulas_that_kernels_evaluate(monkeypatch: Any, name: str, index: str) -> None:
    """Kernels over all nonzeros store what passes over arrays of NumPy do."""
    more = {
        "sr_bcrs": ((M, N), formats.sr_bcrs(M, N, 4, 3)),
        "square blocks": ((M, N), formats.dbsr(M, N, 7)),
        "csf of 3": ((4, 8, 9), formats.csf(4, 8, 9)),
        "relational": ((4, 8, 9), formats.relational((4, 8, 9), 2)),
    }
    shape, rules = more[name] if name in more else ((M, N), FORMATS[name][0])
    for kind in STRUCTURES if len(shape) == 2 else ("random",):
        mask = structure(kind) if len(shape) == 2 else np.random.default_rng(5).random(shape) < 0.2
        coordinates = tuple(along.astype(index) for along in np.nonzero(mask))
        expected = convert_structure(rules, shape, coordinates)
        with monkeypatch.context() as patched:
            patched.setattr(conversion, "MANY_NONZEROS", 0)
            same_parts(convert_structure(rules, shape, coordinates), expected)


def test_formulas_of_random_rules(monkeypatch: Any) -> None:
    random, compared = np.random.default_rng(9), 0
    for _ in range(25):
        m, n = (int(random.integers(1, 20)) for _ in range(2))
        coordinates = tuple(along.astype("int32") for along in np.nonzero(random.random((m, n)) < 0.4))
        rule = random_rule(random, m, n)
        if stores_several(rule, (m, n), coordinates):
            continue
        expected = convert_structure([rule], (m, n), coordinates)
        with monkeypatch.context() as patched:
            patched.setattr(conversion, "MANY_NONZEROS", 0)
            patched.setattr(conversion, "by_rows_of", _none_by_rows)
            same_parts(convert_structure([rule], (m, n), coordinates), expected)
            nonzeros = by_nonzeros.AllNonzeros((m, n), coordinates, None)
            compared += isinstance(by_nonzeros.ByNonzeros(rule, nonzeros, "int32"), by_nonzeros.ByNonzeros)
    assert compared > 10


def test_formulas_that_int32_does_not_hold() -> None:
    """The keys of CSC are row * longest + place: 2 ** 20 * 2 ** 12 for this matrix."""
    m, n = 1 << 20, 1 << 12
    rows = np.concatenate([np.zeros(n), np.full(n, m - 1)]).astype("int32")
    columns = np.concatenate([np.arange(n)] * 2).astype("int32")
    (rule,) = formats.csc(m, n)
    nonzeros = by_nonzeros.AllNonzeros((m, n), (rows, columns), None)
    formulas = by_nonzeros.ByNonzeros(rule, nonzeros, "int32")
    assert formulas.dtype == "int64"
    keys = formulas.values(formulas.keys[1])
    assert keys is not None and keys[-1] == (m - 1) * n + n - 1


@pytest.mark.parametrize("many", [0, 1 << 40])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_conditions_of_whole_rows(monkeypatch: Any, kind: str, many: int) -> None:
    """Rows that rules take by their numbers and lengths are stored as single nonzeros are."""
    mask = structure(kind)
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    (csr,), (csc,), (sell,), (listed,) = (make(M, N) for make in (formats.csr, formats.csc, formats.sell, formats.dcsr))
    short, long = (lambda z: z.length < 5), (lambda z: z.length >= 5)
    even, odd = (lambda z: z.row % 2 == 0), (lambda z: z.row % 2 == 1)
    for rules, by_rows in (
        (formats.hyb(M, N, 1, 1), True),
        (formats.hyb(M, N, 1, 2, cut=False), True),
        ([sell.when(short), csr.when(long)], True),
        ([csc.when(short, even), listed.when(short, odd), sell.when(long)], True),
        ([csr.when(lambda z: z.column >= 0)], True),  # holds for all columns that there are
        (formats.hyb(M, N, 2, 1), not mask.any()),
        ([csc.when(lambda z: z.place < z.length // 2), csr.when(lambda z: z.place >= z.length // 2)], not mask.any()),
    ):
        found: list[bool] = []

        def observed(rules: Any, nonzeros: Any, found: list[bool] = found) -> Any:
            found.append((rows := rows_of_rules(rules, nonzeros)) is not None)
            return rows

        with monkeypatch.context() as patched:
            patched.setattr(conversion, "MANY_NONZEROS", many)
            patched.setattr(conversion, "rows_of_rules", observed)
            converted = convert_structure(rules, (M, N), coordinates)
            patched.setattr(conversion, "rows_of_rules", lambda *_: None)
            patched.setattr(conversion, "MANY_NONZEROS", 1 << 40)
            same_parts(converted, convert_structure(rules, (M, N), coordinates))
        assert found == [by_rows] or not mask.any()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_large_structures_against_scipy(threads: int, index: str) -> None:
    """More nonzeros than one range of the core has: columns, blocks, and strips of rows of any length."""
    mask = np.random.default_rng(4).random((3000, 2000)) < 0.012
    mask[7], mask[8] = True, False
    matrix = scipy.sparse.csr_array(mask.astype("float64"))
    matrix.data = np.arange(1.0, matrix.nnz + 1)
    coordinates = tuple(along.astype(index) for along in matrix.tocoo().coords)
    before = tw.get_num_threads()
    tw.set_num_threads(threads)
    try:
        parts = {
            name: convert_structure(rules, matrix.shape, coordinates).parts[0]
            for name, rules in {
                "csc": formats.csc(*matrix.shape),
                "coo": formats.coo(*matrix.shape),
                "bsr": formats.bsr(*matrix.shape, 4, 5),
                "dbsr": formats.dbsr(*matrix.shape, 4, 5),
                "csf": formats.csf(*matrix.shape),
            }.items()
        }
    finally:
        tw.set_num_threads(before)
    csc, bsr = matrix.tocsc(), matrix.tobsr((4, 5))
    csc.sort_indices()
    bsr.sort_indices()
    values = {name: np.append(matrix.data, 0)[part.source] for name, part in parts.items()}
    np.testing.assert_array_equal(parts["csc"].axes["I"].indptr, csc.indptr)
    np.testing.assert_array_equal(parts["csc"].axes["I"].indices, csc.indices)
    np.testing.assert_array_equal(values["csc"], csc.data)
    for name in ("bsr", "dbsr"):
        kept = slice(None) if name == "bsr" else np.append(True, np.diff(bsr.indptr) > 0)
        np.testing.assert_array_equal(parts[name].axes["JO"].indptr, bsr.indptr[kept])
        np.testing.assert_array_equal(parts[name].axes["JO"].indices, bsr.indices)
        np.testing.assert_array_equal(values[name], bsr.data.ravel())
    for name, axes in (("coo", ("I", "J")), ("csf", ("I0", "I1"))):
        np.testing.assert_array_equal(values[name], matrix.data)
        np.testing.assert_array_equal(parts[name].axes[axes[1]].indices, matrix.indices)
    np.testing.assert_array_equal(parts["coo"].axes["I"].indices, coordinates[0])
    np.testing.assert_array_equal(parts["csf"].axes["I0"].indices, np.unique(coordinates[0]))


def _none_by_rows(*_: Any) -> Any:
    raise NotByRows("of a test")
