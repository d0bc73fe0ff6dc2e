"""Programs of tests in a process of their own, for what a process decides once: drivers, environment, limits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parent


def in_process(program: str, *prefix: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that may import from tests/.

    Args:
        program: its text, indented or not.
        prefix: a command that runs the interpreter, such as a simulator of devices.
        environment: variables that are added.
    """
    paths = os.pathsep.join([str(TESTS), *sys.path])
    return subprocess.run(
        [*prefix, sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        check=False,
    )
