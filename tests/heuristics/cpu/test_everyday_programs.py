"""Programs as people write them, by rules: the results are those of the interpreter, at sizes nobody thought of."""

import random as rng

import numpy as np
import pytest
from tests.heuristics.cpu.programs import here

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import everyday

TARGETS = ["native", "llvm -mcpu=skylake-avx512 -num-cores=2", "llvm -mcpu=haswell -num-cores=1"]
NAMES = [
    name
    for name, function in vars(everyday).items()
    if callable(function) and getattr(function, "__module__", "") == everyday.__name__
]
#: parameters that hold numbers below the size which that argument of the function says
PLACES = {"embedding": ("index", 0), "scatter_add": ("index", 0), "cross_entropy": ("index", 1), "histogram": ("A", 1)}


def program_of(name, random):
    """At sizes that are drawn; and what random numbers do not do for."""
    function = getattr(everyday, name)
    sizes = [random.choice([1, 2, random.randint(3, 9), random.randint(10, 70)]) for _ in inspected(function)]
    if name == "rotary":
        sizes[2] += sizes[2] % 2
    if name == "attention":
        sizes = [min(size, 20) for size in sizes]
    program = function(*sizes)
    task = task_of(program)
    inputs = {}
    if name in PLACES:
        parameter, which = PLACES[name]
        shape = next(each.shape for each in task.parameters if each.name == parameter)
        inputs[parameter] = np.random.default_rng(random.randint(0, 999)).integers(0, sizes[which], shape, "int32")
    return program, task, inputs


def inspected(function):
    code = function.__code__
    return code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_they_compute_the_same(name, seed):
    random = rng.Random(f"{name} {seed}")
    program, task, inputs = program_of(name, random)
    given = make_arrays(task, inputs, seed)
    expected = {parameter: array.copy() for parameter, array in given.items()}
    drawn = {parameter: array.copy() for parameter, array in given.items()}
    tw.compile(program, "interpreter")(*expected.values())
    target = here(TARGETS[seed])
    tw.compile(program, target, schedule="by rules")(*given.values())
    schedule = tw.Schedule(program, seed=seed)
    cpu.schedule_for_cpu(schedule, target, best=False)
    tw.compile(schedule, target)(*drawn.values())
    for parameter in task.parameters:
        for found in (given, drawn):
            one, other = (np.asarray(each[parameter.name], "float64") for each in (found, expected))
            # A quantity that is rounded may come to lie on the other side.
            nearly = 1 if parameter.dtype == "int8" else 1e-4
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=nearly)


def blocks_left(program):
    schedule = tw.Schedule(program)
    cpu.schedule_for_cpu(schedule, tw.Target(TARGETS[1]), best=True)
    return {schedule.get(block).name_hint for block in schedule.get_child_blocks(schedule.get_block("root"))}


def test_what_is_read_many_times_is_computed_once():
    """A stage of a stencil is not computed anew for each neighbor that reads it."""
    assert blocks_left(everyday.stencil_twice(256, 256)) == {"one", "two"}
    assert blocks_left(everyday.blur_zero_edges(256, 256)) == {"down", "across"}
    assert {"gray", "bx"} <= blocks_left(everyday.unsharp_mask(128, 128))


def test_what_costs_little_is_computed_where_it_is_used():
    assert blocks_left(everyday.sobel(64, 64)) == {"P", "S"}
    assert blocks_left(everyday.heads_and_bias(1, 8, 4, 16)) == {"Y"}


def by_rules(program):
    schedule = tw.Schedule(program)
    cpu.schedule_for_cpu(schedule, tw.Target(TARGETS[1]), best=True)
    return schedule


def test_short_sums_have_neighboring_results_in_their_lanes():
    """A window of nine, or of four, is no vector; and what becomes of the sums is computed in their registers."""
    for program, sums in ((everyday.max_pool_channels_first(8, 20, 40), "Y"), (everyday.mean_pool(9, 10, 64), "total")):
        schedule = by_rules(program)
        kernel = tw.compile(schedule, TARGETS[1])
        assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
        vectors = [schedule.get(loop) for loop in schedule.get_loops(schedule.get_block(f"{sums}_update"))]
        assert vectors[-1].kind == tw.ir.ForKind.VECTORIZED
    assert "Y[vi, vj, vk] = total_local[vi, vj, vk] * T.float32(0.25)" in schedule.mod.script()


def test_lines_that_fill_no_vector_are_left_to_lowering():
    script = by_rules(everyday.scale_bytes(50000, 3)).mod.script()
    assert "T.vectorized(3)" not in script and "T.parallel" in script


def test_no_more_loops_are_made_one_than_threads_need():
    """Indices of loops that are one have to be taken apart again, for each vector."""
    assert "T.parallel(256)" in by_rules(everyday.depth_to_space(128, 128, 32)).mod.script()
    assert "T.parallel(3200)" in by_rules(everyday.blur_zero_edges(3200, 64)).mod.script()
    assert "T.parallel(144)" in by_rules(everyday.heads_and_bias(1, 100, 144, 64)).mod.script()
