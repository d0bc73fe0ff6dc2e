"""The rules of Winograd's convolutions, and the convolutions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.testing import winograd

from .sketches import check, sketches


def _convolution(data: Any, weight: Any, padding: int) -> Any:
    """data [n, h, w, ci], weight [3, 3, ci, co], in float64."""
    around = np.pad(data.astype("float64"), [(0, 0), (padding, padding), (padding, padding), (0, 0)])
    rows, columns = around.shape[1] - 2, around.shape[2] - 2
    parts = (
        around[:, r : r + rows, s : s + columns] @ weight[r, s].astype("float64") for r in range(3) for s in range(3)
    )
    return sum(parts)


@pytest.mark.parametrize("tile", range(2, 9))
@pytest.mark.parametrize("shape", [(1, 9, 7, 3, 5, 1), (2, 6, 10, 4, 2, 0)])
def test_both_layouts_are_convolutions(tile: int, shape: tuple[int, ...]) -> None:
    n, h, w, ci, co, padding = shape
    rng = np.random.default_rng(tile)
    data, weight = rng.random((n, h, w, ci), "float32"), rng.random((3, 3, ci, co), "float32")
    expected = _convolution(data, weight, padding)
    transform = np.array(winograd.transforms(tile)[2], dtype="float64")
    packed = np.einsum("er,ns,rsio->enio", transform, transform, weight.astype("float64")).astype("float32")
    last = te.create_prim_func(winograd.conv2d_winograd_nhwc(n, h, w, ci, co, tile + 2, 1, padding, 1, tile))
    first = te.create_prim_func(winograd.conv2d_winograd_nchw(n, ci, h, w, co, tile + 2, 1, padding, 1, tile))
    by_last = tw.compile(last)(data, np.ascontiguousarray(packed.transpose(0, 1, 3, 2)))
    by_first = tw.compile(first)(np.ascontiguousarray(data.transpose(0, 3, 1, 2)), packed)
    error = 1e-5 if tile < 7 else 1e-3  # large tiles lose digits (Barabasz et al.)
    np.testing.assert_allclose(by_last, expected, rtol=error, atol=error)
    np.testing.assert_allclose(by_first.transpose(0, 2, 3, 1), expected, rtol=error, atol=error)


@pytest.mark.parametrize("target", ["llvm -num-cores=4", "nvidia/nvidia-a100"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_the_rules_keep_the_meaning(layout: str, target: str) -> None:
    if layout == "nhwc":
        function = te.create_prim_func(winograd.conv2d_winograd_nhwc(1, 7, 6, 2, 4, 4, 1, 1, 1, 2), name="main")
    else:
        function = te.create_prim_func(winograd.conv2d_winograd_nchw(1, 2, 7, 6, 4, 4, 1, 1, 1, 2), name="main")
    made = sketches(function, ms.ApplyCustomRule(), target=target)
    check(function, made)
    (sch,) = made
    for name in ("A", "B"):  # the constant matrices are gone
        with pytest.raises(tw.ScheduleError):
            sch.get_block(name)
    unrolled = [loop for loop in sch.get_loops(sch.get_block("data_pack")) if sch.get(loop).kind == 3]
    assert len(unrolled) == 4


def test_a_rule_says_what_it_misses() -> None:
    a = te.placeholder((4, 6), name="A")
    copy = te.compute((4, 6), lambda i, j: a[i, j], name="P")
    rule: Any = {"schedule_rule": "conv2d_nhwc_winograd_inverse"}
    few_loops = te.create_prim_func([a, te.compute((4, 6), lambda i, j: copy[i, j] + 1.0, name="B", attrs=rule)])
    with pytest.raises(tw.ArgumentError, match="6 loops") as error:
        sketches(few_loops, ms.ApplyCustomRule())
    assert error.value.code == "winograd/loops"
    none = te.create_prim_func([a, te.compute((4, 6), lambda i, j: a[i, j] + 1.0, name="B", attrs=rule)])
    with pytest.raises(tw.ArgumentError) as error:
        sketches(none, ms.ApplyCustomRule())
    assert error.value.code == "winograd/producers"
    rule = {"schedule_rule": "conv2d_nchw_winograd_inverse"}
    alone = te.create_prim_func([a, te.compute((4, 6), lambda i, j: copy[i, j] + 1.0, name="B", attrs=rule)])
    with pytest.raises(tw.ArgumentError) as error:
        sketches(alone, ms.ApplyCustomRule(), target="nvidia/nvidia-a100")
    assert error.value.code == "winograd/output"


def test_what_the_method_is_not_for() -> None:
    with pytest.raises(ValueError, match="stride 2"):
        winograd.conv2d_winograd_nhwc(1, 8, 8, 4, 4, 6, 2)
    with pytest.raises(ValueError, match="tiles of 2 to 8"):
        winograd.transforms(9)
