"""Pickled and copied kernels check and run as the kernels that they were made from."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.kernel import Kernel, load_object_code, object_code_of
from tilewright.script import tir as T


@T.prim_func
def take(A: T.Buffer((4,), "float32"), at: T.Buffer((3,), "int32"), B: T.Buffer((3,), "float32")):
    T.assume_buffer_domain(at, [0, 4])
    for i in range(3):
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = A[at[v]]


@T.prim_func
def take_anything(A: T.Buffer((4,), "float32"), at: T.Buffer((3,), "int32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = A[at[v]]


def arguments(*at: int) -> list[Any]:
    return [np.arange(4, dtype="float32"), np.array(at, "int32"), np.zeros(3, "float32")]


def pickled(kernel: Any) -> Any:
    return pickle.loads(pickle.dumps(kernel))


@pytest.mark.parametrize("again", [pickled, copy.copy, copy.deepcopy])
def test_bounds_are_still_checked(again: Callable[[Any], Any]) -> None:
    kernel = tw.compile(take_anything, check_bounds=True)
    for each in (kernel, again(kernel)):
        with pytest.raises(tw.ArgumentError, match="is not in"):
            each(*arguments(0, 1, 4))
    assert again(kernel).inspect("tir") == kernel.inspect("tir")


def test_a_later_pass_shows_the_checks() -> None:
    checked, unchecked = (tw.compile(take_anything, check_bounds=checks) for checks in (True, False))
    last, _ = _core.list_passes()[-1]
    assert checked.inspect("tir", after=last) == checked.inspect("tir") != unchecked.inspect("tir")


def test_a_kernel_of_a_library_keeps_its_validator_and_threads(tmp_path: Path) -> None:
    kernel = tw.load(tw.compile(take).export(tmp_path).library)
    assert isinstance(kernel, Kernel)
    kernel.threads = 3
    again = pickled(kernel)
    assert again.threads == 3
    again.validate(*arguments(0, 1, 3))
    with pytest.raises(tw.ArgumentError, match="at"):
        again.validate(*arguments(0, 1, 4))


def test_a_kernel_of_object_code_is_read_again() -> None:
    kernel = load_object_code(object_code_of(tw.compile(take_anything)))
    args = arguments(3, 0, 1)
    pickled(kernel)(*args)
    np.testing.assert_array_equal(args[2], [3, 0, 1])
