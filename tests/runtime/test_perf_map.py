"""TILEWRIGHT_PERF_MAP: names of kernels for `perf report`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys
import numpy as np
import tilewright as tw
from tilewright.script import tir as T

@T.prim_func
def doubled_for_perf(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i] * T.float32(2)

kernel = tw.compile(doubled_for_perf)
kernel(np.ones(64, "float32"))
executable = [line.split()[0].split("-") for line in open("/proc/self/maps") if " r-xp " in line]
print(os.getpid())
for low, high in executable:
    print(low, high)
"""


def mapped(tmp_path: Path, wanted: str) -> tuple[Path, list[tuple[int, int]]]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "TILEWRIGHT_PERF_MAP": wanted}
    done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=True)
    process, *lines = done.stdout.splitlines()
    ranges = [(int(low, 16), int(high, 16)) for low, high in map(str.split, lines)]
    return Path(f"/tmp/perf-{process}.map"), ranges


def test_functions_lie_where_the_map_says(tmp_path: Path) -> None:
    map_file, executable = mapped(tmp_path, "1")
    try:
        lines = [line.split(" ", 2) for line in map_file.read_text().splitlines()]
    finally:
        map_file.unlink()
    own = [(int(start, 16), int(size, 16)) for start, size, name in lines if "doubled_for_perf" in name]
    assert own
    for start, size in own:
        assert size > 0 and any(low <= start and start + size <= high for low, high in executable)


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    for wanted in ("", "0"):
        assert not mapped(tmp_path, wanted)[0].exists()
