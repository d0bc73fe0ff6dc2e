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
    made = sketches(function, rule, target="llvm -mcpu=cascadelake -num-cores=4")
    assert len(made) == 3
    for sch in made:
        assert annotations(sch, "C_o") == {"meta_schedule.auto_tensorize": VNNI}
        assert annotations(sch, "C") == {"meta_schedule.tiling_structure": "SSRSRS"}
        assert [axis.dom.extent.value for axis in sch.get(sch.get_block("C")).iter_vars][-2:] == [16, 4]
    check(function, made)


def test_blocks_that_do_not_fit_stay() -> None:
    rule = ms.MultiLevelTilingWithIntrin(VNNI, "SSRSRS")
    for function in (program("matmul"), _dense(3, 32, 8, lhs="int8"), program("softmax")):
        (sch,) = sketches(function, rule, target="llvm -mcpu=cascadelake -num-cores=4")
        assert not any(step.kind.name in ("Blockize", "Annotate") for step in sch.trace.insts)


def test_an_intrinsic_that_nobody_knows() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.MultiLevelTilingWithIntrin("nobody", "SSRSRS")
    assert error.value.code == "multi_level_tiling/intrin"


def test_an_intrinsic_that_the_processor_does_not_have(caplog: pytest.LogCaptureFixture) -> None:
    rule = ms.MultiLevelTilingWithIntrin(VNNI, "SSRSRS")
    (sch,) = sketches(_dense(3, 32, 8), rule, target="llvm -mcpu=alderlake -num-cores=4")
    assert VNNI not in str(sch.trace)
    assert caplog.text.count(f"skips '{VNNI}', which needs avx512vnni: alderlake does not have it") == 1
    caplog.clear()
    made = sketches(_dense(3, 32, 8), rule, target="llvm -mcpu=cascadelake -num-cores=4")  # the rule as of that target
    assert all(VNNI in str(sch.trace) for sch in made) and caplog.text == ""


@pytest.mark.filterwarnings("ignore:.*is not vectorized")
@pytest.mark.parametrize(
    ("target", "intrin"),
    [
        ("llvm -mcpu=alderlake", "dot_16x4_avxvnni"),
        ("llvm -mcpu=cascadelake", VNNI),
        ("llvm -mcpu=skylake-avx512", "dot_16x4_avx512"),
        ("llvm -mcpu=alderlake -mattr=-avxvnni", ""),
    ],
)
def test_kernels_by_the_instructions_of_the_processor(
    target: str, intrin: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each candidate of a product of bytes compiles, with the instructions that there are."""
    task = ms.TuneContext(
        _dense(4, 32, 16), target=target, space_generator="post-order-apply", search_strategy="replay-trace"
    )
    spaces = task.generate_design_space()
    assert all(("dot_16x4" in str(sch.trace)) == bool(intrin) and intrin in str(sch.trace) for sch in spaces)
    task.pre_tuning(2, 2, spaces)
    candidates = task.generate_measure_candidates()
    assert candidates is not None
    for candidate in candidates:
        assembly = tw.compile(candidate.sch.mod, target=target, schedule="as written").inspect("asm")
        assert not intrin or ("vpmaddwd" if "avx512" in intrin else "vpdpbusd") in assembly
    assert caplog.text == ""
