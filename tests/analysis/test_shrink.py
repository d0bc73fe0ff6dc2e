"""Which sizes of programs scale, and that the small programs do nothing wrong."""

import numpy as np
import pytest

import tilewright as tw
from interpreter.programs import INDEX_LIMITS, PROGRAMS, arguments_of
from tilewright import _core
from tilewright.script import tir as T

#: programs with a size that scales, and the shape of Y afterwards
SMALL = {
    "padded_conv2d": (9, 20, 22),
    "strided_conv1d": (31,),
    "dilated_conv1d": (56,),
    "mirrored": (256, 9),
    "max_pool": (9, 20, 20),
    "gather": (11, 9),
    "softmax": (9, 11),
    "layer_norm": (9, 11),
    "in_place": (9, 11),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_shrunk_runs(name: str) -> None:
    program = PROGRAMS[name]
    small = _core.shrink(program)
    arrays = arguments_of(small, INDEX_LIMITS.get(name, 0))
    tw.ir.interpret(tw.ir.Module({"main": small}), "main", *arrays.values())
    tw.ir.verify(tw.ir.Module({"main": small}))
    if name in SMALL:
        assert arrays["Y"].shape == SMALL[name]
    elif name != "scatter":  # its source may be any part
        assert small is program or _core.structural_equal(small, program)


def test_a_part_of_a_dimension_keeps_its_size() -> None:
    @T.prim_func
    def half(X: T.Buffer((100,), "float32"), Y: T.Buffer((50,), "float32")):
        for i in range(50):
            with T.block("Y"):
                vi = T.axis.spatial(50, i)
                Y[vi] = X[vi]

    assert _core.structural_equal(_core.shrink(half), half)


def test_a_size_used_as_a_number_keeps_it() -> None:
    @T.prim_func
    def count(X: T.Buffer((100,), "float32"), Y: T.Buffer((100,), "float32")):
        for i in range(100):
            with T.block("Y"):
                vi = T.axis.spatial(100, i)
                Y[vi] = X[vi] + T.Cast("float32", vi)

    assert _core.structural_equal(_core.shrink(count), count)


def test_equal_sizes_that_are_not_linked_are_told_apart() -> None:
    @T.prim_func
    def turned(X: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32")):
        for i, j in T.grid(64, 64):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[63 - vi, vj]

    small = _core.shrink(turned)
    arrays = arguments_of(small)
    assert arrays["Y"].shape == (64, 9)
    tw.ir.interpret(tw.ir.Module({"main": small}), "main", *arrays.values())
    np.testing.assert_array_equal(arrays["Y"], arrays["X"][::-1])
