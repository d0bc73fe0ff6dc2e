"""The pass check_sizes: sizes of a call for which an extent would leave its type are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lower.passes import agrees, check_unchanged

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T


@T.prim_func
def tiles(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int8")
    for i_0, i_1 in T.grid((n + 9) // 10, 10):
        if i_0 * 10 + i_1 < n:
            A[i_0 * 10 + i_1] = T.int8(1)


def test_an_extent_of_sizes_is_compared_with_its_type() -> None:
    # The limits are those of the program before lowering, whose extents other passes change.
    text = tw.lower(tiles, after="check_sizes").script()
    assert text.count("assert ") == 1 and "2147483647" in text
    assert text.index("assert ") < text.index("for ")
    for n in (0, 1, 25):
        agrees(tiles, "check_sizes", [np.zeros(n, "int8")], [np.ones(n, "int8")])


def test_a_call_that_is_too_large_is_refused_before_it_writes() -> None:
    """The extent is n * 65536, in 32 bits."""
    program = script.from_source("""@T.prim_func
def main(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i in range(n * 65536):
        if i < n:
            A[i] = 1
""")
    kernel = tw.compile(program, schedule="as written")
    least, most = np.zeros(4, "int32"), np.zeros(1 << 15, "int32")
    kernel(least)
    assert least.all()
    with pytest.raises(tw.Error, match="hint:"):
        kernel(most)
    assert not most.any()


def test_constant_sizes_are_not_compared() -> None:
    @T.prim_func
    def constant(A: T.Buffer((25,), "int8")):
        for i_0, i_1 in T.grid((25 + 9) // 10, 10):
            if i_0 * 10 + i_1 < 25:
                A[i_0 * 10 + i_1] = T.int8(1)

    check_unchanged(constant, "check_sizes")
