"""Which operations of a program count as its work, and which limit of the machine they meet."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import te
from tilewright.support import machine
from tilewright.task.task import task_of


def product(a: str, b: str, out: str) -> tw.ir.PrimFunc:
    x, y = te.placeholder((64, 32), a, name="X"), te.placeholder((32, 16), b, name="Y")
    k = te.reduce_axis((0, 32), name="k")
    total = te.compute((64, 16), lambda i, j: te.sum(x[i, k].astype(out) * y[k, j].astype(out), axis=k), name="Z")
    return te.create_prim_func([x, y, total])


def scaled(total: str) -> tw.ir.PrimFunc:
    """A product of bytes that ends in floats."""
    x, y = te.placeholder((64, 32), "uint8", name="X"), te.placeholder((32, 16), "int8", name="Y")
    k = te.reduce_axis((0, 32), name="k")
    z = te.compute((64, 16), lambda i, j: te.sum(x[i, k].astype(total) * y[k, j].astype(total), axis=k), name="Z")
    f = te.compute((64, 16), lambda i, j: z[i, j].astype("float32") * te.const(0.5, "float32"), name="F")
    return te.create_prim_func([x, y, f])


@pytest.mark.parametrize(
    "program, dtype",
    [
        (product("float32", "float32", "float32"), "float32"),
        (product("bfloat16", "bfloat16", "float32"), "bfloat16"),
        (product("uint8", "int8", "int32"), "int8"),
        (product("int32", "int32", "int32"), "int32"),
        (scaled("int32"), "int8"),
    ],
)
def test_the_kind_that_there_is_most_of(program: tw.ir.PrimFunc, dtype: str) -> None:
    work = task_of(program).work
    assert work.dtype == dtype and work.flops == 2 * 64 * 32 * 16
    assert machine.rate_unit(work.dtype) == ("GFLOP/s" if "float" in dtype else "Gop/s")


def test_dot_products_have_limits_of_their_own() -> None:
    peaks = machine.roofs(1).peaks
    features = tw.Target("native").features
    assert (peaks["int8"] > peaks["int32"]) == any(name in features for name in ("avxvnni", "avx512vnni"))
    # Some processors begin dot products of bfloat16 half as often as multiplications of float32.
    assert peaks["bfloat16"] >= peaks["float32"]
    assert peaks["bfloat16"] == peaks["float32"] or "avx512bf16" in features
