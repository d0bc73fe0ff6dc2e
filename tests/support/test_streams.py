"""Programs whose standard output is closed, or an object that can only write."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright.support.streams import is_terminal


class Writer:
    def write(self, text: str) -> int:
        return len(text)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, Writer(), closed(), io.StringIO()])
def test_what_is_no_terminal(stream: Any) -> None:
    assert not is_terminal(stream)


@pytest.mark.parametrize("stream", ["None", "Writer()"])
def test_searches_and_shown_programs_need_no_standard_output(stream: str, tmp_path: Path) -> None:
    program = f"""
import sys, numpy as np, tilewright as tw
from tilewright.testing import workloads
class Writer:
    def write(self, text): return len(text)
    def flush(self): pass
sys.stdout = {stream}
product = workloads.matmul(8, 8, 8)
product.show()
tw.Schedule(product).trace.show()
result = tw.tune(product, trials=2, database={str(tmp_path / "t.db")!r})
one = np.ones((8, 8), "float32")
sys.exit(0 if (result.kernel(one, one) == 8).all() else 1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
