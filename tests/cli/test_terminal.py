"""Output as fits where it goes: one updating block in a terminal, one updating output in a notebook."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.cli.user_script import load_script

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def in_terminal(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and output of a command whose output is a terminal of 80 columns."""
    leader, follower = pty.openpty()
    environment = environment | {"COLUMNS": "80", "LINES": "40"}
    command = [sys.executable, "-m", "tilewright", *arguments]
    process = subprocess.Popen(command, env=environment, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    return process.wait(timeout=60), b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_a_live_block(folder: Path, environment: dict[str, str], no_color: bool) -> None:
    environment = environment | ({"NO_COLOR": "1"} if no_color else {})
    status, text = in_terminal(["tune", "product.py", "--trials", "6"], environment)
    assert status == 0, text
    plain = ESCAPE.sub("", text)
    # Where the limits of the machine take long to measure, a line before it says so.
    assert re.search(r"^tuning product for 1 thread( of \d+)?; the roof is ", plain, re.MULTILINE)
    assert re.search(r"trial +6/6", plain)
    assert re.search(r"best +[\d.]+ [mun]s, [\d.]+ GFLOP/s, \d+ % of ", plain)
    assert re.search(r"speed +[\d.]+ candidates/s, \d+ ms a build", plain)
    assert re.search(r"failed +.+; \d+ refused, \d+ seen before", plain)
    assert text.count("trial ") > 1
    assert "\x1b[1A" in text  # the block is drawn over the one before
    assert bool(re.search(r"\x1b\[[0-9;]*(3[0-7]|38;)[0-9;]*m", text)) is not no_color
    # What is to be copied is not folded.
    assert re.search(r"\n    i, j, k = sch\.get_loops\(\w+\)\n", plain)
    (sample,) = re.findall(r"^    v\d+ = sch.sample_categorical\(.*$", plain, re.MULTILINE)
    assert len(sample) > 80
    assert sample.rstrip().endswith(")")
    assert "earlier run" not in plain
    if no_color:
        return
    status, text = in_terminal(["tune", "product.py", "--trials", "8"], environment)
    plain = ESCAPE.sub("", text).replace("\n", " ")
    assert status == 0 and plain.count("continues from 6 trials of an earlier run") == 1, text


def test_errors_in_a_terminal(folder: Path, environment: dict[str, str]) -> None:
    status, text = in_terminal(["show", "other.py"], environment)
    assert status == 1
    assert text.startswith("error: other.py: no such file\n  hint: ")


def test_a_notebook_gets_one_output_that_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython is not needed for that, so a stand-in with its interface shows what arrives there."""
    shown: list[str] = []

    class Handle:
        def update(self, content: Any) -> None:
            shown[-1] = content

    def display(content: Any, display_id: bool) -> Handle:
        assert display_id
        shown.append(content)
        return Handle()

    class ZMQInteractiveShell:
        pass

    package, part = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    part.HTML, part.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    script = load_script(folder / "product.py")
    tw.tune(script.tiles, trials=2)
    assert len(shown) == 1
    assert re.fullmatch(
        r"<pre>tuning product for 1 thread( of \d+)?; .*\ntrial 2/2 \| best .* candidates/s \| .*</pre>", shown[0]
    )
