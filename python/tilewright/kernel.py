"""Compiling programs and calling what comes out.

>>> kernel = tw.compile(matmul)              # a function, a module or a schedule
>>> kernel(a, b, c)
>>> print(kernel.inspect("asm"))
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, Error

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Scalar(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("f", ctypes.c_double), ("p", ctypes.c_void_p)]


def _dl_tensor(array: np.ndarray) -> _DLTensor:
    ndim = array.ndim
    shape = (ctypes.c_int64 * max(ndim, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(ndim, 1))(*[s // array.itemsize for s in array.strides])
    return _DLTensor(
        array.ctypes.data, 1, 0, ndim, _CODES[array.dtype.kind], array.itemsize * 8, 1, shape, strides, 0
    )


class Kernel:
    """A compiled function: call it with one argument for each parameter, in their order."""

    def __init__(self, module: Any, lowered: Any, target: str, name: str, loaded: Any, report: dict[str, Any]) -> None:
        self._module = module
        self._lowered = lowered
        self._target = target
        self._loaded = loaded
        self.name = name
        self.report = report
        entry_type = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._entry = entry_type(loaded.entry_address(name))

    def __call__(self, *args: Any) -> None:
        tensors = [_dl_tensor(a) for a in args if isinstance(a, np.ndarray)]
        pointers = (ctypes.c_void_p * max(len(tensors), 1))(*[ctypes.addressof(t) for t in tensors])
        values = [a for a in args if not isinstance(a, np.ndarray)]
        scalars = (_Scalar * max(len(values), 1))()
        for slot, value in zip(scalars, values, strict=False):
            if isinstance(value, float):
                slot.f = value
            else:
                slot.i = int(value)
        code = self._entry(None, ctypes.cast(pointers, ctypes.c_void_p), ctypes.cast(scalars, ctypes.c_void_p))
        if code:
            raise (ArgumentError if 32 <= code < 64 else Error)(f"kernel {self.name} failed with code {code}")

    def inspect(self, what: Literal["tir", "llvm", "asm"]) -> str:
        """The program as it was lowered, the optimized LLVM IR, or the assembly."""
        if what == "tir":
            return str(self._lowered)
        if what not in ("llvm", "asm"):
            raise ArgumentError(f"inspect takes 'tir', 'llvm' or 'asm', not {what!r}")
        code = _core.compile_object(self._lowered, self._target, True, what == "llvm", what == "asm")
        return code.llvm_ir if what == "llvm" else code.assembly

    def __repr__(self) -> str:
        return f"Kernel({self.name}, target={self._target!r})"


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


def lower(program: Any, after: str = "", target: str = "native") -> Any:
    """The program after lowering pass ``after`` (all passes if empty), as a module."""
    return _core.lower(_as_module(program), target, after)[0]


def compile(program: Any, target: str = "native") -> Kernel | KernelModule:
    """Compile a function, a module or a schedule. Several public functions give a :class:`KernelModule`."""
    module = _as_module(program)
    lowered, report = _core.lower(module, target)
    code = _core.compile_object(lowered, target)
    loaded = _core.load_object(code.bytes)
    kernels = {name: Kernel(module, lowered, target, name, loaded, report) for name in loaded.names}
    return next(iter(kernels.values())) if len(kernels) == 1 else KernelModule(kernels)
