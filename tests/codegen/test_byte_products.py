"""Products of four bytes by one instruction of a GPU: the interpreter, PoCL and NumPy agree, and CUDA's compiler takes
them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from tilewright import _core
from tilewright.kernel.device_code import find_disassembler
from tilewright.script import from_source
from tilewright.tensor_intrin import dot_product_common as four

INTRINSICS = {
    four.DP4A_S8S8S32_INTRIN: ("int8", "int8", "int32"),
    four.DP4A_U8S8S32_INTRIN: ("uint8", "int8", "int32"),
    four.DP4A_S8U8S32_INTRIN: ("int8", "uint8", "int32"),
    four.DP4A_U8U8U32_INTRIN: ("uint8", "uint8", "uint32"),
}
M, N, K = 32, 16, 64


def product(a: str, b: str, c: str) -> Any:
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({M}, {K}), "{a}"), B: T.Buffer(({N}, {K}), "{b}"), C: T.Buffer(({M}, {N}), "{c}")):
    for i, j, k in T.grid({M}, {N}, {K}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.cast(0, "{c}")
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "{c}") * T.cast(B[vj, vk], "{c}")
""")


def scheduled(intrinsic: str) -> tw.Schedule:
    sch = tw.Schedule(product(*INTRINSICS[intrinsic]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    by, ty, yi = sch.split(i, [None, 4, 2])
    bx, tx, xi = sch.split(j, [None, 4, 2])
    ko, ki, kk = sch.split(k, [None, 4, 4])
    sch.reorder(by, bx, ty, tx, ko, ki, yi, xi, kk)
    for loop, axis in zip([by, bx, ty, tx], ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), tx)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, ko, preserve_unit_loops=True)
        y, x, four = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 4, 4])[-3:]
        _, y = sch.split(y, [None, 4])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(four)
    sch.decompose_reduction(block, ko)
    sch.tensorize(sch.get_loops(sch.get_block("C_update"))[-1], intrinsic)
    return sch


def operands(*dtypes: str) -> list[np.ndarray]:
    """Random bytes, the extreme ones among them."""
    draw = np.random.default_rng(1)
    arrays = []
    for dtype, shape in zip(dtypes, [(M, K), (N, K)], strict=True):
        info = np.iinfo(dtype)
        arrays.append(draw.choice([info.min, info.max, -1 % (info.max + 1), 1, 5], shape).astype(dtype))
    return arrays


@pytest.mark.parametrize("intrinsic", INTRINSICS)
def test_products_are_those_of_numpy(intrinsic: str) -> None:
    *inputs, output = INTRINSICS[intrinsic]
    a, b = operands(*inputs)
    expected = (a.astype("int64") @ b.astype("int64").T).astype(output)
    sch = scheduled(intrinsic)
    for target in ("cuda", "opencl"):
        for name, module in _core.lower_stages(sch.mod, target):
            found = np.zeros((M, N), output)
            _core.interpret(module, "main", a, b, found)
            np.testing.assert_array_equal(found, expected, err_msg=f"{name}\n{module.script()}")
    kernel = tw.compile(sch, target="opencl")
    assert "tw_dp4a_" in kernel.inspect("opencl")
    np.testing.assert_array_equal(kernel(a, b), expected)


@pytest.mark.parametrize("intrinsic", INTRINSICS)
def test_the_compiler_of_cuda_takes_them(intrinsic: str) -> None:
    kernel = compiled(scheduled(intrinsic))
    assert len(kernel.report["kernels"]) == 2, kernel.report
    a, b = ("u32" if dtype == "uint8" else "s32" for dtype in INTRINSICS[intrinsic][:2])
    assert f"dp4a.{a}.{b}" in kernel.inspect("ptx")
    if find_disassembler() is not None:
        parts = kernel.inspect("sass").split("// sm_")[1:]
        assert len(parts) == 2 and all("IDP.4A" in part and "STL" not in part for part in parts), parts


def test_words_of_four_bytes_by_the_operator() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        C[t] = T.dp4a(A[t], B[t], C[t])
""")
    draw = np.random.default_rng(2)
    a, b, c = (draw.integers(-(2**31), 2**31, 64).astype("int32") for _ in "abc")
    products = a.view("int8").astype("int64").reshape(64, 4) * b.view("int8").reshape(64, 4)
    expected = (c + products.sum(1)).astype("int32")
    found = c.copy()
    tw.compile(func, target="opencl")(a, b, found)
    np.testing.assert_array_equal(found, expected)
    assert "dp4a.s32.s32" in compiled(func).inspect("ptx")


def test_operands_that_are_not_contiguous() -> None:
    """Bytes are gathered one by one, and the condition around decides whether they are read."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((63,), "int8"), B: T.Buffer((64,), "uint8"), C: T.Buffer((17,), "int32")):
    for t in T.thread_binding(17, thread="threadIdx.x"):
        C[t] = 7
        if t < 15:
            C[t] = C[t] + T.call_pure_extern("int32", "__dp4a", A[T.Ramp(t, 16, 4)], B[T.Ramp(t + 3, -1, 4)], t)
""")
    draw = np.random.default_rng(3)
    a, b = draw.integers(-128, 128, 63).astype("int8"), draw.integers(0, 256, 64).astype("uint8")
    expected = np.full(17, 7, "int32")
    for t in range(15):
        expected[t] += t + sum(int(a[t + 16 * i]) * int(b[t + 3 - i]) for i in range(4))
    module = _core.as_module(func)
    for run in [
        lambda *given: _core.interpret(module, "main", *given),
        tw.compile(func, target="opencl"),
    ]:
        found = np.zeros(17, "int32")
        run(a, b, found)
        np.testing.assert_array_equal(found, expected)
    assert compiled(func).report["kernels"]
