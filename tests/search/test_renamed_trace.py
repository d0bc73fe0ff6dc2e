"""A trace of a program for an equal one, whose function and blocks are called otherwise."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script.scripts import from_source
from tilewright.testing.workloads import matmul


def otherwise(program: tw.ir.PrimFunc, **names: str) -> tw.ir.PrimFunc:
    text = program.script()
    for was, now in names.items():
        text = text.replace(f'T.block("{was}")', f'T.block("{now}")')
    return from_source(text.replace("C: T.Buffer", "R: T.Buffer").replace("C[", "R["))


def copies(sch: tw.Schedule) -> None:
    """Blocks that are called after others, and those that are called after buffers."""
    block = sch.get_block("C")
    sch.cache_read(block, 0, "global")
    sch.cache_write(block, 0, "local")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    for name in ("A_global", "C_local", "C_init"):
        sch.vectorize(sch.get_loops(sch.get_block(name))[-1])


def factored(sch: tw.Schedule) -> None:
    loop = sch.get_loops(sch.get_block("C"))[2]
    sch.rfactor(sch.split(loop, factors=[None, 4])[1], 0)
    sch.parallel(sch.get_loops(sch.get_block("C_rf"))[0])


@pytest.mark.parametrize("steps", [copies, factored])
@pytest.mark.parametrize("block", ["C", "product", "A", "the_product_of_both"])
def test_every_step_finds_its_block(steps, block):
    program = matmul(16, 16, 16)
    sch = tw.Schedule(program)
    steps(sch)
    other = otherwise(program, C=block)
    assert tw.ir.structural_equal(other, program)
    again = tw.Schedule(tw.ir.IRModule({"f": other}))
    trace = _core.renamed_trace(sch.trace, program, other, "f")
    assert {step.attrs[1] for step in trace.insts if step.kind.name == "GetBlock"} == {"f"}
    trace.apply_to_schedule(again)
    tw.ir.assert_structural_equal(again.mod["f"], sch.mod["main"])
    back = _core.renamed_trace(trace, other, program, "main")
    assert back.as_json() == sch.trace.as_json()


def test_names_of_many_words_are_looked_up_at_once():
    """They can be split in as many ways as there are sets of words."""
    program = matmul(16, 16, 16)
    name = "_".join(f"w{number}" for number in range(60))
    trace = tw.Trace.from_json(f'[[["GetBlock", [], ["{name}", "main"], ["b0"]]], []]')
    assert _core.renamed_trace(trace, program, otherwise(program, C="product"), "main").as_json() == trace.as_json()


def test_names_that_nobody_knows_stay():
    program = matmul(16, 16, 16)
    trace = tw.Trace.from_json('[[["GetBlock", [], ["song_of_songs", "main"], ["b0"]]], []]')
    assert _core.renamed_trace(trace, program, otherwise(program, C="product"), "main").as_json() == trace.as_json()
