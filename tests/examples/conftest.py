"""The examples as a user finds them, in a folder of their own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy whose first lesson multiplies smaller matrices: untuned, the product of the real one takes seconds."""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    lesson = folder / "01_matmul.py"
    text, count = re.subn(r"^N = 1024$", "N = 256", lesson.read_text(), flags=re.MULTILINE)
    assert count == 1
    lesson.write_text(text)
    return folder
