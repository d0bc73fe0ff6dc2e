"""Kernels for GPUs, by heuristics and by draws of the rule sets, and what has to hold for each. As a program: the round
of a family, see `gpu.GpuSoak`.

python -m soak.gpu_kernels FAMILY RULES SEED COUNT FOLDER   all checks but those of the simulated device
python -m soak.gpu_kernels --run FILE ...                   runs stored kernels, for a simulated device
"""

from __future__ import annotations

import json
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import families
import tilewright as tw
from tilewright import _core, ir, te
from tilewright import meta_schedule as ms
from tilewright.heuristics import by_target
from tilewright.script import from_source

#: whose limits the rules read; a simulated device has less shared memory than those of NVIDIA
TARGET = "cuda -arch=sm_86 -max_shared_memory_per_block=32768"
#: bytes that a kernel may spill to memory per thread
MOST_SPILLED = 8192
BARRIER = "tvm_storage_sync"
#: what the interpreter says of a kernel without it: a thread may also read what another one has not waited for
RACES = {"interpret/race", "interpret/async-copy"}
#: inputs on which a kernel without one of its barriers is executed until there is a race
MOST_INPUTS = 4
#: of kernels that are right all the same
NOTES = {"codegen/spills", "lower/plain-layout"}
#: half-precision products for the tensor cores: rows, columns, length of the sum
PRODUCTS = {"mma 32x48x48": (32, 48, 48), "mma 48x32x80": (48, 32, 80), "m16n8k8 64x64x48": (64, 64, 48)}
FAMILIES = (*families.FAMILIES, *PRODUCTS)
#: who schedules a kernel: the heuristics, or random draws of a rule set
HEURISTICS, RULE_SETS = "heuristics", ("cuda", "cuda-tensorcore")

Arrays = list[np.ndarray]


def program_of(family: str) -> ir.PrimFunc:
    """The program of a family."""
    if family not in PRODUCTS:
        return families.program_of(family)
    rows, columns, length = PRODUCTS[family]
    a, b = te.placeholder((rows, length), "float16", name="A"), te.placeholder((length, columns), "float16", name="B")
    k = te.reduce_axis((0, length), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]), name="C")
    return te.create_prim_func([a, b, c], name="main")


def arguments_of(family: str, seed: int) -> Arrays:
    """Small integers, so that sums are exact in any order; no numbers for the result."""
    if family not in PRODUCTS:
        return families.arguments_of(family, seed)
    rows, columns, length = PRODUCTS[family]
    random_integers = np.random.default_rng(seed).integers
    inputs = [random_integers(-2, 3, shape).astype("float16") for shape in ((rows, length), (length, columns))]
    return [*inputs, np.full((rows, columns), np.nan, "float16")]


def distinct_arguments_of(family: str, seed: int) -> Arrays:
    """Inputs without equal elements: a store of the value that is there already would hide a race."""
    random = np.random.default_rng(seed)
    arrays = arguments_of(family, seed)
    inputs = [random.permutation(array.size).reshape(array.shape).astype(array.dtype) for array in arrays[:-1]]
    return [*inputs, arrays[-1]]


def check_result(family: str, arrays: Arrays) -> None:
    """Assert that the last array is what NumPy computes of the others."""
    if family not in PRODUCTS:
        families.check_result(family, arrays)
        return
    a, b, found = arrays
    np.testing.assert_array_equal(found, a.astype("float32") @ b.astype("float32"))


def draws(family: str, rules: str, seed: int, count: int) -> list[tw.Schedule]:
    """Random candidates of a rule set for CUDA; the kernel of the heuristics, if these are named."""
    if rules == HEURISTICS:
        found = by_target.heuristic_schedules(ir.Module({"main": program_of(family)}), tw.Target(TARGET))
        assert found.changed and not found.failed
        return [tw.Schedule(found.module)]
    sch_rules = ms.ScheduleRule.defaults(rules)
    if family.startswith("m16n8k8"):  # the rule for fragments of wmma, which comes first, would take the product
        del sch_rules[1]
    generator = ms.space_generator.PostOrderApply(sch_rules=sch_rules, postprocs=rules, mutator_probs=rules)
    context = ms.TuneContext(
        mod=ir.Module({"main": program_of(family)}),
        target=tw.Target(TARGET),
        space_generator=generator,
        search_strategy="replay-trace",
        rand_state=seed + 1,
    )
    context.pre_tuning(count, count, context.generate_design_space(), None, None)
    return [candidate.sch for candidate in context.generate_measure_candidates() or ()]


