"""tvm.script.highlight: programs in color."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.script.display import print_script
from tilewright.script.display import reformatted as _format  # noqa: F401  (scripts import it)

__all__ = ["cprint"]


def cprint(printable: Any, style: str | None = None, black_format: bool | None = None) -> None:
    """Print a program, or its text."""
    if not isinstance(printable, str | _core.Node):
        raise TypeError(f"cprint prints programs and their text, not a {type(printable).__name__}")
    text = printable if isinstance(printable, str) else printable.script()
    print_script(text, style, black_format)
