"""Two random candidates of the GPU rules for each operator family, and that the soak of such kernels notices faults."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soak import gpu, gpu_kernels
from soak.gpu_kernels import PRODUCTS, RULE_SETS, Checks, draws
from tilewright import ir
from tilewright.script import from_source

SEED = 5


#: of which a kernel runs on the simulated device, which is slow
SIMULATED = ("C2D", "GMM", "DEP", "NRM", "SFM")


@pytest.mark.parametrize("family", gpu_kernels.FAMILIES)
def test_two_candidates(family: str) -> None:
    drawn = draws(family, RULE_SETS[-1], SEED, 2)
    assert len(drawn) == 2
    for sch in drawn:
        checks = Checks(family, SEED, sch)
        if family not in PRODUCTS:
            checks.run()
        checks.interpret("cuda" if family in PRODUCTS else "opencl", every=False)
    checks.compile_for_cuda()


def test_a_simulated_device_finds_nothing_wrong(tmp_path: Path) -> None:
    files = [store(family, draws(family, RULE_SETS[-1], SEED, 1)[0], tmp_path) for family in SIMULATED]
    assert gpu.complaints_of_device(files) == ""


# ---- faults are noticed


@pytest.mark.parametrize(("without_optimizations", "finding"), [("ran", ""), ("ran\na data race", "ran\na data race")])
def test_a_race_that_an_optimizer_makes_is_none(
    monkeypatch: pytest.MonkeyPatch, without_optimizations: str, finding: str
) -> None:
    def outcome(*_: str, prefix: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        found = without_optimizations if "-cl-opt-disable" in prefix else "ran\na data race"
        return subprocess.CompletedProcess(prefix, 0, found, "")

    monkeypatch.setattr(gpu, "run_python", outcome)
    assert gpu.complaints_of_device([]) == finding


def candidate() -> Any:
    """A product whose blocks share tiles in memory, with barriers."""
    return next(sch for sch in draws("GMM", RULE_SETS[-1], SEED, 8) if len(barriers(sch)) > 1)


def lowered(sch: Any) -> ir.Module:
    *_, (_, module) = gpu_kernels._core.lower_stages(sch.mod, "opencl")
    return module


def barriers(sch: Any) -> list[int]:
    """The lines of its barriers in the lowered program."""
    return [n for n, line in enumerate(lowered(sch).script().splitlines()) if gpu_kernels.BARRIER in line]


def store(family: str, sch: Any, folder: Path) -> Path:
    file = folder / f"{family}-{SEED}-0.json"
    file.write_text(ir.save_json(sch.mod))
    return file


def test_wrong_results_and_needless_barriers_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    sch = candidate()
    checks = Checks("GMM", SEED, sch)
    monkeypatch.setattr(np, "matmul", lambda a, b: a @ b + 1)
    monkeypatch.setitem(gpu_kernels.families.FAMILIES, "GMM", (*gpu_kernels.families.FAMILIES["GMM"][:2], np.matmul))
    # A second barrier behind the first one: without it, no threads meet.
    module = lowered(sch)
    lines = module.script().splitlines()
    first = barriers(sch)[0]
    twice = from_source("\n".join([*lines[: first + 1], lines[first], *lines[first + 1 :]]))
    monkeypatch.setattr(gpu_kernels._core, "lower_stages", lambda *_: [("the last pass", twice)])
    monkeypatch.setattr(gpu_kernels.random, "Random", lambda _: gpu_kernels.random)
    monkeypatch.setattr(gpu_kernels.random, "choice", lambda numbers: numbers[0])
    monkeypatch.setattr(checks, "compile_for_cuda", lambda: None)
    checks.all()
    names = [text.partition(":")[0] for text in checks.findings]
    assert names == ["run on OpenCL", "interpreted for opencl", "interpreted for cuda", "mutants"]


def test_rounds_count_keep_findings_and_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "FAMILIES", ("NRM",))
    monkeypatch.setattr(gpu, "DRAWS", 1)
    done = tmp_path / "done.txt"
    soak = gpu.GpuSoak(tmp_path / "one", done)
    soak.run(60, most=2)
    assert soak.findings == [] and soak.counts["kernels"] == soak.counts["run on a simulated device"] == 2
    assert done.read_text() == "NRM heuristics 0 1\nNRM cuda 0 1\n"
    # Another sitting goes on behind it. A round with findings is not done.
    monkeypatch.setattr(gpu, "complaints_of_device", lambda files: "a data race")
    soak = gpu.GpuSoak(tmp_path / "other", done)
    soak.run(60, most=1)
    assert len(soak.findings) == 1 and "NRM, cuda-tensorcore, seed 0" in soak.findings[0]
    assert len(done.read_text().splitlines()) == 2
    assert soak.summary()[1:] == [
        "       1 of 32  NRM, cuda", "       1 of 32  NRM, cuda-tensorcore", "       3 of 65  in all sittings"
    ]  # fmt: skip
