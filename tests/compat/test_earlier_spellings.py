"""Scripts in the spelling of TVM 0.9, on which SparseTIR's implementation stands."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script import tir as T

import tilewright as tw


def run(func: tvm.tir.PrimFunc, *arguments: np.ndarray) -> None:
    tvm.tir.analysis.verify_well_formed(func)
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
    tvm.build(func, target="llvm")(*arguments)


@T.prim_func
def strided(a: T.handle, c: T.handle) -> None:
    n = T.var("int32")
    s0 = T.var("int32")
    A = T.match_buffer(a, (n,), "float32", strides=[s0])
    C = T.match_buffer(c, [n], "float32")
    for i in T.serial(0, n):
        with T.block("add"):
            vi = T.axis.spatial(n, i)
            C[vi] = A[vi] + T.float32(1)


def test_variables() -> None:
    a, c = np.arange(10, dtype="float32")[::2], np.zeros(5, "float32")
    run(strided, a, c)
    np.testing.assert_array_equal(c, a + 1)


@T.prim_func
def declared(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")) -> None:
    A_1 = T.buffer_decl([16], dtype="float32", data=A.data)
    C_1 = T.buffer_decl([16], dtype="float32", data=C.data)
    for i in T.serial(16):
        C_1[i] = A_1[i] + T.float32(1)


@T.prim_func
def preflattened(A: T.Buffer((16,), "float32"), c: T.handle) -> None:
    C = T.match_buffer(c, (16,), "float32")
    T.preflattened_buffer(A, [4, 4], dtype="float32", data=A.data)
    T.preflattened_buffer(C, [4, 4], dtype="float32")
    for i in T.serial(0, 16):
        C[i] = A[i] + T.float32(1)


@T.prim_func
def pointers(a: T.handle, C: T.Buffer((4, 4), "float32")) -> None:
    A = T.match_buffer(a, (4, 4), "float32")
    with T.allocate([16], "float32", "global") as B:
        for i in T.serial(0, 16):
            T.store(B, i, T.load("float32", A.data, i) + T.float32(1), True)
        for i in T.serial(0, 16):
            T.store(C.data, i, T.load("float32", B, i), T.bool(True))


@T.prim_func
def vectors(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), "float32")
    C = T.match_buffer(c, (4, 4), "float32")
    for i in range(4):
        A4 = T.load("float32x4", A.data, T.ramp(i * 4, 1, 4), T.broadcast(True, 4))
        T.store(C.data, T.ramp(i * 4, 1, 4), A4 + T.broadcast(T.float32(1), 4), T.broadcast(True, 4))


@pytest.mark.parametrize(
    "func", [declared, preflattened, pointers, vectors], ids=lambda func: func.attrs["global_symbol"]
)
def test_elements(func: tvm.tir.PrimFunc) -> None:
    """Arguments have the shape that parameters were declared with."""
    a, c = np.arange(16, dtype="float32").reshape(4, 4), np.zeros((4, 4), "float32")
    run(func, a, c)
    np.testing.assert_array_equal(c, a + 1)


def test_a_parameter_is_described_inside_of_its_function() -> None:
    A = tvm.tir.decl_buffer((16,), "float32")
    with tvm.script.ir_builder.IRBuilder(), pytest.raises(tw.ScriptError) as error:
        T.preflattened_buffer(A, [4, 4], dtype="float32")
    assert error.value.code == "builder/place"


def test_elements_that_a_predicate_guards() -> None:
    func = tvm.script.from_source("""
@T.prim_func
def guarded(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")) -> None:
    for i in T.serial(0, 8):
        T.store(C.data, i, T.load("float32", A.data, i + 1, i < 7) + T.float32(1), i != 3)
""")
    a, c = np.arange(8, dtype="float32"), np.full(8, -1, "float32")
    run(func, a, c)
    np.testing.assert_array_equal(c, [2, 3, 4, -1, 6, 7, 8, 1])


def test_a_module_as_text() -> None:
    mod = tvm.script.from_source("""
@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(c: T.handle) -> None:
        n = T.var("int32")
        C = T.match_buffer(c, (n,), "float32")
        for i in range(n):
            C[i] = T.float32(2)
""")
    c = np.zeros(3, "float32")
    tvm.build(mod, target="llvm")(c)
    assert (c == 2).all()


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("T.store(p, 0, T.float32(1))", "builder/pointer", "how many elements are behind pointer 'p'"),
        (
            "T.preflattened_buffer(T.buffer_decl([8], 'float32'), [2, 4])",
            "builder/pointer",
            "is not the buffer of a parameter",
        ),
        ("T.evaluate(T.load('float16', A.data, 0))", "builder/dtype", "T.load of float16, where the pointer and"),
    ],
)
def test_what_is_refused(body: str, code: str, message: str) -> None:
    with pytest.raises(tvm.error.DiagnosticError, match=message) as caught:
        tvm.script.from_source(f"@T.prim_func\ndef f(p: T.handle, A: T.Buffer((8,), 'float32')) -> None:\n    {body}\n")
    assert caught.value.code == code and "^" in str(caught.value) and "hint: " in str(caught.value)
