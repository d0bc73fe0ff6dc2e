"""What a C or C++ compiler needs for programs that call exported kernels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class BuildFlags(NamedTuple):
    """What a C or C++ compiler needs: for the headers of Tilewright, and to link exported objects."""

    cflags: tuple[str, ...]
    libs: tuple[str, ...]


def build_flags() -> BuildFlags:
    """The flags for programs that call exported kernels; an exported library needs none but its own name."""
    package = Path(__file__).resolve().parents[1]
    return BuildFlags(
        (f"-I{package / 'include'}",), (str(package / "libtilewright_runtime.a"), "-lm", "-lpthread", "-ldl")
    )
