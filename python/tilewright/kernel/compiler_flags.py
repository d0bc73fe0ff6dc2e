"""Compiler and linker flags for C and C++ programs that call exported kernels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class BuildFlags(NamedTuple):
    """Flags of a C or C++ compiler: for Tilewright's headers, and for linking exported objects."""

    cflags: tuple[str, ...]
    libs: tuple[str, ...]


def build_flags() -> BuildFlags:
    """Return the flags for programs that call exported kernels; an exported library needs only its own name."""
    package = Path(__file__).resolve().parents[1]
    return BuildFlags(
        (f"-I{package / 'include'}",), (str(package / "libtilewright_runtime.a"), "-lm", "-lpthread", "-ldl")
    )
