"""AutoBind: iterations for the blocks and threads of a GPU."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te

from .sketches import GPU, context_of, sketches


def _copy(*shape: int) -> Any:
    a = te.placeholder(shape, name="A")
    return te.create_prim_func([a, te.compute(shape, lambda *i: a[i] + 1.0, name="B")], name="main")


def _bound(sch: Any) -> dict[str, int]:
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("B"))]
    return {loop.thread_binding.thread_tag: loop.extent.value for loop in loops if loop.thread_binding is not None}


def test_small_ones_draw_the_size_of_a_team() -> None:
    sizes = {
        _bound(sketches(_copy(20, 50), ms.AutoBind(), target=GPU, seed=seed)[0])["threadIdx.x"] for seed in range(20)
    }
    assert sizes <= {32, 64, 128, 256, 512}
    assert len(sizes) > 2
    (sch,) = sketches(_copy(3, 5), ms.AutoBind(), target=GPU)
    assert _bound(sch) == {"blockIdx.x": 1, "threadIdx.x": 15}
    sch.verify()


def test_large_ones_leave_the_rest_to_each_thread() -> None:
    (sch,) = sketches(_copy(300, 50), ms.AutoBind(max_threadblocks=4, max_threads_per_block=32), target=GPU)
    assert _bound(sch) == {"blockIdx.x": 4, "threadIdx.x": 32}
    assert len(sch.get_loops(sch.get_block("B"))) == 3
    sch.verify()


def test_the_target_says_how_large_teams_are() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.AutoBind().initialize(context_of("llvm"))
    assert error.value.code == "auto_bind/target"
    ms.AutoBind(max_threads_per_block=8).initialize(context_of("llvm"))
