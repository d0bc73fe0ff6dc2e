"""Whether a peer computes the same: what a search says of the function that was given as reference=."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.search import report
from tilewright.support.numpy_dtype import numpy_dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
def test_integers_are_compared_exactly(dtype: str) -> None:
    got = np.array([0, 1, 1, 0] if dtype == "bool" else [1, 2, 3, np.iinfo(dtype).max], dtype)
    assert report._difference("C", got, got.copy(), 1) == ""
    wrong = got.copy()
    wrong[3] = got[3] - np.array(1, dtype) if dtype != "bool" else True
    text = report._difference("C", got, wrong, 1)
    assert f"C[3] is {wrong[3]} by the peer and {got[3]} by the program; 1 of 4 elements differ" in text
    if dtype != "bool":
        assert report._difference("C", got[:3], got[:3].astype(np.float64), 1) == ""
        assert report._difference("C", got[:3], got[:3] + 0.5, 1) != ""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_compared_up_to_rounding(dtype: str) -> None:
    numbers = np.random.default_rng(0).standard_normal(1000).astype(numpy_dtype(dtype))
    sums = np.cumsum(numbers.astype(np.float64))
    got = sums.astype(numbers.dtype)
    assert report._difference("C", got, np.cumsum(numbers, dtype=numbers.dtype), 1000) == ""
    wrong = got.copy()
    wrong[7] = wrong[7] + wrong.dtype.type(8 if "16" in dtype else 0.1)
    assert "C[7] is" in report._difference("C", got, wrong, 1000)


def test_small_elements_do_not_hide_behind_large_ones_of_float64() -> None:
    got = np.array([1e-3, 1.0, 100.0])
    wrong = np.array([2e-3, 1.0, 100.0])
    assert "C[0] is 0.002 by the peer and 0.001" in report._difference("C", got, wrong, 16)


def test_special_values_and_shapes() -> None:
    got = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert report._difference("C", got, got.copy(), 1) == ""
    for at in range(3):
        wrong = got.copy()
        wrong[at] = 1.0
        assert f"C[{at}] is" in report._difference("C", got, wrong, 1)
    assert "has shape [2, 2], not [4]" in report._difference("C", got, got.reshape(2, 2), 1)
    assert "returns str for C, which is not an array" in report._difference("C", got, "text", 1)
    assert "C[] is 2.0 by the peer and 1.0 by the program; it differs" in report._difference(
        "C", np.array(1.0), np.array(2.0), 1
    )


def scale(x: float) -> float:
    return x * 2.0


def peer(a: float) -> float:
    return scale(a)


def peer_by_module(a: float) -> float:
    return peer(a)


def closing_over(n: int) -> Callable[[int], int]:
    return lambda a: a + n


def test_another_function_has_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (lambda a: a + 1), (lambda a: a + 2)
    assert report._fingerprint(one) != report._fingerprint(other)
    assert report._fingerprint(one) == report._fingerprint(lambda a: a + 1)
    bound = [functools.partial(scale, n) for n in (1, 2)]
    assert report._fingerprint(bound[0]) != report._fingerprint(bound[1])
    closed = [closing_over(n) for n in (1, 2)]
    assert report._fingerprint(closed[0]) != report._fingerprint(closed[1])
    before = report._fingerprint(peer_by_module)
    monkeypatch.setitem(globals(), "scale", lambda x: x * 3.0)  # what it calls, of the same module
    assert report._fingerprint(peer_by_module) != before
