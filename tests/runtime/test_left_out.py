"""Calls that leave out what is only written, and arguments that a kernel must not take."""

from __future__ import annotations

import ctypes
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.programs import product

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T


@T.prim_func
def extremes(out: T.handle, a: T.handle, scale: T.float32, more: T.handle):
    n = T.int64()
    Out = T.match_buffer(out, (n * 2,), "float32")
    A = T.match_buffer(a, (n,), "float32")
    More = T.match_buffer(more, (n,), "int32")
    for i in range(n * 2):
        with T.block("Out"):
            v = T.axis.spatial(n * 2, i)
            Out[v] = A[v // 2] * scale
    for i in range(n):
        with T.block("More"):
            v = T.axis.spatial(n, i)
            More[v] = T.Cast("int32", A[v])


@T.prim_func
def add_to(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = B[i] + A[i]


@T.prim_func
def shifted(A: T.Buffer((4,), "float32"), n: T.int32, b: T.handle):
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v % 4] + T.float32(1)


@pytest.mark.parametrize("n", [6, np.int8(6), np.array(6), np.array(6, "uint64")])
def test_a_size_that_is_any_integer(n: object) -> None:
    kernel = tw.compile(shifted)
    a = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(kernel(a, n), [1, 2, 3, 4, 1, 2])
    torch = pytest.importorskip("torch")
    assert isinstance(kernel(torch.from_numpy(a), n), torch.Tensor)


@T.prim_func
def ones(n: T.int64, b: T.handle):
    B = T.match_buffer(b, (n, n), "float32")
    for i, j in T.grid(n, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.float32(1)


def test_sizes_for_which_there_is_no_array() -> None:
    kernel = tw.compile(ones)
    for n in (-1, -3):
        with pytest.raises(tw.ArgumentError, match=rf"omitted B would have the shape \({n}, {n}\)") as error:
            kernel(n)
        assert error.value.code == "call/omitted-size"
    for n in (2**23, 2**40):
        with pytest.raises(tw.ResourceError, match=f"no memory for the omitted B of type float32 and shape .{n}, "):
            kernel(n)


def test_a_size_in_an_array_on_a_device() -> None:
    device = tw.device("cpu")
    result = tw.compile(shifted)(device.array(np.zeros(4, "float32")), np.array(6))
    assert type(result) is type(device.zeros(1)) and result.shape == (6,)


def test_the_result_is_returned() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 6), dtype="float32"), rng.random((6, 5), dtype="float32")
    kernel = tw.compile(product)
    c = np.empty((4, 5), "float32")
    assert kernel(a, b, c) is None
    np.testing.assert_allclose(c, a @ b, rtol=1e-6)
    np.testing.assert_array_equal(kernel(a, b), c)
    np.testing.assert_array_equal(kernel(B=b, A=a), c)
    np.testing.assert_array_equal(kernel(a, B=b), c)
    np.testing.assert_allclose(tw.compile(product, "interpreter")(a, b), c, rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (100, 1000)])
def test_results_begin_where_vectors_do(shape: tuple[int, int]) -> None:
    """At a multiple of a line of the cache, wherever the arguments begin."""

    @T.prim_func
    def doubled(A: T.Buffer(shape, "float32"), B: T.Buffer(shape, "float32")):
        for i, j in T.grid(shape[0], shape[1]):
            B[i, j] = A[i, j] * T.float32(2)

    kernel = tw.compile(doubled)
    kept = []
    for _ in range(5):
        result = kernel(np.ones(shape, "float32"))
        assert result.ctypes.data % 64 == 0 and result.flags.c_contiguous and result.flags.writeable
        np.testing.assert_array_equal(result, np.full(shape, 2, "float32"))
        kept.append(result)


def test_several_of_symbolic_sizes_before_and_between_the_inputs() -> None:
    kernel = tw.compile(extremes)
    a = np.arange(5, dtype="float32")
    out, more = kernel(a, 2.0)
    np.testing.assert_array_equal(out, np.repeat(a, 2) * 2)
    np.testing.assert_array_equal(more, a)
    assert (out.dtype, more.dtype) == (np.float32, np.int32)
    given = np.empty(10, "float32")
    np.testing.assert_array_equal(kernel(given, a, 3.0), a)
    np.testing.assert_array_equal(given, np.repeat(a, 2) * 3)


def test_a_sum_of_symbolic_size() -> None:
    @T.prim_func
    def row_sums(a: T.handle, s: T.handle):
        m, n = T.int64(), T.int64()
        A = T.match_buffer(a, (m, n), "float32")
        S = T.match_buffer(s, (m,), "float32")
        for i, j in T.grid(m, n):
            with T.block("S"):
                v, k = T.axis.remap("SR", [i, j])
                with T.init():
                    S[v] = T.float32(0)
                S[v] = S[v] + A[v, k]

    a = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(tw.compile(row_sums)(a), a.sum(1))


