"""Elements by slices against whole programs, for programs that random schedules have tiled, moved and inlined."""

import random

import numpy as np
import pytest

import tilewright as tw

from .programs import INDEX_LIMITS, PROGRAMS, arguments_of


def random_step(sch: tw.Schedule, names: list[str], choose: random.Random) -> None:
    block = sch.get_block(choose.choice(names))
    loops = sch.get_loops(block)
    kind = choose.choice(
        ["split", "split", "fuse", "reorder", "parallel", "compute_at", "inline", "cache", "decompose"]
    )
    if kind == "split":
        sch.split(choose.choice(loops), [None, choose.choice([2, 3, 4, 8])])
    elif kind == "fuse":
        at = choose.randrange(len(loops) - 1)
        sch.fuse(loops[at], loops[at + 1])
    elif kind == "reorder":
        sch.reorder(*choose.sample(loops, 2))
    elif kind == "parallel":
        sch.parallel(choose.choice(loops))
    elif kind == "compute_at":
        target = sch.get_loops(sch.get_block(choose.choice(names)))
        sch.compute_at(block, choose.choice(target))
    elif kind == "inline":
        sch.compute_inline(block)
    elif kind == "cache":
        sch.cache_read(block, 0, "global")
    else:
        sch.decompose_reduction(block, choose.choice(loops))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "view"])
def test_scheduled_programs(name: str, seed: int) -> None:
    choose = random.Random(f"{name} {seed}")
    sch = tw.Schedule(PROGRAMS[name])
    found: list[str] = []
    tw.ir.visit(sch.mod, lambda node: found.append(node.name_hint) if isinstance(node, tw.ir.Block) else None)
    names = [block for block in found if block != "root"]
    for _ in range(8):
        before = sch.mod
        try:
            random_step(sch, names, choose)
        except (tw.ScheduleError, IndexError, ValueError):
            assert sch.mod is before or tw.ir.structural_equal(sch.mod, before)
    arrays = arguments_of(PROGRAMS[name], INDEX_LIMITS.get(name, 0))
    whole = {key: array.copy() for key, array in arrays.items()}
    tw.ir.interpret(sch.mod, "main", *whole.values())
    shape = whole["Y"].shape
    points = [tuple(choose.randrange(n) for n in shape) for _ in range(4)]
    values = tw.ir.interpret_at(sch.mod, "main", *arrays.values(), points={"Y": points})["Y"]
    np.testing.assert_array_equal(values, [whole["Y"][point] for point in points])
