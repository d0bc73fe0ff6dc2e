"""The reference interpreter: what programs compute, and what it reports."""

import signal

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


def run(func, *args, verified=True, **options):
    module = func if isinstance(func, ir.Module) else ir.as_module(func)
    text = module.script(show_meta=True)
    ir.assert_structural_equal(tw.script.from_source(text), module)
    if verified:  # what provably goes wrong is refused before it runs
        ir.verify(module)
    return ir.interpret(module, module.functions and next(iter(module.functions)), *args, **options)


def raises(code, func, *args, kind=tw.ScriptError, **options):
    with pytest.raises(kind) as info:
        run(func, *args, **options)
    assert info.value.code == code
    return str(info.value)


@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def small_ints(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def test_matmul():
    a, b, c = small_ints(64, 64), small_ints(64, 64, seed=1), np.full((64, 64), np.nan, "float32")
    run(matmul, a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_reduction_starts_at_the_minimum_of_its_axes():
    @T.prim_func
    def row_max(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")):
        for i, j in T.grid(4, 3):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.reduce((3, 6), j + 3)
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vi, vj])

    a, b = small_ints(4, 6), np.empty(4, "float32")
    run(row_max, a, b)
    np.testing.assert_array_equal(b, a[:, 3:].max(axis=1))


def test_symbolic_shapes_and_strides():
    @T.prim_func
    def add(a: T.handle, b: T.handle, scale: T.float32):
        n, m, s = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), strides=(s, 1))
        B = T.match_buffer(b, (n, m))
        for i, j in T.grid(n, m):
            B[i, j] = A[i, j] * scale

    a, b = small_ints(5, 8)[:, :6], np.zeros((5, 6), "float32")
    run(add, a, b, 2.0)
    np.testing.assert_array_equal(b, a * 2)
    text = raises("interpret/argument", add, a, np.zeros((5, 7), "float32"), 2.0, kind=tw.ArgumentError)
    assert "extent 6 in dimension 1" in text


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize(("dtype", "bits"), [("int4", 4), ("uint4", 4), ("bool", 1)])
def test_small_types_take_a_byte_each(dtype, bits):
    @T.prim_func
    def ops(A: T.Buffer((16,), dtype), B: T.Buffer((16,), dtype)):
        for i in range(16):
            B[i] = A[i] * A[15 - i] + A[i]

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = (np.arange(16) % 2**bits).astype(kind)
    b = np.zeros(16, kind)
    run(ops, a, b)
    wide = a.astype("int64")
    expected = wide * wide[::-1] + wide
    expected = (expected + 8) % 16 - 8 if dtype == "int4" else expected % 2**bits
    np.testing.assert_array_equal(b.astype("int64"), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_divide_as_they_say(dtype):
    @T.prim_func
    def ops(A: T.Buffer((64,), dtype), B: T.Buffer((64,), dtype), C: T.Buffer((8, 64), dtype)):
        for i in range(64):
            C[0, i] = A[i] + B[i]
            C[1, i] = A[i] - B[i]
            C[2, i] = A[i] * B[i]
            C[3, i] = A[i] // B[i]
            C[4, i] = A[i] % B[i]
            C[5, i] = T.truncdiv(A[i], B[i])
            C[6, i] = T.truncmod(A[i], B[i])
            C[7, i] = T.max(A[i], B[i])

    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    a = rng.integers(info.min, info.max, 64, dtype=dtype, endpoint=True)
    b = rng.integers(1, 100, 64, dtype=dtype)
    if info.min < 0:
        b[::3] = -b[::3]
    c = np.zeros((8, 64), dtype)
    run(ops, a, b, c)
    with np.errstate(over="ignore"):
        expected = [a + b, a - b, a * b, a // b, a % b]
    quotient = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    expected += [np.array(quotient).astype(dtype)]
    expected += [np.array([int(x) - q * int(y) for x, q, y in zip(a, quotient, b, strict=True)]).astype(dtype)]
    expected += [np.maximum(a, b)]
    for row, want in zip(c, expected, strict=True):
        np.testing.assert_array_equal(row, want)


FLOATS = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_round_after_each_operation(dtype):
    @T.prim_func
    def ops(A: T.Buffer((256,), dtype), B: T.Buffer((256,), dtype), C: T.Buffer((4, 256), dtype)):
        for i in range(256):
            C[0, i] = A[i] + B[i]
            C[1, i] = A[i] * B[i]
            C[2, i] = A[i] * B[i] - A[i]
            C[3, i] = A[i] / B[i]

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=256).astype(kind) for _ in range(2))
    c = np.zeros((4, 256), kind)
    run(ops, a, b, c)
    np.testing.assert_array_equal(c[0].view("u1"), (a + b).view("u1"))
    np.testing.assert_array_equal(c[1].view("u1"), (a * b).view("u1"))
    np.testing.assert_array_equal(c[2].view("u1"), (a * b - a).view("u1"))
    np.testing.assert_array_equal(c[3].astype("f4"), (a / b).astype("f4"))