def test_of_a_scheduled_program() -> None:
    sch = tw.Schedule(product)
    i, _, k = sch.get_loops(sch.get_block("C"))
    sch.split(i, [2, 2])
    sch.unroll(k)
    a, b = np.ones((4, 6), "float32"), np.ones((6, 5), "float32")
    np.testing.assert_array_equal(tw.compile(sch)(a, b), np.full((4, 5), 6))


def test_what_is_read_cannot_be_left_out() -> None:
    with pytest.raises(tw.ArgumentError, match=r"takes 2 arguments \(A, B\), got none for B\n") as caught:
        tw.compile(add_to)(np.zeros(4, "float32"))
    assert caught.value.code == "call/count"
    assert caught.value.hint == (
        "B may be read before all of it is written: the program reads it; no argument can be omitted"
    )
    with pytest.raises(tw.ArgumentError, match="takes 3 arguments"):
        tw.compile(product)(np.zeros((4, 6), "float32"))
    with pytest.raises(tw.ArgumentError, match="an unknown one, D"):
        tw.compile(product)(np.zeros((4, 6), "float32"), D=1)


@T.prim_func
def scaled(a: T.handle, c: T.handle, beta: T.float32, flip: T.bool) -> None:
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("C"):
            v = T.axis.spatial(n, i)
            C[v] = T.if_then_else(flip, -beta, beta) * A[v]


@pytest.mark.parametrize("by_position", [0, 1])
def test_a_scalar_that_is_missing_is_named_and_not_the_output(by_position: int, tmp_path: Path) -> None:
    a = np.ones(4, "float32")
    compiled = tw.compile(scaled)
    for kernel in (compiled, tw.load(compiled.export(tmp_path).library)):
        with pytest.raises(
            tw.ArgumentError, match="got none for flip\n  hint: flip is a number; only C can be omitted"
        ) as caught:
            kernel(*[a][:by_position], beta=1.0, **{} if by_position else {"a": a})
        assert caught.value.code == "call/count"
        with pytest.raises(tw.ArgumentError, match="got none for beta, flip"):
            kernel(a)
        np.testing.assert_array_equal(kernel(a, beta=2.0, flip=True), -2 * a)


