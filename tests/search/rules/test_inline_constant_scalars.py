"""InlineConstantScalars."""

from __future__ import annotations

from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.script import tir as T

from .sketches import blocks, check, sketches


@T.prim_func
def scaled(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32"), D: T.Buffer((), "float32")) -> None:
    S = T.alloc_buffer((), "float32")
    with T.block("S"):
        S[()] = 3.0
    with T.block("D"):
        D[()] = 4.0
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi] * S[()]


def test_only_what_the_caller_does_not_see() -> None:
    (sch,) = sketches(scaled, ms.InlineConstantScalars())
    assert blocks(sch) == ["D", "C"]
    check(scaled, [sch])


def test_arrays_stay() -> None:
    ones = te.compute((4,), lambda i: te.const(1.0, "float32"), name="ones")
    a = te.compute((4,), lambda i: ones[i] + 1.0, name="A")
    (sch,) = sketches(te.create_prim_func([a], name="main"), ms.InlineConstantScalars())
    assert blocks(sch) == ["ones", "A"]
