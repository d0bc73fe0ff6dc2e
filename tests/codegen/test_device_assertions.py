"""Assertions inside kernels reach the caller, at the end of a call or at the next wait, with the kernel, the message
and the line of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from tilewright import _core
from tilewright.script import from_source
from tilewright.script import tir as T


@T.prim_func
def reciprocal(A: T.Buffer((96,), "int32"), B: T.Buffer((96,), "int32")):
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            assert A[b * 32 + t] > 0, "A has to be positive"
            B[b * 32 + t] = T.truncdiv(1000, A[b * 32 + t])


# Threads exchange elements behind the assertion, so that none of them may miss a barrier.
MIRRORED = """
@T.prim_func
def mirrored(A: T.Buffer((96,), "int32"), B: T.Buffer((96,), "int32"), n: T.int32):
    for b in T.thread_binding(3, thread="blockIdx.x"):
        S = T.decl_buffer((32,), "int32", scope="shared")
        for k in range(n):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                assert A[b * 32 + t] > k, "A has to be larger than the number of the round"
                S[t] = A[b * 32 + t] + k
                T.tvm_storage_sync("shared")
                B[b * 32 + t] = S[31 - t]
                T.tvm_storage_sync("shared")
"""


def stages(program: Any, target: str = "opencl") -> list[Any]:
    module = _core.as_module(program)
    name = next(str(each.name_hint) for each in module.functions)
    lowered = [m for _, m in _core.lower_stages(module, target)]
    return [lambda *a, m=m: _core.interpret(m, name, *a) for m in lowered]


def numbers(bad: dict[int, int] | None = None) -> np.ndarray:
    a = np.arange(5, 101, dtype="int32")
    for i, value in (bad or {}).items():
        a[i] = value
    return a


def test_a_call_that_waits_reports_the_message_and_the_line() -> None:
    kernel = tw.compile(reciprocal, target="opencl")
    b = np.zeros(96, "int32")
    kernel(numbers(), b)
    np.testing.assert_array_equal(b, 1000 // numbers())
    with pytest.raises(tw.ArgumentError, match=r"reciprocal: kernel .*: A has to be positive") as info:
        kernel(numbers({40: 0, 77: -3}), b)
    assert info.value.code == "call/assertion"
    assert "test_device_assertions.py:" in str(info.value) and "assert A[b * 32 + t] > 0" in str(info.value)
    kernel(numbers(), b)  # what has failed is reported once
    np.testing.assert_array_equal(b, 1000 // numbers())


def test_every_stage_of_lowering_keeps_the_assertion() -> None:
    for run in stages(reciprocal):
        b = np.zeros(96, "int32")
        run(numbers(), b)
        np.testing.assert_array_equal(b, 1000 // numbers())
        with pytest.raises(tw.Error, match="A has to be positive"):
            run(numbers({40: 0}), b)


@pytest.mark.parametrize("bad", [{}, {17: 1}, {0: 0, 95: 2}, dict.fromkeys(range(32, 64), 1)])
def test_no_thread_misses_a_barrier(bad: dict[int, int]) -> None:
    func = from_source(MIRRORED)
    a, b = numbers(bad), np.full(96, -1, "int32")
    kernel = tw.compile(func, target="opencl")
    for run in (kernel, *stages(func)):
        b[:] = -1
        if bad:
            with pytest.raises(tw.Error, match="A has to be larger than the number of the round"):
                run(a, b, 4)
        else:
            run(a, b, 4)
            np.testing.assert_array_equal(b.reshape(3, 32), (a + 3).reshape(3, 32)[:, ::-1])
    b[:] = -1
    kernel(a, b, 0)
    assert (b == -1).all()


def test_calls_with_device_arrays_report_at_the_next_wait() -> None:
    kernel = tw.compile(reciprocal, target="opencl")
    device = tw.device("opencl:0")
    good, bad, b = device.array(numbers()), device.array(numbers({3: -1})), device.zeros(96, "int32")
    for wait in (device.sync, b.numpy):
        kernel(bad, b)
        kernel(good, b)
        with pytest.raises(tw.ArgumentError, match="A has to be positive") as info:
            wait()
        assert info.value.code == "call/assertion"
        device.sync()
        kernel(good, b)
        np.testing.assert_array_equal(b.numpy(), 1000 // numbers())


def test_the_first_kernel_that_fails_is_named() -> None:
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((40,), "int32"), B: T.Buffer((40,), "int32")):
    for i in T.thread_binding(40, thread="blockIdx.x"):
        assert A[i] < 100, "less than 100"
        B[i] = A[i]
    for i in T.thread_binding(40, thread="blockIdx.x"):
        assert B[i] >= 0, "not negative"
        assert B[i] % 2 == 0, "even"
        B[i] = B[i] + 1
""")
    kernel = tw.compile(func, target="opencl")
    even = np.arange(0, 80, 2, dtype="int32")
    b = np.zeros(40, "int32")
    kernel(even, b)
    np.testing.assert_array_equal(b, even + 1)
    for value, text in ((100, "main_kernel: less than 100"), (-2, "main_kernel_1: not negative"), (5, "_1: even")):
        a = even.copy()
        a[20] = value
        with pytest.raises(tw.ArgumentError, match=text):
            kernel(a, b)


def test_an_assertion_between_the_loops_over_blocks_and_threads() -> None:
    func = from_source("""
@T.prim_func
def main(P: T.Buffer((4,), "int32"), B: T.Buffer((4, 32), "int32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        assert P[b] >= 0, "no negative rows"
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[b, t] = P[b] + t
""")
    kernel = tw.compile(func, target="opencl")
    p, b = np.array([3, 0, 5, 9], "int32"), np.zeros((4, 32), "int32")
    kernel(p, b)
    np.testing.assert_array_equal(b, p[:, None] + np.arange(32))
    with pytest.raises(tw.ArgumentError, match="no negative rows"):
        kernel(np.array([3, 0, -5, 9], "int32"), b)


def test_a_thread_that_fails_leaves_what_is_behind_the_assertion() -> None:
    kernel = tw.compile(reciprocal, target="opencl")
    device = tw.device("opencl:0")
    b = device.zeros(96, "int32")
    kernel(device.array(numbers({40: 0})), b)
    with pytest.raises(tw.ArgumentError):
        device.sync()
    expected = 1000 // numbers()
    expected[40] = 0
    np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("func", [reciprocal, from_source(MIRRORED)], ids=["alone", "with barriers"])
def test_cuda_compiles_it(func: Any) -> None:
    kernel = compiled(func)
    text = kernel.inspect("cuda")
    assert "tw_fail(tw_error, tw_first + 1, 0)" in text and "return;" in text
    assert ("__syncthreads_or" in text) == (func is not reciprocal)


def test_exported_libraries_report_it(tmp_path: Any) -> None:
    exported = tw.compile(reciprocal, target="opencl").export(tmp_path, "checked")
    kernel = tw.load(exported.library)
    b = np.zeros(96, "int32")
    kernel(numbers(), b)
    np.testing.assert_array_equal(b, 1000 // numbers())
    with pytest.raises(tw.ArgumentError, match="A has to be positive"):
        kernel(numbers({95: 0}), b)
