"""T.call_llvm_intrin and T.call_llvm_pure_intrin: what LLVM has, by its name."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import tensor_intrin
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


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("llvm.x86.avx512.vpdpbusd.256", "uint8", "int8"),
        ("llvm.x86.avx512.vpdpwssd.256", "int16", "int16"),
        ("llvm.aarch64.neon.sdot.v4i32.v16i8", "int8", "int8"),
    ],
)
def test_the_interpreter_adds_dot_products(name, left, right):
    lanes = 4 if "neon" in name else 8
    group = 4 // np.dtype(left).itemsize

    @T.prim_func
    def dot(A: T.Buffer((lanes * group,), left), B: T.Buffer((lanes * group,), right), C: T.Buffer((lanes,), "int32")):
        C[0:lanes] = T.call_llvm_pure_intrin(
            f"int32x{lanes}",
            name,
            C[0:lanes],
            T.reinterpret(f"int32x{lanes}", A[0 : lanes * group]),
            T.reinterpret(f"int32x{lanes}", B[0 : lanes * group]),
        )

    rng = np.random.default_rng(1)
    info = np.iinfo(left), np.iinfo(right)
    a, b = (
        rng.choice([i.min, i.max, 0, 3, i.max - 5], lanes * group).astype(dtype)
        for i, dtype in zip(info, (left, right), strict=True)
    )
    c = rng.integers(-(2**31), 2**31, lanes).astype("int32")
    products = (a.astype("int64") * b.astype("int64")).reshape(lanes, group).sum(axis=1)
    want = (c.astype("int64") + products).astype("int32")  # wraps
    tw.compile(dot, "interpreter")(a, b, c)
    np.testing.assert_array_equal(c, want)


def test_intrinsics_need_the_features_of_the_instructions_that_they_call():
    assert tensor_intrin.TensorIntrin.get("dot_16x4_avxvnni").features == ("avxvnni",)
    assert tensor_intrin.TensorIntrin.get("dot_16x4_i8_vnni").features == ("avx512vnni",)
    assert tensor_intrin.TensorIntrin.get("dot_16x4_avx2").features == ("avx2",)
    assert tensor_intrin.TensorIntrin.get("dot_16x2_bf16").features == ("avx512bf16",)
    assert tensor_intrin.TensorIntrin.get("dot_4x4_i8i8s32_neon").features == ("neon",)
