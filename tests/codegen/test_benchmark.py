"""Kernel.benchmark: times of a call, its work, and the limit of the machine that binds."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.support import machine, notes
from tilewright.timing import Timing, Work, format_seconds


@T.prim_func
def product(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func
def saxpy(a: T.float32, x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n + 1,), "float32")
    for i in range(n):
        Y[i] = Y[i] + a * X[i]


@T.prim_func
def count(n: T.int32, Y: T.Buffer((100,), "int32")):
    for i in range(n):
        Y[i] = Y[i] + 1


def test_a_product() -> None:
    a, b = np.random.default_rng(0).random((2, 64, 64), dtype=np.float32)
    c = np.empty_like(a)
    time = tw.compile(product).benchmark(a, b, c)
    assert isinstance(time, Timing)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    low, high = time.quartiles
    assert 0 < min(time.seconds) <= low <= time.median <= high <= max(time.seconds) < 1
    assert time.work == Work(2 * 64**3, 3 * 64 * 64 * 4)
    assert time.gflops == pytest.approx(2 * 64**3 / time.median / 1e9)
    assert time.gbs == pytest.approx(3 * 64 * 64 * 4 / time.median / 1e9)
    assert (time.threads, time.cold) == (1, False)
    assert time.roof == machine.roofs(1).binding(2 * 64**3, 3 * 64 * 64 * 4)
    assert time.fraction == pytest.approx(time.roof.seconds / time.median)
    assert str(time).startswith(f"{format_seconds(time.median)} (")
    # What other programs disturbed is told after it.
    assert f" % of {time.roof.name}" in str(time)


def test_cold_caches_make_memory_the_roof() -> None:
    x, y = np.ones(100_000, np.float32), np.ones(100_001, np.float32)
    time = tw.compile(saxpy).benchmark(2.0, x, y, cold=True)
    assert time.cold
    assert time.roof.name == "memory"


def test_sizes_and_scalars_come_from_the_arguments() -> None:
    x, y = np.ones(1000, np.float32), np.ones(1001, np.float32)
    time = tw.compile(saxpy).benchmark(2.0, x, y)
    assert time.work == Work(2000, 4 * (1000 + 2 * 1001))
    time = tw.compile(count).benchmark(50, np.zeros(100, np.int32))
    assert time.work == Work(50, 4 * 200, "int32")
    assert "Gop/s" in str(time)


def test_threads_are_limited_during_the_benchmark_only() -> None:
    before = tw.get_num_threads()
    x, y = np.ones(10, np.float32), np.ones(11, np.float32)
    assert tw.compile(saxpy).benchmark(2.0, x, y, threads=2).threads == 2
    assert tw.get_num_threads() == before


def test_the_interpreter_is_timed_alike() -> None:
    x, y = np.ones(4, np.float32), np.ones(5, np.float32)
    assert tw.compile(saxpy, target="interpreter").benchmark(2.0, x, y).work.flops == 8


def test_refusals(tmp_path: Path) -> None:
    kernel = tw.compile(product)
    a = np.zeros((64, 64), np.float32)
    with pytest.raises(tw.ArgumentError, match="argument A"):
        kernel.benchmark(a[:3], a, a.copy())
    with pytest.raises(tw.ArgumentError, match="threads is 0"):
        kernel.benchmark(a, a, a.copy(), threads=0)
    loaded = tw.load(kernel.export(tmp_path).library)
    assert loaded.benchmark(a, a, a.copy()).work.flops == 0  # a library keeps no program


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_limits_are_measured_for_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_ROOFS", raising=False)  # of all tests of a run
    asked: list[int] = []
    measure = machine._core.measure_roofs

    class Recorded:
        def __getattr__(self, name: str) -> object:
            return getattr(tw._core, name)

        def measure_roofs(self, threads: int) -> object:
            asked.append(threads)
            return measure(threads)

    monkeypatch.setattr(machine, "_core", Recorded())
    monkeypatch.setattr(machine, "_found", {})
    kernel = tw.compile(product)
    a = np.zeros((64, 64), np.float32)
    cores = machine.cpu_count()
    for threads in (cores + 1, cores + 2, 1000):
        time = kernel.benchmark(a, a, a.copy(), threads=threads)
        assert time.threads == threads
    assert set(asked) == {cores}
    assert len(asked) <= 2 + machine.MOST_PROBES


def test_measuring_the_limits_is_announced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def slow(threads: int) -> machine.Roofs:
        time.sleep(0.1)
        return before

    before = machine.roofs(1)
    monkeypatch.delenv("TILEWRIGHT_ROOFS", raising=False)
    monkeypatch.setattr(notes, "PATIENCE", 0.01)
    monkeypatch.setattr(machine, "_found", {})
    monkeypatch.setattr(machine, "_probe", slow)
    assert machine.roofs(1) == before
    assert "measuring the limits of this machine" in capsys.readouterr().err
