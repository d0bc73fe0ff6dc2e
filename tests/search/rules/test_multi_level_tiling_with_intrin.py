"""MultiLevelTilingWithIntrin: what an instruction computes, as the innermost tile."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import te

from .sketches import annotations, check, program, sketches

VNNI = "dot_16x4_vnni"


def _dense(n: int, m: int, k: int, lhs: str = "uint8") -> tw.ir.PrimFunc:
    x = te.placeholder((n, k), name="X", dtype=lhs)
    w = te.placeholder((m // 16, k // 4, 16, 4), name="W", dtype="int8")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (n, m),
        lambda i, j: te.sum(x[i, r].astype("int32") * w[j // 16, r // 4, j % 16, r % 4].astype("int32"), axis=[r]),
        name="C",
    )
    return te.create_prim_func([x, w, c], name="main")


def test_the_instruction_is_a_block_of_its_own() -> None:
    function = _dense(3, 32, 8)
    rule = ms.MultiLevelTilingWithIntrin(VNNI, "SSRSRS", reuse_write=ms.ReuseType("may", [1, 2], "global"))
    made = sketches(function, rule)
    assert len(made) == 3
    for sch in made:
        assert annotations(sch, "C_o") == {"meta_schedule.auto_tensorize": VNNI}
        assert annotations(sch, "C") == {"meta_schedule.tiling_structure": "SSRSRS"}
        assert [axis.dom.extent.value for axis in sch.get(sch.get_block("C")).iter_vars][-2:] == [16, 4]
    check(function, made)


def test_blocks_that_do_not_fit_stay() -> None:
    rule = ms.MultiLevelTilingWithIntrin(VNNI, "SSRSRS")
    for function in (program("matmul"), _dense(3, 32, 8, lhs="int8"), program("softmax")):
        (sch,) = sketches(function, rule)
        assert not any(step.kind.name in ("Blockize", "Annotate") for step in sch.trace.insts)


def test_an_intrinsic_that_nobody_knows() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.MultiLevelTilingWithIntrin("nobody", "SSRSRS")
    assert error.value.code == "multi_level_tiling/intrin"
