"""Compiling programs, calling kernels, exporting and loading them."""

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
