"""What the README and the page about scripts show can be done as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

from .conftest import ROOT


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


BLOCKS = blocks_of("README.md")
COMMANDS = [
    line.partition("#")[0].strip() for kind, block in BLOCKS if kind != "python" for line in block.splitlines() if line
]


def test_the_program_runs(tmp_path: Path) -> None:
    text = "\n".join(block for kind, block in BLOCKS if kind == "python")
    names: dict[str, Any] = {}
    (tmp_path / "readme.py").write_text(text)
    exec(compile(text, tmp_path / "readme.py", "exec"), names)
    a, b = np.random.default_rng(0).random((2, 1024, 1024), dtype=np.float32)
    c = np.empty_like(a)
    names["kernel"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    script = names["sch"].mod.script()
    assert f"T.vectorized({3 * names['lanes']})" in script
    assert "T.unroll(4)" in script
    assert not names["kernel"].notes
    assert "matmul:" in names["kernel"].inspect("asm")
    names["tw"].load(names["kernel"].export(tmp_path, name="matmul").library)(a, b, c)


def test_the_page_about_scripts_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(block for kind, block in blocks_of("docs/scripts.md") if kind == "python")
    names: dict[str, Any] = {}
    (tmp_path / "scripts.py").write_text(text)
    exec(compile(text, tmp_path / "scripts.py", "exec"), names)
    assert "^\n        with T.block" in capsys.readouterr().out  # the underlined place
    a = np.arange(8, dtype=np.float32)
    b = np.full(2, np.nan, np.float32)
    names["tw"].compile(names["sums_of_squares"])(a, b)
    np.testing.assert_array_equal(b, [(a[:4] ** 2).sum(), (a[4:] ** 2).sum()])
    for program in ("softplus", "product", "fill", "scale"):
        names["tw"].compile(names[program])


def test_the_page_about_sizes_and_strides_runs(tmp_path: Path) -> None:
    """It compares with NumPy itself, and says which calls are refused."""
    blocks = [block for kind, block in blocks_of("docs/sizes-and-strides.md") if kind == "python"]
    (tmp_path / "sizes.py").write_text("\n".join(blocks))
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks), tmp_path / "sizes.py", "exec"), names)
    assert len(blocks) == 8 and len(names["parts"]) == 5


def test_the_page_about_compiling_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(block for kind, block in blocks_of("docs/compiling.md") if kind == "python")
    (tmp_path / "compiling.py").write_text(text)
    with pytest.warns(UserWarning, match="loop 'i' is not vectorized: every lane stores to"):
        exec(compile(text, tmp_path / "compiling.py", "exec"), {})
    assert capsys.readouterr().out.startswith("lower/not-vectorized last: loop 'i' is not vectorized")


def test_the_page_from_slow_to_fast_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On smaller matrices; it compares each result itself. The tile that is too large is, on every vector width."""
    text = "\n".join(block for kind, block in blocks_of("docs/from-slow-to-fast.md") if kind == "python")
    text = text.replace("N = 512", "N = 128").replace("trials=16", "trials=4")
    (tmp_path / "fast.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(tw.PerformanceWarning, match="is not in registers"):
        exec(compile(text, tmp_path / "fast.py", "exec"), {})
    printed = capsys.readouterr().out
    assert "lower/not-in-registers" in printed
    assert "'promoted': True" in printed
    assert re.search(r"^[1-9]\d* vector multiply-adds, 0 spills$", printed, re.MULTILINE)
    assert [line.partition(":")[0] for line in printed.splitlines() if "% of " in line and "trial" not in line][-1] == (
        "best found"
    )
    assert (tmp_path / "product.db").exists()


def test_the_commands_run(examples: Path, tmp_path: Path) -> None:
    """In their order, in a folder that has the examples; trials are few."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    commands = [command for command in COMMANDS if command.startswith("tilewright ")]
    assert {command.split()[1] for command in commands} >= {"tune", "show", "db", "info"}
    for command in commands:
        arguments = re.sub(r"--trials \d+", "--trials 2", command).split()[1:]
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_make_knows_its_targets(command: str) -> None:
    done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "scripts/setup" in done.stdout


def test_files_and_folders_that_are_named_exist() -> None:
    for name in re.findall(r"`((?:\w+/)+[\w.]*|[A-Z]+\.md)`", (ROOT / "README.md").read_text()):
        assert name.startswith("out/") or (ROOT / name).exists(), name


def test_the_page_about_searching_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(block for kind, block in blocks_of("docs/searching.md") if kind == "python")
    text = text.replace("256, 256, 256", "32, 48, 16").replace("trials=64", "trials=3")
    text = text.replace("max_trials_global=64", "max_trials_global=4")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(text, "searching.py", "exec"), names)
    assert names["result"].record is not None
    assert names["schedule"] is not None
    a, b = np.ones((32, 16), np.float32), np.ones((16, 48), np.float32)
    np.testing.assert_array_equal(names["kernel"](a, b), a @ b)
