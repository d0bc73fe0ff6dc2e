"""Buffers with fewer strides than dimensions: those of the last dimensions, the others follow compactly."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, script
from tilewright.script import tir as T


@T.prim_func
def padded(a: T.handle, B: T.Buffer((3, 4, 5), "float32")):
    A = T.match_buffer(a, (3, 4, 5), "float32", strides=(7, 1))
    t = T.alloc_buffer((4, 5), "float32", strides=(1,))
    for i in range(3):
        for j, k in T.grid(4, 5):
            with T.block("t"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                t[vj, vk] = A[vi, vj, vk] + T.float32(1)
        for j, k in T.grid(4, 5):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = t[vj, vk] * T.float32(2)


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_leading_dimensions_are_compact(target: str) -> None:
    memory = np.arange(3 * 4 * 7, dtype="float32").reshape(3, 4, 7)
    a, b = memory[:, :, :5], np.zeros((3, 4, 5), "float32")
    kernel = tw.compile(padded, target=target)
    kernel(a, b)
    np.testing.assert_array_equal(b, (a + 1) * 2)
    with pytest.raises(tw.ArgumentError, match="stride"):
        kernel(np.ascontiguousarray(a), b)


def test_the_script_keeps_them_as_they_were_written() -> None:
    text = padded.script()
    assert "strides=(7, 1)" in text and "strides=(1,)" in text
    tw.ir.assert_structural_equal(script.from_source(text), padded)
    sch = tw.Schedule(padded)
    sch.vectorize(sch.get_loops("B")[-1])
    assert "strides=(7, 1)" in sch.mod.script()
    a, b = np.ones((3, 4, 7), "float32")[:, :, :5], np.zeros((3, 4, 5), "float32")
    tw.compile(sch)(a, b)
    assert (b == 4).all()


def test_more_strides_than_dimensions_are_refused() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        script.from_source("@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (4,), strides=(4, 1))\n")
    assert caught.value.code == "builder/strides"


@pytest.mark.parametrize("name", ["", "1a", "a b", "class", "A.s", "é", "n\n"])
def test_names_of_strides(name: str) -> None:
    """A name that is no identifier cannot stand in quotes among the strides."""
    stride = ir.Var(name, "int32")
    buffer = T.Buffer((8, 4), "float32", strides=(stride, 1), name="A")
    a = ir.Var("a", "handle")
    body = ir.BufferStore(buffer, T.Cast("float32", stride), [0, 0])
    func = ir.PrimFunc([a], {a: buffer}, ir.TupleType([]), {"global_symbol": "main"}, body)
    ir.assert_structural_equal(script.from_source(func.script()), func)
