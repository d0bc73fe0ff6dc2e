"""What a schedule is given: programs that nothing has checked before, and numbers beyond the type of its indices."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

import tilewright as tw
from tilewright import ir
from tilewright import meta_schedule as ms
from tilewright.script import tir as T


@T.prim_func
def bits(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = T.bitwise_and(A[v, w], 3)


def all_lists(value: Any) -> Iterator[list]:
    if isinstance(value, list):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from all_lists(inner)


def test_programs_from_json_that_miss_an_operand_or_a_dimension_are_refused():
    """Each list of the program without each of its elements: arguments, dimensions of regions, loops, buffers."""
    text = ir.save_json(bits)
    codes: dict[str, int] = {}
    for position, elements in enumerate(all_lists(json.loads(text))):
        for missing in range(len(elements)):
            changed = json.loads(text)
            del list(all_lists(changed))[position][missing]
            try:
                loaded = ir.load_json(json.dumps(changed))
                sch = tw.Schedule(loaded)
                sch.split(sch.get_loops("C")[0], [None, 2])
                sch.cache_read("C", 0, "global")
                sch.transform_layout("C", ("write", 0), lambda i, j: (j, i))
                code = ""
            except tw.Error as error:
                assert not isinstance(error, tw.InternalError)
                code = error.code
            codes[code] = codes.get(code, 0) + 1
    assert codes["verify/intrinsic"] == 2 and codes["verify/region"] == 4, codes


@pytest.mark.parametrize("padding", [[2**31, 1], [2**62, 2**62]])
def test_padding_beyond_the_type_of_indices_is_refused(padding):
    sch = tw.Schedule(bits)
    with pytest.raises(tw.ScheduleError, match="does not fit int32") as refusal:
        sch.pad_einsum("C", padding)
    assert refusal.value.code == "pad_einsum/P1"
    assert sch.mod.same_as(sch.original)


@pytest.mark.parametrize(
    "step",
    [
        lambda sch: sch.transform_layout("C", ("write", 0), lambda i, j: (i * 2**31, j)),
        lambda sch: sch.transform_layout("C", ("read", 0), lambda i, j: (i + 2**31, j)),
        lambda sch: sch.transform_block_layout("C", lambda i, j: (i * 2**31, j)),
        lambda sch: sch.reindex_cache_read("C", 0, "global", lambda i, j: (i * 2**31, j)),
        lambda sch: sch.reindex_cache_write("C", 0, "global", lambda i, j: (i + 2**31, j)),
    ],
)
def test_numbers_beyond_the_type_of_indices_are_refused(step):
    sch = tw.Schedule(bits)
    with pytest.raises(tw.ScheduleError, match="does not fit int32") as refusal:
        step(sch)
    assert refusal.value.code == "schedule/range"
    assert sch.mod.same_as(sch.original)


def test_a_function_may_stand_in_a_module_under_two_names():
    sch = tw.Schedule(ir.IRModule({"f": bits, "g": bits}))
    sch.unroll(sch.get_loops(sch.get_block("C", func_name="g"))[0])
    assert "unroll" in sch.mod.script() and ir.structural_equal(sch.mod.functions["f"], bits)


def test_spaces_of_a_search_are_of_programs_that_hold():
    """Whatever the program misses, rules and features do not get to see it."""
    text = ir.save_json(bits)
    for position, elements in enumerate(all_lists(json.loads(text))):
        for missing in range(len(elements)):
            changed = json.loads(text)
            del list(all_lists(changed))[position][missing]
            try:
                loaded = ir.load_json(json.dumps(changed))
            except tw.ScriptError:
                continue
            context = ms.TuneContext(mod=loaded, target=tw.Target("llvm"), space_generator="post-order-apply")
            with contextlib.suppress(tw.ScriptError):
                context.generate_design_space()
