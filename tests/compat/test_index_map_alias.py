"""tvm.tir.IndexMap."""

PROGRAM = """
import numpy as np
import tilewright.compat.tvm
import tvm, tvm.testing
from tvm import te
from tvm.tir import IndexMap, IntImm, Schedule

index_map = IndexMap.from_func(lambda i: [i // 4, i % 4], index_dtype="int32")
numbers = lambda *values: [IntImm("int32", value) for value in values]
tvm.ir.assert_structural_equal(list(index_map.map_indices(numbers(7))), numbers(1, 3))
tvm.ir.assert_structural_equal(list(index_map.map_shape([16])), numbers(4, 4))
assert index_map.inverse([16]).is_equivalent_to(IndexMap.from_func(lambda i, j: [4 * i + j], index_dtype="int32"))
try:
    index_map.inverse([14])
except tvm.TVMError as error:
    print(error)
inverse, padding = index_map.non_surjective_inverse([14])
i, j = inverse.initial_indices
analyzer = tvm.arith.Analyzer()
expected = analyzer.simplify(tvm.tir.And(i == 3, tvm.tir.GE(j, 2)))
tvm.ir.assert_structural_equal(analyzer.simplify(padding), expected)
moved = index_map.map_ndarray(tvm.nd.array(np.arange(16)))
np.testing.assert_array_equal(moved.numpy(), np.arange(16).reshape(4, 4))
named = IndexMap.from_func(lambda *axis, last: [last, *axis], ndim=3)
print(named.initial_indices, named.initial_indices[0].dtype)
split, separators = IndexMap.from_func_with_separators(lambda i: [i // 4, IndexMap.AXIS_SEPARATOR, i % 4])
print(len(split.final_indices), separators, te.AXIS_SEPARATOR is IndexMap.AXIS_SEPARATOR)
given = IndexMap.from_func(lambda i: i // 4 * 4 + i % 4, inverse_index_map=lambda i: i)
assert given.inverse([16]) is given.inverse_index_map
"""


def test_index_map(python):
    lines = python(PROGRAM)
    assert "index-map/bijective" in lines[0]
    assert lines[-2:] == ["(axis0, axis1, last) int64", "2 [1] True"]
