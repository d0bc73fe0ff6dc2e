"""Passes of tvm.tir.transform: what each makes of a program, and that the program still does the same."""

import pytest
import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T


class TestBranchesAreDecided(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            if i < 20:
                A[i * 4 // 4] = i + 0
            else:
                A[i] = 2
            if i < n:  # noqa: SIM102
                if i < n:
                    A[i] = n - n

    def expected(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            A[i] = i
            if i < n:
                A[i] = 0


class TestLoopsStay(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32")):
        for i in range(1):
            A[i + 3] = i
        for i in range(16):
            A[i] = A[i] + (2 - 2)

    def expected(A: T.Buffer((16,), "int32")):
        for i in range(1):
            A[3] = 0
        for i in range(16):
            T.evaluate(0)


class TestEquationsDecideConditionsOnly(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32")):
        for i in range(16):
            if i == 5:  # noqa: SIM102
                if i < 6:
                    A[i] = i

    def expected(A: T.Buffer((16,), "int32")):
        for i in range(16):
            if i == 5:
                A[i] = i


class TestLetsOfNumbersAreInlined(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32"), n: T.int32):
        x: T.int32 = n // 4
        A[x] = x + x

    def expected(A: T.Buffer((16,), "int32"), n: T.int32):
        A[n // 4] = n // 4 * 2


class TestAssertionsAreKnown(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32"), n: T.int32):
        assert n < 4, "too many"
        if n < 5:
            A[0] = n

    def expected(A: T.Buffer((16,), "int32"), n: T.int32):
        assert n < 4, "too many"
        A[0] = n


class TestMemoryMayChange(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32")):
        if A[0] < 3:
            A[0] = 5
            if A[0] < 3:
                A[1] = 1

    expected = before


class TestNoOps(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.RemoveNoOp()

    def before(A: T.Buffer((16,), "int32"), n: T.int32):
        x: T.int32 = 5  # noqa: F841
        for i in range(16):
            for j in range(0):
                A[j] = 1
            A[i] = A[i]
            T.evaluate(A[i])
            if i < n:
                T.evaluate(0)
            else:
                A[i] = 1
        for i in range(16):
            T.evaluate(T.call_extern("int32", "f", i))

    def expected(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in range(16):
            if not (i < n):
                A[i] = 1
        for i in range(16):
            T.evaluate(T.call_extern("int32", "f", i))


class TestInits(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.LowerInitBlock()

    def before(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    def expected(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(B[vi])
                if vk == 0:
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]


class TestOpaqueBlocks(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.LowerOpaqueBlock()

    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in T.thread_binding(4, "blockIdx.x"):
            for j in T.thread_binding(4, "threadIdx.x"):
                for k in range(1):
                    with T.block(""):
                        T.where(i * 4 + j < n)
                        T.reads()
                        T.writes(A[i * 4 + j])
                        B = T.alloc_buffer((1,), "float32", scope="local")
                        B[k] = T.float32(1)
                        A[i * 4 + j] = B[k]

    def expected(A: T.Buffer((16,), "float32"), n: T.int32):
        i = T.launch_thread("blockIdx.x", 4)
        j = T.launch_thread("threadIdx.x", 4)
        B = T.decl_buffer((1,), "float32", scope="local")
        if i * 4 + j < n:
            B[0] = T.float32(1)
            A[i * 4 + j] = B[0]


def test_blocks_with_axes_are_not_opaque():
    @T.prim_func
    def f(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = T.float32(0)

    with pytest.raises(ValueError, match="'A' still has axes"):
        tir.transform.LowerOpaqueBlock()(tvm.IRModule({"main": f}))


class TestSelectsOfSafeValues(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.RewriteUnsafeSelect()

    def before(A: T.Buffer((64,), "float32"), n: T.int32):
        A[0] = T.Select(n < 3, T.Select(n > 1, A[n + 1], A[2]), T.float32(0))

    def expected(A: T.Buffer((64,), "float32"), n: T.int32):
        A[0] = T.Select(n < 3, T.if_then_else(n > 1, A[n + 1], A[2]), T.float32(0))
