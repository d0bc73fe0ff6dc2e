"""Conditions that hold for every so many steps of an axis (`(h + rh) % 2 == 0`, as between the pixels that a transposed
convolution spreads): axes are taken apart into such steps and the phase, which alone the condition then speaks of.

Of a dense tile all terms are then zero or none is, and what is zero is left out. Axes along which the results lie in
memory stay whole: vectors go along another axis there, and a phase would leave its results with gaps between them."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright import ir
from tilewright.heuristics.cpu.block_info import BlockInfo, coefficient, condition_period, constant, is_spatial
from tilewright.heuristics.cpu.sampling import try_step
from tilewright.schedule import BlockRV, Schedule

#: what asks lowering to leave terms out
SKIPS_ZERO_TERMS = "skip_zero_terms"


def split_strided_subproblems(schedule: Schedule, blocks: list[BlockRV]) -> None:
    """Takes apart the axes of sums whose terms are zero but for every so many steps."""
    for block in blocks:
        node = schedule.get(block)
        axes = list(node.iter_vars)
        if is_spatial(node):
            continue
        steps = [condition_period(node, axis.var) for axis in axes]
        if all(step == 1 for step in steps):
            continue
        try_step(schedule.annotate, block, SKIPS_ZERO_TERMS, 1)
        apart = {
            number: step
            for number, (axis, step) in enumerate(zip(axes, steps, strict=True))
            if step > 1 and axis.iter_type == ir.IterType.DATA_PAR and _extent(axis) % step == 0
        }
        if apart and not any(_lies_along(node, axes[number].var) for number in apart):
            try_step(schedule.transform_block_layout, block, residue_index_map(len(axes), apart))


def _lies_along(node: ir.Block, variable: ir.Var) -> bool:
    """Whether the results of neighboring steps are neighbors in memory."""
    return any(coefficient(region.region[-1].min, variable) == 1 for region in node.writes if region.region)


def _extent(axis: ir.IterVar) -> int:
    return (constant(axis.dom.extent) if axis.dom is not None else None) or 1


def interleaved_results(info: BlockInfo) -> dict[int, int]:
    """The dimensions of the result that an axis runs along in steps, and how far they go, where a phase fills them."""
    found = {}
    for dimension, index in enumerate(info.store.indices):
        residue_axes = [i for i in info.residue_axes if coefficient(index, info.axes[i].var) == 1]
        steps = [info.extent(i) for i in residue_axes]
        if steps and any(coefficient(index, axis.var) == steps[0] for axis in info.axes):
            found[dimension] = steps[0]
    return found


def residue_index_map(rank: int, steps: Mapping[int, int]) -> ir.IndexMap:
    """The phases first, then all axes in their order."""
    indices = [ir.Var(f"i{n}", "int32") for n in range(rank)]
    residue_axes = [indices[n] % step for n, step in steps.items()]
    return ir.IndexMap(indices, [*residue_axes, *(v // steps[n] if n in steps else v for n, v in enumerate(indices))])
