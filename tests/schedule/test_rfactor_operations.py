"""Operations that rfactor takes apart, and those that it does not know."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.testing import check_refused


@pytest.mark.parametrize("other", ["I[0] > V[0]", "I[0] > A[vk]", "V[0] < vk"])
def test_pairs_whose_parts_are_compared_with_one_another(other):
    """Which of two pairs stays then depends on more than the order of each part: no operation that groups may use."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), I: T.Buffer((1,), "int32"), V: T.Buffer((1,), "int32")):
    for k in range(8):
        with T.block("B"):
            vk = T.axis.reduce(8, k)
            with T.init():
                I[0] = -1000
                V[0] = -100
            i: T.int32 = T.Select(V[0] >= A[vk] or {other}, I[0], vk)
            v: T.int32 = T.Select(V[0] >= A[vk] or {other}, V[0], A[vk])
            I[0] = i
            V[0] = v
""")
    check_refused(program, lambda sch: sch.rfactor(sch.split(sch.get_loops("B")[0], [2, 4])[0], 0), "rfactor/P5")


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float16"])
def test_partial_results_of_formats_without_infinity(dtype, op):
    """What an extreme starts from is no NaN, which an infinity becomes in some formats."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 8), "{dtype}"), B: T.Buffer((2,), "{dtype}")):
    for i, k in T.grid(2, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            B[vi] = T.{op}(B[vi], A[vi, vk])
""")
    sch = tw.Schedule(program)
    sch.rfactor(sch.get_loops("B")[1], 0)
    number = np.dtype(getattr(ml_dtypes, dtype, dtype))
    values = np.array([-4, -3, -2, -1, 0, 1, 2, 3], "float32")
    given = np.array([values, values[::-1] - 1]).clip(-4, 3)
    for target in ("interpreter", "llvm"):
        a, b = given.astype(number), np.zeros(2, number)
        tw.compile(sch, target=target)(a, b)
        want = np.maximum(0, given.max(1)) if op == "max" else np.minimum(0, given.min(1))
        np.testing.assert_array_equal(b.astype("float32"), want)