@pytest.mark.parametrize("notes", ["", "{", '{"product": {"outputs": ["C"], "function": "{}"}}', "[3]"])
def test_a_library_without_notes_says_why_it_needs_every_array(
    notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that an earlier version exported, or whose notes another version wrote."""
    a, b, c = np.ones((4, 6), "float32"), np.ones((6, 5), "float32"), np.empty((4, 5), "float32")
    library = tw.compile(product).export(tmp_path).library
    kernels = _core.load_library(str(library))[0]
    monkeypatch.setattr(_core, "load_library", lambda path: (kernels, notes))
    loaded = tw.load(library)
    for call in (lambda: loaded(a, b), lambda: loaded(A=a, B=b), lambda: loaded.benchmark(a, b)):
        with pytest.raises(
            tw.ArgumentError, match=r"takes 3 arguments \(A, B, C\), got 2\n  hint: pass all arguments"
        ) as caught:
            call()
        assert caught.value.code == "call/count"
    loaded(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_wrong_arguments_are_refused_as_ever() -> None:
    with pytest.raises(tw.ArgumentError, match="argument A") as caught:
        tw.compile(product)(np.zeros((4, 7), "float32"), np.zeros((6, 5), "float32"))
    assert caught.value.code == "call/shape"


def test_masked_arrays_are_refused() -> None:
    a = np.ma.masked_array(np.zeros(4, "float32"), mask=[0, 1, 0, 0])
    with pytest.raises(tw.ArgumentError, match="whose mask would be lost") as caught:
        tw.compile(add_to)(a, np.zeros(4, "float32"))
    assert "A.filled(value)" in caught.value.hint

    class Own(np.ndarray):
        pass

    tw.compile(add_to)(np.zeros(4, "float32").view(Own), np.zeros(4, "float32"))


@pytest.mark.parametrize(
    "value", [1 + 2j, np.complex64(1 + 2j), np.ones(1), np.ones((1, 1)), np.ma.masked, np.array(1j), 1e39, "1", None]
)
def test_scalars_that_do_not_fit(value: object) -> None:
    with pytest.raises(tw.ArgumentError, match="argument scale") as caught:
        tw.compile(extremes)(np.ones(3, "float32"), value)
    assert caught.value.code == "call/scalar"


@pytest.mark.parametrize("value", [2, 2.0, np.float64(2), np.float32(2), np.int8(2), np.array(2.0)])
def test_scalars_that_fit(value: object) -> None:
    out, _ = tw.compile(extremes)(np.ones(3, "float32"), value)
    np.testing.assert_array_equal(out, np.full(6, 2))


def test_benchmarks_take_what_calls_take() -> None:
    timing = tw.compile(product).benchmark(np.ones((4, 6), "float32"), np.ones((6, 5), "float32"))
    assert timing.median > 0 and timing.work.flops == 2 * 4 * 5 * 6


def test_kernels_of_a_library_are_called_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 6), dtype="float32"), rng.random((6, 5), dtype="float32")
    kernel = tw.compile(product)
    loaded = tw.load(kernel.export(tmp_path, name="renamed").library)
    np.testing.assert_array_equal(loaded(a, b), kernel(a, b))
    np.testing.assert_array_equal(loaded(B=b, A=a), kernel(a, b))
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again(a, b), kernel(a, b))
    assert loaded.benchmark(a, b).median > 0
    with pytest.raises(tw.ArgumentError, match="takes 3 arguments"):
        loaded(a)

    tw.compile(extremes).export(tmp_path)
    out, more = tw.load(tmp_path / "extremes.so")(np.arange(5, dtype="float32"), 2.0)
    np.testing.assert_array_equal(out, np.repeat(np.arange(5), 2) * 2)
    np.testing.assert_array_equal(more, np.arange(5))


def test_of_several_kernels_in_a_library_each_tells_its_own(tmp_path: Path) -> None:
    module = tw.ir.IRModule({"product": product, "add_to": add_to})
    loaded = tw.load(tw.compile(module).export(tmp_path, "both").library)
    a, b = np.ones((4, 6), "float32"), np.ones((6, 5), "float32")
    np.testing.assert_array_equal(loaded["product"](a, b), np.full((4, 5), 6.0))
    with pytest.raises(tw.ArgumentError, match="takes 2 arguments"):  # B is read, too
        loaded["add_to"](np.ones(4, "float32"))


@pytest.mark.parametrize("shape", [(16,), (4, 4)])
def test_arrays_of_ctypes(shape: tuple[int, ...]) -> None:
    """Their memory is compact, and they do not say with which strides."""

    @T.prim_func
    def twice(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, shape, "float32")
        B = T.match_buffer(b, shape, "float32")
        for i in T.serial(shape[0]):
            for j in T.serial(16 // shape[0]):
                if len(shape) == 1:
                    B[i] = A[i] * T.float32(2)
                else:
                    B[i, j] = A[i, j] * T.float32(2)

    array = ctypes.c_float * 16 if len(shape) == 1 else ctypes.c_float * 4 * 4
    result = array()
    tw.compile(twice)(np.arange(16, dtype=np.float32).reshape(shape), result)
    assert np.array_equal(np.array(result).ravel(), 2 * np.arange(16))
    with pytest.raises(tw.ArgumentError, match="expected"):
        tw.compile(twice)(np.ones(shape, np.float32), _Pair())


class _Pair(ctypes.Structure):
    _fields_ = (("x", ctypes.c_float), ("y", ctypes.c_float))


def test_a_block_that_reads_first_is_named() -> None:
    @T.prim_func
    def sums(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("scan"):
                vi = T.axis.opaque(8, i)
                Y[vi] = X[vi] + T.if_then_else(vi > 0, Y[T.max(vi - 1, 0)], T.float32(0))

    with pytest.raises(tw.ArgumentError, match="got none for Y") as error:
        tw.compile(sums)(np.ones(8, np.float32))
    assert error.value.code == "call/count"
    assert error.value.hint.startswith("Y may be read before all of it is written: block 'scan' reads it; ")


@T.prim_func
def square(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_no_schedule_changes_what_may_be_left_out(target: str, decomposed: bool) -> None:
    sch = tw.Schedule(square)
    i, j, k = sch.get_loops("C")
    (i0, i1), (j0, j1), (k0, k1) = (sch.split(loop, [None, 16]) for loop in (i, j, k))
    sch.reorder(i0, j0, k0, i1, j1, k1)
    tile = sch.blockize(i1)
    if decomposed:
        sch.decompose_reduction(tile, k0)
    a = np.random.default_rng(0).integers(-4, 4, (64, 64)).astype("float32")
    # The module of a schedule does not tell what it was before.
    for program in (sch, sch.mod):
        np.testing.assert_array_equal(tw.compile(program, target)(a, a), a @ a)


@T.prim_func
def powers(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), steps: T.int32):
    for i in range(8):
        B[i] = A[i]
    for t in range(steps):
        for i in range(8):
            B[i] = B[i] * T.float32(2)


@T.prim_func
def open_twice(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * T.float32(2)
    for i in range(n):
        with T.block("more"):
            v = T.axis.spatial(n, i)
            B[v] = B[v] + T.float32(1)


@T.prim_func
def in_views(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("row"):
            vi = T.axis.spatial(8, i)
            b = T.match_buffer(B[vi, 0:8], (8,), "float32", offset_factor=1)
            for j in range(8):
                with T.block("copy"):
                    vj = T.axis.spatial(8, j)
                    b[vj] = A[vi, vj]
            for j in range(8):
                with T.block("more"):
                    vj = T.axis.spatial(8, j)
                    b[vj] = b[vj] + T.float32(1)


@tw.script.ir_module
class Calling:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Calling.double(A.data, B.data, 8)
        for i in range(8):
            B[i] = B[i] + T.float32(1)

    @T.prim_func(private=True)
    def double(a: T.handle("float32", "global"), b: T.handle("float32", "global"), n: T.int32):
        A = T.decl_buffer((n,), data=a)
        B = T.decl_buffer((n,), data=b)
        for i in range(n):
            B[i] = A[i] * T.float32(2)


@tw.script.ir_module
class CallingForAPart:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        CallingForAPart.double(A.data, B.data, 7)
        for i in range(8):
            B[i] = B[i] + T.float32(1)

    @T.prim_func(private=True)
    def double(a: T.handle("float32", "global"), b: T.handle("float32", "global"), n: T.int32):
        A = T.decl_buffer((n,), data=a)
        B = T.decl_buffer((n,), data=b)
        for i in range(n):
            B[i] = A[i] * T.float32(2)


@tw.script.ir_module
class Adding:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Adding.add(A.data, B.data)

    @T.prim_func(private=True)
    def add(a: T.handle("float32", "global"), b: T.handle("float32", "global")):
        A = T.decl_buffer((8,), data=a)
        B = T.decl_buffer((8,), data=b)
        for i in range(8):
            B[i] = B[i] + A[i]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "got None"),
        (np.float32(3), r"got one of shape \(\)"),
        (np.ones((2, 2), "float32"), r"got one of shape \(2, 2\)"),
    ],
)
def test_an_argument_that_gives_no_size_is_named(given: object, said: str) -> None:
    with pytest.raises(tw.ArgumentError, match="argument A: expected an array of 1 dimensions, " + said) as caught:
        tw.compile(open_twice)(given)
    assert caught.value.code == "call/argument"


def test_what_is_written_first_may_be_left_out() -> None:
    a, square_of_8 = np.arange(8, dtype="float32"), np.arange(64, dtype="float32").reshape(8, 8)
    np.testing.assert_array_equal(tw.compile(powers)(a, steps=3), 8 * a)
    np.testing.assert_array_equal(tw.compile(open_twice)(a), 2 * a + 1)
    sch = tw.Schedule(open_twice)
    for block in ("B", "more"):
        sch.split(sch.get_loops(block)[0], [None, 4])
    np.testing.assert_array_equal(tw.compile(sch.mod, schedule="as written")(a), 2 * a + 1)
    np.testing.assert_array_equal(tw.compile(in_views)(square_of_8), square_of_8 + 1)


def test_functions_that_are_called_say_what_they_write(tmp_path: Path) -> None:
    a = np.arange(8, dtype="float32")
    kernel = tw.compile(Calling)
    np.testing.assert_array_equal(kernel(a), 2 * a + 1)
    np.testing.assert_array_equal(tw.load(kernel.export(tmp_path).library)(a), 2 * a + 1)
    for module, why in (
        (CallingForAPart, "the program reads it"),
        (Adding, "it is passed to function 'add', which may read it"),
    ):
        kernel = tw.compile(module)
        for each in (kernel, tw.load(kernel.export(tmp_path, f"of_{len(why)}").library)):
            with pytest.raises(tw.ArgumentError, match="got none for B") as error:
                each(a)
            assert error.value.code == "call/count"
            assert error.value.hint == f"B may be read before all of it is written: {why}; no argument can be omitted"


@pytest.mark.parametrize(("masks", "roles"), [(None, "inout inout"), ("rw", "input output")])
def test_other_calls_read_and_write_what_they_say(masks: str | None, roles: str) -> None:
    @T.prim_func
    def unknown(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.evaluate(T.call_extern("int32", "f", A.data, B.data))

    @T.prim_func
    def declared(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.evaluate(T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w")))

    function = declared if masks else unknown
    found = _core.parameter_roles(function, tw.Schedule(function).mod)
    assert " ".join(role for role, _ in found) == roles
    assert found[0][1] == "it is passed to a call, which may read it"


def test_what_is_written_in_part_cannot_be_left_out() -> None:
    @T.prim_func
    def half(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(4):
            B[i] = A[i]
        for i in range(8):
            B[i] = B[i] + A[i]

    @T.prim_func
    def neighbor(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk], B[0:8])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk] * B[7 - vi]

    for program, arguments in ((half, (8,)), (neighbor, (8, 8))):
        with pytest.raises(tw.ArgumentError, match="got none for B"):
            tw.compile(program, "interpreter")(np.ones(arguments, "float32"))
