"""Conditions that hold for one residue of an axis (`(h + rh) % 2 == 0`, between the spread pixels of a transposed
convolution): such an axis is split into strided sub-problems, one for each residue.

In a tile of a sub-problem, either all terms are zero or none is, and the zero ones are skipped. Axes along which
results are contiguous are not split, because results of a sub-problem would be strided; vectors run along another axis
then."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright import ir
from tilewright.heuristics.block_info import BlockInfo, coefficient, condition_period, constant, is_spatial
from tilewright.heuristics.loops import index_map
from tilewright.heuristics.sampling import try_step
from tilewright.heuristics.unscheduled import SKIPS_ZERO_TERMS
from tilewright.schedule import BlockRV, Schedule


def split_strided_subproblems(schedule: Schedule, blocks: list[BlockRV]) -> None:
    """Split the reduction axes whose terms are zero for all but one residue."""
    for block in blocks:
        node = schedule.get(block)
        axes = list(node.iter_vars)
        if is_spatial(node):
            continue
        steps = [condition_period(node, axis.var) for axis in axes]
        if all(step == 1 for step in steps):
            continue
        try_step(schedule.annotate, block, SKIPS_ZERO_TERMS, 1)
        split = {
            number: step
            for number, (axis, step) in enumerate(zip(axes, steps, strict=True))
            if step > 1 and axis.iter_type == ir.IterType.DATA_PAR and _extent(axis) % step == 0
        }
        if split and not any(_is_contiguous(node, axes[number].var) for number in split):
            try_step(schedule.transform_block_layout, block, residue_index_map(len(axes), split))


def _is_contiguous(node: ir.Block, variable: ir.Var) -> bool:
    return any(coefficient(region.region[-1].min, variable) == 1 for region in node.writes if region.region)


def _extent(axis: ir.IterVar) -> int:
    return (constant(axis.dom.extent) if axis.dom is not None else None) or 1


def interleaved_results(info: BlockInfo) -> dict[int, int]:
    """Return the strides of results by dimension, for dimensions that the residues fill together."""
    found = {}
    for dimension, index in enumerate(info.store.indices):
        residues = [i for i in info.residue_axes if coefficient(index, info.axes[i].var) == 1]
        steps = [info.extent(i) for i in residues]
        if steps and any(coefficient(index, axis.var) == steps[0] for axis in info.axes):
            found[dimension] = steps[0]
    return found


def residue_index_map(rank: int, steps: Mapping[int, int]) -> ir.IndexMap:
    """Return the index map that moves the residues to the front; the other axes keep their order."""
    return index_map(
        rank,
        lambda v: [
            *(v[n] % step for n, step in steps.items()),
            *(index // steps[n] if n in steps else index for n, index in enumerate(v)),
        ],
    )
