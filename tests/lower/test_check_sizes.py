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


@pytest.mark.parametrize(
    "extent", ["n * m", "n + m", "n - m", "(0 - n) * m", "n * m // T.int64(4)", "(n + m) * T.min(n, m)", "n * n"]
)
def test_numbers_for_which_an_extent_leaves_int64(extent: str) -> None:
    """Python's integers say for which ones; of a product, numbers without a negative are refused too."""
    program = script.from_source(f"""@T.prim_func
def main(C: T.Buffer((4,), "int32"), n: T.int64, m: T.int64):
    for i in range({extent}):
        if i < T.int64(4):
            C[i] = 1
        else:
            C[3] = 1
""")
    kernels = [tw.compile(program, target, schedule="as written") for target in ("native", "interpreter")]
    value = extent.replace("T.int64(4)", "4").replace("T.min", "min")
    parts = {"(n + m) * T.min(n, m)": ["n + m"], "n * m // T.int64(4)": ["n * m"]}.get(extent, [])
    least, most = -(1 << 63), (1 << 63) - 1
    numbers = [least, least + 1, -(1 << 33), -(1 << 31), -3, 0, 2, 1 << 31, 1 << 33, 1 << 62, most]
    for n in numbers:
        for m in numbers:
            exact = eval(value, {"n": n, "m": m, "min": min})
            fits = all(least <= eval(part, {"n": n, "m": m, "min": min}) <= most for part in [*parts, value])
            if fits and (exact in range(101, most + 1) or exact == least or {least, least + 1, most} & {n, m}):
                continue  # it would run for years, or a limit of a product is not exact
            for kernel in kernels:
                c = np.zeros(4, "int32")
                if fits:
                    kernel(c, n, m)
                    assert c.sum() == min(max(exact, 0), 4)
                else:
                    with pytest.raises(tw.Error, match="goes beyond int64"):
                        kernel(c, n, m)
                    assert not c.any()
