"""Arrays that are not compact, where a kernel is told to copy them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.programs import product

import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def both(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        B[i] = A[i] + 1
        C[i] = A[5 - i] + B[i]


A = np.arange(24, dtype="float32").reshape(4, 6)
B = np.arange(30, dtype="float32").reshape(6, 5) % 7


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_inputs(target: str) -> None:
    kernel = tw.compile(product, target, strides="copy")
    assert kernel.strides == "copy"
    out = np.empty((4, 5), "float32")
    columns, backward = np.asfortranarray(A), B[::-1, ::-1]
    apart = np.zeros((8, 18), "float32")[::2, ::3]
    apart[...] = A
    for a, b in ((columns, B), (A, backward), (columns, backward), (apart, B), (np.broadcast_to(A[:1], (4, 6)), B)):
        out[...] = np.nan
        assert kernel(a, b, out) is None
        np.testing.assert_array_equal(out, a @ b)
        np.testing.assert_array_equal(kernel(a, b), a @ b)
        np.testing.assert_array_equal(kernel(B=b, A=a), a @ b)


def test_results() -> None:
    kernel = tw.compile(product, strides="copy")
    memory = np.full((10, 8), np.nan, "float32")
    out = memory[1:9:2, 6:1:-1]
    kernel(A, B, out)
    np.testing.assert_array_equal(out, A @ B)
    assert np.isnan(memory[::2]).all() and np.isnan(memory[:, :2]).all() and np.isnan(memory[:, 7]).all()


def test_without_it_they_are_refused() -> None:
    kernel = tw.compile(product)
    assert kernel.strides == "refuse"
    with pytest.raises(tw.ArgumentError, match="expected compact row-major data") as caught:
        kernel(np.asfortranarray(A), B)
    assert caught.value.code == "call/strides"
    kernel.strides = "copy"
    np.testing.assert_array_equal(kernel(np.asfortranarray(A), B), A @ B)


def test_results_whose_elements_share_memory_are_refused() -> None:
    kernel = tw.compile(product, strides="copy")
    with pytest.raises(tw.ArgumentError):
        kernel(A, B, np.lib.stride_tricks.as_strided(np.zeros(5, "float32"), (4, 5), (0, 4)))
    with pytest.raises(tw.ArgumentError):
        kernel(A, B, np.lib.stride_tricks.as_strided(np.zeros(40, "float32"), (4, 5), (8, 4)))
    several = tw.compile(both, strides="copy")
    memory = np.zeros(24, "int32")
    with pytest.raises(tw.ArgumentError):
        several(np.arange(6, dtype="int32"), memory[:12:2], memory[2:14:2])
    b, c = memory[:12:2], memory[1:12:2]  # between one another
    several(np.arange(6, dtype="int32"), b, c)
    np.testing.assert_array_equal(b, np.arange(6) + 1)
    np.testing.assert_array_equal(c, np.arange(6)[::-1] + np.arange(6) + 1)


def test_inputs_are_read_before_results_are_copied_back() -> None:
    memory = np.arange(12, dtype="int32")
    a, c = memory[::2].copy(), np.empty(6, "int32")
    tw.compile(both, strides="copy")(memory[::2], memory[::-2], c)
    np.testing.assert_array_equal(memory[::-2], a + 1)
    np.testing.assert_array_equal(c, a[::-1] + a + 1)


def test_what_is_wrong_otherwise_is_still_told() -> None:
    kernel = tw.compile(product, strides="copy")
    with pytest.raises(tw.ArgumentError, match="expected shape"):
        kernel(np.asfortranarray(A), B[:, :4], np.empty((4, 5), "float32"))
    with pytest.raises(tw.ArgumentError, match="mask"):
        kernel(np.ma.masked_array(A)[:, ::-1], B)
    read_only = np.asfortranarray(np.empty((4, 5), "float32"))
    read_only.flags.writeable = False
    with pytest.raises(tw.ArgumentError):
        kernel(A, B, read_only)
    with pytest.raises(tw.ArgumentError, match="'refuse' or 'copy'") as caught:
        kernel.strides = "both"
    assert caught.value.code == "call/strides-option"
    with pytest.raises(tw.ArgumentError, match="'refuse' or 'copy'"):
        tw.compile(product, strides="yes")


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    kernel = tw.compile(product, strides="copy")
    a, b = torch.from_numpy(A.T.copy()).T, torch.from_numpy(B)
    out = torch.empty(5, 4).T
    kernel(a, b, out)
    np.testing.assert_array_equal(out.numpy(), A @ B)
    assert isinstance(kernel(a, b), torch.Tensor)
    with pytest.raises(tw.ArgumentError):
        kernel(a, b, torch.zeros(1, 5).expand(4, 5))


def test_libraries_copies_and_benchmarks(tmp_path: Path) -> None:
    kernel = tw.compile(product, strides="copy")
    for other in (tw.load(kernel.export(tmp_path).library), pickle.loads(pickle.dumps(kernel))):
        other.strides = "copy"
        np.testing.assert_array_equal(other(np.asfortranarray(A), B), A @ B)
    assert pickle.loads(pickle.dumps(kernel)).strides == "copy"
    assert kernel.benchmark(np.asfortranarray(A), B, np.empty((4, 5), "float32")).median > 0


def test_a_parameter_that_takes_strides_gets_no_copy() -> None:
    @T.prim_func
    def rows(a: T.handle, b: T.handle):
        s = T.int32()
        A = T.match_buffer(a, (3, 4), "int32", strides=(s, 1))
        B = T.match_buffer(b, (3, 4), "int32")
        for i, j in T.grid(3, 4):
            B[i, j] = A[i, j]

    x = np.arange(40, dtype="int32").reshape(4, 10)[:3, 2:6]
    kernel = tw.compile(rows, strides="copy")
    np.testing.assert_array_equal(kernel(x), x)
    with pytest.raises(tw.ArgumentError) as caught:
        kernel(x[:, ::-1])
    assert caught.value.code == "call/strides"
