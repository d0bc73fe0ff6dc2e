"""Memory of scope "local" between loops over threads: each thread has its own, or the program is refused."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from lower.test_gpu import check_every_pass, numbers
from samples import samples
from tilewright.script import from_source

CODE = "lower/private-memory"
BLOCKS = 3
X64, X32 = "x in T.thread_binding(64, 'threadIdx.x')", "x in T.thread_binding(32, 'threadIdx.x')"
Y, X = "y in T.thread_binding(4, 'threadIdx.y')", "x in T.thread_binding(8, 'threadIdx.x')"
V = "v in T.thread_binding(2, 'vthread.x')"


def nest(loops: str, statement: str) -> str:
    """Return the statement within loops that are separated by ";"."""
    lines = [f"for {loop.strip()}:" for loop in loops.split(";")]
    lines += ["with T.block():", statement]
    return "".join(f"{' ' * (12 + 4 * depth)}{line}\n" for depth, line in enumerate(lines))


def two_nests(size: int, first: str, written: str, second: str, read: str, *, at: str = "", inside: bool = True) -> Any:
    """Return a kernel that keeps 2 * A in private memory L, and stores L + 1 in a second nest of loops.

    Args:
        size: elements of a block.
        first, second: loops of the nests.
        written, read: indices of the private memory.
        at: the element of the result that the second nest stores, if not `read`.
        inside: allocate within the loop over blocks, else at the top of the function.
    """
    block, shape = ("", f"({size},)") if inside else ("b, ", f"({BLOCKS}, {size})")
    allocate = f"L = T.alloc_buffer({shape}, scope='local')"
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({BLOCKS}, {size})), B: T.Buffer(({BLOCKS}, {size}))):
    {"" if inside else allocate}
    for b in T.thread_binding({BLOCKS}, "blockIdx.x"):
        with T.block("of_b"):
            {allocate if inside else ""}
{nest(first, f"L[{block}{written}] = A[b, {written}] * T.float32(2)")}
{nest(second, f"B[b, {at or read}] = L[{block}{read}] + T.float32(1)")}
""")


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("size", "first", "written", "second", "read"),
    [
        (64, X64, "x", X64, "x"),
        (64, f"{X32}; s in range(2)", "x * 2 + s", f"{X32}; s in range(2)", "x * 2 + s"),
        (64, f"s in range(2); {X32}", "x * 2 + s", f"{X32}; s in T.vectorized(2)", "x * 2 + s"),
        (32, f"{Y}; {X}", "y * 8 + x", f"{Y}; {X}", "y * 8 + x"),
        (32, f"{Y}; {X}", "x * 4 + y", f"{X}; {Y}", "x * 4 + y"),
        (32, f"{Y}; s in range(8)", "y * 8 + s", f"{Y}; {X}", "y * 8 + x"),  # all along x have written it
        (64, f"{V}; {X32}", "v * 32 + x", f"{X32}; s in range(2)", "s * 32 + x"),
        (64, "s in range(64)", "s", X64, "63 - x"),  # all threads have written all
    ],
)
def test_each_thread_reads_what_it_has_written(size, first, written, second, read, inside):
    func = two_nests(size, first, written, second, read, inside=inside)
    a = numbers(BLOCKS, size)
    check_every_pass(tw.Schedule(func), [a, np.full_like(a, np.nan)], [a * 2 + 1])
    b = np.full_like(a, np.nan)
    tw.compile(func, target="opencl", schedule="as written")(a, b)
    np.testing.assert_array_equal(b, a * 2 + 1)
    cuda = tw.compile(func, target="cuda", schedule="as written")
    assert {use["arch"] for use in cuda.report["kernels"]} == {"sm_80", "sm_90a"}


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("size", "first", "written", "second", "read", "at"),
    [
        (64, X64, "x", X64, "63 - x", "x"),
        (64, f"{X32}; s in range(2)", "x * 2 + s", f"{X32}; s in range(2)", "s * 32 + x", ""),
        (32, f"{Y}; {X}", "y * 8 + x", f"{Y}; {X}", "x * 4 + y", ""),
        (64, X64, "x", "s in range(64)", "s", ""),  # the first thread alone reads
    ],
)
def test_what_another_thread_has_written_is_not_read(size, first, written, second, read, at, inside, target):
    func = two_nests(size, first, written, second, read, at=at, inside=inside)
    with pytest.raises(tw.ScriptError, match="each thread has a buffer 'L' of its own") as raised:
        tw.lower(func, target=target)
    assert raised.value.code == CODE and "L[" in str(raised.value)


