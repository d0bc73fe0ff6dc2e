"""Compiling programs and calling what comes out.

>>> kernel = tw.compile(matmul)              # a function, a module or a schedule
>>> kernel(a, b, c)
>>> print(kernel.inspect("asm"))
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from tilewright import _core
from tilewright.errors import ArgumentError


class Kernel(_core.KernelBase):
    """A compiled function: call it with one argument for each parameter, in their order or by name.

    Tensors are NumPy arrays, or anything with a buffer or ``__dlpack__`` (PyTorch, JAX, ...), taken without copies;
    scalars are numbers. Results are written to the arrays that the function writes to, and the call returns ``None``.
    Other Python threads run meanwhile.

    Raises:
        ArgumentError: An argument does not fit its parameter, or written memory overlaps another argument.
        ResourceError: This processor lacks an instruction set, or there is no memory for a workspace.
    """

    def __new__(cls, base: _core.KernelBase, *args: Any, **kwargs: Any) -> Kernel:
        """Another reference to the code of ``base``."""
        return super().__new__(cls, base)

    def __init__(
        self, base: _core.KernelBase, lowered: Any = None, target: str = "", report: dict[str, Any] | None = None
    ) -> None:
        self._lowered = lowered
        self._target = target
        self.report = report or {}

    def inspect(self, what: Literal["tir", "llvm", "asm"]) -> str:
        """The program as it was lowered, the optimized LLVM IR, or the assembly."""
        if what not in ("tir", "llvm", "asm"):
            raise ArgumentError(f"inspect takes 'tir', 'llvm' or 'asm', not {what!r}")
        if self._lowered is None:
            raise ArgumentError(f"kernel {self.name} comes from a library, which does not keep its program")
        if what == "tir":
            return str(self._lowered)
        code = _core.compile_object(self._lowered, self._target, True, what == "llvm", what == "asm")
        return code.llvm_ir if what == "llvm" else code.assembly


class KernelModule(Mapping[str, Kernel]):
    """The kernels of a module with several public functions, by name."""

    def __init__(self, kernels: dict[str, Kernel]) -> None:
        self._kernels = kernels

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"KernelModule({', '.join(self._kernels)})"


def _as_module(program: Any) -> Any:
    program = getattr(program, "mod", program)
    if isinstance(program, _core.PrimFunc):
        return _core.as_module(program)
    if isinstance(program, _core.Module):
        return program
    raise ArgumentError(f"a function, a module or a schedule can be compiled, not {type(program).__name__}")


TargetLike = str | dict[str, Any] | _core.Target


def lower(program: Any, after: str = "", target: TargetLike = "native") -> Any:
    """The program after lowering pass ``after`` (all passes if empty), as a module."""
    return _core.lower(_as_module(program), str(_core.Target(target)), after)[0]


def compile(program: Any, target: TargetLike = "native") -> Kernel | KernelModule:
    """Compile a function, a module or a schedule. Several public functions give a :class:`KernelModule`.

    Args:
        program: What to compile.
        target: ``"native"``, ``"llvm -mcpu=NAME -num-cores=N ..."``, a dict as TVM writes it, or a :class:`Target`.
            With fewer cores than this machine has, the kernel uses that many threads at most.
    """
    resolved = _core.Target(target)
    text = str(resolved)
    lowered, report = _core.lower(_as_module(program), text)
    code = _core.compile_object(lowered, text)
    loaded = _core.load_object(code.bytes)
    kernels = {name: Kernel(loaded.callable(name), lowered, text, report) for name in loaded.names}
    if resolved.num_cores < _core.Target("native").num_cores:
        for kernel in kernels.values():
            kernel.threads = resolved.num_cores
    return _one_or_many(kernels)


def load(path: str | os.PathLike[str]) -> Kernel | KernelModule:
    """The kernels of a shared library that :meth:`Kernel.export` wrote: one, or a :class:`KernelModule` of several.

    Raises:
        ResourceError: The file cannot be loaded, or holds no kernels, or kernels of another version.
    """
    return _one_or_many({name: Kernel(base) for name, base in _core.load_library(os.fspath(path)).items()})


def set_num_threads(count: int) -> None:
    """Set how many threads the parallel loops of all kernels use, the calling one included.

    0 restores the default: one per core that this process may use, or ``TILEWRIGHT_NUM_THREADS``.
    """
    _core.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads the parallel loops of kernels use."""
    return _core.get_num_threads()


def _one_or_many(kernels: dict[str, Kernel]) -> Kernel | KernelModule:
    return next(iter(kernels.values())) if len(kernels) == 1 else KernelModule(kernels)
