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


class TestThreadsOfALaunch(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.UnifyThreadBinding()

    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for a in T.thread_binding(4, "blockIdx.x"):
            for i in range(3):
                for j in T.thread_binding(16, "threadIdx.x"):
                    A[a * 16 + j] = T.Cast("float32", i)
                for k in T.thread_binding(16, "threadIdx.x"):
                    B[a * 16 + k] = T.float32(1)
        for b in T.thread_binding(8, "blockIdx.x"):
            for k in T.thread_binding(8, "threadIdx.x"):
                B[b * 8 + k] = T.float32(1)

    def expected(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for a in T.thread_binding(4, "blockIdx.x"):
            for t in T.thread_binding(16, "threadIdx.x"):
                for i in range(3):
                    A[a * 16 + t] = T.Cast("float32", i)
                    B[a * 16 + t] = T.float32(1)
        for b in T.thread_binding(8, "blockIdx.x"):
            for k in T.thread_binding(8, "threadIdx.x"):
                B[b * 8 + k] = T.float32(1)


def test_threads_of_a_launch_have_one_extent():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32")):
        for b in T.thread_binding(4, "blockIdx.x"):
            for t in T.thread_binding(4, "threadIdx.x"):
                A[b * 4 + t] = T.float32(1)
            for t in T.thread_binding(8, "threadIdx.x"):
                A[b * 8 + t] = T.float32(1)

    with pytest.raises(ValueError, match="two loops with extent 4 and 8"):
        tir.transform.UnifyThreadBinding()(tvm.IRModule({"main": f}))


class TestConditionsBeforeLoops(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.HoistIfThenElse()

    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(4):
            for j in range(4):
                if i < n:  # noqa: SIM102
                    if j < n:  # noqa: SIM102
                        if n < 3:
                            A[i * 4 + j] = T.float32(2)
        for i in range(4):
            for j in range(4):
                if i < n:
                    A[i * 4 + j] = T.float32(2)
                else:
                    A[i * 4 + j] = T.float32(3)

    def expected(A: T.Buffer((16,), "float32"), n: T.int32):
        if n < 3:
            for i in range(4):
                if i < n:
                    for j in range(4):
                        if j < n:
                            A[i * 4 + j] = T.float32(2)
        for i in range(4):
            if i < n:
                for j in range(4):
                    A[i * 4 + j] = T.float32(2)
            else:
                for j in range(4):
                    A[i * 4 + j] = T.float32(3)


class TestConditionsThatStay(tvm.testing.CompareBeforeAfter):
    """They read memory that the loop writes, or something stands beside them."""

    transform = tir.transform.HoistIfThenElse()

    def before(A: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(4):
            if A[0] < T.float32(1):
                A[i] = T.float32(2)
        for i in range(4):
            A[i + 4] = T.float32(0)
            if n < 3:
                A[i] = T.float32(2)

    expected = before


class TestNarrowIndices(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.ForceNarrowIndexToInt32()

    def before(A: T.Buffer((T.int64(16),), "float32"), b: T.handle, n: T.int64):
        B = T.match_buffer(b, (n,), "float32")
        for i in range(T.int64(4)):
            with T.block("A"):
                vi = T.axis.spatial(T.int64(16), i)
                A[vi + T.int64(2)] = T.Cast("float32", vi) + B[T.max(vi, n - T.int64(1))]

    def expected(A: T.Buffer((16,), "float32"), b: T.handle, n: T.int32):
        B = T.match_buffer(b, (n,), "float32")
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi + 2] = T.Cast("float32", vi) + B[T.max(vi, n - 1)]


def test_buffers_of_int64_do_not_become_narrow():
    @T.prim_func
    def f(A: T.Buffer((16,), "int64")):
        A[0] = T.int64(1)

    with pytest.raises(ValueError, match="'A' holds int64"):
        tir.transform.ForceNarrowIndexToInt32()(tvm.IRModule({"main": f}))


class TestThreadsByDefault(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.DefaultGPUSchedule()

    def before(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((64, 8), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"target": T.target("cuda")})
        for i, j in T.grid(1024, 1024):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
        for i, k in T.grid(64, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
        for i in T.thread_binding(64, "threadIdx.x"):
            with T.block("own"):
                vi = T.axis.spatial(64, i)
                C[vi] = C[vi] + T.float32(1)

    def expected(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((64, 8), "float32"), C: T.Buffer((64,), "float32")):
        T.func_attr({"target": T.target("cuda")})
        for b in T.thread_binding(256, "blockIdx.x"):
            for t in T.thread_binding(1024, "threadIdx.x"):
                for s in range(4):
                    with T.block("A"):
                        vi = T.axis.spatial(1024, s * 256 + b)
                        vj = T.axis.spatial(1024, t)
                        A[vi, vj] = T.float32(1)
        for b in T.thread_binding(1, "blockIdx.x"):
            for t in T.thread_binding(64, "threadIdx.x"):
                for k in range(8):
                    with T.block("C"):
                        vi = T.axis.spatial(64, b * 64 + t)
                        vk = T.axis.reduce(8, k)
                        with T.init():
                            C[vi] = T.float32(0)
                        C[vi] = C[vi] + B[vi, vk]
        for i in T.thread_binding(64, "threadIdx.x"):
            with T.block("own"):
                vi = T.axis.spatial(64, i)
                C[vi] = C[vi] + T.float32(1)


class TestBranchesOnLanes(tvm.testing.CompareBeforeAfter):
    transform = tir.transform.VectorizeLoop()

    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
        for i in T.vectorized(4):
            A[i] = T.float32(1)
            for j in range(4):
                if i < n:
                    B[j * 4 + i] = T.float32(2)

    def expected(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
        A[0:4] = T.Broadcast(T.float32(1), 4)
        for j in range(4):
            for i in range(4):
                if i < n:
                    B[j * 4 + i] = T.float32(2)


def test_functions_by_name(capsys):
    @T.prim_func(private=True)
    def f(A: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i * 4 // 4] = i

    mod = tvm.IRModule({"one_a": f, "one_b": f, "other": f})
    made = tvm.transform.ApplyPassToFunction(tir.transform.Simplify(), "one_.*")(mod)
    changed = {name for name in ("one_a", "one_b", "other") if not tvm.ir.structural_equal(made[name], mod[name])}
    assert changed == {"one_a", "one_b"}
    none = tvm.transform.ApplyPassToFunction(tir.transform.Simplify(), "on", True)
    with pytest.raises(ValueError, match="no function of the module"):
        none(mod)
    assert tvm.transform.PrintIR("after")(mod) is mod
    assert capsys.readouterr().out.startswith("after\n")


def test_words_of_expressions():
    x, u = tir.Var("x", "int32"), tir.Var("u", "uint8")
    tvm.ir.assert_structural_equal(x.equal(3), x == 3)
    for absolute in (tir.abs, tvm.te.abs):
        assert tvm.ir.structural_equal(absolute(x), tir.Select(x >= 0, x, 0 - x))
        assert absolute(u).same_as(u)
        assert absolute(tir.Var("f", "float32")).op.name == "tir.fabs"


def test_comparisons_as_far_as_they_are_proved():
    known, (x, y) = tvm.arith.CompareResult, (tir.Var(name, "int32") for name in "xy")
    analyzer = tvm.arith.Analyzer()
    assert analyzer.try_compare(x, y) == known.UNKNOWN
    assert analyzer.try_compare(x, x + 1) == known.LT
    assert analyzer.try_compare(x + 1, x) == known.GT
    assert analyzer.try_compare(x, x) == known.EQ
    with analyzer.constraint_scope(x <= y):
        assert analyzer.try_compare(x, y) == known.LE
        assert analyzer.try_compare(y, x) == known.GE
    with analyzer.constraint_scope(x != y):
        assert analyzer.try_compare(x, y) == known.NE


def test_directories_for_a_while():
    from tvm.contrib import utils

    directory = utils.tempdir()
    path = directory.path
    (directory / "a").write_text("1")
    assert directory.listdir() == ["a"] and directory.relpath("a") == str(path / "a")
    directory.remove()
    assert not path.exists()
    with pytest.raises(AttributeError, match=r"no tvm\.contrib\.nvcc yet"):
        tvm.contrib.nvcc.compile_cuda("")
