"""What tw.compile gives: targets, modules of several functions, looking inside."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import ir as I
from tilewright.script import tir as T


@T.prim_func
def add(A: T.Buffer((8, 16), "float32"), s: T.float32, B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + s


def test_a_kernel_is_found_under_its_name() -> None:
    kernel = tw.compile(add)
    assert kernel["add"] is kernel
    with pytest.raises(KeyError, match="main"):
        kernel["main"]


@pytest.mark.parametrize("target", ["native", "interpreter", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
def test_all_targets_are_called_alike(target: str) -> None:
    kernel = tw.compile(add, target=target)
    a, b = np.random.default_rng(1).normal(size=(2, 8, 16)).astype("float32")
    kernel(a, 2.5, b)
    np.testing.assert_array_equal(b, a + np.float32(2.5))
    with pytest.raises(tw.ArgumentError, match="A"):
        kernel(a[:4], 2.5, b)


def test_the_interpreter_says_what_is_undefined() -> None:
    @T.prim_func
    def outside(A: T.Buffer((8,), "float32")):
        for i in range(9):
            A[i] = T.float32(0)

    with pytest.raises(tw.ScriptError, match="function 'outside' writes") as error:
        tw.compile(outside, target="interpreter")(np.zeros(8, "float32"))
    assert error.value.code == "interpret/out-of-bounds"
    assert "call/" not in str(error.value)

    @T.prim_func
    def small(n: T.int32, A: T.Buffer((8,), "float32")):
        assert n < 8, "too many"
        A[n] = T.float32(0)

    for target in ("interpreter", "native"):
        with pytest.raises(tw.ArgumentError, match="too many"):
            tw.compile(small, target=target)(8, np.zeros(8, "float32"))


def test_inspect() -> None:
    kernel = tw.compile(add, schedule="as written")
    assert "T.Broadcast(s, 16)" in kernel.inspect("tir")
    assert "T.block" in kernel.inspect("tir", after="lower_init_blocks")
    assert "define i32 @add(" in kernel.inspect("llvm")
    assert "add:" in kernel.inspect("asm")
    with pytest.raises(tw.ArgumentError, match="bytes"):
        kernel.inspect("bytes")
    interpreted = tw.compile(add, target="interpreter")
    assert "T.block" in interpreted.inspect("tir")
    for refused in (lambda: interpreted.inspect("asm"), lambda: interpreted.export("out")):
        with pytest.raises(tw.ArgumentError, match="interpreted"):
            refused()


def test_every_stage_can_be_written_to_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "stages"))
    tw.compile(add)
    tw.compile(add)
    assert sorted(f.name for f in (tmp_path / "stages").iterdir()) == ["add.0", "add.1"]
    files = sorted(f.name for f in (tmp_path / "stages" / "add.0").iterdir())
    assert files[0] == "00_input.py"
    assert any(name.endswith("_compact_buffers.py") for name in files)
    assert files[-2].endswith("_llvm.ll") and files[-1].endswith("_assembly.s")
    assert "T.block" in (tmp_path / "stages" / "add.0" / "00_input.py").read_text()
    tw.compile(add.with_attr("global_symbol", 300 * "a"))
    tw.compile(add.with_attr("global_symbol", "../add"))
    assert (tmp_path / "stages" / ".._add.0").is_dir() and not (tmp_path / "add.0").exists()
    assert len([*(tmp_path / "stages").iterdir()]) == 4
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "file"))
    with pytest.raises(tw.ResourceError, match="TILEWRIGHT_DUMP"):
        tw.compile(add)


@I.ir_module
class Calls:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((16,), "float32"), s: T.float32, n: T.int32):
        assert n <= 16, "too many"
        for i in range(n):
            A[i] = A[i] * s

    @T.prim_func(private=True)
    def square(x: T.int32) -> T.int32:
        T.ret(x * x)

    @T.prim_func
    def first(A: T.Buffer((16,), "float32"), n: T.int32):
        Calls.scale(A.data, T.float32(2), n)
        Calls.scale(A.data, T.float32(3), 4)

    @T.prim_func
    def second(A: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = Calls.square(A[i])


@pytest.mark.parametrize("loop", [T.serial, T.parallel, T.unroll])
def test_a_loop_ends_where_its_function_returns(loop: Callable[..., Any]) -> None:
    @I.ir_module
    class Search:
        @T.prim_func(private=True)
        def first_positive(A: T.Buffer((8,), "int32"), Seen: T.Buffer((8,), "int32")) -> T.int32:
            for i in loop(8):
                Seen[i] = 1
                if A[i] > 0:
                    T.ret(A[i])
            T.ret(-1)

        @T.prim_func
        def main(A: T.Buffer((8,), "int32"), Seen: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
            B[0] = Search.first_positive(A.data, Seen.data)

    for numbers, found in (([0, 0, 5, 0, 7, 0, 0, 0], 5), ([0] * 8, -1)):
        seen, result = np.zeros(8, "int32"), np.zeros(1, "int32")
        tw.compile(Search)(np.array(numbers, "int32"), seen, result)
        assert result.tolist() == [found]
        assert seen.tolist() == ([1] * 3 + [0] * 5 if found > 0 else [1] * 8)


@pytest.mark.parametrize("loop", [T.serial, T.parallel])
def test_lengths_of_iterations_differ_in_a_loop_whose_extent_nothing_else_uses(loop: Callable[..., Any]) -> None:
    """How often iterations ask whether to go on depends on the length of the one in the middle: on the extent."""

    @T.prim_func
    def triangle(A: T.Buffer((40, 40), "int32"), first: T.int32, count: T.int32):
        for i in loop(first, count):
            for j in range(i):
                A[i, j] = A[i, j] + 1

    kernel = tw.compile(triangle, schedule="as written")
    for first, count in ((0, 40), (3, 17), (5, 5)):
        a = np.zeros((40, 40), "int32")
        kernel(a, first, count)
        rows = np.arange(40)[:, None]
        np.testing.assert_array_equal(a, (rows >= first) & (rows < count) & (np.arange(40) < rows))


@pytest.mark.parametrize("loop", [T.serial, T.parallel])
def test_functions_of_a_module_may_be_given_one_array_twice(loop: Callable[..., Any]) -> None:
    @I.ir_module
    class Twice:
        @T.prim_func(private=True)
        def after(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
            for i in loop(4):
                for k in range(8):
                    B[i * 8 + k] = A[i * 8] + 1

        @T.prim_func
        def main(A: T.Buffer((32,), "int32")):
            Twice.after(A.data, A.data)

    a = np.zeros(32, "int32")
    tw.compile(Twice)(a)
    assert a.tolist() == [1, 2, 2, 2, 2, 2, 2, 2] * 4


def test_functions_of_a_module_may_be_given_arrays_that_begin_anywhere() -> None:
    """The entry of a function checks that arguments are aligned; other functions of the module call its body."""

    @I.ir_module
    class Aligned:
        @T.prim_func
        def inner(A: T.Buffer((32,), "float32", align=128), B: T.Buffer((32,), "float32", align=128)):
            for i in T.vectorized(32):
                B[i] = A[i] + T.float32(1)

        @T.prim_func
        def outer(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
            Aligned.inner(A.data, B.data)

    kernels = tw.compile(Aligned)
    memory = np.zeros((2, 96), "float32")
    a, b = (row[-row.ctypes.data // 4 % 32 + 1 :][:32] for row in memory)
    kernels["outer"](a, b)
    assert b.tolist() == [1] * 32
    with pytest.raises(tw.ArgumentError, match="aligned"):
        kernels["inner"](a, b)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "int8", "uint8"])
def test_a_mask_of_lanes_does_not_wrap(dtype: str) -> None:
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), base: T.{dtype}, limit: T.{dtype}):
    mask = T.get_active_lane_mask("boolx8", base, limit)
    A[T.Ramp(0, 1, 8)] = T.Select(mask, T.Broadcast(1, 8), T.Broadcast(0, 8))
""")
    info = np.iinfo(dtype)
    kernels = [tw.compile(func, target=target) for target in ("interpreter", "native")]
    ends = [info.min, info.min + 3, info.max - 2, info.max, 0, 1, 5, 20]
    for base, limit in itertools.product(ends, ends):
        wanted = [int(base + lane < limit) for lane in range(8)]
        for kernel in kernels:
            found = np.zeros(8, "int32")
            kernel(found, base, limit)
            assert found.tolist() == wanted, (base, limit)


