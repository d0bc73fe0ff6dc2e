"""Write the stubs of the package, which the build links into it: type checkers and editors read them.

python tools/write_stubs.py BUILT OUT

BUILT is the folder of the compiled module, OUT gets the files as the package has them.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import generate_script_stub
import generate_stub
import report

#: Stub, from the folder of the package, and what makes its text.
STUBS = {"_core.pyi": generate_stub.generate, "script/tir/__init__.pyi": generate_script_stub.generate}


class _Built(importlib.abc.MetaPathFinder):
    """Finds the compiled module where it was built, whatever the package of the tree links."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find tilewright._core, and nothing else."""
        if fullname != "tilewright._core":
            return None
        return importlib.machinery.PathFinder.find_spec(fullname, [self.folder])


def main(built: str, out: str) -> None:
    """Write the stubs into a folder."""
    sys.path.insert(0, str(report.ROOT / "python"))
    sys.meta_path.insert(0, _Built(built))
    for name, generate in STUBS.items():
        path = Path(out) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generate(report.ROOT))


if __name__ == "__main__":
    main(*sys.argv[1:])
