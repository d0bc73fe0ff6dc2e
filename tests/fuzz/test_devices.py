"""A few random kernels for devices, the same in each run, and that faults are findings."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fuzz import devices
from fuzz.judge import Finding
from samples import seeds

PARTS, COUNT = 4, 10
#: what the kernels of a part together have to contain
MARKS = ["kernels", "bind a copy", "compute_at"]


@pytest.mark.parametrize("part", range(PARTS))
def test_random_kernels(part: int) -> None:
    counts = Counter[str]()
    for number in seeds(part, COUNT):
        devices.judge(number, counts)
    assert all(counts[f"devices: {mark}"] for mark in MARKS), counts
    assert counts["devices: kernels"] >= len(seeds(part, COUNT)) / 3, counts


def test_programs_have_all_parts() -> None:
    counts = Counter[str]()
    texts = "".join(devices.text_of(number) for number in range(120))
    for number in range(120):
        devices.drawn(number, counts)
    for mark in (
        "software_pipeline_stage",
        "double_buffer_scope",
        "vthread",
        'scope="local"',
        "T.vectorized",
        "shared.dyn",
    ):
        assert mark in texts, mark
    assert counts["devices: bind a reduction"] and counts["devices: decompose_reduction"]


def test_a_wrong_kernel_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    number = next(n for n in range(50) if judged(n)["devices: kernels"])
    compile_right = devices.tw.compile

    def compile_wrong(*arguments: Any, **options: Any) -> Any:
        kernel = compile_right(*arguments, **options)

        def call(*arrays: np.ndarray) -> None:
            kernel(*arrays)
            arrays[-1].flat[0] += 1

        return call

    monkeypatch.setattr(devices.tw, "compile", compile_wrong)
    with pytest.raises(Finding, match="devices: kernel"):
        devices.judge(number)


def judged(number: int) -> Counter[str]:
    counts = Counter[str]()
    devices.judge(number, counts, every_pass=False)
    return counts
