"""tvm.runtime.Module: kernels under the names of TVM's modules of machine code."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.runtime.device import Device

__path__: list[str] = []
__getattr__ = missing("tvm.runtime.module")

__all__ = ["BenchmarkResult", "Module", "load_module"]

Module = tw.Kernel | tw.KernelModule


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call, one number a repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Seconds."""
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        """Seconds."""
        return min(self.results)

    @property
    def max(self) -> float:
        """Seconds."""
        return max(self.results)

    @property
    def std(self) -> float:
        """Seconds."""
        return statistics.pstdev(self.results)


def time_evaluator(
    self: Any,
    func_name: str,
    dev: Device,
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: int = 0,
) -> Callable[..., BenchmarkResult]:
    """A function that times the kernel of that name: `repeat` times the mean of `number` calls, or of as many as fill
    `min_repeat_ms`."""
    if not dev.exist:
        raise ValueError(f"Tilewright runs nothing on {dev} yet")
    kernel = _kernel(self, func_name)

    def evaluate(*args: Any) -> BenchmarkResult:
        def mean_of(calls: int) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                kernel(*args)
            return (time.perf_counter() - start) / calls

        kernel(*args)  # what is wrong with the arguments is said here, and the caches are warm
        calls, results = number, []
        for _ in range(repeat):
            seconds = mean_of(calls)
            while seconds * calls * 1e3 < min_repeat_ms:
                calls = max(2 * calls, int(min_repeat_ms / 1e3 / seconds))
                seconds = mean_of(calls)
            results.append(seconds)
        return BenchmarkResult(tuple(results))

    return evaluate


def _kernel(module: Any, name: str) -> Any:
    try:
        return module[name]
    except KeyError:
        if name in ("main", "__tvm_main__") and isinstance(module, tw.Kernel):
            return module
        raise AttributeError(f"Module has no function '{name}'") from None


def get_function(self: Any, name: str, query_imports: bool = False) -> Any:
    """The kernel of that name; there are no imported modules to ask, so `query_imports` makes no difference."""
    return _kernel(self, name)


def get_source(self: Any, fmt: str = "ll") -> str:
    """LLVM IR ("ll", the default) or assembly ("s", "asm")."""
    kinds = {"": "llvm", "ll": "llvm", "s": "asm", "asm": "asm"}
    if fmt not in kinds:
        raise ValueError(f"Tilewright has no source of the kind {fmt!r}; there are 'll' and 'asm'")
    return str(self.inspect(kinds[fmt]))


def export_library(self: Any, file_name: str | Path) -> Path:
    """Writes a shared library, with object and C header beside it."""
    path = Path(file_name)
    if path.suffix != ".so":
        raise ValueError(f"Tilewright exports shared libraries, so {path.name!r} has to end in '.so'")
    return Path(self.export(path.parent, path.stem).library)


def load_module(path: str | Path) -> Any:
    """The kernels of an exported library."""
    return tw.load(path)


def _entry_func(self: Any) -> Any:
    return self if isinstance(self, tw.Kernel) else _kernel(self, "main")


def kernels_as_modules() -> None:
    """From now on kernels have the methods of TVM's modules."""
    methods = {
        "entry_func": property(_entry_func),
        "export_library": export_library,
        "get_function": get_function,
        "get_source": get_source,
        "time_evaluator": time_evaluator,
    }
    for cls in (tw.Kernel, tw.KernelModule):
        for name, method in methods.items():
            setattr(cls, name, method)
