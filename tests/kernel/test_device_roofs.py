"""The limits of a device: measured by its own kernels, once, and kept for later processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import _core, te
from tilewright.kernel import device_roofs as probes
from tilewright.kernel.roofline import roofline_bound
from tilewright.support import machine
from tilewright.support.machine import Level, Roof, Roofs
from tilewright.task.task import task_of


@pytest.fixture(autouse=True)
def _small_and_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(machine.KEPT, raising=False)
    monkeypatch.setattr(probes, "_found", {})
    monkeypatch.setattr(probes, "_IN_MEMORY", 1 << 20)
    monkeypatch.setattr(probes, "_IN_CACHE", 1 << 14)
    monkeypatch.setattr(probes, "_CHAINED_THREADS", 1 << 10)
    monkeypatch.setattr(probes, "_PROBE_SECONDS", 1e-4)


def test_limits_are_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(machine.KEPT, str(tmp_path / "limits.json"))
    found = probes.device_roofs("opencl")
    assert found is not None and found.threads == 0 and found.levels[-1].name == "memory"
    assert set(found.peaks) == {"float32", "float64", "int32"} and min(found.peaks.values()) > 1e6
    assert found.binding(1e12, 1).name == "arithmetic" and found.binding(1, 1e12).name == "memory"
    assert probes.device_roofs("opencl -max_threads_per_block=128") is found  # the same device
    (key,) = json.loads((tmp_path / "limits.json").read_text())
    assert probes.describe_device("opencl") in key
    monkeypatch.setattr(probes, "_found", {})
    monkeypatch.setattr(probes, "_measure", None)  # a later process measures nothing
    assert probes.device_roofs("opencl") == found


def test_devices_are_named_with_their_driver() -> None:
    name, _, platform, driver = _core.opencl_devices()[_core.default_opencl_device()].split("\n")
    assert probes.describe_device("opencl") == f"{tw.device('opencl')} ({name}, {platform} {driver})"
    if not tw.device("cuda").exist:
        assert probes.describe_device("cuda") == "cuda:0" and probes.device_roofs("cuda") is None


def test_a_device_without_memory_has_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise tw.ResourceError.of("call/memory", "no memory for 1 bytes on the device")

    monkeypatch.setattr(probes, "_copy_rate", refuse)
    assert probes.device_roofs("opencl") is None
    unknown = machine.UNKNOWN_ROOFS.binding(1e12, 1e12)
    assert unknown.name == "" and unknown.seconds == 0


def test_units_that_are_not_measured_are_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensor cores multiply float16 faster than float32 is multiplied, so that the peak of float32 bounds nothing."""
    levels = (Level("memory", 0, 1e9),)
    device, processor = Roofs(0, {"float32": 1e9}, levels, "arithmetic"), Roofs(1, {"float32": 1e9}, levels)
    assert device.binding(1e12, 1e9, "float16") == Roof("memory", 1.0)
    assert device.binding(1e12, 1e9, "float32") == Roof("arithmetic", 1000.0)
    assert processor.binding(1e12, 1e9, "float16") == Roof("vector ports", 1000.0)


def test_searches_on_a_device_know_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 16), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((64, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=[k]), name="C")
    task = task_of(te.create_prim_func([a, b, c]))
    limits = probes.device_roofs("opencl")
    assert limits is not None
    bound = roofline_bound(task, _core.Target("opencl"))
    assert bound == limits.binding(2 * 64 * 16 * 32, 4 * (64 * 32 + 32 * 16 + 64 * 16)).seconds > 0
    monkeypatch.setattr("tilewright.kernel.roofline.device_roofs", lambda target: None)
    assert roofline_bound(task, _core.Target("opencl")) == 0
