"""The programs of README.md and of the pages of docs/ run as they stand; searches are shorter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pages
import tilewright as tw

from .conftest import ROOT

README = ROOT / "README.md"
#: What makes the programs of a page smaller.
SMALLER = {
    "from-slow-to-fast.md": [("N = 512", "N = 128"), ("trials=16", "trials=4")],
    "schedules.md": [("256, 256, 256", "32, 48, 16"), ("trials=64", "trials=3"), ("global=64", "global=4")],
}
#: Pages that a test below runs.
WITH_A_TEST = {"scripts.md", "inspecting.md", "compiling.md", "from-slow-to-fast.md", "schedules.md", "own-parts.md"}


def run(page: str, folder: Path) -> dict[str, Any]:
    """Run the programs of a page; return what they define."""
    text = pages.program(ROOT / "docs" / page)
    for large, small in SMALLER.get(page, []):
        assert large in text
        text = text.replace(large, small)
    file = folder / (page.removesuffix(".md").replace("-", "_") + ".py")
    file.write_text(text)
    names: dict[str, Any] = {"__name__": file.stem}
    exec(compile(text, file, "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_program_of_the_readme_runs(tmp_path: Path) -> None:
    text = pages.program(README)
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
    tw.load(names["kernel"].export(tmp_path, name="matmul").library)(a, b, c)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 100


@pytest.mark.parametrize("command", re.findall(r"^make \w+", README.read_text(), re.MULTILINE))
def test_make_has_the_targets_of_the_readme(command: str) -> None:
    done = subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "scripts/setup" in done.stdout


def test_links_lead_to_pages() -> None:
    for page in [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([\w./-]+\.\w+)(?:#[\w-]+)?\)", page.read_text()):
            # Catalogs are built from the source.
            assert "reference/" in target or (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_every_page_is_listed_and_asks_a_question() -> None:
    index = (ROOT / "docs/README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        title = page.read_text().splitlines()[0].removeprefix("# ")
        if page.name != "README.md":
            assert title.endswith("?"), page.name
            assert f"[{title}]({page.name})" in index


@pytest.mark.parametrize(
    "page", sorted({*pages.with_programs(ROOT / "docs")} - WITH_A_TEST - {*pages.CONTINUES.values()})
)
def test_the_programs_of_a_page_run(page: str, tmp_path: Path) -> None:
    """They compare their results themselves."""
    run(page, tmp_path)


def test_the_page_about_programs(tmp_path: Path) -> None:
    names = run("scripts.md", tmp_path)
    a = np.arange(8, dtype=np.float32)
    b = np.full(2, np.nan, np.float32)
    tw.compile(names["sums_of_squares"])(a, b)
    np.testing.assert_array_equal(b, [(a[:4] ** 2).sum(), (a[4:] ** 2).sum()])
    for program in ("softplus", "product", "fill"):
        tw.compile(names[program])


def test_the_page_about_printing_underlines_a_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("inspecting.md", tmp_path)
    assert "^\n        with T.block" in capsys.readouterr().out


def test_the_page_about_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="loop 'i' is not vectorized: every lane stores to"):
        run("compiling.md", tmp_path)
    assert capsys.readouterr().out.startswith("lower/not-vectorized last: loop 'i' is not vectorized")


def test_the_page_from_slow_to_fast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It compares each result itself. The tile that is too large is, for every vector width."""
    with pytest.warns(tw.PerformanceWarning, match="is not in registers"):
        run("from-slow-to-fast.md", tmp_path)
    printed = capsys.readouterr().out
    assert "lower/not-in-registers" in printed
    assert "'promoted': True" in printed
    assert re.search(r"^[1-9]\d* vector multiply-adds, 0 spills$", printed, re.MULTILINE)
    assert [line.partition(":")[0] for line in printed.splitlines() if "% of " in line and "trial" not in line][-1] == (
        "best found"
    )
    assert (tmp_path / "product.db").exists()


def test_the_page_about_ways_to_a_schedule(tmp_path: Path) -> None:
    names = run("schedules.md", tmp_path)
    assert names["result"].record is not None
    assert names["schedule"] is not None
    a, b = np.ones((32, 16), np.float32), np.ones((16, 48), np.float32)
    np.testing.assert_array_equal(names["kernel"](a, b), a @ b)


def test_the_page_about_own_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("own-parts.md", tmp_path)
    assert "T.vectorized" in capsys.readouterr().out
    assert (tmp_path / "session" / "logs").is_dir()


def test_the_commands_of_the_command_line_run(examples: Path, tmp_path: Path) -> None:
    """In their order, in a folder that has the examples; trials and seconds are few."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    text = next(text for kind, text in pages.blocks(ROOT / "docs/command-line.md") if not kind)
    commands = text.strip().splitlines()
    assert {command.split()[1] for command in commands} >= {"tune", "show", "db", "info"}
    for command in commands:
        arguments = re.sub(r"--(trials|seconds) \d+", r"--\1 2", command).split()[1:]
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout
