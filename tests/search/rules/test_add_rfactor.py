"""AddRFactor: reductions with few spatial iterations, in parts."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms
from tilewright.testing import formulas

from .sketches import annotations, blocks, check, program, sketches


def test_either_part_or_none() -> None:
    function = program("norm")
    made = sketches(function, ms.AddRFactor(max_jobs_per_core=16, max_innermost_factor=8))
    assert sorted(blocks(sch) for sch in made) == [["C", "D"], ["C_rf", "C", "D"], ["C_rf", "C", "D"]]
    for sch in made:
        if len(blocks(sch)) == 2:
            continue
        assert annotations(sch, "C")["meta_schedule.random_compute_producer"] == 1
    check(function, made)


@pytest.mark.parametrize(
    ("shape", "cores", "count"),
    [
        ((2, 3, 64), 4, 3),  # 6 spatial iterations, 64 to add up
        ((9, 9, 64), 4, 1),  # more spatial iterations than there are to add up
        ((2, 32, 128), 1, 3),  # 64 spatial iterations are what one core can use
        ((2, 33, 128), 1, 1),  # 66 are more
    ],
)
def test_products_only_where_the_cores_would_be_idle(shape: tuple[int, int, int], cores: int, count: int) -> None:
    function = te.create_prim_func(formulas.matmul(*shape), name="main")
    made = sketches(function, ms.AddRFactor(max_jobs_per_core=64), target=f"llvm -num-cores={cores}")
    assert len(made) == count


def test_the_sum_of_one_number_stays() -> None:
    a = te.placeholder((5, 1), name="A")
    k = te.reduce_axis((0, 1), name="k")
    b = te.compute((5,), lambda i: te.sum(a[i, k], axis=[k]), name="B")
    assert len(sketches(te.create_prim_func([a, b], name="main"), ms.AddRFactor())) == 1


def test_it_needs_a_target() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.AddRFactor().initialize(_core.TuneContext())
    assert error.value.code == "add_rfactor/target"
