"""Mutators change one decision, within its limits; what they give replays to a program that means the same."""

import math
import time

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.script import tir as T
from tilewright.testing import workloads


def initialized(mutator, func, target="llvm -num-cores=4"):
    space = ms.ScheduleFn(lambda sch: sch)
    space.schedule_rules, space.postprocs, space.mutators = [], [], [(mutator, 1.0)]
    ms.TuneContext(func, target=target, space_generator=space)
    return mutator


def tiled(extent, decision, limit=-1):
    sch = tw.Schedule(workloads.matmul(extent, 4, 4))
    loop = sch.get_loops(sch.get_block("C"))[0]
    sch.split(loop, sch.sample_perfect_tile(loop, n=len(decision), max_innermost_factor=limit, decision=decision))
    return sch


def decisions(trace):
    return list(trace.decisions.values())


def test_tiles_keep_their_product_and_limit():
    sch = tiled(60, [5, 6, 2], limit=4)
    seen = {tuple(decisions(ms.MutateTileSize().apply(sch.trace, seed))[0]) for seed in range(300)}
    assert (5, 6, 2) not in seen
    assert all(math.prod(tiles) == 60 and tiles[-1] <= 4 for tiles in seen)
    moves = {(5 // f, 6 * f, 2) for f in [5]} | {(5 * f, 6 // f, 2) for f in [2, 3, 6]}
    moves |= {(5, 3, 4)} | {(5, 12, 1), (10, 6, 1)}
    assert seen == moves


def test_without_a_limit_all_may_go_inside():
    sch = tiled(7, [7, 1])
    assert decisions(ms.MutateTileSize().apply(sch.trace, 0)) == [[1, 7]]
    assert ms.MutateTileSize().apply(tiled(7, [7, 1], limit=4).trace) is None
    assert ms.MutateTileSize().apply(tiled(1, [1, 1]).trace) is None


@pytest.mark.parametrize("extent", [2**31 - 1, 2**30, 2**31 - 2])
def test_tiles_of_long_loops_are_changed_at_once(extent):
    """Factors are found by the primes of the extent, not by trying each number."""
    sch = tiled(extent, [extent, 1, 1], limit=64)
    begin = time.monotonic()
    seen = {tuple(decisions(ms.MutateTileSize().apply(sch.trace, seed))[0]) for seed in range(20)}
    assert time.monotonic() - begin < 10
    assert all(math.prod(tiles) == extent and tiles[-1] <= 64 for tiles in seen)


def test_partitioned_tiles_stay_multiples():
    sch = tw.Schedule(workloads.matmul(48, 4, 4))
    loop = sch.get_loops(sch.get_block("C"))[0]
    sch.split(loop, sch.sample_partitioned_tile(loop, n=3, partition_pos=1, innerpart_factor=4, decision=[6, 2, 4]))
    seen = {tuple(decisions(ms.MutateTileSize().apply(sch.trace, seed))[0]) for seed in range(200)}
    assert all(math.prod(tiles) == 48 and math.prod(tiles[1:]) % 4 == 0 for tiles in seen)
    assert (12, 1, 4) in seen
    assert len(seen) > 5


def categorical(key, candidates, decision, probs=None):
    sch = tw.Schedule(workloads.matmul(4, 4, 4))
    probs = probs or [1 / len(candidates)] * len(candidates)
    value = sch.sample_categorical(candidates, probs, decision=decision)
    sch.annotate(sch.get_block("C"), key, value)
    return sch


def test_vector_lengths_of_fetches_are_drawn_anew():
    sch = categorical("meta_schedule.cooperative_fetch", [1, 2, 4], 1)
    seen = {decisions(ms.MutateTileSize().apply(sch.trace, seed))[0] for seed in range(50)}
    assert seen == {0, 2}
    assert ms.MutateTileSize().apply(categorical("meta_schedule.cooperative_fetch", [3], 0).trace) is None


@pytest.mark.parametrize("key", ["meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit"])
def test_limits_of_unrolling(key):
    sch = categorical(key, [0, 16, 64, 512], 2, [0.5, 0.5, 0.0, 0.0])
    seen = {decisions(ms.MutateUnroll().apply(sch.trace, seed))[0] for seed in range(50)}
    assert seen == {0, 1}
    assert ms.MutateUnroll().apply(categorical("other", [0, 16], 0).trace) is None
    assert ms.MutateUnroll().apply(categorical(key, [0, 16], 0, [1.0, 0.0]).trace) is None


def test_numbers_of_threads():
    sch = tw.Schedule(workloads.matmul(64, 4, 4))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    blocks, threads = sch.split(i, [None, sch.sample_categorical([4, 8, 16], [0.5, 0.25, 0.25], decision=0)])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    sch.split(j, [None, sch.sample_categorical([1, 2], [0.5, 0.5], decision=0)])
    seen = {tuple(decisions(ms.MutateThreadBinding().apply(sch.trace, seed))) for seed in range(50)}
    assert seen == {(1, 0), (2, 0)}
    assert ms.MutateThreadBinding().apply(tiled(8, [4, 2]).trace) is None


def parallel(limit, rows=4, columns=8):
    sch = tw.Schedule(workloads.matmul_relu(rows, columns, 6))
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", limit)
    return sch


def limit_of(trace):
    return next(inst.inputs[1] for inst in trace.insts if inst.kind.name == "Annotate")


def test_numbers_of_jobs_are_those_that_change_plans():
    mutator = initialized(ms.MutateParallel(8), workloads.matmul_relu(4, 8, 6))
    seen = {limit_of(mutator.apply(parallel(4).trace, seed)) for seed in range(50)}
    assert seen == {32}
    assert {limit_of(mutator.apply(parallel(32).trace, seed)) for seed in range(50)} == {4}
    assert mutator.apply(tiled(8, [4, 2]).trace) is None
    with pytest.raises(tw.ArgumentError) as error:
        initialized(ms.MutateParallel(8), workloads.matmul(2, 2, 2), target=None)
    assert error.value.code == "search/no-target"
    with pytest.raises(tw.ArgumentError) as error:
        ms.MutateParallel(8).apply(parallel(4).trace)
    assert error.value.code == "search/no-module"


def test_of_limits_with_one_plan_the_last_one_counts():
    """Blocks with outer loops of 4 x 2 and of 5 x 2 iterations: 8 and 10 fuse both loops of each."""

    @T.prim_func
    def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((4, 2), "float32"), C: T.Buffer((5, 2), "float32")):
        for i, j in T.grid(4, 2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(5, 2):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.float32(1)

    mutator = initialized(ms.MutateParallel(8), main)
    sch = tw.Schedule(main)
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", 4)
    assert {limit_of(mutator.apply(sch.trace, seed)) for seed in range(50)} == {5, 10}


def test_each_function_of_a_module_has_its_number_of_jobs():
    one, other = workloads.matmul_relu(4, 8, 6), workloads.matmul_relu(2, 16, 6)
    module = tw.ir.IRModule({"first": one, "second": other})
    mutator = initialized(ms.MutateParallel(8), module)
    sch = tw.Schedule(module)
    for name in ("first", "second"):
        sch.annotate(sch.get_block("root", func_name=name), "meta_schedule.parallel", 1)
    seen = set()
    for seed in range(50):
        trace = mutator.apply(sch.trace, seed)
        seen.add(tuple(inst.inputs[1] for inst in trace.insts if inst.kind.name == "Annotate"))
    assert all((first == 1) != (second == 1) for first, second in seen)
    assert {first for first, _ in seen} == {1, 32} and {second for _, second in seen} == {1, 32}


def located(decision):
    sch = tw.Schedule(workloads.elementwise_chain(4, 6))
    block = sch.get_block("B")
    sch.compute_at(block, sch.sample_compute_location(block, decision=decision))
    return sch


def test_places_are_all_others():
    func = workloads.elementwise_chain(4, 6)
    mutator = initialized(ms.MutateComputeLocation(), func)
    sch = located(0)
    seen = set()
    for seed in range(60):
        trace = mutator.apply(sch.trace, seed)
        seen.add(decisions(trace)[0])
        again = sch.with_trace(trace)
        assert again.verify()
    assert seen == {-2, -1, 1}
    # A trace that was read has no states: it is replayed on the program.
    read = tw.schedule.Trace.from_json(sch.trace.as_json())
    assert {decisions(mutator.apply(read, seed))[0] for seed in range(60)} == {-2, -1, 1}
    with pytest.raises(tw.ArgumentError) as error:
        ms.MutateComputeLocation().apply(read)
    assert error.value.code == "search/no-module"
    assert mutator.apply(tiled(8, [4, 2]).trace) is None


def test_what_postprocessors_did_is_left_out():
    sch = tiled(12, [3, 4])
    sch.enter_postproc()
    sch.vectorize(sch.get_loops(sch.get_block("C"))[2])
    mutated = ms.MutateTileSize().apply(sch.trace, 1)
    assert "Vectorize" not in [inst.kind.name for inst in mutated.insts]
    assert sch.with_trace(mutated).verify()


def test_the_same_seed_gives_the_same_trace():
    sch = tiled(5040, [7, 8, 9, 10])
    texts = [str(ms.MutateTileSize().apply(sch.trace, 11)) for _ in range(3)]
    assert len(set(texts)) == 1


def test_a_subclass_changes_traces():
    class Fixed(ms.Mutator):
        def apply(self, trace, seed):
            (inst,) = trace.decisions
            return trace.with_decision(inst, [1, 12], remove_postproc=True)

    assert decisions(Fixed().apply(tiled(12, [3, 4]).trace, 0)) == [[1, 12]]


@pytest.mark.parametrize("kind", ["llvm", "avx512", "vnni", "avxvnni", "asimd", "neon", "dotprod", "hexagon"])
def test_probabilities_of_processors(kind):
    kinds = {type(mutator).__name__: probability for mutator, probability in ms.Mutator.defaults(kind)}
    assert kinds == {"MutateTileSize": 0.9, "MutateComputeLocation": 0.05, "MutateUnroll": 0.03, "MutateParallel": 0.02}
    (jobs,) = (mutator for mutator in ms.Mutator.create(kind) if isinstance(mutator, ms.MutateParallel))
    for rows, columns, fits in ((16, 4, True), (13, 5, False)):  # 16 jobs for each of 4 cores
        initialized(jobs, workloads.matmul_relu(rows, columns, 6))
        mutated = [jobs.apply(parallel(2, rows, columns).trace, seed) for seed in range(50)]
        assert (rows * columns in {limit_of(trace) for trace in mutated if trace is not None}) == fits


@pytest.mark.parametrize("kind", ["cuda", "cuda-tensorcore"])
def test_probabilities_of_gpus(kind):
    kinds = {type(mutator).__name__: probability for mutator, probability in ms.Mutator.defaults(kind)}
    assert kinds == {"MutateTileSize": 0.9, "MutateUnroll": 0.08, "MutateThreadBinding": 0.02}


def test_kinds_without_mutators():
    with pytest.raises(tw.ArgumentError):
        ms.Mutator.defaults("c")
