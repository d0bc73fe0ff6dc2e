"""Compiling programs, calling kernels, exporting and loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.kernel.compiler_flags import BuildFlags, build_flags
    from tilewright.kernel.exports import Exported
    from tilewright.kernel.kernel import (
        Kernel,
        KernelModule,
        compile,
        compile_functions,
        compile_quietly,
        compile_task,
        kernels_of,
        load,
        load_object_code,
        lower,
        notes_on,
        object_code_of,
    )
    from tilewright.kernel.num_threads import get_num_threads, set_num_threads

#: public name -> the module of this package that defines it
_NAMES = {
    "BuildFlags": "compiler_flags",
    "build_flags": "compiler_flags",
    "Exported": "exports",
    "Kernel": "kernel",
    "KernelModule": "kernel",
    "compile": "kernel",
    "compile_functions": "kernel",
    "compile_quietly": "kernel",
    "compile_task": "kernel",
    "kernels_of": "kernel",
    "load": "kernel",
    "load_object_code": "kernel",
    "lower": "kernel",
    "notes_on": "kernel",
    "object_code_of": "kernel",
    "get_num_threads": "num_threads",
    "set_num_threads": "num_threads",
}

__all__ = [
    "BuildFlags",
    "Exported",
    "Kernel",
    "KernelModule",
    "build_flags",
    "compile",
    "compile_functions",
    "compile_quietly",
    "compile_task",
    "get_num_threads",
    "kernels_of",
    "load",
    "load_object_code",
    "lower",
    "notes_on",
    "object_code_of",
    "set_num_threads",
]

__getattr__ = lazy(__name__, _NAMES, ())
