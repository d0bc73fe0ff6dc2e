"""``python -m tilewright.compat.tvm script.py [arguments]`` runs a script whose ``import tvm`` gives Tilewright."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import tilewright.compat.tvm  # noqa: F401
from tilewright.compat.tvm.ir.base import Proofs
from tilewright.compat.tvm.printing import AS_TVM
from tilewright.script.wording import enter


def main() -> None:
    """Run the script as if Python had been called with it."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m tilewright.compat.tvm SCRIPT [ARGUMENT ...]", file=sys.stderr)
        raise SystemExit(0 if len(sys.argv) > 1 else 2)
    path = sys.argv[1]
    if not Path(path).is_file():
        print(f"tilewright.compat.tvm: there is no file {path}", file=sys.stderr)
        raise SystemExit(2)
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(path).resolve().parent)
    enter(AS_TVM)
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        if Proofs.report():
            print(Proofs.report(), file=sys.stderr)


if __name__ == "__main__":
    main()
