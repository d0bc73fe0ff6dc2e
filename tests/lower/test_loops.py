"""Loops of all kinds through the whole pipeline, compared with NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tilewright as tw
from codegen.elementwise import numpy_type
from tilewright import _core
from tilewright.script import tir as T
from tilewright.testing import check_equivalent

RANDOM = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray:
    return RANDOM.integers(-4, 5, shape).astype("float32")


@pytest.mark.parametrize("n", [1, 5, 8, 13, 16, 31, 32, 100])
@pytest.mark.parametrize("width", [4, 6, 8, 16])
def test_vector_tails_are_masked(n: int, width: int) -> None:
    steps = -(-n // width)

    @T.prim_func
    def scale(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        for i0 in range(steps):
            for i1 in T.vectorized(width):
                with T.block("B"):
                    T.where(i0 * width + i1 < n)
                    v = T.axis.spatial(n, i0 * width + i1)
                    B[v] = A[v] * T.float32(3)

    a, b = random(n), np.full(n + 8, 7, "float32")
    tw.compile(scale, schedule="as written")(a, b[:n])
    np.testing.assert_array_equal(b[:n], a * 3)
    assert (b[n:] == 7).all()


@pytest.mark.parametrize("n", [1, 7, 8, 63, 64, 65, 200])
def test_vectorized_loops_of_any_extent(n: int) -> None:
    @T.prim_func
    def add(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        for i in T.vectorized(n):
            B[i] = A[i] + T.float32(1)

    a, b = random(n), np.zeros(n, "float32")
    tw.compile(add, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize("n", [0, 1, 8, 37, 64])
def test_symbolic_sizes(n: int) -> None:
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 5), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n, 5), "float32")
        for i, j in T.grid(n, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vi]

    a, b, c = random(n, 5), random(n), np.zeros((n, 5), "float32")
    tw.compile(add, schedule="as written")(a, b, c)
    np.testing.assert_array_equal(c, a + b[:, None])


@pytest.mark.parametrize("n", [0, 1, 8, 37, 64])
def test_symbolic_vector_tail(n: int) -> None:
    @T.prim_func
    def add(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in T.vectorized(n):
            B[i] = A[i] + T.float32(1)

    a, b = random(n), np.full(n + 20, 5, "float32")
    tw.compile(add, schedule="as written")(a, b[:n])
    np.testing.assert_array_equal(b[:n], a + 1)
    assert (b[n:] == 5).all()


def test_strides_and_offsets_from_the_argument() -> None:
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        s0, s1 = T.int32(), T.int32()
        A = T.match_buffer(a, (6, 10), "float32", strides=[s0, s1])
        B = T.match_buffer(b, (6, 10), "float32")
        for i, j in T.grid(6, 10):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    base = random(20, 40)
    kernel = tw.compile(copy, schedule="as written")
    for view in (base[2:8, 3:13], base[::-1, ::-1][:6, :10], base.T[5:11, 2:12], base[0:12:2, 0:40:4]):
        b = np.zeros((6, 10), "float32")
        kernel(view, b)
        np.testing.assert_array_equal(b, view)


def test_reversed_and_strided_vectors() -> None:
    @T.prim_func
    def shuffle(A: T.Buffer((64,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in T.vectorized(16):
            B[i] = A[63 - i]
        for i in T.vectorized(16):
            C[15 - i] = A[i * 3 + 1]

    a, b, c = random(64), np.zeros(16, "float32"), np.zeros(16, "float32")
    tw.compile(shuffle, schedule="as written")(a, b, c)
    np.testing.assert_array_equal(b, a[63:47:-1])
    np.testing.assert_array_equal(c[::-1], a[1:49:3])


@pytest.mark.parametrize("lanes", [1, 8])
def test_gather_and_scatter(lanes: int) -> None:
    @T.prim_func
    def gather(
        A: T.Buffer((50,), "float32"),
        I: T.Buffer((37,), "int64"),
        B: T.Buffer((37,), "float32"),
        C: T.Buffer((50,), "float32"),
    ):
        for i in range(37):
            B[i] = A[I[i]]
        for i0 in range(5):
            for i1 in T.vectorized(8):
                if i0 * 8 + i1 < 37:
                    C[I[i0 * 8 + i1]] = A[i0 * 8 + i1]

    a, index = random(50), RANDOM.permutation(50)[:37]
    b, c = np.zeros(37, "float32"), np.zeros(50, "float32")
    tw.compile(gather, schedule="as written")(a, index, b, c)
    np.testing.assert_array_equal(b, a[index])
    expected = np.zeros(50, "float32")
    expected[index] = a[:37]
    np.testing.assert_array_equal(c, expected)


def test_padding_loads_only_what_is_there() -> None:
    @T.prim_func
    def pad(A: T.Buffer((10, 10), "float32"), B: T.Buffer((14, 14), "float32")):
        for i in range(14):
            for j in T.vectorized(14):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.if_then_else(
                        vi >= 2 and vi < 12 and vj >= 2 and vj < 12, A[vi - 2, vj - 2], T.float32(0)
                    )

    a, b = random(10, 10), np.ones((14, 14), "float32")
    tw.compile(pad, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, np.pad(a, 2))


@pytest.mark.parametrize("threads", [1, 2])
def test_parallel_tiles_with_tails(threads: int) -> None:
    @T.prim_func
    def transpose(A: T.Buffer((50, 70), "int32"), B: T.Buffer((70, 50), "int32")):
        for i0, j0 in T.grid(9, 7):
            for i1 in range(8):
                for j1 in T.vectorized(8):
                    with T.block("B"):
                        T.where(i0 * 8 + i1 < 70 and j0 * 8 + j1 < 50)
                        vi = T.axis.spatial(70, i0 * 8 + i1)
                        vj = T.axis.spatial(50, j0 * 8 + j1)
                        B[vi, vj] = A[vj, vi]

    @T.prim_func
    def parallel(A: T.Buffer((50, 70), "int32"), B: T.Buffer((70, 50), "int32")):
        for i0 in T.parallel(9):
            for j0, i1, j1 in T.grid(7, 8, 8):
                with T.block("B"):
                    T.where(i0 * 8 + i1 < 70 and j0 * 8 + j1 < 50)
                    vi = T.axis.spatial(70, i0 * 8 + i1)
                    vj = T.axis.spatial(50, j0 * 8 + j1)
                    B[vi, vj] = A[vj, vi]

    a = np.arange(3500, dtype="int32").reshape(50, 70)
    for func in (transpose, parallel):
        kernel = tw.compile(func, schedule="as written")
        kernel.threads = threads
        b = np.zeros((70, 50), "int32")
        kernel(a, b)
        np.testing.assert_array_equal(b, a.T)


def test_zero_extents_do_nothing() -> None:
    @T.prim_func
    def nothing(A: T.Buffer((8,), "float32")):
        for i, j in T.grid(8, 0):
            A[i + j] = T.float32(1)
        for i in T.vectorized(0):
            A[i] = T.float32(2)
        for i in T.parallel(0):
            A[i] = T.float32(3)
        for i in T.unroll(0):
            A[i] = T.float32(4)

    a = random(8)
    before = a.copy()
    tw.compile(nothing, schedule="as written")(a)
    np.testing.assert_array_equal(a, before)


def test_loops_start_anywhere() -> None:
    @T.prim_func
    def ranges(A: T.Buffer((40,), "int32")):
        for i in range(3, 9):
            A[i] = i
        for i in T.vectorized(10, 20):
            A[i] = i
        for i in T.unroll(22, 25):
            A[i] = i
        for i in T.parallel(30, 37):
            A[i] = i
        for i in range(-3, -1):
            A[i + 3] = i

    a = np.full(40, 99, "int32")
    tw.compile(ranges, schedule="as written")(a)
    expected = np.full(40, 99)
    for r in (range(3, 9), range(10, 20), range(22, 25), range(30, 37)):
        expected[list(r)] = list(r)
    expected[:2] = [-3, -2]
    np.testing.assert_array_equal(a, expected)


def test_while_and_let_and_branches() -> None:
    @T.prim_func
    def collatz(A: T.Buffer((20,), "int32"), B: T.Buffer((20,), "int32")):
        for i in range(20):
            x = T.decl_buffer((1,), "int32", scope="local")
            x[0] = A[i]
            B[i] = 0
            while x[0] != 1:
                if x[0] % 2 == 0:
                    x[0] = x[0] // 2
                else:
                    x[0] = x[0] * 3 + 1
                B[i] = B[i] + 1

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    a, b = np.arange(1, 21, dtype="int32"), np.zeros(20, "int32")
    tw.compile(collatz, schedule="as written")(a, b)
    assert b.tolist() == [steps(n) for n in range(1, 21)]


def test_what_cannot_be_vectorized_stays_right() -> None:
    @T.prim_func
    def total(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
        B[0] = T.float32(0)
        for i in T.vectorized(64):
            B[0] = A[i] - B[0]

    a, b = random(64), np.zeros(1, "float32")
    kernel = tw.compile(total, schedule="as written")
    kernel(a, b)
    assert b[0] == a[1::2].sum() - a[::2].sum()
    assert [note["code"] for note in kernel.report["notes"]] == ["lower/not-vectorized"]


def test_conditions_that_grow_too_large_stay_in_a_serial_loop() -> None:
    """Each stands in all loads under it, of elements that nothing else loads: the vector form of 24 has 2^24
    operations."""
    value = "A[i] + 1.0"
    for depth in range(24):
        value = f"T.if_then_else(A[(i + {depth}) % 64] > {depth - 12}.0, {value}, {depth}.0)"
    program = tw.script.from_source(f"""
