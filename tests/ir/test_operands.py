"""Calls and nodes whose operands have no meaning are refused: compiled, or interpreted, they ended the process."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.script.core import script as core

FORGOTTEN = {  # the index of B
    "A[0] = T.Cast('int32', B)": "ir/not-an-expression",
    "A[0] = T.cast(B, 'int32')": "ir/not-an-expression",
    "A[0] = T.Select(n > 1, A, B)": "ir/not-an-expression",
    "A[0] = T.Add(A, B)": "ir/not-an-expression",
    "A[0] = T.floordiv(A, B)": "ir/not-an-expression",
    "A[0:4] = T.Broadcast(B, 4)": "ir/not-an-expression",
    "x: T.int32 = B\n    A[0] = x": "ir/not-an-expression",
    "A[0] = T.clz(B)": "verify/intrinsic",
    "A[0] = T.reinterpret('int32', B)": "verify/intrinsic",
    "A[0] = T.call_intrin('int32', 'tir.bitwise_and', B, n)": "verify/intrinsic",
}


@pytest.mark.parametrize("body", FORGOTTEN)
def test_a_forgotten_index(body: str) -> None:
    with pytest.raises(tw.ScriptError) as caught:
        tw.script.from_source(
            "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32'), B: T.Buffer((4,), 'int32'), n: T.int32):\n    " + body
        )
    assert caught.value.code == FORGOTTEN[body]
    assert caught.value.line == 3
    if caught.value.code == "ir/not-an-expression":
        assert "not a Buffer" in caught.value.message and caught.value.hint == "index it: A[i]"


WRONG = [
    'T.call_intrin("int32", "tir.exp", x)',
    'T.call_intrin("float32", "tir.exp", T.Broadcast(x, 4))',
    'T.call_intrin("float32", "tir.pow", x, n)',
    'T.call_intrin("float64", "tir.copysign", T.float64(1.5), x)',
    'T.call_intrin("float32x4", "tir.fmod", T.Broadcast(x, 4), x)',
    'T.call_intrin("int32x4", "tir.shift_left", T.Broadcast(n, 4), n)',
    'T.call_intrin("int32", "tir.clz", T.Broadcast(n, 4))',
    'T.call_intrin("int32", "tir.clz", x)',
    'T.call_intrin("float32", "tir.if_then_else", n > 1, x, n)',
    'T.call_intrin("float32", "tir.if_then_else", n, x, x)',
    'T.call_intrin("bool", "tir.isnan", T.Broadcast(x, 4))',
    'T.call_intrin("float32", "tir.vectorlow", x)',
    'T.call_intrin("float32x4", "tir.vectorcombine", T.Broadcast(x, 2), T.Broadcast(n, 2))',
    'T.call_intrin("handle", "tir.tvm_fill_fragment")',
]


@pytest.mark.parametrize("call", WRONG)
def test_operands_of_intrinsics(call: str) -> None:
    text = f"@T.prim_func\ndef main(n: T.int32, x: T.float32):\n    T.evaluate({call})"
    with pytest.raises(tw.ScriptError) as caught:
        tw.script.from_source(text)
    assert (caught.value.code, caught.value.line) == ("verify/intrinsic", 3)
    func = tw.script.from_source(text, check_well_formed=False)
    with pytest.raises(tw.ScriptError) as caught:
        ir.interpret(ir.as_module(func), "main", 3, 1.5)
    assert caught.value.code == "interpret/operands"
    with pytest.raises(tw.ScriptError) as caught:
        tw.compile(func)
    assert caught.value.code == "verify/intrinsic"


def test_options_of_prefetches() -> None:
    """LLVM ends the process where it cannot select an instruction."""
    text = (
        "@T.prim_func\ndef main(A: T.Buffer((8,))):\n    T.call_intrin('void', 'tir.prefetch', T.address_of(A[0]), {})"
    )
    for options in ("0, 3, 0", "2, 3, 1", "0, 4, 1", "0, -1, 1"):
        with pytest.raises(tw.ScriptError, match="prefetch with options"):
            tw.compile(tw.script.from_source(text.format(options)))
    tw.compile(tw.script.from_source(text.format("1, 0, 1")))(np.zeros(8, "float32"))


NAMES = [row[0] for row in core.intrinsics()]


@pytest.mark.parametrize("seed", range(samples(4)))
def test_random_calls_end_in_answers(seed: int) -> None:
    """Of every intrinsic, with operands of any kind: interpreted and compiled, or refused."""
    rng = random.Random(seed)
    n, x, handle = ir.Var("n", "int32"), ir.Var("x", "float32"), ir.Var("a", "handle")
    buffer = T.Buffer((8,), "float32", name="A")
    operands: list[Any] = [n, x, T.int64(2**40), T.bool(True), T.uint8(3), T.float64(1.5), T.Broadcast(n, 4)]
    operands += [T.Broadcast(x, 4), ir.BufferLoad(buffer, [n]), T.address_of(buffer[0]), buffer.data, buffer]
    operands += [ir.StringImm("row"), ir.List([1]), ir.Range(0, 4), ir.PrimType("int32"), ir.Evaluate(0), ir.Dict({})]
    types = ["int32", "float32", "bool", "handle", "void", "int64", "float32x4", "int32x4", "float64", "uint8"]
    for name in NAMES:
        arity = next(row[1] for row in core.intrinsics() if row[0] == name)
        count = arity if arity >= 0 and rng.random() < 0.9 else rng.randint(0, 5)
        call = ir.Call(rng.choice(types), ir.Op(f"tir.{name}"), [rng.choice(operands) for _ in range(count)])
        func = ir.PrimFunc(
            [handle, n, x], {handle: buffer}, ir.TupleType([]), {"global_symbol": "main"}, ir.Evaluate(call)
        )
        for step in (
            lambda func=func: ir.interpret(ir.as_module(func), "main", np.zeros(8, "float32"), 3, 1.5, max_steps=1000),
            lambda func=func: tw.lower(func),
        ):
            try:
                step()
            except tw.InternalError:
                raise
            except tw.Error as error:
                assert error.message, name
