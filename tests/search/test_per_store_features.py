"""Features of candidates, against what lowering makes of the program and against counting."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from fuzz import programs, steps
from tilewright import _core, ir, script
from tilewright.cost_model.feature_extractor import FeatureExtractor, PerStoreFeature, RandomFeatureExtractor
from tilewright.script import tir as T
from tilewright.testing.workloads import matmul

ITERATIONS, ALLOCATED, BUFFERS = 161, 157, 57


def features(module, extractor=None) -> np.ndarray:
    context = _core.TuneContext()
    context.target = tw.Target("llvm -mcpu=znver4 -num-cores=2")
    candidate = SimpleNamespace(sch=tw.Schedule(module) if isinstance(module, ir.PrimFunc | ir.Module) else module)
    (matrix,) = (extractor or PerStoreFeature()).extract_from(context, [candidate])
    return matrix


def raw(value: float) -> float:
    return 2.0**value - 1


# ---- any program ---------------------------------------------------------------------------------------------------


def test_every_program_has_finite_features_and_a_cost():
    rows = scheduled = 0
    for number in range(150):
        drawn = programs.draw(number)
        try:
            func = script.from_source(drawn.text)
            scheduling = steps.Scheduling(func, steps.block_names(tw.Schedule(func).mod), number)
        except tw.Error:
            continue
        rng = random.Random(number)
        for _ in range(6):
            scheduling.draw(rng)
            module = scheduling.sch.mod
            matrix = features(scheduling.sch)
            assert matrix.shape[1] == 164
            assert np.isfinite(matrix).all(), module
            cost = _core.estimate_cost(module, "llvm -mcpu=znver4 -num-cores=2")
            assert all(np.isfinite(value) and value >= 0 for value in cost.values()), module
            rows += len(matrix)
            scheduled += 1
    assert rows > scheduled / 2 > 200


def test_lowered_programs_have_features_too():
    sch = tw.Schedule(matmul(64, 64, 64))
    lowered = tw.lower(sch.mod, target="llvm -mcpu=znver4 -num-cores=1")
    assert np.isfinite(features(lowered)).all()


# ---- against counting ----------------------------------------------------------------------------------------------


def random_tiling(seed: int) -> tw.Schedule:
    """A product in random tiles, whose result is first made in a copy under a random loop."""
    rng = random.Random(seed)
    sch = tw.Schedule(matmul(16, 24, 12))
    block = sch.get_block("C")
    copy = sch.cache_write(block, 0, "global")
    parts = []
    for loop, extent in zip(sch.get_loops(block), (16, 24, 12), strict=True):
        inner = rng.choice([d for d in range(1, extent + 1) if extent % d == 0])
        parts.append(sch.split(loop, [None, inner]))
    order = [parts[0][0], parts[1][0], parts[2][0]] if rng.random() < 0.5 else [parts[1][0], parts[0][0], parts[2][0]]
    inner = [parts[0][1], parts[1][1], parts[2][1]]
    rng.shuffle(inner)
    sch.reorder(*order, *inner)
    sch.reverse_compute_at(copy, order[rng.randrange(2)])
    if rng.random() < 0.5:
        sch.unroll(inner[0])
    return sch


def boxes(sch: tw.Schedule) -> dict[str, int]:
    """Elements between the first and the last that the block C touches, for each buffer, by running its loops."""
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("C"))]
    block = sch.get(sch.get_block("C"))
    realize: list[ir.BlockRealize] = []
    ir.post_order_visit(
        sch.mod["main"].body,
        lambda node: (
            realize.append(node) if isinstance(node, ir.BlockRealize) and node.block.name_hint == "C" else None
        ),
    )
    values = realize[0].iter_values
    touched: dict[str, list[tuple[int, ...]]] = {"A": [], "B": [], "C": []}
    code = [compile(str(value), "index", "eval") for value in values]
    for point in itertools.product(*(range(int(loop.extent)) for loop in loops)):
        env = {loop.loop_var.name: at for loop, at in zip(loops, point, strict=True)}
        i, j, k = (eval(c, {}, env) for c in code)
        touched["A"].append((i, k))
        touched["B"].append((k, j))
        touched["C"].append((i, j))
    assert block.name_hint == "C"
    return {name: int(np.prod(np.max(points, axis=0) - np.min(points, axis=0) + 1)) for name, points in touched.items()}


@pytest.mark.parametrize("seed", range(12))
def test_regions_and_allocations_are_those_of_the_lowered_program(seed):
    sch = random_tiling(seed)
    matrix = features(sch)
    assert len(matrix) == 2  # the copy, then the result
    product = matrix[0]
    assert raw(product[ITERATIONS]) == pytest.approx(16 * 24 * 12)
    assert raw(product[1]) == pytest.approx(16 * 24 * 12)
    expected = boxes(sch)
    lowered = tw.lower(sch.mod, after="compact_buffers", target="llvm -mcpu=znver4 -num-cores=1")
    allocated = {}
    ir.post_order_visit(
        lowered["main"].body,
        lambda node: (
            allocated.update({b.name: np.prod([int(e) for e in b.shape]) for b in node.alloc_buffers})
            if isinstance(node, ir.Block)
            else None
        ),
    )
    expected["C"] = allocated["C_global"]
    sizes = sorted(raw(product[BUFFERS + 18 * n + 4]) / 4 for n in range(3))
    assert sizes == pytest.approx(sorted(expected.values()))
    assert raw(product[ALLOCATED]) == pytest.approx(4 * allocated["C_global"])
    assert raw(matrix[1][ALLOCATED]) == pytest.approx(4 * 16 * 24)


def test_operations_are_counted_as_written():
    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "float32")):
        for i in T.parallel(8):
            for j in T.vectorized(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.exp(A[vi, vj]) / T.max(A[vj, vi], T.float32(2)) - T.if_then_else(
                        vi < vj and I[vi] < 3, A[vi, vj] * T.float32(3), T.float32(0)
                    )

    (row,) = features(f)
    floats = [raw(x) / 64 for x in row[:7]]
    #                              mad add mul div cmp calls others
    assert floats == pytest.approx([0, 1, 1, 1, 1, 2, 0])
    assert [raw(x) / 64 for x in row[7:16]] == pytest.approx([0, 0, 0, 0, 2, 0, 0, 1, 0])
    assert row[16] == 1 and raw(row[18]) == pytest.approx(8)  # vectorized
    assert row[38] == 1 and raw(row[40]) == pytest.approx(8)  # parallel


def test_a_block_of_constants_has_no_features():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(1)

    assert features(f).shape == (0, 164)


def test_flags_of_the_task():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("T_batch_matmul_NT"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1)

    context = _core.TuneContext()
    context.module = tw.Schedule(f).mod
    extractor = PerStoreFeature(extract_workload=True)
    assert extractor.feature_vector_length == 172
    (matrix,) = extractor.extract_from(context, [SimpleNamespace(sch=tw.Schedule(f))])
    assert matrix[0, 164:].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


# ---- other extractors ----------------------------------------------------------------------------------------------


def test_random_features_follow_from_the_state():
    extractor = RandomFeatureExtractor(feature_size=4, max_block_num=3, seed=1)
    state = extractor.random_state
    first = extractor.extract_from(None, [None] * 20)
    assert {len(x) for x in first} == {1, 2, 3} and all(x.shape[1] == 4 for x in first)
    extractor.random_state = state
    again = extractor.extract_from(None, [None] * 20)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))


def test_extractors_by_name_and_options():
    assert isinstance(FeatureExtractor.create("per-store-feature", buffers_per_store=2), PerStoreFeature)
    with pytest.raises(tw.ArgumentError, match="no feature extractor of the kind 'other'") as caught:
        FeatureExtractor.create("other")
    assert caught.value.code == "features/kind"
    with pytest.raises(tw.ArgumentError, match="at least 1") as caught:
        PerStoreFeature(buffers_per_store=0)
    assert caught.value.code == "features/option"


def test_what_a_subclass_leaves_out_is_named():
    class Silent(FeatureExtractor):
        pass

    with pytest.raises(NotImplementedError, match="Silent does not define extract_from"):
        Silent().extract_from(_core.TuneContext(), [])


def test_what_a_subclass_gives_can_be_checked():
    class Gives(FeatureExtractor):
        def __init__(self, answer):
            super().__init__()
            self.answer = answer

        def extract_from(self, context, candidates):
            return [self.answer(c.sch) for c in candidates]

    given = [SimpleNamespace(sch=tw.Schedule(matmul(4, 4, 4)))] * 2

    def check(extractor):
        return extractor.check(_core.TuneContext(), given)

    assert [x.tolist() for x in check(Gives(lambda sch: [[len(sch.trace.insts), 1]]))] == [[[0.0, 1.0]]] * 2
    with pytest.raises(tw.ArgumentError, match="not an array of 1 dimensions") as caught:
        check(Gives(lambda sch: np.zeros(3)))
    assert caught.value.code == "features/shape"
    with pytest.raises(ZeroDivisionError):  # "features/exception" on its way through C++
        check(Gives(lambda sch: 1 / 0))

    class One(FeatureExtractor):
        def extract_from(self, context, candidates):
            return [np.zeros((1, 1))]

    with pytest.raises(tw.ArgumentError, match="of 1 candidates, not of 2") as caught:
        check(One())
    assert caught.value.code == "features/count"
