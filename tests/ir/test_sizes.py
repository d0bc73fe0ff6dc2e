"""Which variables a buffer defines: verifier, equality, interpreter, signature and printer give one answer."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, script

HEADER = "from tilewright.script import tir as T\n\n@T.prim_func\ndef main(a: T.handle, b: T.handle):\n"
BODY = """
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""

#: declarations of A and B, and the extents of the loops
DEFINED = {
    "extents": ("n, m = T.int32(), T.int32()", "(n, m)", "(n, m)", "n", "m"),
    "one of two": ("n = T.int32()", "(n, 6)", "(n, 6)", "n", "6"),
    "twice": ("n = T.int32()", "(n, n)", "(n, n)", "n", "n"),
    "in a formula elsewhere": ("n = T.int32()", "(n, 6)", "(T.max(n, 2), T.min(n, 9))", "n", "6"),
    "by the second parameter": ("n = T.int32()", "(T.max(n, 1), 6)", "(n, 6)", "n", "6"),
    "strides": ("s, t = T.int32(), T.int32()", '(6, 6), strides=("s", "t")', "(6, 6)", "6", "6"),
    "an offset": ("o = T.int32()", "(6, 6), elem_offset=o, offset_factor=1", "(6, 6)", "6", "6"),
}


def program(declarations, first, second, n, m):
    text = f"    {declarations}\n    A = T.match_buffer(a, {first})\n    B = T.match_buffer(b, {second})\n"
    return HEADER + text + BODY.format(n=n, m=m)


@pytest.mark.parametrize("name", DEFINED)
def test_what_defines_a_size(name):
    func = script.from_source(program(*DEFINED[name]))
    again = script.from_source(func.script())  # variables of their own, in the same places
    assert ir.structural_equal(func, again)
    a = np.arange(36, dtype="float32").reshape(6, 6)
    for kernel in (tw.compile(func, target="interpreter"), tw.compile(func, schedule="as written")):
        b = np.zeros((6, 6), "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize(
    ("declarations", "first", "second"),
    [
        ("n = T.int32()", "(n + 1, 6)", "(n + 1, 6)"),
        ("n = T.int32()", "(n * 2, 6)", "(6, n + 3)"),
        ("s = T.int32()", "(6, 6), strides=(s * 2, 1)", "(6, 6)"),
    ],
)
def test_what_is_no_plain_variable_defines_nothing(declarations, first, second):
    with pytest.raises(tw.Error) as error:
        tw.compile(script.from_source(program(declarations, first, second, 6, 6)), schedule="as written")
    assert error.value.code == "verify/undefined"


def test_what_is_allocated_defines_nothing():
    text = (
        HEADER.replace("a: T.handle, b: T.handle", "")
        + "    n = T.int32()\n    A = T.alloc_buffer((n,))\n    A[0] = 1.0\n"
    )
    with pytest.raises(tw.Error) as error:
        script.from_source(text)
    assert error.value.code == "verify/undefined"