def test_casts():
    @T.prim_func
    def casts(
        A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "int8"), C: T.Buffer((6,), "bool"), D: T.Buffer((6,), "float16")
    ):
        for i in range(6):
            B[i] = T.Cast("int8", A[i])
            C[i] = T.Cast("bool", A[i])
            D[i] = T.Cast("float16", T.Cast("int8", A[i])) + T.Cast("float16", C[i])

    a = np.array([1.9, -1.9, 0, 300, -300, np.nan], "float32")
    b, c, d = np.zeros(6, "int8"), np.zeros(6, "bool"), np.zeros(6, "float16")
    run(casts, a, b, c, d)
    np.testing.assert_array_equal(b, [1, -1, 0, 127, -128, 0])
    np.testing.assert_array_equal(c, [True, True, False, True, True, True])
    np.testing.assert_array_equal(d, [2, 0, 0, 128, -127, 1])


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt,
    "tanh": np.tanh, "tan": np.tan, "cos": np.cos, "cosh": np.cosh, "sin": np.sin, "sinh": np.sinh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "nearbyint": np.rint, "fabs": np.abs, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_math(name):
    function = getattr(T, name)

    @T.prim_func
    def apply(A: T.Buffer((32,), "float64"), B: T.Buffer((32,), "float64")):
        for i in range(32):
            B[i] = function(A[i])

    a, b = np.linspace(0.02, 0.98, 32), np.zeros(32)
    run(apply, a, b)
    np.testing.assert_allclose(b, UNARY[name](a), rtol=1e-14)


def test_bits():
    @T.prim_func
    def bits(A: T.Buffer((8,), "uint16"), B: T.Buffer((6, 8), "uint16"), C: T.Buffer((8,), "int32")):
        for i in range(8):
            B[0, i] = A[i] & T.uint16(255)
            B[1, i] = A[i] | T.uint16(255)
            B[2, i] = A[i] ^ T.uint16(255)
            B[3, i] = A[i] << T.uint16(3)
            B[4, i] = A[i] >> T.uint16(3)
            B[5, i] = T.popcount(A[i])
            C[i] = T.clz(T.Cast("int32", A[i]))

    a = np.array([0, 1, 255, 256, 1000, 32768, 65535, 4660], "uint16")
    b, c = np.zeros((6, 8), "uint16"), np.zeros(8, "int32")
    run(bits, a, b, c)
    np.testing.assert_array_equal(b[:5], [a & 255, a | 255, a ^ 255, a << 3, a >> 3])
    np.testing.assert_array_equal(b[5], [int(x).bit_count() for x in a])
    np.testing.assert_array_equal(c, [32 - int(x).bit_length() for x in a])


