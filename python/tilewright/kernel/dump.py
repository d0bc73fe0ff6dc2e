"""TILEWRIGHT_DUMP: write all stages of a compilation to files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.errors import ResourceError

__all__ = ["dump"]

#: characters of the names of kernels in the name of a folder, which file systems limit to 255 bytes
_LONGEST_NAME = 60


def dump(folder: Path, module: Any, target: str, code: Any) -> None:
    """Write all stages of a compilation to its own folder under `folder`."""
    name = re.sub(r"[^\w.-]", "_", "_".join(code.functions))[:_LONGEST_NAME] or "module"
    try:
        number = 0
        while True:
            place = folder / f"{name}.{number}"
            try:
                place.mkdir(parents=True)
                break
            except FileExistsError:
                number += 1
        stages = _core.lower_stages(module, target)
        for index, (stage, program) in enumerate(stages):
            (place / f"{index:02}_{stage}.py").write_text(program.script(), encoding="utf-8")
        (place / f"{len(stages):02}_llvm.ll").write_text(code.llvm_ir, encoding="utf-8")
        (place / f"{len(stages) + 1:02}_assembly.s").write_text(code.assembly, encoding="utf-8")
    except OSError as error:
        raise ResourceError.of("compile/dump", f"TILEWRIGHT_DUMP: {error}") from error