class Checks:
    """Of one kernel.

    Attributes:
        findings: what does not hold.
        counts: what was done.
    """

    def __init__(self, family: str, seed: int, sch: tw.Schedule) -> None:
        self.family, self.seed, self.sch = family, seed, sch
        self.findings: list[str] = []
        self.counts: Counter[str] = Counter()

    def all(self) -> None:
        """Everything that needs no simulated device."""
        targets = ["cuda"] if self.family in PRODUCTS else ["opencl", "cuda"]
        if "opencl" in targets:
            self._do("run on OpenCL", self.run)
        lowered: list[ir.Module] = []
        for target in targets:
            every = target == "opencl"
            self._do(
                f"interpreted for {target}",
                lambda target=target, every=every: self.interpret(target, every=every, known=lowered),
            )
        self._do("mutants", lambda: self.mutate(targets[0]))
        self._do("compiled for CUDA", self.compile_for_cuda)

    def _do(self, name: str, check: Callable[[], None]) -> None:
        self.counts[name] += 1
        try:
            check()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.findings.append(f"{name}: {type(error).__name__} ({last.name}): {str(error)[:2000]}")

    def run(self) -> None:
        """On the first OpenCL device."""
        arrays = arguments_of(self.family, self.seed)
        tw.compile(self.sch, target="opencl")(*arrays)
        check_result(self.family, arrays)

    def interpret(self, target: str, *, every: bool, known: list[ir.Module] | None = None) -> None:
        """Interpret the lowered program, or the program after each pass, unless it is among those known to be right."""
        known = [] if known is None else known
        stages = list(_core.lower_stages(self.sch.mod, target))
        for name, module in stages if every else stages[-1:]:
            if any(ir.structural_equal(before, module) for before in reversed(known)):
                continue
            arrays = arguments_of(self.family, self.seed)
            try:
                _core.interpret(module, "main", *arrays)
                check_result(self.family, arrays)
            except (tw.Error, AssertionError) as error:
                raise AssertionError(f"after {name}: {error}") from error
            known.append(module)

    def mutate(self, target: str) -> None:
        """Without one of its barriers, a kernel has a race that the interpreter reports."""
        *_, (_, module) = _core.lower_stages(self.sch.mod, target)
        lines = module.script().splitlines()
        barriers = [number for number, line in enumerate(lines) if BARRIER in line]
        if not barriers:
            return
        number = random.Random(self.seed).choice(barriers)
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        mutant = from_source("\n".join([*lines[:number], f"{indent}T.evaluate(0)", *lines[number + 1 :]]))
        self.counts["barriers removed"] += 1
        for attempt in range(MOST_INPUTS):
            try:
                _core.interpret(mutant, "main", *distinct_arguments_of(self.family, self.seed + attempt))
            except tw.Error as error:
                assert error.code in RACES, error.code
                return
        raise AssertionError(f"no race without the barrier of line {number + 1} of\n{module.script()}")

    def compile_for_cuda(self) -> None:
        """Without warnings, and within the bound of spills."""
        kernel = tw.compile(self.sch, target="cuda")
        assert {note.code for note in kernel.notes} <= NOTES, kernel.notes
        uses = kernel.report["kernels"]
        assert {use["arch"] for use in uses} == {"sm_80", "sm_90a"}
        for use in uses:
            assert use["spill_stores"] + use["spill_loads"] <= MOST_SPILLED, use
        self.counts["kernels that spill"] += any(use["spill_stores"] for use in uses)
        if self.family in PRODUCTS:
            text = kernel.inspect("cuda")
            assert ("mma.sync.aligned.m16n8k8" if self.family.startswith("m16n8k8") else "wmma") in text


def checked(family: str, rules: str, seed: int, count: int, folder: Path) -> Iterator[Checks]:
    """Check candidates of a family; what a simulated device can run is stored in a folder."""
    for number, sch in enumerate(draws(family, rules, seed, count)):
        checks = Checks(family, seed, sch)
        checks.all()
        if family not in PRODUCTS:
            (folder / f"{family}-{seed}-{number}.json").write_text(ir.save_json(sch.mod))
        yield checks


def run_stored(files: list[Path]) -> None:
    """Run stored kernels, and compare with NumPy."""
    for file in files:
        family, seed, _ = file.stem.split("-")
        arrays = arguments_of(family, int(seed))
        tw.compile(ir.load_json(file.read_text()), target="opencl", schedule="as written")(*arrays)
        check_result(family, arrays)


def main() -> None:
    """Prints findings and counts as JSON, or "ran"."""
    if sys.argv[1] == "--run":
        run_stored([Path(each) for each in sys.argv[2:]])
        print("ran")
        return
    family, rules, seed, count, folder = sys.argv[1:]
    findings, counts = [], Counter[str]()
    for number, checks in enumerate(checked(family, rules, int(seed), int(count), Path(folder))):
        script = checks.sch.mod.script()
        findings += [f"{family}, {rules}, seed {seed}, draw {number}: {text}\n{script}" for text in checks.findings]
        counts += checks.counts
        counts["kernels"] += 1
    print(json.dumps({"findings": findings, "counts": counts}))


if __name__ == "__main__":
    main()
