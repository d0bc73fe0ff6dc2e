"""Paths that are not UTF-8: scripts lie there as anywhere; what the core would open is refused by its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright import script
from tilewright.cli.commands import app
from tilewright.cli.user_script import load_script
from tilewright.meta_schedule.session_logs import SessionLogs
from tilewright.testing import everyday

PROGRAM = """import tilewright as tw
from tilewright.script import tir as T

@T.prim_func
def double(A: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("double"):
            vi = T.axis.spatial(64, i)
            A[vi] = A[vi] * T.float32(2)
"""
SPACE = """
@tw.space(double)
def tiles(sch):
    sch.get_block("triple")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / os.fsdecode(b"caf\xe9")
    made.mkdir()
    return made


def test_scripts(folder: Path) -> None:
    file = folder / "double.py"
    file.write_text(PROGRAM + SPACE)
    module = load_script(file)  # the decorator finds its text
    assert len(tw.Schedule(module.double).get_loops("double")) == 1
    result = CliRunner().invoke(app, ["tune", str(file), "--out", str(folder.parent)])
    assert r"caf\udce9/double.py:13:5" in result.stderr and 'sch.get_block("triple")' in result.stderr


def test_mistakes_in_scripts_show_the_line(folder: Path) -> None:
    file = folder / "double.py"
    file.write_text(PROGRAM.replace("A[vi] * ", "B[vi] * ").replace("import tilewright as tw\n", ""))
    with pytest.raises(tw.ScriptError) as caught:
        script.from_file(file)
    assert r"caf\udce9/double.py:8:21" in str(caught.value) and "A[vi] = B[vi] * T.float32(2)" in str(caught.value)
    str(caught.value).encode()  # it can be printed


@pytest.mark.parametrize("name", ["caf\udce9", "zero\0"])
@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda program, path: tw.tune(program, trials=1, database=path, progress=None), "database is"),
        (lambda program, path: tw.compile(program, database=path), "database is"),
        (lambda program, path: ms.SQLiteDatabase(path), "database is"),
        (lambda program, path: tw.compile(program).export(path), "folder is"),
        (lambda program, path: tw.load(path), "path is"),
    ],
)
def test_what_the_core_would_open(use: Callable[[Any, str], Any], said: str, name: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/{name}/x"
    with pytest.raises(tw.ArgumentError) as caught:
        use(script.from_source(PROGRAM), path)
    assert caught.value.code == "arguments/path" and str(caught.value).startswith(said)
    assert repr(path) in str(caught.value) and "hint:" in str(caught.value)


def test_commands_on_databases(folder: Path) -> None:
    for command in ("db", "report"):
        result = CliRunner().invoke(app, [command, str(folder / "records.db")])
        assert result.exit_code == 1 and r"caf\udce9/records.db', which is not UTF-8 text" in result.stderr


def test_databases_of_lines_lie_anywhere(folder: Path) -> None:
    database = ms.JSONDatabase(work_dir=folder)
    database.commit_workload(tw.Schedule(script.from_source(PROGRAM)).mod)
    assert (folder / "database_workload.json").stat().st_size > 0


@pytest.mark.parametrize("path", [3, None, b"bytes"])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(TypeError, match=r"path is .*; it is the path of a file"):
        tw.load(path)


@pytest.mark.parametrize("call", ["tune", "compile"])
def test_a_path_that_is_too_long_is_told_of(call: str) -> None:
    with pytest.raises(tw.ArgumentError, match="database is a path of 300 characters") as error:
        getattr(tw, call)(everyday.attention(1, 4, 4), database="x" * 300)
    assert error.value.code == "arguments/path"


def test_the_name_of_a_task_fits_in_that_of_its_log(tmp_path: Path) -> None:
    for letter in ("a", "ä", "積", "𝔸"):
        with SessionLogs(tmp_path / letter, [letter * 300, letter]) as logs:
            for task in logs.tasks:
                task.info("told")
        written = sorted((tmp_path / letter / "logs").glob("*.task_[01]_*"))
        assert len(written) == 2 and all("told" in path.read_text() for path in written)
        assert all(letter * 50 in path.name for path in written[:1])