@T.prim_func
def nested(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.vectorized(64):
        B[i] = {value}
""")
    a, b, expected = random(64) * 20, np.zeros(64, "float32"), np.zeros(64, "float32")
    with pytest.warns(tw.PerformanceWarning, match="loop 'i' is not vectorized: an expression has more than"):
        tw.compile(program)(a, b)
    tw.compile(program, target="interpreter")(a, expected)
    np.testing.assert_array_equal(b, expected)


def test_dependences_are_not_vectorized() -> None:
    @T.prim_func
    def scan(A: T.Buffer((64,), "int32")):
        for i in range(63):
            A[i + 1] = A[i] + A[i + 1]

    a = np.arange(64, dtype="int32")
    expected = np.cumsum(a)
    tw.compile(scan, schedule="as written")(a)
    np.testing.assert_array_equal(a, expected)


def test_assertions_carry_their_message() -> None:
    @T.prim_func
    def check(A: T.Buffer((4,), "int32"), n: T.int32):
        assert n < 4, "n has to be small"
        A[n] = 7

    kernel = tw.compile(check, schedule="as written")
    a = np.zeros(4, "int32")
    kernel(a, 3)
    assert a[3] == 7
    with pytest.raises(tw.Error, match="n has to be small"):
        kernel(a, 4)


def test_a_vectorized_loop_around_another_one_is_serial():
    """Whatever the inner one made of conditions on the outer one."""

    @T.prim_func
    def nested(A: T.Buffer((5, 8), "float32"), B: T.Buffer((4, 12), "float32")):
        for i in T.vectorized(12):
            for j in T.vectorized(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vj, vi] = T.if_then_else(
                        T.Cast("bool", T.Cast("uint16", vi)), T.fmod(A[vj, vj], A[vj, 1]), A[vj, vj + 4]
                    )

    a = np.arange(1, 41, dtype="float32").reshape(5, 8)
    results = []
    for target in ("native", "interpreter"):
        b = np.zeros((4, 12), "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.PerformanceWarning)
            kernel = tw.compile(nested, target=target, schedule="as written")
        kernel(a, b)
        results.append(b)
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("index", ["k * k % 8", "k // 2", "I[k] % 8", "k * 0 + 3", "7 - k", "k // 4 + k % 4 * 2"])
def test_lanes_that_accumulate_into_one_element(index: str) -> None:
    """As often as the loop says, whether lanes meet or not."""
    func = tw.script.from_source(f"""@T.prim_func
def count(I: T.Buffer((8,), "int32"), A: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        with T.block("A"):
            k = T.axis.reduce(8, i)
            A[{index}] = A[{index}] + 1
""")
    places = np.array([1, 3, 1, 6, 3, 3, 0, 2], "int32")
    counted = np.zeros(8, "int32")
    tw.compile(func, schedule="as written")(places, counted)
    k = np.arange(8)
    expected = np.zeros(8, "int32")
    np.add.at(expected, np.broadcast_to(eval(index, {"k": k, "I": places}), 8), 1)
    np.testing.assert_array_equal(counted, expected)
    check_equivalent(func, tw.lower(func))


def test_lanes_that_do_not_ask_divide_by_nothing() -> None:
    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in T.vectorized(16):
            with T.block("B"):
                v = T.axis.spatial(16, i)
                B[v] = T.if_then_else(D[v] != 0, A[v] // D[v] + A[v] % D[v], 0)

    vectors = tw.lower(main, after="vectorize_loops")
    assert "T.vectorized" not in vectors.script() and "for " not in vectors.script()
    a, d, b = np.arange(100, 116, dtype="int32"), np.arange(16, dtype="int32") % 4, np.zeros(16, "int32")
    expected = np.where(d != 0, a // np.maximum(d, 1) + a % np.maximum(d, 1), 0)
    for run in (tw.compile(main, schedule="as written"), lambda *args: _core.interpret(vectors, "main", *args)):
        b[:] = 0
        run(a, d, b)
        np.testing.assert_array_equal(b, expected)


def test_stores_of_an_unrolled_loop_that_fill_memory_together_are_one():
    """As groups of four rows are packed: four loads, and one store of what they have, interleaved."""

    @T.prim_func
    def packed(A: T.Buffer((4, 32), "int8"), B: T.Buffer((32, 4), "int8")):
        for j in T.vectorized(32):
            for k in T.unroll(4):
                with T.block("B"):
                    vj, vk = T.axis.remap("SS", [j, k])
                    B[vj, vk] = A[vk, vj]

    lowered = tw.lower(packed, after="vectorize_loops", target="llvm -mcpu=skylake-avx512")
    assert lowered.script().count("B_1[") == 1 and "T.Shuffle" in lowered.script()
    a = np.random.default_rng(0).integers(-128, 128, (4, 32), "int8")
    np.testing.assert_array_equal(tw.compile(packed, schedule="as written")(a), a.T)


@pytest.mark.parametrize("whole", [True, False])
def test_a_cut_off_vector_reads_what_its_lanes_share_once(whole: bool) -> None:
    """A row of a table: its number is the same in all lanes, and what is read of it lies side by side. Where no lane
    may be left, the number is not read either."""
    n = 44

    @T.prim_func
    def row(table: T.Buffer((9, n), "float32"), index: T.Buffer((3,), "int32"), end: T.int32, Y: T.Buffer((3, n))):
        for i in range(3):
            for j in T.vectorized(48):
                with T.block("Y"):
                    T.where(j < n if whole else j < end)
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = table[index[vi], vj]

    text = tw.lower(row, after="vectorize_loops", target="llvm -mcpu=skylake-avx512").script()
    assert ("index_1.vload" in text) != whole and ("T.Ramp(index_1[i] * 44 + 32, 1, 16)" in text) == whole
    table, index, y = random(9, n), np.array([4, 0, 8], "int32"), np.zeros((3, n), "float32")
    tw.compile(row, schedule="as written")(table, index, n, y)
    np.testing.assert_array_equal(y, table[index])


@pytest.mark.parametrize(("dtype", "group"), [("int8", 4), ("uint8", 2), ("bfloat16", 2), ("int16", 4), ("float32", 2)])
def test_small_numbers_side_by_side_are_loaded_as_words(dtype: str, group: int) -> None:
    """As groups are packed whose numbers lie along the rows: one word for each lane."""
    lanes, groups = 16, 5

    @T.prim_func
    def packed(A: T.Buffer((lanes, groups * group), dtype), B: T.Buffer((groups, lanes, group), dtype)):
        for g in range(groups):
            for j in T.vectorized(lanes):
                for k in T.unroll(group):
                    with T.block("B"):
                        vg, vj, vk = T.axis.remap("SSS", [g, j, k])
                        B[vg, vj, vk] = A[vj, vg * group + vk]

    lowered = tw.lower(packed, after="vectorize_loops", target="llvm -mcpu=skylake-avx512")
    bits = group * {"int8": 8, "uint8": 8, "bfloat16": 16, "int16": 16, "float32": 32}[dtype]
    assert lowered.script().count(f'T.reinterpret("int{bits}", A_1[') == lanes
    a = np.random.default_rng(0).integers(0, 100, (lanes, groups * group)).astype(numpy_type(dtype))
    expected = a.reshape(lanes, groups, group).transpose(1, 0, 2)
    b = np.zeros(expected.shape, a.dtype)
    for run in (tw.compile(packed, schedule="as written"), lambda *args: _core.interpret(lowered, "packed", *args)):
        b[:] = 0
        run(a, b)
        np.testing.assert_array_equal(b, expected)
