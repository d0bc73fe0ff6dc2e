"""The runner that measures on this machine in a separate process, one kernel at a time."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import numbers
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.database.origins import Origin
from tilewright.errors import ArgumentError, Error
from tilewright.kernel import device as devices
from tilewright.meta_schedule.builder import check_names, resolved
from tilewright.meta_schedule.evaluator import EvaluatorConfig, evaluate
from tilewright.meta_schedule.profiler import Profiler
from tilewright.meta_schedule.runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from tilewright.meta_schedule.worker import Lost, Overdue, Raised, Worker
from tilewright.support import limits
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["LocalRunner", "default_alloc_argument", "default_cleanup", "default_run_evaluator"]

#: (device, descriptions of the arguments as JSON, sets) -> the arguments of each set
AllocFunction = Callable[[devices.Device, Any, int], list[list[Any]]]
#: (module, device, how often, sets of arguments) -> seconds
EvaluatorFunction = Callable[[Any, devices.Device, EvaluatorConfig, list[list[Any]]], list[float]]


class LocalRunner(Runner):
    """Measures asynchronously in a process of this machine; a kernel that crashes or hangs fails only its candidate. In
    a session without code of the user, the measuring pipeline replaces this runner and checks results, too.

    Args:
        timeout_sec: maximum seconds for a kernel with all its calls.
        evaluator_config: options for the number of calls.
        cooldown_sec: seconds of rest after each kernel.
        alloc_repeat: number of argument sets, each of which is measured.
        f_alloc_argument: function that allocates the arguments, or its name; random ones by default.
        f_run_evaluator: function that measures, or its name.
        f_cleanup: function that is called at the end of each kernel, also after an error; or its name.
        initializer: function that is called once in the process, before everything else.

    Raises:
        tilewright.ArgumentError: the process has no function of this name.
    """

    @suggests_keywords
    def __init__(
        self,
        timeout_sec: float = 30.0,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: AllocFunction | str | None = None,
        f_run_evaluator: EvaluatorFunction | str | None = None,
        f_cleanup: Callable[[], None] | str | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        limits.positive("timeout_sec", timeout_sec)
        limits.kind("cooldown_sec", cooldown_sec, numbers.Real, "a number of seconds")
        limits.whole("alloc_repeat", alloc_repeat, 1)
        what = "an EvaluatorConfig, or None for the default"
        limits.kind("evaluator_config", evaluator_config, EvaluatorConfig | None, what)
        self.timeout_sec, self.cooldown_sec, self.alloc_repeat = timeout_sec, cooldown_sec, alloc_repeat
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self._functions = (
            f_alloc_argument or default_alloc_argument,
            f_run_evaluator or default_run_evaluator,
            f_cleanup or default_cleanup,
        )
        own = (f_alloc_argument, f_run_evaluator, f_cleanup, initializer) != (None, None, None, None)
        #: whether no code of the user is called, and the options are those of a pipeline
        self.is_plain = not own and type(self).run is LocalRunner.run and (alloc_repeat, cooldown_sec) == (1, 0)
        self._worker = Worker(initializer)
        self._lines: list[_Line] = []
        check_names(self._worker, self._functions, SHIPPED)
        self._end = weakref.finalize(self, _close, self._worker, self._lines)

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Return one future for each input; kernels are measured in this order."""
        if not self._lines:
            self._lines.append(_Line())
        run = functools.partial(self._run_one, profiler=Profiler.current())
        return [self._lines[0].submit(run, each) for each in runner_inputs]

    def close(self) -> None:
        """End the process; waiting kernels fail."""
        _close(self._worker, self._lines)

    def _run_one(self, each: RunnerInput, *, profiler: Profiler | None) -> RunnerResult:
        infos = [info.as_json() for info in each.args_info]
        kernel = (each.artifact_path, each.device_type, infos)
        try:
            seconds, times = self._worker.call(
                _load_and_run,
                (*self._functions, *kernel, self.evaluator_config, self.alloc_repeat),
                self.timeout_sec,
            )
        except Overdue:
            return RunnerResult(None, f"LocalRunner: Timeout, killed after {self.timeout_sec} seconds")
        except (Lost, Raised, Error) as error:
            return RunnerResult(None, f"LocalRunner: An exception occurred\n{error}")
        except Exception as error:  # a function cannot be pickled
            return RunnerResult(None, f"LocalRunner: An exception occurred\n{type(error).__name__}: {error}")
        for name, spent in times.items():
            if profiler is not None:
                profiler.add(name, spent)
        time.sleep(self.cooldown_sec)
        return RunnerResult(seconds, None)


