"""ParallelizeVectorizeUnroll: annotations of the root."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms

from .sketches import annotations, program, sketches


def test_all_of_them() -> None:
    rule = ms.ParallelizeVectorizeUnroll(16, 64, [0, 16, 64, 512], True)
    (sch,) = sketches(program("matmul"), rule, target="llvm -num-cores=3")
    said = annotations(sch, "root")
    assert said.pop("meta_schedule.unroll_explicit") in (0, 16, 64, 512)
    assert said == {"meta_schedule.parallel": 48, "meta_schedule.vectorize": 64}


def test_none_of_them() -> None:
    (sch,) = sketches(program("matmul"), ms.ParallelizeVectorizeUnroll(-1, -1), target="llvm")
    assert annotations(sch, "root") == {}
    (sch,) = sketches(program("matmul"), ms.ParallelizeVectorizeUnroll(-1, -1, [5], unroll_explicit=False))
    assert annotations(sch, "root") == {"meta_schedule.unroll_implicit": 5}


def test_functions_that_reduce_nothing_are_not_unrolled() -> None:
    function = tw.te.create_prim_func([tw.te.compute((4,), lambda i: i, name="A")], name="main")
    (sch,) = sketches(function, ms.ParallelizeVectorizeUnroll(1, 8, [16]), target="llvm -num-cores=2")
    assert annotations(sch, "root") == {"meta_schedule.parallel": 2, "meta_schedule.vectorize": 8}


def test_it_needs_a_target() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.ParallelizeVectorizeUnroll().initialize(_core.TuneContext())
    assert error.value.code == "parallelize_vectorize_unroll/target"
