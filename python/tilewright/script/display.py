"""Programs in color: in a terminal (through rich) and in a notebook (as HTML)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.support.streams import is_terminal

if TYPE_CHECKING:
    from tilewright.ir import Node

#: Pygments styles behind the names that TVM's scripts use.
_STYLES = {"light": "default", "dark": "monokai", "ansi": "ansi_dark"}


def show(node: Node, style: str | None = None, black_format: bool | None = None, **options: Any) -> None:
    """Print the script of a node, colored where that makes sense.

    Args:
        node: what to print.
        style: ``"light"``, ``"dark"``, ``"ansi"`` or the name of a Pygments style; None picks one.
        black_format: whether a formatter of Python code lays the text out anew, if one is installed.
        options: passed to ``node.script``.

    Raises:
        ValueError: the style is unknown.
    """
    print_script(node.script(**options), style, black_format)


def reformatted(text: str, formatter: str | None = None) -> str:
    """Return Python text as formatted by ``"ruff"`` or ``"black"``; None uses the one that is installed.

    Raises:
        ValueError: the formatter is unknown or not installed, or the text is not Python.
    """
    if formatter not in (None, "ruff", "black"):
        raise ValueError(f"unknown formatter {formatter!r}: use 'ruff' or 'black'")
    for name, arguments in {"ruff": ["format"], "black": ["--quiet"]}.items():
        program = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if program is None or formatter not in (None, name):
            continue
        done = subprocess.run([program, *arguments, "-"], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"{name} cannot format this: {done.stderr.strip()}")
        return done.stdout
    raise ValueError(f"no formatter is installed: install {formatter or 'ruff or black'}, or leave black_format away")


def print_script(text: str, style: str | None = None, black_format: bool | None = None) -> None:
    """Print Python text: as HTML in a notebook, with color in a terminal, plainly anywhere else.

    `style` and `black_format` are those of :func:`show`.
    """
    if black_format:
        text = reformatted(text)
    if _in_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

        display(HTML(html(text, style)))
        return
    colored = is_terminal(sys.stdout) and "NO_COLOR" not in os.environ
    if not (colored or style):
        print(text)
        return
    from rich.console import Console
    from rich.syntax import Syntax

    _check_style(style)
    console = Console(force_terminal=True, soft_wrap=True) if style else Console(soft_wrap=True)
    theme = _STYLES.get(style or "ansi", style or "ansi")
    console.print(Syntax(text, "python", theme=theme, background_color="default", word_wrap=False))


def html(text: str, style: str | None = None) -> str:
    """Return Python text as a colored HTML fragment that needs no style sheet."""
    from pygments import highlight  # type: ignore[import-untyped,unused-ignore]
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped,unused-ignore]
    from pygments.lexers import PythonLexer  # type: ignore[import-untyped,unused-ignore]

    _check_style(style)
    theme = "default" if style in (None, "ansi") else _STYLES.get(style, style)
    return str(highlight(text, PythonLexer(), HtmlFormatter(noclasses=True, style=theme)))


def _check_style(style: str | None) -> None:
    from pygments.styles import get_all_styles  # type: ignore[import-untyped,unused-ignore]

    if style is not None and style not in _STYLES and style not in get_all_styles():
        raise ValueError(f"unknown style {style!r}: use 'light', 'dark', 'ansi' or the name of a Pygments style")


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return bool(shell and getattr(shell.get_ipython(), "kernel", None))
