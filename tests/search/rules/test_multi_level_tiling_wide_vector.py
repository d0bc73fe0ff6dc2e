"""MultiLevelTilingWideVector: whole registers of the output."""

from __future__ import annotations

import pytest

from tilewright import meta_schedule as ms
from tilewright import te
from tilewright.testing import formulas

from .sketches import check, sketches


@pytest.mark.parametrize(("columns", "innermost", "draws"), [(64, 32, 3), (32, 32, 2), (7, 7, 2)])
def test_the_innermost_tile_is_a_register_or_the_whole_axis(columns: int, innermost: int, draws: int) -> None:
    function = te.create_prim_func(formulas.matmul(6, columns, 4), name="main")
    (sch,) = sketches(function, ms.MultiLevelTilingWideVector("SRSRS", 1024, 64))
    loops = sch.get_loops(sch.get_block("C"))
    assert sch.get(loops[-1]).extent.value == innermost
    assert [step.kind.name for step in sch.trace.insts].count("SamplePerfectTile") == draws
    check(function, [sch])


def test_two_levels_need_no_draw_for_it() -> None:
    function = te.create_prim_func(formulas.matmul(6, 64, 4), name="main")
    (sch,) = sketches(function, ms.MultiLevelTilingWideVector("SRS", 1024))
    assert [sch.get(loop).extent.value for loop in sch.get_loops(sch.get_block("C"))][-1] == 32
    check(function, [sch])
