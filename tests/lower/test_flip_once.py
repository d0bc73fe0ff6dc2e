"""Bytes whose signs every load flips are flipped once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

TARGETS = ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]

SOURCE = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle{parameter}):
    T.func_attr({{"global_symbol": "f"}})
    {declared}
    A = T.match_buffer(a, ({size},), "int8")
    B = T.match_buffer(b, ({size},), "int8")
    C = T.match_buffer(c, ({times}, {words}), "int32")
    {source}
    for i in range({times}):
        for w in range({words}):
            C[i, w] = {value}
"""
FLIPPED = 'T.bitwise_xor(T.reinterpret("int32", {buffer}[w * 4:w * 4 + 4]), T.int32({word})) + i'
COPIED = """X = T.alloc_buffer(({size},), "int8")
    for s in range({size}):
        X[s] = A[s] + B[s]"""


def program(size: int, *, buffer: str = "A", word: int = -0x7F7F7F80, times: int = 20, more: str = "", is_open=False):
    names: dict[str, Any] = {"size": size, "times": times, "words": size // 4, "source": "", "parameter": ""}
    names["declared"] = ""
    if is_open:
        names |= {"size": "n", "words": "n // 4", "declared": "n = T.int32()"}
    if buffer == "X":
        names["source"] = COPIED.format(**names)
    return from_source(SOURCE.format(value=FLIPPED.format(buffer=buffer, word=word) + more, **names))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_values_are_the_same(target: str, seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(8):
        size = draw.choice([4, 60, 64, 67, 255, 4096, 4160, 9001])
        func = program(
            size,
            buffer=draw.choice("AAX"),
            word=draw.choice([-0x7F7F7F80, 0x7F7F7F7F, 0x01010101, 0x01020304, 0]),
            times=draw.choice([1, 20]),
            more=draw.choice(["", "", ' + T.Cast("int32", A[w])', ' + T.Cast("int32", B[w])']),
            is_open=draw.random() < 0.3,
        )
        a, b = (rng.integers(-128, 128, size).astype("int8") for _ in range(2))
        times = int(func.buffer_map[func.params[2]].shape[0])
        want, got = (np.zeros((times, size // 4), "int32") for _ in range(2))
        tw.compile(func, "interpreter")(a, b, want)
        tw.compile(func, target, schedule="as written")(a, b, got)
        np.testing.assert_array_equal(got, want, err_msg=func.script())


def lowered(*args: Any, **options: Any) -> str:
    return tw.lower(program(*args, **options), target=TARGETS[1], after="flip_once").script()


def test_an_argument_is_flipped_in_a_copy_where_that_pays() -> None:
    text = lowered(9001)
    assert "A_flipped" in text and text.count("bitwise_xor") == 3  # of chunks, of vectors and of single bytes
    assert "A_flipped" not in lowered(9001, times=4)
    assert "A_flipped" in lowered(9001, is_open=True)


def test_what_is_stored_here_is_flipped_there() -> None:
    text = lowered(64, buffer="X", times=1)
    assert text.count("bitwise_xor") == 1 and "X_flipped" not in text
    assert text.index("bitwise_xor") < text.index("reinterpret")


@pytest.mark.parametrize(
    "options", [{"word": 0x01020304}, {"word": 0}, {"more": ' + T.Cast("int32", A[w])'}], ids=["bytes", "zero", "load"]
)
def test_others_stay(options: dict[str, Any]) -> None:
    assert "A_flipped" not in lowered(64, **options)


def test_constants_are_flipped_in_a_copy() -> None:
    """Their bytes are not stored by the program."""
    numbers = np.random.default_rng(0).integers(-128, 128, 4096).astype("int8")
    func = from_source(f"""
@T.prim_func
def f(A: T.Buffer((64, 64), "int8"), C: T.Buffer((64, 64), "int32")):
    W = T.allocate_const({numbers.tolist()}, "int8", [4096])
    B = T.decl_buffer((64, 64), "int8", data=W)
    for i, j in T.grid(64, 64):
        C[i, j] = 0
        for k in T.vectorized(64):
            C[i, j] = C[i, j] + T.Cast("int32", B[i, k]) * T.Cast("int32", A[j, k])
""")
    target = "llvm -mcpu=cascadelake"
    assert "_flipped" in tw.lower(func, target=target, after="flip_once").script()
    a = np.random.default_rng(1).integers(-128, 128, (64, 64)).astype("int8")
    wanted = numbers.reshape(64, 64).astype("int32") @ a.astype("int32").T
    lowered = tw.lower(func, target=target, after="flip_once")
    for kernel in (tw.compile(lowered, "interpreter"), tw.compile(func, schedule="as written")):
        c = np.zeros((64, 64), "int32")
        kernel(a, c)
        np.testing.assert_array_equal(c, wanted)
