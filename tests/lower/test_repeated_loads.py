"""Elements that several lanes in a row ask for (`P[k // 2]`) are loaded once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from tilewright import ir, te
from tilewright.script import from_source

TARGETS = ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]


def nibbles(n: int, k: int, group: int, dtype: str = "uint8") -> ir.PrimFunc:
    """Weights of four bits, two in a byte, with a scale for each group."""
    p, s = te.placeholder((n, k // 2), dtype, name="P"), te.placeholder((n, -(-k // group)), name="s")
    mask = te.const(15, dtype)
    return te.create_prim_func(
        [
            p,
            s,
            te.compute(
                (n, k),
                lambda i, j: (
                    (((p[i, j // 2] >> ((j % 2) * 4).astype(dtype)) & mask).astype("int32").astype("float32") - 8.0)
                    * s[i, j // group]
                ),
                name="W",
            ),
        ]
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "k", "group"), [(3, 256, 32), (5, 100, 20), (1, 64, 64), (7, 30, 6), (2, 514, 2)])
@pytest.mark.parametrize("schedule", ["by rules", "as written"])
def test_weights_of_four_bits(n: int, k: int, group: int, schedule: str, target: str) -> None:
    rng = np.random.default_rng(k)
    packed, scales = rng.integers(0, 256, (n, k // 2)).astype("uint8"), rng.random((n, -(-k // group)), "float32")
    parts = np.stack([packed & 15, packed >> 4], -1).reshape(n, k).astype("float32") - 8
    wanted = parts * np.repeat(scales, group, -1)[:, :k]
    kernel = tw.compile(nibbles(n, k, group), target, schedule=schedule)
    np.testing.assert_array_equal(kernel(packed, scales), wanted)


def test_they_are_shuffled_and_not_gathered() -> None:
    kernel = tw.compile(nibbles(64, 256, 32), "llvm -mcpu=x86-64-v3", schedule="by rules")
    text = kernel.inspect("tir")
    assert text.count("T.Shuffle") == 2 and "// T.Broadcast" not in text
    assert len(kernel.inspect("asm").splitlines()) < 1500


def test_a_product_with_them_unpacks_where_it_reads() -> None:
    n, k = 64, 256
    p, x = te.placeholder((n, k // 2), "uint8", name="P"), te.placeholder((k,), name="x")
    r = te.reduce_axis((0, k), name="r")
    w = te.compute(
        (n, k), lambda i, j: ((p[i, j // 2] >> ((j % 2) * 4).astype("uint8")) & te.const(15, "uint8")).astype("float32")
    )
    y = te.compute((n,), lambda i: te.sum(w[i, r] * x[r], axis=r), name="y")
    kernel = tw.compile(te.create_prim_func([p, x, y]), "llvm -mcpu=x86-64-v3 -num-cores=1", schedule="by rules")
    assert "allocate" not in kernel.inspect("tir")
    rng = np.random.default_rng(0)
    packed, vector = rng.integers(0, 256, (n, k // 2)).astype("uint8"), rng.integers(-4, 5, k).astype("float32")
    wanted = np.stack([packed & 15, packed >> 4], -1).reshape(n, k) @ vector
    np.testing.assert_array_equal(kernel(packed, vector), wanted.astype("float32"))


def random_program(rng: np.random.Generator) -> str:
    """Lanes that begin anywhere, in indices that are divided, and values of remainders."""
    lanes, rows = int(rng.choice([8, 16, 24, 32, 48, 64])), int(rng.integers(1, 5))
    times = int(rng.choice([2, 3, 4, 6, 8, 16, 32]))
    step, begin = int(rng.choice([lanes, lanes, lanes + 1, lanes // 2])), int(rng.choice([0, 0, times, 1, 5]))
    dtype = str(rng.choice(["int8", "uint8", "int16", "float32", "int32", "float64"]))
    at = f"i * {step} + j + {begin}"
    index = rng.choice(
        [
            f"({at}) // {times}",
            f"({at}) // {times} + 3",
            f"({at}) // {times} * 2",
            f"({at}) // {times} % 7",
            f"({at}) // {times} + j // {times}",
            f"({at} + x) // {times} % 200",
            f"200 - ({at}) // {times}",
            f"({at}) // {times} // 2 + ({at}) % 2",
            f"({at}) // {times} + i * 2",
        ]
    )
    value = rng.choice(
        [f'T.Cast("{dtype}", ({at}) % {times})', f'T.Cast("{dtype}", j // {times})', f'T.Cast("{dtype}", 1)']
    )
    guard = rng.choice(["", f"if j < {int(rng.integers(1, lanes))}:", f"if ({at}) // {times} % 2 == 0:"])
    body = f"Y[i, j] = A[{index}] + {value}"
    body = f"{guard}\n                {body}" if guard else body
    return f"""@T.prim_func
def main(A: T.Buffer((512,), "{dtype}"), N: T.Buffer((1,), "int32"), Y: T.Buffer(({rows}, {lanes}), "{dtype}")):
    x: T.int32 = N[0]
    for i in range({rows}):
        for j in T.{"vectorized" if rng.integers(2) else "serial"}({lanes}):
            {body}
"""


@pytest.mark.parametrize("seed", range(samples(30)))
def test_random_indices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = from_source(random_program(rng))
    dtype = program.buffer_map[program.params[0]].dtype
    a = rng.integers(0 if dtype == "uint8" else -40, 40, 512).astype(dtype)
    shape = [int(extent) for extent in program.buffer_map[program.params[2]].shape]
    wanted = [a, np.array([12], "int32"), np.zeros(shape, dtype)]
    tw.compile(program, "interpreter", schedule="as written")(*wanted)
    for target in TARGETS:
        found = [a, np.array([12], "int32"), np.zeros(shape, dtype)]
        tw.compile(program, target, schedule="as written")(*found)
        np.testing.assert_array_equal(found[2], wanted[2], err_msg=target)


def test_data_may_wrap() -> None:
    """What is known of multiples is not known of what leaves its type."""
    program = from_source("""@T.prim_func
def main(N: T.Buffer((1,), "int32"), Y: T.Buffer((48,), "int32")):
    x: T.int32 = N[0]
    for j in T.vectorized(48):
        Y[j] = (x * 6 + j) // 3 % 64 * 3 + (x * 6 + j) % 3
""")
    n = np.array([2**31 // 6 + 7], "int32")
    numbers = n * np.int32(6) + np.arange(48, dtype="int32")
    for target in ("interpreter", "native"):
        found = np.zeros(48, "int32")
        tw.compile(program, target, schedule="as written")(n, found)
        np.testing.assert_array_equal(found, numbers // 3 % 64 * 3 + numbers % 3, err_msg=target)