def test_the_first_thread_reads_what_it_has_written():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 64)), B: T.Buffer((3,))):
    for b in T.thread_binding(3, "blockIdx.x"):
        with T.block("of_b"):
            L = T.alloc_buffer((64,), scope="local")
            for x in T.thread_binding(64, "threadIdx.x"):
                with T.block():
                    L[x] = A[b, x]
            with T.block():
                B[b] = L[0]
""")
    a = numbers(3, 64)
    check_every_pass(tw.Schedule(func), [a, np.full(3, np.nan, "float32")], [a[:, 0]])
    np.testing.assert_array_equal(tw.compile(func, target="opencl", schedule="as written")(a), a[:, 0])


def test_random_mappings_of_elements_to_threads():
    """A program is refused if and only if a thread reads an element that another thread wrote."""
    shapes = {"y": 2, "x": 4, "s": 3}
    spellings = {
        "y": "y in T.thread_binding(2, 'threadIdx.y')",
        "x": "x in T.thread_binding(4, 'threadIdx.x')",
        "s": "s in range(3)",
    }
    accepted = refused = 0
    for seed in range(samples(24)):
        sample = random.Random(seed)

        def mapping(sample: random.Random = sample) -> tuple[list[str], dict[str, int]]:
            """An order of the loops, and strides that give each iteration an element of its own."""
            loops, strides, size = sample.sample("yxs", 3), {}, 1
            for name in sample.choice([loops, sorted(loops)]):
                strides[name], size = size, size * shapes[name]
            return loops, strides

        (first, one), (second, other) = mapping(), mapping()
        if sample.random() < 0.5:
            other = one
        index = {id(m): " + ".join(f"{name} * {stride}" for name, stride in m.items()) for m in (one, other)}
        points = [dict(zip("yxs", p, strict=True)) for p in itertools.product(*(range(shapes[n]) for n in "yxs"))]

        def owners(strides: dict[str, int], points: Any = points) -> dict[int, tuple[int, int]]:
            return {sum(p[n] * strides[n] for n in "yxs"): (p["y"], p["x"]) for p in points}

        func = two_nests(
            24,
            "; ".join(spellings[n] for n in first),
            index[id(one)],
            "; ".join(spellings[n] for n in second),
            index[id(other)],
        )
        a, b = numbers(BLOCKS, 24, seed=seed), np.full((BLOCKS, 24), np.nan, "float32")
        try:
            kernel = tw.compile(func, target="opencl", schedule="as written")
        except tw.ScriptError as error:
            assert error.code == CODE and owners(one) != owners(other), func.script()
            refused += 1
        else:
            assert owners(one) == owners(other), func.script()
            kernel(a, b)
            np.testing.assert_array_equal(b, a * 2 + 1)
            accepted += 1
    assert accepted > 3 and refused > 3


@pytest.mark.parametrize(("read", "fits"), [("j", True), ("63 - j", False)])
def test_a_pointer_into_private_memory_names_elements_of_a_thread(read: str, fits: bool) -> None:
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    L = T.allocate([64], "float32", "local")
    Whole = T.decl_buffer((64,), data=L, scope="local")
    for b in T.thread_binding(1, "blockIdx.x"):
        for i in T.thread_binding(64, "threadIdx.x"):
            p: T.handle("float32", "local") = T.address_of(Whole[i])
            One = T.decl_buffer((1,), data=p, scope="local")
            One[0] = A[i]
        for j in T.thread_binding(64, "threadIdx.x"):
            B[j] = Whole[{read}]
""")
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    if fits:
        tw.compile(func, target="opencl", schedule="as written")(a, b)
        np.testing.assert_array_equal(b, a)
    else:
        with pytest.raises(tw.ScriptError) as caught:
            tw.compile(func, target="opencl", schedule="as written")
        assert caught.value.code == CODE
