"""T.call_llvm_intrin and T.call_llvm_pure_intrin: what LLVM has, by its name."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import run_in_interpreter


def elementwise(value):
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((8,))):
        B[0:8] = value(A[0:8])

    return func


def test_a_function_of_numbers():
    func = elementwise(lambda a: T.call_llvm_pure_intrin("float32x8", "llvm.fma", a, a, T.broadcast(T.float32(1), 8)))
    b = np.zeros(8, "float32")
    tw.compile(func, schedule="as written")(np.arange(8, dtype="float32"), b)
    np.testing.assert_array_equal(b, np.arange(8) ** 2 + 1)


def test_the_types_choose_the_overload():
    func = elementwise(lambda a: T.broadcast(T.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fmax", a), 8))
    b = np.zeros(8, "float32")
    tw.compile(func, schedule="as written")(np.arange(8, dtype="float32"), b)
    np.testing.assert_array_equal(b, np.full(8, 7))


def test_numbers_of_intrinsics_are_their_names():
    name = "llvm.x86.avx512.vpdpbusd.512"

    @T.prim_func
    def by_number(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        B[0:16] = T.call_llvm_pure_intrin(
            T.uint32(T.llvm_lookup_intrinsic_id(name)), B[0:16], A[0:16], A[0:16], dtype="int32x16"
        )

    @T.prim_func
    def by_name(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        B[0:16] = T.call_llvm_pure_intrin("int32x16", name, B[0:16], A[0:16], A[0:16])

    assert tw.ir.structural_equal(by_number.with_attr("global_symbol", "f"), by_name.with_attr("global_symbol", "f"))
    for other in (lambda: T.int32(T.llvm_lookup_intrinsic_id(name)), lambda: T.uint32(tw.ir.StringImm("other"))):
        with pytest.raises(tw.Error) as error:
            other()
        assert error.value.code == "ir/cast-handle"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda a: T.call_llvm_pure_intrin("float32x8", "llvm.nothing", a), "has no intrinsic"),
        (lambda a: T.call_llvm_pure_intrin("float32x4", "llvm.fabs", a), "does not give float32x4"),
        (lambda a: T.call_llvm_pure_intrin("float32x8", "llvm.fma", a), "does not give"),
        (lambda a: T.call_llvm_pure_intrin("float32x8", "llvm.trap", a), "none that kernels may call"),
        (lambda a: T.call_llvm_pure_intrin("float32x8", T.uint32(77), a), "needs the name"),
    ],
)
def test_refused(value, message):
    def widened(a):
        result = value(a)
        return result if result.dtype == "float32x8" else T.vectorcombine(result, result, dtype="float32x8")

    with pytest.raises(tw.ScriptError, match=message):
        tw.compile(elementwise(widened), schedule="as written")


def test_an_instruction_that_the_target_does_not_have():
    @T.prim_func
    def dot(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        B[0:16] = T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", B[0:16], A[0:16], A[0:16])

    with pytest.raises(tw.ScriptError, match="needs avx512vnni"):
        tw.compile(dot, target="llvm -mcpu=haswell", schedule="as written")
    assert "vpdpbusd" in tw.compile(dot, target="llvm -mcpu=icelake-server", schedule="as written").inspect("asm")


def test_the_interpreter_refuses_it():
    func = elementwise(lambda a: T.call_llvm_pure_intrin("float32x8", "llvm.fabs", a))
    with pytest.raises(tw.ScriptError, match="code of another compiler"):
        run_in_interpreter(func)
