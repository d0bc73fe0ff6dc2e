"""The examples of docs/own-parts.md, which replace parts of a search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "own-parts.md").read_text()


def test_all_examples_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    (tmp_path / "own_parts.py").write_text(text)
    exec(compile(text, tmp_path / "own_parts.py", "exec"), {"__name__": "own_parts"})
    assert "T.vectorized" in capsys.readouterr().out
    assert (tmp_path / "session" / "logs").is_dir()
