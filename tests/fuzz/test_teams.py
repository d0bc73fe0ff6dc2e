"""Random kernels as statements: the interpreter after every pass, and an OpenCL device, agree with Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from fuzz.teams import Program, script_of
from fuzz.teams_in_order import results
from samples import seeds
from tilewright import _core, ir
from tilewright.script import from_source

PARTS, COUNT = 4, 25
#: of programs whose threads cannot wait where they would have to
REFUSED = {"lower/divergent-barrier", "lower/thread-reduction", "lower/race"}


def arguments_of(program: Program) -> list[Any]:
    arrays: list[Any] = [program.given[each.name].copy() for each in program.parameters]
    return arrays if program.open_extent is None else [*arrays, program.open_extent]


def examine(number: int, counts: Counter[str]) -> None:
    program = Program(number)
    expected = results(program)
    script = script_of(program)
    func = from_source(script)

    def check(name: str, call: Any) -> None:
        arguments = arguments_of(program)
        try:
            call(arguments)
        except tw.Error as error:
            raise AssertionError(f"program {number}, {name}: {error}\n{script}") from error
        for parameter, found in zip(program.parameters, arguments, strict=False):
            about = f"program {number}, {name}, {parameter.name}\n{script}"
            np.testing.assert_array_equal(found, expected[parameter.name], err_msg=about)

    # Without blocks, a program with barriers has all that it needs: a missing one is a race.
    if "storage_sync" in script and "T.block(" not in script:
        counts["has its own barriers"] += 1
        return
    for target in ("opencl", "cuda"):
        before = None
        try:
            stages = [("source", tw.Schedule(func).mod), *_core.lower_stages(tw.Schedule(func).mod, target)]
        except tw.Error as error:
            assert error.code in REFUSED, f"program {number}: {error}\n{script}"
            counts[error.code] += 1
            return
        for name, module in stages:
            if before is None or not ir.structural_equal(before, module):
                check(f"{target}, {name}", lambda arguments, module=module: _core.interpret(module, "main", *arguments))
            before = module
    if number % 8 == 0:
        kernel = tw.compile(func, target="opencl", schedule="as written")
        check("device", lambda arguments: kernel(*arguments))
        counts["on a device"] += 1
    counts["kernels"] += 1
    counts.update(mark for mark in MARKS if mark in script)


MARKS = ("vthread", "atomic", "T.axis.reduce", "T.vectorized", "shared.dyn", "blockIdx.z", "n: T.int32")


@pytest.mark.parametrize("part", range(PARTS))
def test_threads_do_what_their_statements_do_one_after_another(part: int) -> None:
    counts = Counter[str]()
    for number in seeds(part, COUNT):
        examine(number, counts)
    assert counts["kernels"] > COUNT / 2 and counts["on a device"] > 0, counts
    assert all(counts[mark] for mark in MARKS), counts


def test_a_branch_that_all_threads_of_a_block_take_may_have_barriers() -> None:
    """PoCL 3.1 loses track of shared memory behind such a branch, unless it ends with a barrier."""
    counts = Counter[str]()
    examine(888, counts)
    assert counts["on a device"] == 1
