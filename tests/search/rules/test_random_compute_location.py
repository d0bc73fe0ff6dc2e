"""RandomComputeLocation: where blocks are computed that nobody tiled."""

from __future__ import annotations

from tilewright import meta_schedule as ms

from .sketches import annotations, check, program, sketches


def test_producers_are_drawn_outputs_and_tiled_blocks_are_not() -> None:
    function = program("conv2d")
    made = [
        sketches(function, ms.MultiLevelTiling("SSRSRS"), ms.RandomComputeLocation(), seed=seed)[0] for seed in range(6)
    ]
    for sch in made:
        draws = [step for step in sch.trace.insts if step.kind.name == "SampleComputeLocation"]
        assert len(draws) == 1  # of PadInput
    assert len({str(sch.trace.decisions[step]) for sch in made for step in sch.trace.decisions}) > 1
    check(function, made)


def test_the_producer_of_a_block_that_asks_for_it() -> None:
    function = program("norm")
    first, second, _ = sketches(function, ms.AddRFactor(16, 64), ms.RandomComputeLocation())
    for sch in (first, second):
        draws = [step for step in sch.trace.insts if step.kind.name == "SampleComputeLocation"]
        assert len(draws) == 2  # of C, then of C_rf
        if "C" in str(sch.mod):
            assert all("random_compute_producer" not in text for text in str(sch.mod).splitlines())
    check(function, [first, second])


def test_blocks_that_share_a_loop_stay() -> None:
    function = program("softmax")
    (sch,) = sketches(function, ms.RandomComputeLocation())
    names = [step.kind.name for step in sch.trace.insts]
    assert names.count("SampleComputeLocation") >= 1
    assert annotations(sch, "T_softmax_norm") == {"axis": 1}
    check(function, [sch])
