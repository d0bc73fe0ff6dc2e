"""Runners."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from tests.search.programs import AddOne, Endless, Product

import tilewright as tw
from tilewright.kernel.device import cuda
from tilewright.kernel.kernel import object_code_of
from tilewright.meta_schedule import (
    EvaluatorConfig,
    LocalRunner,
    Profiler,
    RPCConfig,
    Runner,
    RunnerFuture,
    RunnerInput,
    RunnerResult,
    TensorInfo,
)
from tilewright.meta_schedule.evaluator import evaluate
from tilewright.meta_schedule.runner.local_runner import default_alloc_argument

QUICK = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


@pytest.fixture
def artifact(tmp_path):
    def make(module: tw.ir.IRModule, *infos: TensorInfo) -> RunnerInput:
        path = tmp_path / f"{len(os.listdir(tmp_path))}.o"
        path.write_bytes(object_code_of(tw.compile(module, "llvm")))
        return RunnerInput(str(path), "llvm", infos)

    return make


def add_one(artifact):
    return artifact(AddOne, TensorInfo("float32", [64]), TensorInfo("float32", [64]))


def run(runner: Runner, *inputs: RunnerInput) -> list[RunnerResult]:
    try:
        return [future.result() for future in runner.run(inputs)]
    finally:
        runner.close()


def test_samples_of_each_set_of_arguments(artifact):
    square = TensorInfo("float32", [32, 32])
    with Profiler() as profiler:
        runner = LocalRunner(evaluator_config=QUICK, alloc_repeat=3)
        results = run(runner, add_one(artifact), artifact(Product, *[square] * 3))
    for result in results:
        assert result.error_msg is None
        assert len(result.run_secs) == 6 and all(0 < s < 1 for s in result.run_secs)
    assert {"LocalRunner/load_module", "LocalRunner/alloc_argument", "LocalRunner/run_evaluator"} <= {*profiler.get()}


def test_callers_do_not_wait(artifact):
    config = EvaluatorConfig(number=1, repeat=5, min_repeat_ms=200)
    runner = LocalRunner(evaluator_config=config)
    started = time.monotonic()
    futures = runner.run([add_one(artifact)])
    assert time.monotonic() - started < 0.5
    assert not futures[0].done()
    assert futures[0].result().error_msg is None
    assert futures[0].done()
    runner.close()


def test_kernels_that_hang_or_crash_cost_themselves_alone(artifact):
    endless = artifact(Endless, TensorInfo("int32", [1]))
    missing = RunnerInput("/nowhere/kernel.o", "llvm", [])
    other_device = RunnerInput(add_one(artifact).artifact_path, "cuda", add_one(artifact).args_info)
    wrong = RunnerInput(add_one(artifact).artifact_path, "llvm", [TensorInfo("float32", [3])])
    runner = LocalRunner(timeout_sec=3, evaluator_config=QUICK)
    results = run(runner, endless, add_one(artifact), missing, other_device, wrong, add_one(artifact))
    assert results[0].error_msg == "LocalRunner: Timeout, killed after 3 seconds"
    assert "No such file" in results[2].error_msg
    assert "there is no cuda:0 to measure on" in results[3].error_msg
    for failed in results[2:5]:
        assert failed.error_msg.startswith("LocalRunner: An exception occurred\n") and failed.run_secs is None
    for fine in (results[1], results[5]):
        assert fine.error_msg is None


def test_arguments_on_devices_that_are_not_there():
    with pytest.raises(tw.ArgumentError) as error:
        default_alloc_argument(cuda(), [["TENSOR", "int8", [1]]], 1)
    assert error.value.code == "runner/device"


def test_own_functions(artifact):
    def alloc(device, args_info, alloc_repeat):
        assert device.exist
        return [[np.zeros(shape, dtype) for _, dtype, shape in args_info] for _ in range(alloc_repeat)]

    def evaluator(rt_mod, device, evaluator_config, repeated_args):
        for args in repeated_args:
            rt_mod(*args)
            assert (args[1] == 1).all()
        return [1.5, 2.5]

    def crash(rt_mod, device, evaluator_config, repeated_args):
        os.kill(os.getpid(), signal.SIGBUS)

    fine = LocalRunner(f_alloc_argument=alloc, f_run_evaluator=evaluator)
    assert run(fine, add_one(artifact))[0].run_secs == [1.5, 2.5]
    assert "SIGBUS" in run(LocalRunner(f_run_evaluator=crash), add_one(artifact))[0].error_msg
    with pytest.raises(tw.ArgumentError) as error:
        LocalRunner(f_cleanup="test.unknown")
    assert error.value.code == "functions/unknown"


def test_what_waits_when_a_runner_is_closed_fails(artifact):
    runner = LocalRunner(evaluator_config=EvaluatorConfig(number=1, repeat=1000, min_repeat_ms=200))
    futures = runner.run([add_one(artifact), add_one(artifact)])
    time.sleep(0.2)
    runner.close()
    started = time.monotonic()
    assert all(future.result().error_msg for future in futures)
    assert time.monotonic() - started < 5


def test_samples_take_their_time():
    kernel = tw.compile(AddOne)
    a = np.zeros(64, np.float32)
    b = np.empty_like(a)
    started = time.monotonic()
    samples = evaluate(kernel, (a, b), EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20))
    assert 0.06 <= time.monotonic() - started < 5
    assert len(samples) == 3 and max(samples) < 1e-3
    cold = evaluate(kernel, (a, b), EvaluatorConfig(number=2, min_repeat_ms=0, enable_cpu_cache_flush=True))
    assert len(cold) == 1 and 0 < cold[0] < 1
    with pytest.raises(tw.ArgumentError) as error:
        EvaluatorConfig(number=0)
    assert error.value.code == "evaluator/config"


def test_futures():
    future = RunnerFuture(lambda: True, lambda: RunnerResult([1, 2.5], None))
    assert future.done() and future.result().run_secs == [1.0, 2.5]
    with pytest.raises(NotImplementedError):
        RunnerFuture().done()
    with pytest.raises(NotImplementedError):
        RunnerFuture().result()


def test_kinds(monkeypatch):
    assert isinstance(Runner.create("local", max_workers=4), LocalRunner)
    with pytest.raises(tw.ArgumentError) as error:
        Runner.create("telepathy")
    assert error.value.code == "runner/kind"
    with pytest.raises(tw.ResourceError) as refused:
        Runner.create("rpc")
    assert refused.value.code == "runner/rpc"
    monkeypatch.setenv("TVM_TRACKER_HOST", "here")
    monkeypatch.setenv("TVM_TRACKER_PORT", "9190")
    config = RPCConfig(tracker_key="key")
    assert (config.tracker_host, config.tracker_port, config.tracker_key) == ("here", 9190, "key")
    assert config.count_num_servers() == 0
    for use in (config.connect_tracker, config.connect_server, lambda: config.count_num_servers(allow_missing=False)):
        with pytest.raises(tw.ResourceError):
            use()
