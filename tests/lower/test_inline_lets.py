"""Names of clamped indices and of conditions are gone before passes look for these."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((37, 70), {dtype!r}), B: T.Buffer((37, 70), {dtype!r})):
    for i, j in T.grid(37, 70):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
"""
NAMED = {
    "clamps": (
        ["a: T.int32 = T.max(vj - 1, 0)", "b = T.min(vj + 2, 69)"],
        "A[vi, {a}] + A[vi, {b}]",
        {"a": "T.max(vj - 1, 0)", "b": "T.min(vj + 2, 69)"},
    ),
    "rows": (
        ["u = T.max(vi - 1, 0)", "d = T.min(vi + 1, 36)"],
        "A[{u}, vj] + A[{d}, vj]",
        {"u": "T.max(vi - 1, 0)", "d": "T.min(vi + 1, 36)"},
    ),
    "names of names": (
        ["left = vj - 3", "a = T.max(left, 0)"],
        "A[vi, {a}] + A[vi, vj]",
        {"a": "T.max(vj - 3, 0)"},
    ),
    "around": (["w = (vj + 1) % 70"], "A[vi, {w}] + A[vi, vj]", {"w": "(vj + 1) % 70"}),
    "reads": (["a = T.max(vj - 1, 0)"], "A[vi, {a}] * A[vi, vj]", {"a": "T.max(vj - 1, 0)"}),
}


def programs(kind: str, dtype: str = "int32") -> tuple[tw.ir.PrimFunc, tw.ir.PrimFunc]:
    """With names, and without."""
    lines, value, meanings = NAMED[kind]
    store = "            B[vi, vj] = "
    named = (
        "".join(f"            {line}\n" for line in lines) + store + value.format(**{name: name for name in meanings})
    )
    texts = (named, store + value.format(**meanings))
    return tuple(from_source(HEAD.format(dtype=dtype) + text + "\n") for text in texts)  # type: ignore[return-value]


def by_numpy(kind: str, a: np.ndarray) -> np.ndarray:
    i, j = np.arange(37)[:, None], np.arange(70)[None, :]
    left, right = np.maximum(j - 1, 0), np.minimum(j + 2, 69)
    return {
        "clamps": lambda: a[i, left] + a[i, right],
        "rows": lambda: a[np.maximum(i - 1, 0), j] + a[np.minimum(i + 1, 36), j],
        "names of names": lambda: a[i, np.maximum(j - 3, 0)] + a,
        "around": lambda: a[i, (j + 1) % 70] + a,
        "reads": lambda: a[i, left] * a,
    }[kind]()


@pytest.mark.parametrize("kind", NAMED)
def test_the_program_is_the_one_without_names(kind: str) -> None:
    named, plain = programs(kind)
    lowered = [tw.lower(program, after="simplify_indices") for program in (named, plain)]
    assert tw.ir.structural_equal(*lowered), _core.script_diff(*lowered)


@pytest.mark.parametrize("schedule", ["as written", "by rules"])
@pytest.mark.parametrize("kind", NAMED)
def test_values(kind: str, schedule: str) -> None:
    a = np.random.default_rng(0).integers(-99, 99, (37, 70), np.int32)
    for program in programs(kind):
        b = np.empty_like(a)
        tw.compile(program, schedule=schedule)(a, b)
        np.testing.assert_array_equal(b, by_numpy(kind, a))


@pytest.mark.parametrize("kind", NAMED)
def test_heuristics_make_the_same_of_both(kind: str) -> None:
    named, plain = (tw.compile(program, schedule="by rules") for program in programs(kind, "float32"))
    assert named.inspect("schedule") == plain.inspect("schedule")


def test_values_that_wrap_keep_their_names() -> None:
    """Arithmetic of a value wraps, that of an index is taken not to."""
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        x: T.int32 = i * 1000000000
        B[i] = A[x % 8] + x // 1000000000
"""
    program = from_source(text)
    assert "x: T.int32" in tw.lower(program, after="inline_lets").script()
    a, b = np.arange(8, dtype=np.int32), np.empty(8, np.int32)
    tw.compile(program)(a, b)
    x = [(i * 1000000000 + 2**31) % 2**32 - 2**31 for i in range(8)]
    np.testing.assert_array_equal(b, [value % 8 + value // 1000000000 for value in x])


def test_what_reads_memory_is_read_where_it_was() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    for i in range(7):
        x: T.int32 = A[i]
        A[i + 1] = x + 1
        A[i] = x * 2
"""
    a = np.zeros(8, np.int32)
    tw.compile(from_source(text))(a)
    np.testing.assert_array_equal(a, [0, 2, 4, 6, 8, 10, 12, 7])


def test_names_that_would_grow_stay() -> None:
    """Each stands for twice as much as the one before."""
    lines = ["x0 = T.min(vj, 9)", *(f"x{n + 1} = T.min(x{n}, 9 - x{n})" for n in range(20))]
    text = (
        HEAD.format(dtype="int32")
        + "".join(f"            {line}\n" for line in lines)
        + "            B[vi, vj] = x20\n"
    )
    b = np.empty((37, 70), np.int32)
    tw.compile(from_source(text))(np.zeros((37, 70), np.int32), b)
    want = np.minimum(np.arange(70), 9)
    for _ in range(20):
        want = np.minimum(want, 9 - want)
    np.testing.assert_array_equal(b, np.broadcast_to(want, (37, 70)))
