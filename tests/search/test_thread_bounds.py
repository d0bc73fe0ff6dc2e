"""Tilings with too few or too many threads, or too much shared memory, are refused before they are replayed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import families
import tilewright as tw
from samples import samples
from search.test_tune_device import integers, product
from soak import gpu_kernels
from tilewright import _core, ir, te
from tilewright import meta_schedule as ms


def threads_of(schedule: Any) -> list[int]:
    """Return the extents of the loops of the schedule that are bound to threads."""
    found: list[int] = []

    def look(node: Any) -> None:
        if isinstance(node, _core.For) and node.thread_binding and node.thread_binding.thread_tag == "threadIdx.x":
            found.append(int(node.extent))

    for function in schedule.mod.functions.values():
        _core.visit(function, look)
    return found


def test_most_tilings_with_a_wrong_number_of_threads_are_not_replayed():
    most = 64
    program, target = product(32, 48, 16), f"opencl -max_threads_per_block={most}"
    result = tw.tune(program, target=target, trials=1, seed=5, progress=None)
    a, b = integers(32, 16), integers(16, 48, seed=1)
    np.testing.assert_array_equal(result.kernel(a, b), a @ b)
    threads = threads_of(result.schedule)
    assert threads and all(32 <= extent <= most for extent in threads)
    early, late = (result.progress.refusals.get(code, (0, ""))[0] for code in ("ThreadBounds", "VerifyGPUCode"))
    assert early > late and "threads" in result.progress.refusals["ThreadBounds"][1]


def early_and_late(program: Any, rules: str, draws: int) -> Counter[str]:
    """Compare what bounds of tiles and VerifyGPUCode refuse among random draws of the rules."""
    target, module = tw.Target("cuda -arch=sm_86 -max_shared_memory_per_block=49152"), ir.Module({"main": program})
    generator = ms.space_generator.PostOrderApply(sch_rules=rules, postprocs=rules, mutator_probs=rules)
    context = ms.TuneContext(mod=module, target=target, space_generator=generator, rand_state=1)
    counts = Counter[str]()
    for number, space in enumerate(context.generate_design_space()):
        for draw in range(draws):
            sch = tw.Schedule(module, seed=7919 * number + draw + 1)
            try:
                space.trace.apply_to_schedule(sch, fresh=True)
                early = _core.bounds_of_tiles(space, target, sch)
                sch.enter_postproc()
                late = next((p for p in generator.postprocs if not p.apply(sch)), None)
            except tw.ScheduleError:
                continue
            assert late or not early, f"{early}, but accepted:\n{sch.mod.script()}"
            if isinstance(late, ms.VerifyGPUCode):
                counts[early or "late"] += 1
            counts["draws"] += 1
    return counts


PROGRAMS = {
    **{family: (family, "cuda") for family in families.FAMILIES},
    **{family: (family, "cuda-tensorcore") for family in gpu_kernels.PRODUCTS},
    "float32": ((256, 256, 256, "float32"), "cuda"),
    "float16": ((512, 512, 512, "float16"), "cuda-tensorcore"),
    "narrow": ((128, 1024, 512, "float16"), "cuda-tensorcore"),
}


def matrix_product(m: int, n: int, k: int, dtype: str) -> Any:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r]), name="C")])


def test_bounds_refuse_what_the_verifier_refuses_and_nothing_else():
    counts = Counter[str]()
    for what, rules in PROGRAMS.values():
        program = gpu_kernels.program_of(what) if isinstance(what, str) else matrix_product(*what)
        counts += early_and_late(program, rules, samples(6))
    early = counts["ThreadBounds"] + counts["SharedMemoryBounds"]
    assert counts["SharedMemoryBounds"] > 20 and counts["ThreadBounds"] > 100, counts
    assert early >= 0.95 * (early + counts["late"]), counts


@pytest.mark.parametrize("strategy", ["replay-trace", "evolutionary"])
def test_strategies_of_tvm_sample_within_the_bounds(strategy):
    generator = ms.space_generator.PostOrderApply(sch_rules="cuda", postprocs="cuda", mutator_probs="cuda")
    context = ms.TuneContext(
        mod=ir.Module({"main": matrix_product(256, 256, 256, "float32")}),
        target=tw.Target("cuda -arch=sm_86 -max_shared_memory_per_block=8192"),
        space_generator=generator,
        search_strategy=strategy,
        rand_state=3,
    )
    context.pre_tuning(8, 8, context.generate_design_space(), ms.database.MemoryDatabase(), None)
    assert context.generate_measure_candidates()
    refused = context.search_strategy.refusals
    assert refused["ThreadBounds"] > refused.get("VerifyGPUCode", 0) < refused["SharedMemoryBounds"]
