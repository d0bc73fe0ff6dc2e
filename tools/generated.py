"""Files of the repository that are written from its source: how their generators write, check and format them."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import report


def outdated(root: Path, path: Path, text: Callable[[], str]) -> Iterator[str]:
    """Yield a line if the file is not what its source says."""
    if not (root / path).exists() or (root / path).read_text() != text():
        yield f"{path}: out of date, run `make docs`"


def formatted(text: str, name: str) -> str:
    """Python or a stub, as ruff formats it."""
    done = subprocess.run(
        ["ruff", "format", "--isolated", "--line-length", "120", "--stdin-filename", name, "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def main(check: Callable[[Path], Iterator[str]], write: Callable[[Path], None]) -> None:
    """With --check say what is out of date and exit with 1 if something is, else write."""
    if sys.argv[1:] == ["--check"]:
        report.run(check)
    write(report.ROOT)
