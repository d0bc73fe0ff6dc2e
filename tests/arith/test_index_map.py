"""Maps of indices against enumeration of all points."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.task.index_map import map_array


def value(e, names):
    """The number that a constant expression is after its variables have got values."""
    analyzer = tw.arith.Analyzer()
    for variable, number in names.items():
        analyzer.bind(variable, ir.const(number, variable.dtype))
    found = analyzer.simplify(e)
    assert isinstance(found, ir.IntImm), e
    return found.value


def numbers(expressions):
    return [e.value for e in expressions]


MAPS = [
    (lambda i: (i // 4, i % 4), (16,)),
    (lambda i: (i // 4, i % 4), (14,)),
    (lambda i: (i // 4, i % 4), (3,)),
    (lambda i: ((i + 1) // 4, (i + 1) % 4), (15,)),
    (lambda i: ((i + 1) // 4, (i + 1) % 4), (14,)),
    (lambda i: ((i + 5) // 32, (i + 5) // 4 % 8, (i + 5) % 4), (116,)),
    (lambda i: (i % 4, i // 4 % 8, i // 32), (116,)),
    (lambda i, j: (j, i), (5, 3)),
    (lambda i, j: i * 7 + j, (5, 7)),
    (lambda i, j: ((i + 1) // 4, (j + 5) // 8, (i + 1) % 4, (j + 5) % 8), (14, 31)),
    (lambda i, j: (i // 4 * 4 + i % 4, j), (8, 3)),
    (lambda i, j: (0 * i, i, j), (2, 3)),
    (lambda i, j: (j, 4 - i), (5, 3)),
    (lambda i: ((13 - i) // 4, (13 - i) % 4), (14,)),
    (lambda i, j: 34 - (i * 7 + j), (5, 7)),
    (lambda i, j: i * 7 + (6 - j), (5, 7)),
]


@pytest.mark.parametrize(("function", "shape"), MAPS)
def test_inverse_and_padding(function, shape):
    index_map = T.index_map(function)
    new_shape = numbers(index_map.map_shape(list(shape)))
    inverse, padding = index_map.non_surjective_inverse(list(shape))
    images = {}
    for point in itertools.product(*map(range, shape)):
        images[tuple(numbers(index_map.map_indices(list(point))))] = point
    assert len(images) == np.prod(shape)
    for point in itertools.product(*map(range, new_shape)):
        names = dict(zip(inverse.initial_indices, point, strict=True))
        assert (value(padding, names) != 0) == (point not in images), (point, padding)
        if point in images:
            assert tuple(numbers(inverse.map_indices(list(point)))) == images[point]
    if len(images) == np.prod(new_shape):
        assert index_map.inverse(list(shape)).is_equivalent_to(inverse)
    else:
        with pytest.raises(tw.ArgumentError, match="index-map/bijective"):
            index_map.inverse(list(shape))


def test_padding_reads_as_one_would_write_it():
    _, padding = T.index_map(lambda i: (i // 4, i % 4)).non_surjective_inverse([14])
    assert padding.script() == "axis0 == 3 and 2 <= axis1"


def test_symbolic_sizes():
    n = T.Var("n", "int32")
    inverse, padding = T.index_map(lambda i: (i // 4, i % 4)).non_surjective_inverse([n])
    assert inverse.is_equivalent_to(T.index_map(lambda i, j: i * 4 + j))
    q, r = inverse.initial_indices
    for size, at in itertools.product((1, 4, 6, 7, 8), range(12)):
        if at // 4 < -(-size // 4):
            assert (value(padding, {n: size, q: at // 4, r: at % 4}) != 0) == (at >= size)
    flat = T.index_map(lambda i, j: i * n + j)
    assert flat.inverse([8, n]).is_equivalent_to(T.index_map(lambda x: (x // n, x % n)))


def test_divisors_may_be_symbolic():
    n = T.Var("n", "int32")
    index_map = T.index_map(lambda i: (i // n, i % n))
    rows, columns = index_map.map_shape([16])
    inverse, padding = index_map.non_surjective_inverse([16])
    for size in (1, 3, 4, 5, 16, 20):
        shape = value(rows, {n: size}), value(columns, {n: size})
        assert shape == (-(-16 // size), size)
        for i, j in itertools.product(*map(range, shape)):
            names = {n: size, inverse.initial_indices[0]: i, inverse.initial_indices[1]: j}
            assert (value(padding, names) != 0) == (i * size + j >= 16)
            assert value(inverse.final_indices[0], names) == i * size + j


@pytest.mark.parametrize(
    ("function", "shape", "code"),
    [
        (lambda i: i, (4, 4), "index-map/count"),
        (lambda i: T.max(i, 2), (4,), "index-map/form"),
        (lambda i, j: i + j, (4, 4), "index-map/injective"),
        (lambda i: (i // 4, (i + 1) % 4), (16,), "index-map/injective"),
        (lambda i: i + 1, (4,), "index-map/start"),
        (lambda i: i * 2, (4,), "index-map/holes"),
        (lambda i, j: i * 65536 + j, (65536, 65536), "index-map/size"),
    ],
)
def test_what_has_no_inverse(function, shape, code):
    with pytest.raises(tw.ArgumentError, match=code):
        T.index_map(function).non_surjective_inverse(list(shape))


def test_shapes_without_ends():
    with pytest.raises(tw.ArgumentError, match="index-map/shape"):
        T.index_map(lambda i: T.abs(i)).map_shape([4])


def test_shapes_that_no_type_holds():
    with pytest.raises(tw.ArgumentError, match="index-map/shape"):
        T.index_map(lambda i: i * 65536).map_shape([65536])
    assert [int(n) for n in T.index_map(lambda i, j: i * 65536 + j).map_shape([T.int64(65536), T.int64(65536)])] == [
        2**32
    ]


def test_equivalence():
    index_map = T.index_map(lambda i, j: (i * 4 + j, j))
    assert index_map.is_equivalent_to(T.index_map(lambda a, b: (b + 4 * a, b), index_dtype="int64"))
    assert not index_map.is_equivalent_to(T.index_map(lambda a, b: (b, b + 4 * a)))
    assert not index_map.is_equivalent_to(T.index_map(lambda a: (a, a)))
    with pytest.raises(tw.ArgumentError, match="index-map/count"):
        index_map.map_indices([1])


def test_functions_of_any_number_of_indices():
    index_map, separators = T.index_map_with_separators(lambda *i, k: (*i, T.AXIS_SEPARATOR, k // 4, k % 4), ndim=3)
    assert len(index_map.initial_indices) == 3
    assert len(index_map.final_indices) == 4
    assert separators == [2]
    with pytest.raises(tw.ScriptError, match="script/index-map"):
        T.index_map(lambda *i: i)
    with pytest.raises(tw.ScriptError, match="script/index-map"):
        T.index_map(lambda i: (i, T.AXIS_SEPARATOR))
    with pytest.raises(tw.ScriptError, match="script/index-map"):
        T.index_map(lambda **i: i)
    with pytest.raises(tw.ScriptError, match="Python does not know what 'max' takes"):
        T.index_map(max)


def test_arrays():
    array = np.arange(14, dtype="int16")
    moved = map_array(T.index_map(lambda i: (i // 4, i % 4)), array)
    np.testing.assert_array_equal(moved, np.pad(array, (0, 2)).reshape(4, 4))
    array = np.arange(15).reshape(3, 5)
    np.testing.assert_array_equal(map_array(T.index_map(lambda i, j: (j, i)), array), array.T)
