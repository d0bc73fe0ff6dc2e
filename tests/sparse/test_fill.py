"""Rows that a kernel fills in the order of memory, the gather of values, and the memory of converted arrays."""

import gc
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.sparse import conversion, formats
from tilewright.sparse.array_kernels import gather_kernel
from tilewright.sparse.array_memory import kept_array_memory
from tilewright.sparse.by_nonzeros import MANY_NONZEROS
from tilewright.sparse.conversion import convert_structure
from tilewright.sparse.fill import NotByRows, by_rows_of
from tilewright.sparse.format_rule import FormatRewriteRule, compressed, dense, varied
from tilewright.sparse.row_copies import _copying_lanes
from tilewright.timing import limit_threads

M, N = 37, 50


def one(axes: tuple[Any, ...], index_map: Any) -> FormatRewriteRule:
    return FormatRewriteRule("own", axes, index_map)


#: rules, and how many of their rows are lanes of a group; 0: elements in another order
RULES = {
    "csr": (formats.csr(M, N)[0], 1),
    "ell": (formats.ell(M, N, N)[0], 1),
    "padded CSR": (formats.padded_csr(M, N, 3)[0], 1),
    "dcsr": (formats.dcsr(M, N)[0], 1),
    "coo": (formats.coo(M, N)[0], 1),
    "cut rows": (formats.hyb(M, N, 1, 0)[0], 1),
    "cut in fours": (
        one((compressed("I"), dense("J", 4)), lambda z: ((z.row * 99 + z.place // 4, z.row), (z.place % 4, z.column))),
        1,
    ),
    "sell": (formats.sell(M, N, 16)[0], 16),
    "sell of slices in parts": (formats.sell(M, N, 32)[0], 32),
    "sell of one slice": (formats.sell(M, N, 64)[0], 64),
    "sell in windows": (formats.sell(M, N, 4, 8)[0], 4),
    "rows of sell alone": (formats.sell(M, N, 1)[0], 1),
    "sell without order": (
        one((dense("S", 5), varied("P"), dense("L", 8)), lambda z: (z.row // 8, z.place, (z.row % 8, z.column))),
        8,
    ),
    "lanes of no vector": (formats.sell(M, N, 5)[0], 0),
    "columns first": (
        one((dense("J", N), dense("I", M)), lambda z: (z.place, (z.row, z.column))),
        0,
    ),
    "lanes behind one another": (
        one((dense("S", 10), dense("L", 4), dense("P", N)), lambda z: (z.row // 4, z.row % 4, (z.place, z.column))),
        0,
    ),
    "places not known to ascend": (
        one((dense("I", M), dense("J", N)), lambda z: (z.row, (z.place % N, z.column))),
        0,
    ),
}


def _none_by_rows(*_: Any) -> Any:
    raise NotByRows("none")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", RULES)
def test_rows_in_groups(name: str, dtype: str, monkeypatch: Any) -> None:
    """The kernel stores what passes over nonzeros store: of full rows, empty ones, and rows longer than a vector."""
    rule, lanes = RULES[name]
    assert by_rows_of(rule, (M, N)).lanes == lanes
    for density in (0.0, 0.05, 0.4, 1.0):
        random = np.random.default_rng(int(100 * density))
        mask = random.random((M, N)) < density * random.random((M, 1)) * 2
        coordinates = tuple(along.astype(dtype) for along in np.nonzero(mask))
        filled = convert_structure([rule], (M, N), coordinates)
        with monkeypatch.context() as patched:
            patched.setattr(conversion, "by_rows_of", _none_by_rows)
            expected = convert_structure([rule], (M, N), coordinates)
        (part,), (same,) = filled.parts, expected.parts
        np.testing.assert_array_equal(part.source, same.source, strict=True)
        for axis in rule.axes:
            for got, want in (
                (part.axes[axis.name].indptr, same.axes[axis.name].indptr),
                (part.axes[axis.name].indices, same.axes[axis.name].indices),
            ):
                assert (got is None) == (want is None)
                if got is not None:
                    np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool", "int64"])
@pytest.mark.parametrize("name", ["csr", "ell", "padded CSR", "dcsr", "cut rows", "cut in fours", "sell", "coo"])
def test_values_are_copied_by_rows(name: str, dtype: str) -> None:
    """They are those that `source` says, whether or not vectors reach behind the end of a task, an array, or a row."""
    rule, _ = RULES[name]
    random = np.random.default_rng(5)
    for density in (0.0, 0.03, 0.5, 1.0):
        rows, columns = np.nonzero(random.random((M, N)) < density)
        converted = convert_structure([rule], (M, N), (rows.astype("int32"), columns.astype("int32")))
        values = random.integers(1, 2 if dtype == "bool" else 100, len(rows)).astype(dtype)
        (stored,), (part,) = converted.convert_values(values), converted.parts
        want = np.where(part.source >= 0, np.append(values, 0)[part.source], 0).astype(dtype)
        np.testing.assert_array_equal(stored, want, strict=True)
        again = pickle.loads(pickle.dumps(part)) if rule.shape else part  # rules of one's own have no name for pickle
        np.testing.assert_array_equal(again.stored(values), want, strict=True)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("length", "empty"), [(1, 0), (3, 0), (3, 2), (8, 0), (9, 0), (21, 5)])
def test_one_rule_takes_all_rows(length: int, empty: int, dtype: str) -> None:
    """All rows that are not empty are of one length; the other rules hold nothing, and that twice."""
    m, n = 40, 30
    lengths = np.full(m, length)
    lengths[:empty] = 0
    rows = np.repeat(np.arange(m), lengths)
    columns = np.concatenate([np.arange(each) + (r % (n - each) if each else 0) for r, each in enumerate(lengths)])
    values = np.arange(1.0, len(rows) + 1)
    owner = min((length - 1).bit_length(), 3)
    width = 1 << owner
    chunks = -(-length // width)
    for _ in range(2):
        converted = convert_structure(formats.hyb(m, n, 1, 3), (m, n), (rows.astype(dtype), columns.astype(dtype)))
        for number, (part, stored) in enumerate(zip(converted.parts, converted.convert_values(values), strict=True)):
            count = (m - empty) * chunks if number == owner else 0
            assert part.size == len(stored) == count << number
            axis = part.axes["I"]
            np.testing.assert_array_equal(axis.indptr, np.array([0, count], dtype), strict=True)
            kept = np.repeat(np.arange(empty, m, dtype=dtype), chunks)
            np.testing.assert_array_equal(axis.indices, kept if number == owner else kept[:0], strict=True)
            assert len(part.source) == part.size
        dense = np.zeros((m - empty, chunks * width))
        dense[:, :length] = values.reshape(-1, length)
        np.testing.assert_array_equal(converted.convert_values(values)[owner], dense.ravel())


def test_slices_of_more_rows_need_no_more_code() -> None:
    """Rows are transposed in parts: time to compile does not grow with the slices."""
    lines = []
    for rows in (16, 32, 64):
        by_rows = by_rows_of(formats.sell(500, 500, rows)[0], (500, 500))
        program = _copying_lanes(by_rows, "int32", True, "float32")
        lines.append(str(tw.compile(program, schedule=None).inspect("llvm")).count("\n"))
    assert max(lines) < 1.3 * lines[0]


@pytest.mark.parametrize("name", ["csr", "ell", "padded_csr", "hyb", "sell"])
def test_tasks_do_not_store_into_each_other(name: str) -> None:
    """Rows of several tasks, on two threads: each element is the one of its own row."""
    m, n = 3000, 40
    random = np.random.default_rng(8)
    mask = random.random((m, n)) < random.random((m, 1)) ** 4
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    rules = getattr(formats, name)(m, n, *{"ell": (n,), "padded_csr": (4,), "hyb": (1, 3)}.get(name, ()))
    values = random.standard_normal(len(coordinates[0]))
    for _ in range(5):
        with limit_threads(2):
            converted = convert_structure(rules, (m, n), coordinates)
            stored = converted.convert_values(values)
        np.testing.assert_array_equal(converted.values_back(stored), values)
        for part, elements in zip(converted.parts, stored, strict=True):
            want = np.where(part.source >= 0, values[part.source], 0)
            np.testing.assert_array_equal(elements, want)
            last = part.axes[part.rule.axes[-1].name].indices
            np.testing.assert_array_equal(last, np.where(part.source >= 0, coordinates[1][part.source], 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_gather(dtype: str, index_dtype: str) -> None:
    """Runs of neighbors, runs with a gap or a swap of two in between, and padding; NaN behind nothing."""
    random = np.random.default_rng(1)
    kernel = gather_kernel(dtype, index_dtype)
    for size in [0, 1, 15, 16, 17, 31, 32, 33, 70, 200]:
        for count in (0, 1, 40, 300):
            values = random.standard_normal(count).astype(dtype)
            values[::7] = np.nan
            source = np.full(size, -1, index_dtype)
            for begin in range(0, size, 16):
                own = source[begin : begin + 16]
                if (kind := random.integers(5)) < 4 and count >= 16:
                    own[:] = random.integers(count - 15) + np.arange(len(own))
                    if kind == 1:
                        own[random.integers(len(own))] = -1
                    if kind == 2:
                        own[:] = own[::-1].copy()
                    if kind == 3 and len(own) > 4:
                        own[[1, 3]] = own[[3, 1]]
                elif count:
                    own[:] = random.integers(-1, count, len(own))
            stored = np.full(size, 7, dtype)
            kernel(values, source, stored)
            expected = np.where(source >= 0, values[source] if count else 0, 0).astype(dtype)
            assert stored.tobytes() == expected.tobytes()


class Shift:
    """An index map in which rows begin with empty positions."""

    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, z: Any) -> Any:
        return z.row, (z.place + self.by, z.column)

    def method(self, z: Any) -> Any:
        return self(z)


SHIFT = [0]


def shift_of_a_list(z: Any) -> Any:
    return z.row, (z.place + SHIFT[0], z.column)


def shifted(by: int) -> Any:
    def index_map(z: Any, *, by: int = by) -> Any:
        return z.row, (z.place + by, z.column)

    return index_map


@pytest.mark.parametrize("kind", ["object", "method", "list", "keyword"])
def test_maps_that_change_between_conversions(kind: str) -> None:
    shift = Shift(0)
    for by in (1, 2, 3, 1, 0, 1):
        shift.by = SHIFT[0] = by
        maps = {"object": shift, "method": shift.method, "list": shift_of_a_list, "keyword": shifted(by)}
        rule = one((dense("I", 2), varied("J")), maps[kind])
        coordinates = np.array([0, 0, 1], "int32"), np.array([0, 2, 1], "int32")
        (part,) = convert_structure([rule], (2, 3), coordinates).parts
        assert part.source.tolist() == [*by * [-1], 0, 1, *by * [-1], 2]


def test_a_map_that_has_changed_is_not_used_for_one_that_has_not() -> None:
    """What was proved for a map is kept for equal ones, and not by a function whose values change later."""

    def counter(by: int) -> Any:
        def index_map(z: Any) -> Any:
            return z.row, (z.place + by, z.column)

        def change(to: int) -> None:
            nonlocal by
            by = to

        return index_map, change

    axes, coordinates = (dense("I", 3), varied("J")), (np.array([0, 2], "int32"), np.array([1, 2], "int32"))
    first, change = counter(1)
    assert by_rows_of(one(axes, first), (3, 3)).lanes == 0  # proved, without a kernel
    change(2)
    same, _ = counter(1)
    for index_map, by in ((same, 1), (first, 2), (counter(1)[0], 1)):
        (part,) = convert_structure([one(axes, index_map)], (3, 3), coordinates).parts
        assert part.source.tolist() == [*by * [-1], 0, *by * [-1], 1]


@pytest.mark.parametrize("name", ["csr", "padded CSR", "ell", "sell", "sell in windows", "sell without order"])
def test_rules_for_some_rows_leave_those_of_others_out(name: str, monkeypatch: Any) -> None:
    """A group is of neighboring rows, also where a few of them are stored by another rule."""
    rule, other = RULES[name][0], formats.dcsr(M, N)[0]
    coordinates = np.nonzero(np.random.default_rng(8).random((M, N)) < 0.3)
    for chosen in (lambda z: z.row == 5, lambda z: z.row % 2 == 1, lambda z: z.length < 15):
        rules = [rule.when(lambda z, chosen=chosen: ~chosen(z)), other.when(chosen)]
        parts = convert_structure(rules, (M, N), coordinates).parts
        with monkeypatch.context() as patched:
            patched.setattr(conversion, "rows_of_rules", lambda *_: None)
            patched.setattr(conversion, "by_rows_of", _none_by_rows)
            expected = convert_structure(rules, (M, N), coordinates).parts
        for part, same in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part.source, same.source)


@pytest.mark.parametrize("name", ["ell", "padded_csr", "sell", "hyb", "coo"])
def test_threads_fill_groups_of_their_own(name: str) -> None:
    """Rows of any length, so that threads are in different groups at any time."""
    m, n = 60_000, 64
    mask = np.random.default_rng(9).random((m, n)) < np.random.default_rng(10).random((m, 1)) ** 8
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    rules = getattr(formats, name)(m, n, *{"ell": (n,), "padded_csr": (4,), "hyb": (1, 3)}.get(name, ()))
    with limit_threads(1):
        expected = convert_structure(rules, (m, n), coordinates).parts
    for _ in range(3):
        with limit_threads(2):
            parts = convert_structure(rules, (m, n), coordinates).parts
        for part, same in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(part.source, same.source)
            for axis, also in zip(part.axes.values(), same.axes.values(), strict=True):
                np.testing.assert_array_equal(axis.indices, also.indices)
                np.testing.assert_array_equal(axis.indptr, also.indptr)


def test_threads_have_buffers_of_their_own() -> None:
    """Buffers of a group are allocated in the loop that threads share."""
    by_rows = by_rows_of(RULES["sell"][0], (M, N))
    lines = _copying_lanes(by_rows, "int32", True, "float32").script().splitlines()
    (loop,) = (number for number, line in enumerate(lines) if "T.parallel" in line)
    allocated = [number for number, line in enumerate(lines) if "T.alloc_buffer" in line]
    assert allocated and min(allocated) > loop


def test_conditions_and_keys_about_arrays_over_rows() -> None:
    """Arrays that have as many elements as there are different lengths are not taken for ones over lengths."""
    count = 20
    lengths = np.random.default_rng(6).permutation(count) + 1  # all of them occur once
    coordinates = np.nonzero(np.arange(count + 4) < lengths[:, None])
    for size in (count, count + 1):  # rows: of lengths from 0 or 1 to the longest one
        mine = np.arange(size) % 2 == 0
        rules = [
            formats.csr(count, count + 4)[0].when(lambda z, mine=mine: mine[z.row] & (z.length > 0)),
            formats.csr(count, count + 4)[0].when(lambda z, mine=mine: ~mine[z.row] & (z.length > 0)),
        ]
        parts = convert_structure(rules, (count, count + 4), coordinates).parts
        for part, odd in zip(parts, (0, 1), strict=True):
            kept = coordinates[0] % 2 == odd
            np.testing.assert_array_equal(np.sort(part.source), np.flatnonzero(kept))
    weights = np.random.default_rng(7).permutation(count)
    rule = one(
        (dense("S", count), varied("P"), dense("L", 1)),
        lambda z: (z.rank(lambda rows: weights + 0 * rows.length), z.place, (0, z.column)),
    )
    (part,) = convert_structure([rule], (count, count + 4), coordinates).parts
    begins = np.cumsum(lengths) - lengths
    want = np.concatenate([np.arange(begins[row], begins[row] + lengths[row]) for row in np.argsort(weights)])
    np.testing.assert_array_equal(part.source, want)


def test_freed_arrays_leave_their_memory_to_later_ones() -> None:
    count = 1 << 18
    with kept_array_memory():
        array = np.full(count, 3, "int32")
        address = array.ctypes.data
        array = None
        again = np.zeros(count, "int32")
    assert again.ctypes.data == address and address % 64 == 0 and not again.any()
    again[:] = 5
    del again  # outside of the context: arrays know where their memory is from
    assert _core.idle_array_memory() >= count * 4
    with kept_array_memory():
        grown = np.arange(10)
        grown.resize(count, refcheck=False)
        grown[10:] = 1
        grown.resize(20, refcheck=False)
    np.testing.assert_array_equal(grown, [*range(10), *[1] * 10])


@pytest.mark.parametrize("name", ["csc", "bsr", "coo", "csf", "sr_bcrs", "hyb", "sell", "ell"])
def test_conversions_keep_no_array(name: str) -> None:
    """Not in the exception of a rule that is not filled by rows, nor in a cycle until Python collects garbage."""
    more = {"bsr": (4,), "sr_bcrs": (4, 8), "hyb": (1, 3), "ell": (300,)}.get(name, ())
    rules = getattr(formats, name)(300, 300, *more)
    mask = np.random.default_rng(0).random((300, 300)) < 0.3
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    assert len(coordinates[0]) >= MANY_NONZEROS
    gc.disable()
    try:
        counts = [sys.getrefcount(along) for along in coordinates]
        for _ in range(2):
            convert_structure(rules, (300, 300), coordinates)
        assert [sys.getrefcount(along) for along in coordinates] == counts
    finally:
        gc.enable()


def test_other_arrays_are_numpys() -> None:
    """Also after an error, and of maps that ask for arrays within a conversion."""
    before = _core.set_array_memory()
    _core.set_array_memory(before)
    rules = [FormatRewriteRule("own", (dense("I", 3),), lambda z: (z.row + 5,))]
    with pytest.raises(tw.ArgumentError):
        convert_structure(rules, (3, 3), (np.arange(3), np.arange(3)))
    after = _core.set_array_memory(before)
    assert after is before
