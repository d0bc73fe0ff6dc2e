"""The alias's tvm.arith and tvm.target, in processes of their own: the alias changes what `import tvm` gives."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name", ["arith_alias.py", "meta_schedule_alias.py", "rules_alias.py", "target_alias.py", "tir_alias.py"]
)
def test_alias(name):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tilewright.compat.tvm", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, str(Path(__file__).with_name(name))], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
