"""CrossThreadReduction: the threads of a team add up together."""

from __future__ import annotations

from typing import Any

from tilewright import meta_schedule as ms
from tilewright.script import from_source

from .sketches import GPU, blocks, program, sketches


def _threads(sch: Any, block: str) -> list[str]:
    tags = [sch.get(loop).thread_binding for loop in sch.get_loops(sch.get_block(block))]
    return [tag.thread_tag for tag in tags if tag is not None]


def test_with_threads_or_without() -> None:
    function = program("softmax")
    made = sketches(function, ms.CrossThreadReduction([4, 8]), target=GPU)
    assert len(made) == 4  # the largest, the sum: each either way
    both = [sch for sch in made if _threads(sch, "T_softmax_maxelem") and _threads(sch, "T_softmax_expsum")]
    assert len(both) == 1
    for sch in made:
        sch.verify()


def test_it_is_computed_next_to_its_reader() -> None:
    function = program("norm")
    without, with_threads = sketches(function, ms.CrossThreadReduction([4]), target=GPU)
    assert blocks(with_threads) == ["C", "D"]
    assert with_threads.get(with_threads.get_block("C")).writes[0].buffer.scope() == "shared"
    assert _threads(with_threads, "C") == ["threadIdx.x"]
    assert _threads(without, "C") == []
    with_threads.verify()


def test_targets_that_do_not_say_how_many_threads() -> None:
    (sch,) = sketches(program("norm"), ms.CrossThreadReduction([4]), target="cuda -max_threads_per_block=0")
    assert len(sch.trace.simplified(remove_postproc=True).insts) == 0


ARGMAX = """
@T.prim_func
def main(
    idx: T.Buffer((128, 128), "int32"), val: T.Buffer((128, 128), "float32"),
    argmax_v0: T.Buffer((128,), "int32"), argmax_v1: T.Buffer((128,), "float32"),
):
    for i0, i1 in T.grid(128, 128):
        with T.block("argmax"):
            i, k = T.axis.remap("SR", [i0, i1])
            T.reads(val[i, k], idx[i, k])
            T.writes(argmax_v0[i], argmax_v1[i])
            with T.init():
                argmax_v0[i] = -1
                argmax_v1[i] = T.min_value("float32")
            v0: T.int32 = T.Select(argmax_v1[i] >= val[i, k], argmax_v0[i], idx[i, k])
            v1: T.float32 = T.Select(argmax_v1[i] >= val[i, k], argmax_v1[i], val[i, k])
            argmax_v0[i] = v0
            argmax_v1[i] = v1
"""


def test_the_index_and_the_value_of_a_maximum() -> None:
    function = from_source(ARGMAX)
    without, with_threads = sorted(
        sketches(function, ms.CrossThreadReduction([4, 8, 16]), target=GPU), key=lambda sch: _threads(sch, "argmax")
    )
    assert _threads(without, "argmax") == [] and _threads(with_threads, "argmax") == ["threadIdx.x"]
    with_threads.verify()
