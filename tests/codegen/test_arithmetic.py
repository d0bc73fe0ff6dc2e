from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from codegen.elementwise import FLOATS, LANES, SIGNED, SIZE, UNSIGNED, numpy_type, run
from tilewright import ir
from tilewright.script import tir as T

RANDOM = np.random.default_rng(7)


def integers(dtype: str, low: int | None = None) -> np.ndarray:
    info = np.iinfo(dtype)
    values = RANDOM.integers(info.min if low is None else low, info.max, SIZE, dtype=dtype, endpoint=True)
    values[:2] = [info.min if low is None else low, info.max]
    return values


def floats(dtype: str) -> np.ndarray:
    return RANDOM.normal(0, 4, SIZE).astype(numpy_type(dtype))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_integers_wrap(dtype: str, lanes: int) -> None:
    a, b = integers(dtype), integers(dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(lambda x, y: x * y + x - y, [a, b], dtype, lanes), a * b + a - b)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", SIGNED)
def test_division_rounds_down_or_to_zero(dtype: str, lanes: int) -> None:
    a, b = integers(dtype), integers(dtype)
    b[b == 0] = 3
    b[1:7] = [1, 2, 3, -1, -2, -3]
    a[4] = 5  # the smallest number divided by -1 has no result
    np.testing.assert_array_equal(run(T.floordiv, [a, b], dtype, lanes), a // b)
    np.testing.assert_array_equal(run(T.floormod, [a, b], dtype, lanes), a % b)
    np.testing.assert_array_equal(run(T.truncmod, [a, b], dtype, lanes), np.fmod(a, b))
    quotient = (a - np.fmod(a, b)) // b
    np.testing.assert_array_equal(run(T.truncdiv, [a, b], dtype, lanes), quotient)


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 64, 100, -1, -3, -4])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_division_by_a_constant(dtype: str, divisor: int) -> None:
    a = integers(dtype)
    a[0] = 5
    np.testing.assert_array_equal(run(lambda x: T.floordiv(x, divisor), [a], dtype, 8), a // np.array(divisor, dtype))
    np.testing.assert_array_equal(run(lambda x: T.floormod(x, divisor), [a], dtype, 8), a % np.array(divisor, dtype))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_division(dtype: str) -> None:
    a, b = integers(dtype), integers(dtype, low=1)
    np.testing.assert_array_equal(run(T.floordiv, [a, b], dtype, 8), a // b)
    np.testing.assert_array_equal(run(T.floormod, [a, b], dtype, 1), a % b)


@pytest.mark.parametrize("lanes", [1, 8])
def test_division_by_zero_does_not_trap(lanes: int) -> None:
    a, b = integers("int32"), np.zeros(SIZE, "int32")
    run(T.floordiv, [a, b], "int32", lanes)
    run(T.truncmod, [np.full(SIZE, -(2**31), "int32"), np.full(SIZE, -1, "int32")], "int32", lanes)


@pytest.mark.parametrize("operation", [T.floordiv, T.truncdiv, T.floormod, T.truncmod])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64"])
def test_lanes_that_do_not_divide_may_have_zero_for_a_divisor(dtype: str, operation: Callable[..., ir.Expr]) -> None:
    """Divisors are constants of the lanes, 0 among them, where data choose the lanes that divide."""

    @T.prim_func
    def main(X: T.Buffer((4,), dtype), mask: T.Buffer((4,), "int32"), Y: T.Buffer((4,), dtype)):
        Y[T.Ramp(0, 1, 4)] = operation(
            X[T.Ramp(0, 1, 4)],
            T.Select(
                mask[T.Ramp(0, 1, 4)] != T.Broadcast(0, 4),
                T.Cast(dtype + "x4", T.Ramp(0, 6, 4)),
                T.Cast(dtype + "x4", T.Broadcast(1, 4)),
            ),
        )

    for mask in ([0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]):
        values, chosen = integers(dtype)[:4], np.array(mask, "int32")
        wanted, got = np.zeros(4, dtype), np.zeros(4, dtype)
        ir.interpret(ir.as_module(main), "main", values, chosen, wanted)
        tw.compile(main)(values, chosen, got)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_round_after_each_operation(dtype: str, lanes: int) -> None:
    a, b = floats(dtype), floats(dtype)
    np.testing.assert_array_equal(run(lambda x, y: (x + y) * (x - y), [a, b], dtype, lanes), (a + b) * (a - b))
    np.testing.assert_array_equal(run(lambda x, y: x / y, [a, b], dtype, lanes), a / b)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float32"])
def test_comparisons_give_bools(dtype: str, lanes: int) -> None:
    a = RANDOM.integers(0, 4, SIZE).astype(numpy_type(dtype))
    b = RANDOM.integers(0, 4, SIZE).astype(numpy_type(dtype))
    for ours, reference in [
        (lambda x, y: x < y, np.less),
        (lambda x, y: x <= y, np.less_equal),
        (lambda x, y: x > y, np.greater),
        (lambda x, y: x >= y, np.greater_equal),
        (lambda x, y: x == y, np.equal),
        (lambda x, y: x != y, np.not_equal),
    ]:
        np.testing.assert_array_equal(run(ours, [a, b], "bool", lanes), reference(a, b))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
def test_min_max_select(dtype: str, lanes: int) -> None:
    a = RANDOM.integers(-9, 9, SIZE).astype(dtype)
    b = RANDOM.integers(-9, 9, SIZE).astype(dtype)
    np.testing.assert_array_equal(run(T.min, [a, b], dtype, lanes), np.minimum(a, b))
    np.testing.assert_array_equal(run(T.max, [a, b], dtype, lanes), np.maximum(a, b))
    np.testing.assert_array_equal(
        run(lambda x, y: T.Select(x < y, x, y + y), [a, b], dtype, lanes), np.where(a < b, a, b + b)
    )


@pytest.mark.parametrize("lanes", LANES)
def test_bools_in_memory_are_bytes(lanes: int) -> None:
    a, b = RANDOM.integers(0, 2, (2, SIZE)).astype(bool)
    np.testing.assert_array_equal(run(lambda x, y: T.And(x, T.Not(y)), [a, b], "bool", lanes), a & ~b)
    np.testing.assert_array_equal(run(lambda x, y: T.Or(x, y), [a, b], "bool", lanes), a | b)


@pytest.mark.parametrize("lanes", [1, 8])
def test_bits(lanes: int) -> None:
    a, b = integers("int32"), RANDOM.integers(0, 31, SIZE).astype("int32")
    np.testing.assert_array_equal(run(lambda x, y: x & y | ~x ^ y, [a, b], "int32", lanes), a & b | ~a ^ b)
    np.testing.assert_array_equal(run(lambda x, y: x << y, [a, b], "int32", lanes), a << b)
    np.testing.assert_array_equal(run(lambda x, y: x >> y, [a, b], "int32", lanes), a >> b)
    u = a.view("uint32")
    np.testing.assert_array_equal(
        run(lambda x, y: x >> y, [u, b.view("uint32")], "uint32", lanes), u >> b.view("uint32")
    )
    counts = np.array([bin(int(v)).count("1") for v in u], "uint32")
    np.testing.assert_array_equal(run(T.popcount, [u], "uint32", lanes), counts)


@pytest.mark.parametrize("function", ["T.fabs({})", "-{}", "T.max({}, T.float32(-1))"])
@pytest.mark.parametrize("start", ["0.0", "-0.0", "1.0", '"inf"', '"-inf"'])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_what_llvm_knows_the_sign_of(name: str, start: str, function: str) -> None:
    """The first operand becomes a constant once the store before is seen, and comparisons become tests of classes."""
    func = tw.script.from_source(f"""@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.float32({start})
            C[v] = T.{name}(C[v], {function.format("A[v]")})
            D[v] = T.float32({start})
            D[v] = T.{name}({function.format("A[v]")}, D[v])
""")
    a = np.array([1.5, -2.5, 0.0, -0.0, np.nan, np.inf, -np.inf, -1.0], "float32")
    value = {"T.fabs({})": np.abs(a), "-{}": -a}.get(function, np.maximum(a, -1))
    expected = {"max": np.maximum, "min": np.minimum}[name](np.float32(start.strip('"')), value)
    for target in ("native", "llvm -mcpu=x86-64-v3"):
        c, d = np.zeros(8, "float32"), np.zeros(8, "float32")
        tw.compile(func, target=target, schedule="as written")(a, c, d)
        np.testing.assert_array_equal(c, expected)
        np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("target", ["interpreter", "native"])
@pytest.mark.parametrize("index", ["T.ramp(3, 1, 1)", "T.ramp(3, 2, 1)", "T.broadcast(3, 1)"])
def test_vectors_of_one_lane(index: str, target: str) -> None:
    for body in (f"B[{index}] = A[{index}]", f"B[3] = A[{index}]", f"B[{index}] = A[3]"):
        func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    {body}
""")
        a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
        tw.compile(func, target=target)(a, b)
        np.testing.assert_array_equal(b, a * (a == 3))


@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_realizing_what_is_in_memory_is_that_memory(target: str) -> None:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.realize(A[0:8], "global")
        for i in range(8):
            B[i] = A[i] + T.float32(1)

    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.compile(main, target=target)(a, b)
    np.testing.assert_array_equal(b, a + 1)