class _Line:
    """The thread that measures one kernel after the other until it is closed."""

    def __init__(self) -> None:
        self.thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="LocalRunner")
        self.is_closed = False

    def submit(self, run: Callable[[RunnerInput], RunnerResult], each: RunnerInput) -> RunnerFuture:
        def run_next() -> RunnerResult:
            if self.is_closed:
                return RunnerResult(None, "LocalRunner: the runner was closed")
            result = run(each)
            result.origin = Origin.here()
            return result

        future = self.thread.submit(run_next)
        return RunnerFuture(future.done, future.result)

    def close(self) -> None:
        """Make all waiting kernels fail at once."""
        self.is_closed = True
        self.thread.shutdown(wait=False)


def _close(worker: Worker, lines: list[_Line]) -> None:
    while lines:
        lines.pop().close()
    worker.close()


def _load_and_run(
    alloc: Any,
    run: Any,
    cleanup: Any,
    path: str,
    device_type: str,
    infos: Any,
    config: EvaluatorConfig,
    alloc_repeat: int,
) -> tuple[list[float], dict[str, float]]:
    """Load and measure a kernel in the worker; return its times, and the seconds of each part."""
    times: dict[str, float] = {}

    @contextlib.contextmanager
    def timed(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        times[f"LocalRunner/{name}"] = time.perf_counter() - started

    device = devices.device(device_type)
    try:
        with timed("load_module"):
            module = load_artifact(path)
        with timed("alloc_argument"):
            repeated = resolved(alloc, SHIPPED)(device, infos, alloc_repeat)
        with timed("run_evaluator"):
            seconds = [float(getattr(s, "value", s)) for s in resolved(run, SHIPPED)(module, device, config, repeated)]
    finally:
        with timed("cleanup"):
            resolved(cleanup, SHIPPED)()
    return seconds, times


def load_artifact(path: str) -> Any:
    """Return the kernels of a file that a builder made: object code, or a shared library.

    Raises:
        tilewright.ResourceError: the file cannot be loaded.
    """
    from tilewright.kernel import kernel

    if Path(path).suffix == ".so":
        return kernel.load(path)
    return kernel.load_object_code(Path(path).read_bytes())


def default_alloc_argument(device: devices.Device, args_info: Any, alloc_repeat: int) -> list[list[Any]]:
    """Return sets of random arrays with the types and shapes of `args_info`.

    Raises:
        tilewright.ArgumentError: arrays cannot be allocated on this device.
    """
    from tilewright.meta_schedule.arg_info import ArgInfo, TensorInfo
    from tilewright.task.arguments import aligned, random_array
    from tilewright.task.task import Parameter

    if not device.exist:
        raise ArgumentError.of("runner/device", f"there is no {device} to measure on", "build for the processor: llvm")
    generator = np.random.default_rng(0)
    sets = []
    for _ in range(alloc_repeat):
        arrays = []
        for info in map(ArgInfo.from_json, args_info):
            assert isinstance(info, TensorInfo)
            parameter = Parameter("", info.dtype, info.shape, "inout")
            values = random_array(parameter, generator).astype(numpy_dtype(info.dtype))
            arrays.append(aligned(values) if device.kind == "cpu" else device.array(values))
        sets.append(arrays)
    return sets


def kernel_of(module: Any) -> Any:
    """Return the kernel that is called: the only one, or main."""
    from tilewright.kernel.kernel import Kernel

    if isinstance(module, Kernel):
        return module
    return module["main"] if "main" in module else next(iter(module.values()))


def default_run_evaluator(
    rt_mod: Any, device: devices.Device, evaluator_config: EvaluatorConfig, repeated_args: list[list[Any]]
) -> list[float]:
    """Return the seconds per call of the kernel: the samples of one argument set after the other."""
    kernel = kernel_of(rt_mod)
    return [sample for args in repeated_args for sample in evaluate(kernel, args, evaluator_config)]


def default_cleanup() -> None:
    """Do nothing: no resources remain."""


#: functions that may be given by name
SHIPPED: dict[str, Callable[..., Any]] = {
    "meta_schedule.runner.default_alloc_argument": default_alloc_argument,
    "meta_schedule.runner.default_cleanup": default_cleanup,
    "meta_schedule.runner.default_run_evaluator": default_run_evaluator,
}