def test_functions_of_a_module_call_each_other() -> None:
    kernels = tw.compile(Calls)
    assert sorted(kernels) == ["first", "second"]
    a = np.ones(16, "float32")
    kernels["first"](a, 8)
    assert a.tolist() == [6.0] * 4 + [2.0] * 4 + [1.0] * 8
    b = np.arange(16, dtype="int32")
    kernels["second"](b)
    np.testing.assert_array_equal(b, np.arange(16) ** 2)
    with pytest.raises(tw.Error, match="too many"):
        kernels["first"](a, 17)


def test_what_cannot_be_compiled() -> None:
    with pytest.raises(tw.ArgumentError, match="can be compiled"):
        tw.compile(lambda: None)


def test_compiling_in_many_threads() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for _ in range(3):
                a, b = np.full((8, 16), seed, "float32"), np.zeros((8, 16), "float32")
                tw.compile(add)(a, 1.0, b)
                assert (b == seed + 1).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_code_lives_as_long_as_its_kernel() -> None:
    a, b = np.ones((8, 16), "float32"), np.zeros((8, 16), "float32")
    kernels = [tw.compile(add) for _ in range(4)]
    del kernels[1:3]
    for kernel in kernels:
        kernel(a, 1.0, b)
    assert (b == 2).all()


