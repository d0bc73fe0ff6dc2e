"""Tensor intrinsics for what random programs compute: copies of rows, and tiles of blocks that are one store."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import tilewright as tw
from tilewright import ir, script


def is_describable(node: ir.Block) -> bool:
    """One store, of its axes alone, to elements whose indices are axes or numbers; to one element in each step but for
    those of a reduction, as implementations go through a tile in another order."""
    if re.search(r"^\w+ = T\.u?int\d+\(\)$", node.script(), re.MULTILINE):
        return False  # what other blocks or the sizes say
    names = {axis.var.name for axis in node.iter_vars}
    written = {str(part.min) for region in node.writes for part in region.region}
    if any(axis.iter_type != ir.IterType.COMM_REDUCE and axis.var.name not in written for axis in node.iter_vars):
        return False
    parts = [part for region in [*node.reads, *node.writes] for part in region.region]
    return isinstance(node.body, ir.BufferStore) and all(
        # What a condition keeps from being read may stand before its buffer.
        str(part.extent) == "1"
        and (str(part.min) in names or (isinstance(part.min, ir.IntImm) and part.min.value >= 0))
        for part in parts
    )


def of_tile(node: ir.Block, tile: Mapping[str, int]) -> str:
    """An intrinsic that computes a tile of the block's updates: so many steps of these axes, none of the others. Its
    implementation goes through the tile backwards, through a reduction if the order of its steps does not matter."""
    lines = [line.strip() for line in node.script().splitlines()]
    store = lines[-1]
    for axis in node.iter_vars:
        if axis.var.name not in tile:
            store = re.sub(rf"\b{axis.var.name}\b", "0", store)
    written, read = (_named(lines, f"T.{kind}(") for kind in ("writes", "reads"))
    buffers: dict[str, tuple[list[int], str]] = {}
    for name, region in [*zip(written, node.writes, strict=True), *zip(read, node.reads, strict=True)]:
        extents = [tile.get(str(part.min), 1) for part in region.region]
        for dimension, part in enumerate(region.region):
            if isinstance(part.min, ir.IntImm):
                extents[dimension] = part.min.value + 1
        known, _ = buffers.get(name, (extents, ""))
        extents = [max(pair) for pair in zip(known, extents, strict=True)]
        buffers[name] = (extents, str(region.buffer.dtype))
    kinds = {axis.var.name: axis.iter_type == ir.IterType.COMM_REDUCE for axis in node.iter_vars}
    return _registered(
        store,
        tuple((name, tuple(extents), dtype) for name, (extents, dtype) in buffers.items()),
        tuple((name, extent, kinds[name]) for name, extent in tile.items()),
        tuple(written),
    )


def _named(lines: list[str], start: str) -> list[str]:
    """How the script of a block calls the buffers of the regions it declares: names that it has taken get numbers."""
    return [name for line in lines if line.startswith(start) for name in re.findall(r"(\w+)\[", line)]


def _in_any_order(store: str) -> bool:
    """A sum, or the like, of what does not read what is summed up: B[v] = B[v] * 2 + A[k] is none."""
    result, _, value = store.partition(" = ")
    return store.count(result) == 2 and bool(
        re.match(rf"{re.escape(result)} \+ |T\.(max|min|bitwise_(and|or|xor))\({re.escape(result)}, ", value)
    )


def of_copies(extent: int, dtype: str) -> str:
    """An intrinsic that copies a row: what copies of buffers are made of."""
    buffers = (("B", (extent,), dtype), ("A", (extent,), dtype))
    return _registered("B[v] = A[v]", buffers, (("v", extent, False),), ("B",))


@functools.cache
def _registered(store: str, buffers: Any, axes: Any, written: tuple[str, ...]) -> str:
    name = f"drawn_{_registered.cache_info().misses}"
    tw.TensorIntrin.register(
        name, _function(store, buffers, axes, written, False), _function(store, buffers, axes, written, True)
    )
    return name


def _function(store: str, buffers: Any, axes: Any, written: tuple[str, ...], backwards: bool) -> ir.PrimFunc:
    lines = ["@T.prim_func", f"def main({', '.join(f'p{name}: T.handle' for name, _, _ in buffers)}):"]
    for name, extents, dtype in buffers:
        lines.append(f"    {name} = T.match_buffer(p{name}, {extents}, {dtype!r}, offset_factor=1)")
    regions = {name: f"{name}[{', '.join(f'0:{n}' for n in extents) or '()'}]" for name, extents, _ in buffers}
    read = [name for name in regions if name not in written or store.count(f"{name}[") > 1]
    lines += [
        '    with T.block("root"):',
        f"        T.reads({', '.join(regions[name] for name in read)})",
        f"        T.writes({', '.join(regions[name] for name in written)})",
    ]
    depth = 2
    for name, extent, _ in axes:
        lines.append("    " * depth + f"for i_{name} in range({extent}):")
        depth += 1
    lines.append("    " * depth + 'with T.block("step"):')
    for name, extent, reduces in axes:
        value = f"{extent - 1} - i_{name}" if backwards and (not reduces or _in_any_order(store)) else f"i_{name}"
        lines.append("    " * (depth + 1) + f"{name} = T.axis.{'reduce' if reduces else 'spatial'}({extent}, {value})")
    lines.append("    " * (depth + 1) + store)
    function = script.from_source("\n".join(lines) + "\n")
    assert isinstance(function, ir.PrimFunc)
    return function
