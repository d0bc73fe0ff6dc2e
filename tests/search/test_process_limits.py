"""What the system forbids is told with the limit that forbids it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import resource, sys, tempfile
import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.testing import workloads

folder = tempfile.mkdtemp()
program = workloads.matmul(32, 32, 32)
tw.compile(program)
limit = int(sys.argv[3])
resource.setrlimit(getattr(resource, sys.argv[2]), (limit, limit))
try:
    if sys.argv[1] == "tune":
        tw.tune(program, trials=2, progress=None)
    else:
        options = {"strategy": "replay-trace", "cost_model": "none", "database": "memory"}
        ms.tune_tir(program, "llvm -num-cores=1", folder, 2, **options)
except tw.ResourceError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize(
    ("entry", "limit", "value", "words"),
    [
        ("tune", "RLIMIT_NOFILE", 18, "ulimit -n"),
        ("tune_tir", "RLIMIT_NOFILE", 18, "ulimit -n"),
        ("tune", "RLIMIT_FSIZE", 1_000, "ulimit -f"),
    ],
)
def test_a_helper_that_may_not_be(entry: str, limit: str, value: int, words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, entry, limit, str(value)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    assert result.stdout.startswith("measure/"), result.stderr
    assert words in result.stdout