def test_vectors():
    @T.prim_func
    def vectors(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        B[0:8] = A[0:8] + A[8:16]
        B[8:16:2] = A[0:4] * T.Broadcast(T.float32(2), 4)
        B[9:17:2] = T.Shuffle([A[T.Ramp(0, 1, 4)], A[T.Ramp(4, 1, 4)]], [7, 5, 3, 1])

    a, b = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    run(vectors, a, b)
    np.testing.assert_array_equal(b[:8], a[:8] + a[8:])
    np.testing.assert_array_equal(b[8::2], a[:4] * 2)
    np.testing.assert_array_equal(b[9::2], a[[7, 5, 3, 1]])


def test_masked_access():
    @T.prim_func
    def tail(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(2):
            B.vstore(
                [T.Ramp(i * 4, 1, 4)],
                A.vload([T.Ramp(i * 4, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(6, 4))
                * T.Broadcast(T.float32(3), 4),
                predicate=T.get_active_lane_mask("boolx4", i * 4, 6),
            )

    a, b = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    run(tail, a, b)
    np.testing.assert_array_equal(b, a * 3)


def test_control_flow_lets_and_assertions():
    @T.prim_func
    def collatz(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        for i in range(10):
            x = T.decl_buffer((1,), "int32")
            x[0] = A[i]
            B[i] = 0
            while x[0] != 1:
                half: T.int32 = x[0] // 2
                if x[0] % 2 == 0:
                    x[0] = half
                else:
                    x[0] = x[0] * 3 + 1
                B[i] = B[i] + 1
            assert x[0] == 1, "ends at one"

    def steps(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    a, b = np.arange(1, 11, dtype="int32"), np.zeros(10, "int32")
    run(collatz, a, b)
    np.testing.assert_array_equal(b, [steps(n) for n in range(1, 11)])


def test_if_then_else_and_logic_are_lazy():
    @T.prim_func
    def shift(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = T.if_then_else(i >= 1 and A[i - 1] > T.float32(0), A[i - 1], T.float32(-1))

    a, b = small_ints(8), np.zeros(8, "float32")
    run(shift, a, b)
    np.testing.assert_array_equal(b, np.where(np.r_[0, a[:-1]] > 0, np.r_[0, a[:-1]], -1))


def test_views_of_regions():
    @T.prim_func
    def blocks(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(2, 2):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
                T.writes(B[vj * 4 : vj * 4 + 4, vi * 4 : vi * 4 + 4])
                s = T.int32()
                a = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), strides=(s, 1), offset_factor=1)
                b = T.match_buffer(B[vj * 4 : vj * 4 + 4, vi * 4 : vi * 4 + 4], (4, 4), offset_factor=1)
                for x, y in T.grid(4, 4):
                    b[y, x] = a[x, y] + T.Cast("float32", s)

    a, b = small_ints(8, 8), np.zeros((8, 8), "float32")
    run(blocks, a, b)
    np.testing.assert_array_equal(b, a.T + 8)


def test_lowered_programs():
    @T.prim_func
    def scale(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        data = T.allocate([4], "float32", "global")
        for i in range(4):
            local = T.decl_buffer((4,), data=data)
            for j in range(4):
                local[j] = A[i * 4 + j]
            for j in range(4):
                B[i * 4 + j] = local[3 - j]

    a, b = small_ints(16), np.zeros(16, "float32")
    run(scale, a, b)
    np.testing.assert_array_equal(b, a.reshape(4, 4)[:, ::-1].ravel())


def test_functions_call_one_another():
    @tw.script.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), n: T.int32) -> T.int32:
            Module.double(A.data, 4)
            Module.double(T.address_of(A[4]), 2)
            return Module.next(n)

        @T.prim_func(private=True)
        def double(a: T.handle("float32", "global"), n: T.int32):
            A = T.decl_buffer((n,), data=a)
            for i in range(n):
                A[i] = A[i] * T.float32(2)

        @T.prim_func(private=True)
        def next(n: T.int32) -> T.int32:
            return n + 1

    a = np.ones(8, "float32")
    assert ir.interpret(Module, "main", a, 41) == 42
    np.testing.assert_array_equal(a, [2, 2, 2, 2, 2, 2, 1, 1])


def test_print_goes_to_standard_output(capsys):
    @T.prim_func
    def shout(n: T.int32):
        T.evaluate(T.call_intrin("int32", "tir.print", "n is", n, T.float32(0.5)))

    run(shout, 7)
    assert capsys.readouterr().out == "n is 7 0.5\n"


# ---- threads


def test_threads_with_barriers_exchange_data():
    @T.prim_func
    def reverse(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                shared = T.allocate([32], "float32", "shared")
                s = T.decl_buffer((32,), data=shared, scope="shared")
                for step in range(3):
                    s[tx] = A[bx, tx] + T.Cast("float32", step)
                    T.tvm_storage_sync("shared")
                    B[bx, tx] = s[31 - tx]
                    T.tvm_storage_sync("shared")

    a, b = small_ints(4, 32), np.zeros((4, 32), "float32")
    run(reverse, a, b)
    np.testing.assert_array_equal(b, a[:, ::-1] + 2)


def test_nested_threads_form_one_team():
    @T.prim_func
    def transpose(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        ty = T.launch_thread("threadIdx.y", 4)
        s = T.decl_buffer((4, 4), scope="shared")
        tx = T.launch_thread("threadIdx.x", 4)
        s[ty, tx] = A[ty, tx]
        T.tvm_storage_sync("shared")
        B[ty, tx] = s[tx, ty]

    a, b = small_ints(4, 4), np.zeros((4, 4), "float32")
    run(transpose, a, b)
    np.testing.assert_array_equal(b, a.T)


def test_a_missing_barrier_is_a_race():
    @T.prim_func
    def broken(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            shared = T.allocate([32], "float32", "shared")
            s = T.decl_buffer((32,), data=shared, scope="shared")
            s[tx] = A[tx]
            T.tvm_storage_sync("shared")
            B[tx] = s[31 - tx]
            s[tx] = T.float32(0)

    text = raises("interpret/race", broken, small_ints(32), np.zeros(32, "float32"))
    assert "threadIdx.x" in text and "T.tvm_storage_sync" in text and "s[" in text


def test_barriers_that_not_all_threads_reach():
    @T.prim_func
    def broken(A: T.Buffer((32,), "float32")):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            if tx < 16:
                T.tvm_storage_sync("shared")
            A[tx] = T.float32(1)

    assert "never reach" in raises("interpret/barrier", broken, small_ints(32))


def test_threads_may_share_a_reduction_and_agree_on_a_value():
    @T.prim_func
    def total(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((1,), "float32")):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(1, 0)
                vk = T.axis.reduce(32, tx)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk]
            C[0] = T.float32(5)

    a, b, c = small_ints(32), np.zeros(1, "float32"), np.zeros(1, "float32")
    run(total, a, b, c)
    assert b[0] == a.sum() and c[0] == 5


# ---- reports


def test_out_of_bounds():
    @T.prim_func
    def shift(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi + 1, vj]

    text = raises("interpret/out-of-bounds", shift, small_ints(8, 4), small_ints(8, 4), verified=False)
    assert "block 'S' reads A[8, 0]: index 0 is 8, and the shape of 'A' is (8, 4)" in text
    assert "^^^" in text and __file__ in text


def test_uninitialized_reads():
    @T.prim_func
    def sum_up(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        acc = T.alloc_buffer((1,), "float32")
        for i in range(8):
            with T.block("acc"):
                vi = T.axis.reduce(8, i)
                acc[0] = acc[0] + A[vi]
        B[0] = acc[0]

    args = small_ints(8), small_ints(1)
    text = raises("interpret/uninitialized", sum_up, *args)
    assert "block 'acc' reads acc[0], which nothing has written" in text
    run(sum_up, *args, check_uninitialized=False)


@pytest.mark.parametrize(("kind", "sign"), [("parallel", 1), ("parallel", -1), ("vectorized", -1)])
def test_races_between_iterations(kind, sign):
    """Lanes may share a sum, but no difference of differences."""
    loop = getattr(T, kind)

    @T.prim_func
    def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for i in loop(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                if sign == 1:
                    B[0] = B[0] + A[vi]
                else:
                    B[0] = A[vi] - B[0]

    args = small_ints(8), np.zeros(1, "float32")
    text = raises("interpret/race", total, *args)
    assert f"B[0] in iteration i = 1 of a {kind} loop" in text and "iteration i = 0" in text
    run(total, *args, check_races=False)


def test_iterations_with_their_own_elements_do_not_race():
    @T.prim_func
    def rows(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i in T.parallel(8):
            row = T.decl_buffer((8,), "float32")
            for j in T.vectorized(8):
                row[j] = A[i, j] + A[7, 7]
            for j in T.vectorized(8):
                B[i, j] = row[j] + row[7 - j]
        for i in T.parallel(8):
            B[i, 0] = B[7 - i, 1]

    a, b = small_ints(8, 8), np.zeros((8, 8), "float32")
    run(rows, a, b)


def test_a_reader_far_from_the_writer_is_found():
    @T.prim_func
    def spread(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            B[i] = A[0]
            if i == 5:
                A[0] = T.float32(1)

    text = raises("interpret/race", spread, small_ints(8), small_ints(8))
    assert "writes A[0] in iteration i = 5" in text and "reads it in iteration i = 0" in text


def test_axes_stay_in_their_domain():
    @T.prim_func
    def skew(B: T.Buffer((16,), "float32")):
        for i in range(8):
            with T.block("S"):
                vi = T.axis.spatial(8, i + 1)
                B[vi] = T.float32(1)

    assert "axis 'vi' is bound to 8" in raises("interpret/axis", skew, small_ints(16), verified=False)


def test_other_reports():
    @T.prim_func
    def check(n: T.int32, B: T.Buffer((4,), "int32")):
        assert n > 0, "n is positive"
        B[0] = 12 // (n - 5)
        T.evaluate(T.assume(n != 6))

    b = np.zeros(4, "int32")
    run(check, 8, b)
    assert b[0] == 4
    assert "n is positive" in raises("interpret/assertion", check, -1, b)
    raises("interpret/divide-by-zero", check, 5, b)
    raises("interpret/assumption", check, 6, b)
    b.flags.writeable = False
    assert "read-only" in raises("interpret/read-only", check, 8, b)


def test_what_it_does_not_know_fails_only_where_it_is_reached():
    @T.prim_func
    def external(n: T.int32):
        if n > 0:
            T.evaluate(T.call_extern("int32", "somewhere", n))

    run(external, 0)
    assert "call_extern" in raises("interpret/unsupported", external, 1)


def test_limits_stop_a_program():
    @T.prim_func
    def forever(A: T.Buffer((1,), "int32")):
        while A[0] == 0:
            A[0] = A[0] * 2

    a = np.zeros(1, "int32")
    for error in (
        raises("interpret/steps", forever, a, kind=tw.ResourceError, max_steps=1000),
        raises("interpret/timeout", forever, a, kind=tw.ResourceError, timeout=0.05),
    ):
        assert "--> " in error and "while A[0] == 0:" in error

    @T.prim_func
    def long(A: T.Buffer((1,), "int32")):
        for i in range(100000):
            A[0] = A[0] + 1

    assert "for i in range(100000):" in raises("interpret/steps", long, a, kind=tw.ResourceError, max_steps=1000)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((np.zeros(4, "float32"),), "takes 2 arguments and is called with 1"),
        ((np.zeros(4, "float32"), np.zeros(4, "int32")), "is float32, and the argument is int32"),
        ((np.zeros(4, "float32"), np.zeros((2, 2), "float32")), "has 1 dimensions"),
        ((np.zeros(5, "float32"), np.zeros(4, "float32")), "extent 4 in dimension 0"),
        ((np.zeros(8, "float32")[::2], np.zeros(4, "float32")), "row-major and compact"),
        ((3, np.zeros(4, "float32")), "is an array, and the argument is a number"),
        (("x", np.zeros(4, "float32")), "neither a NumPy array nor a number"),
        ((np.zeros(4, "complex64"), np.zeros(4, "float32")), "has no counterpart"),
    ],
)
def test_arguments_are_checked(args, words):
    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    assert words in raises("interpret/argument", copy, *args, kind=tw.ArgumentError)


def test_scalars_are_checked():
    @T.prim_func
    def scalar(n: T.int8):
        T.evaluate(n)

    run(scalar, 127)
    assert "does not hold 128" in raises("interpret/argument", scalar, 128, kind=tw.ArgumentError)
    raises("interpret/argument", scalar, 1.5, kind=tw.ArgumentError)


def test_programs_that_cannot_run():
    x = ir.Var("x", "int32")
    func = ir.PrimFunc([], {}, ir.TupleType([]), {"global_symbol": "main"}, ir.Evaluate(x + 1))
    with pytest.raises(tw.ScriptError, match="'x'") as info:
        ir.interpret(ir.as_module(func), "main")
    assert info.value.code == "interpret/undefined"
    with pytest.raises(tw.ScriptError) as info:
        ir.interpret(ir.as_module(func), "other")
    assert info.value.code == "interpret/no-function"


def test_views_must_fit_their_region():
    @T.prim_func
    def view(A: T.Buffer((8, 8), "float32"), n: T.int32):
        with T.block("view"):
            T.reads(A[0:8, 0:8])
            T.writes()
            B = T.match_buffer(A[n : n + 4, 0:8], (4, n), offset_factor=1)
            T.evaluate(B[0, 0])

    a = small_ints(8, 8)
    assert "the shape of 'B'" in raises("interpret/match", view, a, 2)
    assert "leaves buffer 'A'" in raises("interpret/out-of-bounds", view, a, 5)


def test_recursion_without_end():
    @tw.script.ir_module
    class Module:
        @T.prim_func
        def main(n: T.int32):
            Module.main(n)

    with pytest.raises(tw.ScriptError) as info:
        ir.interpret(Module, "main", 1)
    assert info.value.code == "interpret/recursion"


def test_allocations_that_do_not_fit():
    @T.prim_func
    def huge(n: T.int64):
        x = T.decl_buffer((n, n), "float32")
        x[0, 0] = T.float32(1)

    raises("interpret/memory", huge, 2**30, kind=tw.ResourceError)
    error = raises("interpret/memory", huge, 2**62, kind=tw.ResourceError)
    assert "--> " in error and 'x = T.decl_buffer((n, n), "float32")' in error


def test_a_signal_interrupts_a_program():
    @T.prim_func
    def forever(A: T.Buffer((1,), "int32")):
        while A[0] == 0:
            A[0] = A[0] * 2

    class Stopped(Exception):
        pass

    def stop(number, frame):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stopped):
            run(forever, np.zeros(1, "int32"), timeout=20)
    finally:
        signal.signal(signal.SIGALRM, before)


def lanes(body):
    return tw.script.from_source(
        '@T.prim_func\ndef main(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):\n'
        + "".join(f"    {line}\n" for line in body.splitlines())
    )


@pytest.mark.parametrize(
    "body, in_step",
    [
        ("A[i] = A[i + 1]", True),
        ("x: T.int32 = A[i + 1]\nA[i] = x * x", True),
        ("B[i] = A[i]\nA[i] = B[i + 1]", False),
        ("A[i + 1] = B[i]\nB[i] = A[i]", True),
        ("B[i] = A[i]\nA[i + 1] = B[i]", False),
        ("if A[i + 1] > 0:\n    A[i] = 5", True),
        ("if A[i] > 0:\n    A[i + 1] = 5", False),
        ("A[i + 1] = A[i]", False),
        ("for k in range(2):\n    A[i + k] = A[i + 1]", False),
        ('with T.block("S"):\n    v = T.axis.spatial(8, i)\n    A[v] = A[v + 1]', True),
        ('with T.block("S"):\n    v = T.axis.spatial(8, i)\n    A[v + 1] = A[v]', False),
        ('with T.block("S"):\n    t = T.alloc_buffer((1,), "int32")\n    t[0] = A[i + 1]\n    A[i] = t[0]', False),
        ("B[i] = A[i]\nB[0] = A[i + 1]\nA[i] = 3", False),
        ("A[i] = B[i]\nB[i] = A[i] + B[i + 1]", True),
    ],
)
def test_lanes_do_each_statement_together(body, in_step):
    """What a lowered vectorized loop promises: the same numbers in order, and side by side with NumPy's rows."""
    func = lanes("for i in T.vectorized(8):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    args = [np.arange(1, 10, dtype="int32"), np.arange(9, dtype="int32")[::-1].copy()]
    assert raises("interpret/race", func, *[a.copy() for a in args])
    if not in_step:
        raises("interpret/race", func, *[a.copy() for a in args], lanes_in_step=True)
        return
    serial = lanes("for i in range(8):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    want, got = [a.copy() for a in args], [a.copy() for a in args]
    run(serial, *want)
    run(func, *got, lanes_in_step=True)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_parallel_iterations_are_in_no_step():
    func = lanes("for i in T.parallel(8):\n    A[i] = A[i + 1]")
    raises("interpret/race", func, np.zeros(9, "int32"), np.zeros(9, "int32"), lanes_in_step=True)


@pytest.mark.parametrize("after, vector", [("vectorize_plain_loops", "T.vectorized"), ("vectorize_loops", "0:8")])
def test_loops_that_read_ahead_become_vectors(after, vector):
    lowered = tw.lower(lanes("for i in range(8):\n    A[i] = A[i + 1]"), after=after)
    assert vector in lowered.script()
    a = np.arange(9, dtype="int32")
    run(lowered, a, np.zeros(9, "int32"), verified=False, check_uninitialized=False, lanes_in_step=True)
    np.testing.assert_array_equal(a, [1, 2, 3, 4, 5, 6, 7, 8, 8])
