"""tvm.runtime.Module: kernels under the names of TVM's modules of machine code."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.compat.tvm.runtime.devices import Device
from tilewright.kernel.kernel import Kernel, KernelModule
from tilewright.meta_schedule.evaluator import EvaluatorConfig, evaluate

__all__ = ["BenchmarkResult", "Module", "as_tvm", "load_module"]

Module = Kernel | KernelModule


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one number a repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean in seconds per call."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """Return the median in seconds per call."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """Return the minimum in seconds per call."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Return the maximum in seconds per call."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Return the standard deviation in seconds per call."""
        return statistics.pstdev(self.results)


def time_evaluator(
    self: Any,
    func_name: str,
    dev: Device,
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: int = 0,
    limit_zero_time_iterations: int = 100,
    cooldown_interval_ms: int = 0,
    repeats_to_cooldown: int = 1,
    cache_flush_bytes: int = 0,
    f_preproc: str = "",
) -> Callable[..., BenchmarkResult]:
    """Return a function that times a kernel.

    Args:
        func_name: name of the kernel.
        dev: device that the kernel runs on.
        number: calls per repeat, whose mean is one result.
        repeat: number of results.
        min_repeat_ms: minimum duration of a repeat; `number` is increased to reach it.
        limit_zero_time_iterations: ignored, as every call takes measurable time.
        cooldown_interval_ms: pause after each `repeats_to_cooldown` repeats.
        repeats_to_cooldown: number of repeats between pauses.
        cache_flush_bytes: if positive, the caches are flushed before calls, whatever the number.
        f_preproc: "cache_flush_cpu_non_first_arg" also flushes the caches before calls; "" for nothing.
    """
    if not dev.exist:
        raise ValueError(f"Tilewright runs nothing on {dev} yet")
    if f_preproc not in ("", "cache_flush_cpu_non_first_arg"):
        raise ValueError(f"Tilewright has no preparation {f_preproc!r} of a call yet")
    kernel = _kernel(self, func_name)
    flush = bool(f_preproc) or cache_flush_bytes > 0
    if cooldown_interval_ms <= 0 or repeats_to_cooldown < 1:
        cooldown_interval_ms, repeats_to_cooldown = 0, repeat
    parts = [min(repeats_to_cooldown, repeat - first) for first in range(0, repeat, repeats_to_cooldown)]
    configs = [EvaluatorConfig(number, count, min_repeat_ms, flush) for count in parts]

    def timed(*args: Any) -> BenchmarkResult:
        results: list[float] = []
        for config in configs:
            results.extend(evaluate(kernel, args, config))
            time.sleep(cooldown_interval_ms / 1e3)
        return BenchmarkResult(tuple(results))

    return timed


def _kernel(module: Any, name: str) -> Any:
    try:
        return module[name]
    except KeyError:
        if name in ("main", "__tvm_main__") and isinstance(module, Kernel):
            return module
        raise AttributeError(f"Module has no function '{name}'") from None


def get_function(self: Any, name: str, query_imports: bool = False) -> Any:
    """Return the kernel with this name. `query_imports` is ignored, as there are no imported modules to search."""
    return _kernel(self, name)


def get_source(self: Any, fmt: str = "ll") -> str:
    """Return LLVM IR ("ll", the default) or assembly ("s", "asm")."""
    kinds = {"": "llvm", "ll": "llvm", "s": "asm", "asm": "asm"}
    if fmt not in kinds:
        raise ValueError(f"Tilewright has no source of the kind {fmt!r}; there are 'll' and 'asm'")
    return str(self.inspect(kinds[fmt]))


def export_library(self: Any, file_name: str | Path, *, workspace_dir: str | Path | None = None) -> Path:
    """Write a shared library, with object and C header beside it; `workspace_dir` is not used."""
    path = Path(file_name)
    if path.suffix != ".so":
        raise ValueError(f"Tilewright exports shared libraries, so {path.name!r} has to end in '.so'")
    # The file's name is not that of a function.
    kernels: Any = KernelModule({self.name: self}) if isinstance(self, Kernel) else self
    return Path(kernels.export(path.parent, path.stem).library)


def jit(self: Any, *, force_recompile: bool = False) -> Any:
    """Return the kernels themselves, which can be called."""
    return self


def _entry_func(self: Any) -> Any:
    """Return the function that is called if none is named."""
    return self if isinstance(self, Kernel) else _kernel(self, "main")


def _entry_name(self: Any) -> str:
    """Return the name of the function that is called when none is named."""
    return str(_entry_func(self).name)


@dataclass(frozen=True)
class DeviceModule:
    """The part of a kernel that runs on a device."""

    kernel: Any
    type_key: str

    def get_source(self, fmt: str = "") -> str:
        """Return the source of the kernels in the language of the device; for CUDA also "ptx"."""
        if fmt not in ("", "cl", "cu", "ptx"):
            raise ValueError(f"Tilewright has no source of the kind {fmt!r} of a device")
        return str(self.kernel.inspect("ptx" if fmt == "ptx" else self.type_key))


def _imported_modules(self: Any) -> list[Any]:
    """Return a list with the module of the device kernels, if there is a device, else []."""
    kernel = _entry_func(self) if isinstance(self, Kernel) else next(iter(self.values()))
    program = kernel._program
    kind = "" if program is None else tw.Target(program.target).kind
    return [DeviceModule(kernel, kind)] if kind in ("opencl", "cuda") else []


def _with_methods(cls: Any) -> Any:
    """Add the methods of TVM's modules to a class, and return it."""
    cls.entry_func = property(_entry_func)
    cls.entry_name = property(_entry_name)
    cls.imported_modules = property(_imported_modules)
    for method in (export_library, get_function, get_source, jit, time_evaluator):
        setattr(cls, method.__name__, method)
    return cls


@_with_methods
class KernelAsTVM(Kernel):
    """A compiled function."""

    def __getitem__(self, name: str) -> Any:
        return as_tvm(super().__getitem__(name))


@_with_methods
class KernelsAsTVM(KernelModule):
    """Compiled functions by name."""

    def __getitem__(self, name: str) -> Any:
        return as_tvm(super().__getitem__(name))


def as_tvm(compiled: Any) -> Any:
    """Return compiled kernels with the methods of TVM's modules."""
    subclasses: dict[type, type] = {Kernel: KernelAsTVM, KernelModule: KernelsAsTVM}
    if type(compiled) in subclasses:
        compiled.__class__ = subclasses[type(compiled)]
    return compiled


def load_module(path: str | Path) -> Any:
    """Return the kernels of an exported library."""
    return as_tvm(tw.load(path))
