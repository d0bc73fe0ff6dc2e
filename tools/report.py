"""How the checkers of this folder end: findings on standard output, one a line, and an exit status."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(check: Callable[[Path], Iterator[str]]) -> None:
    """Run a checker on the repository; exit with 1 if it found something."""
    findings = sorted(set(check(ROOT)))
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


def source_files(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files of ours under the folders; what builds and tools leave behind is not."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                yield path