def test_loops_whose_length_depends_on_others():
    """How much an iteration computes, which decides how often a loop looks for Ctrl-C, is said before it begins."""

    @T.prim_func
    def sums(X: T.Buffer((9, 10, 11), "float32"), Y: T.Buffer((9,), "float32")):
        for i in range(9):
            Y[i] = T.float32(0)
            for j in range(i + 2):
                for k in range(j, 11 - i):
                    Y[i] = Y[i] + X[i, j, k]

    x, y = np.arange(990, dtype=np.float32).reshape(9, 10, 11) % 13, np.empty(9, np.float32)
    tw.compile(sums)(x, y)
    np.testing.assert_array_equal(y, [sum(x[i, j, j : max(j, 11 - i)].sum() for j in range(i + 2)) for i in range(9)])


def test_arrays_of_scalars_are_vectors_where_the_last_dimension_is_the_lanes() -> None:
    @T.prim_func
    def twice(A: T.Buffer((16,), "float32x4"), B: T.Buffer((16,), "float32x4")):
        for i in range(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = A[v] + A[v]

    a = np.arange(64, dtype="float32").reshape(16, 4)
    wide = np.zeros((32, 4), "float32")
    wide[::2] = a
    for target in ("native", "interpreter"):
        kernel = tw.compile(twice, target=target)
        b = np.zeros((16, 4), "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, 2 * a)
        np.testing.assert_array_equal(kernel(a), 2 * a)
        for other in (a.ravel(), a.T, a[:, :2], a.astype("float64")):
            with pytest.raises(tw.ArgumentError):
                kernel(other, b)

    @T.prim_func
    def once(A: T.Buffer((1,), "float32x4"), B: T.Buffer((1,), "float32x4")):
        B[0] = A[0] + A[0]

    # A stride that leads to no second vector may be any, also no whole number of vectors.
    row = np.arange(12, dtype="float32").reshape(2, 6)[:1, :4]
    np.testing.assert_array_equal(tw.compile(once)(row), 2 * row)
    assert tw.compile(twice).benchmark(a, b).median > 0
    with pytest.raises(tw.ArgumentError, match="NumPy has no type for float32x4"):
        tw.tune(twice, trials=1)


def test_arguments_that_do_not_fit_into_memory_are_named() -> None:
    @T.prim_func
    def diagonal(A: T.Buffer((10**7, 10**7), "float64"), B: T.Buffer((1000,), "float64")):
        for i in range(1000):
            B[i] = A[i, i]

    with pytest.raises(tw.ResourceError, match=r"the parameter A of 745,058\.1 GiB"):
        tw.tune(diagonal, trials=1)
