"""Databases that cannot be used, and folders and disks that take nothing: told, with every record so far kept."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.search.programs import scale, tiles
from typer.testing import CliRunner, Result

import tilewright as tw
from tilewright import _core
from tilewright.cli.commands import app
from tilewright.database import records
from tilewright.database.records import open_database
from tilewright.errors import Error

SCRIPT = """\
import tilewright as tw
from tilewright.script import tir as T
from tilewright.search import session

session.roofline_bound = lambda task, target: 0.0  # searches shall not end at the limits of the machine


@T.prim_func
def scale(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
    for i, j in T.grid(64, 96):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


@tw.space(scale)
def tiles(sch):
    i, j = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=3))
    sch.split(j, factors=sch.sample_perfect_tile(j, n=3))
"""


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Result]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return lambda *options: CliRunner().invoke(app, ["tune", str(script), "--trials", "2", "--quiet", *options])


def count_records(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        # The program as written has a record too where it wins.
        return int(connection.execute("SELECT count(*) FROM record WHERE position >= 0").fetchone()[0])


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def scribble(file: Path) -> None:
    file.write_text("these are notes, not records")


def make_newer(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")


def take_over(file: Path) -> None:
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE mine (x)")


@pytest.mark.parametrize(
    ("spoil", "code", "message"),
    [
        (truncate, "database/damaged", "the database is truncated"),
        (scribble, "database/not-a-database", "is not a database"),
        (take_over, "database/not-a-database", "not one of Tilewright's"),
        (make_newer, "database/newer-version", "written by a later version of Tilewright"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_alone(
    spoil: Callable[[Path], None], code: str, message: str, tmp_path: Path, command: Callable[..., Result]
) -> None:
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=2, database=file, progress=None)
    spoil(file)
    before = file.read_bytes()
    with pytest.raises(tw.ResourceError, match=message) as caught:
        tw.tune(scale, space=tiles, trials=2, database=file, progress=None)
    assert caught.value.code == code and str(file) in str(caught.value) and "hint:" in str(caught.value)
    result = command("--database", str(file), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert str(file) in result.stderr and message in result.stderr and "hint:" in result.stderr
    assert file.read_bytes() == before


def test_a_database_that_is_locked(
    tmp_path: Path, command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "BUSY_SECONDS", 0.5)
    file = tmp_path / "t.db"
    tw.tune(scale, space=tiles, trials=2, database=file, progress=None)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = command("--database", str(file), "--out", str(tmp_path / "out"), "--fresh")
        assert result.exit_code == 1
        assert (
            "another process keeps the database locked" in result.stderr and "hint: close the program" in result.stderr
        )
        other.execute("ROLLBACK")
    assert count_records(file) == 2


def test_one_that_gets_locked_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BUSY_SECONDS", 0.5)
    file = tmp_path / "t.db"
    other: list[sqlite3.Connection] = []

    def lock(progress: tw.search.Progress) -> None:
        if progress.trials >= 3 and not other:
            other.append(sqlite3.connect(file, isolation_level=None))
            other[0].execute("BEGIN IMMEDIATE")

    with pytest.raises(tw.ResourceError, match="keeps the database locked") as caught:
        tw.tune(scale, space=tiles, trials=200, database=file, progress=lock)
    assert caught.value.code == "database/locked"
    other[0].close()
    kept = count_records(file)
    assert kept >= 3
    result = tw.tune(scale, space=tiles, trials=kept + 1, database=file, progress=None)
    assert (result.progress.earlier, result.progress.trials) == (kept, kept + 1)


def test_a_folder_that_takes_nothing(tmp_path: Path, command: Callable[..., Result]) -> None:
    # Nobody can make files in /sys, not even root; and a file is no folder.
    (tmp_path / "file").write_text("")
    for place in (Path("/sys/tilewright"), tmp_path / "file" / "out"):
        result = command("--out", str(place))
        assert result.exit_code == 1
        assert f"error: {place}: nothing can be written there: " in result.stderr
        assert "hint: choose another folder with --out" in result.stderr
        with pytest.raises(tw.ResourceError, match="the folder for the database cannot be made"):
            tw.tune(scale, space=tiles, trials=1, database=place / "t.db", progress=None)
    result = command("--out", str(tmp_path / "out"), "--database", "/sys/kernel/t.db")
    assert result.exit_code == 1
    assert "/sys/kernel/t.db: cannot be opened" in result.stderr


def tune_with_limit(folder: Path, limit: int, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files cannot grow beyond `limit` bytes: as on a disk that is full."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "python")}
    return subprocess.run(
        [sys.executable, "-m", "tilewright", "tune", "script.py", "--quiet", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def test_a_disk_that_gets_full(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    full = tune_with_limit(tmp_path, 300_000, "--trials", "200")
    assert full.returncode == 1, full.stderr
    assert re.search(r"error: \[database/full\] out/tilewright.db: .*no space left", full.stderr)
    assert "hint: free some space and run again; the records committed so far are kept" in full.stderr
    kept = count_records(tmp_path / "out" / "tilewright.db")
    assert 0 < kept < 200
    # There is room again: the session goes on.
    result = tw.tune(scale, space=tiles, trials=kept + 1, database=tmp_path / "out" / "tilewright.db", progress=None)
    assert result.record is not None and result.progress.trials == kept + 1


def test_a_disk_without_room_for_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    assert (
        CliRunner()
        .invoke(
            app, ["tune", str(tmp_path / "script.py"), "--trials", "2", "--quiet", "--out", str(tmp_path / "first")]
        )
        .exit_code
        == 0
    )
    before = count_records(tmp_path / "first" / "tilewright.db")
    full = tune_with_limit(tmp_path, 40_000, "--trials", "2", "--database", "first/tilewright.db", "--out", "second")
    assert full.returncode == 1
    assert "second" in full.stderr and "hint:" in full.stderr and "Traceback" not in full.stderr
    assert count_records(tmp_path / "first" / "tilewright.db") == before


def test_a_hash_that_is_none() -> None:
    with pytest.raises(tw.ArgumentError, match="not a hash of 32 hexadecimal digits") as caught:
        _core.Database.in_memory().top_k("matmul", "", 1)
    assert caught.value.code == "search/hash"
    with pytest.raises(tw.ArgumentError, match="not a hash of 32 hexadecimal digits"):
        _core.Record(workload="matmul")
    with pytest.raises(TypeError, match="workload is of another type"):
        _core.Record(workload=3)


def said_when_opened(folder: Path, name: str) -> str:
    """By another user, since root may write everywhere."""
    folder.chmod(0o555)
    come, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 0)
        try:
            open_database(name)
            text = "opened"
        except BaseException as error:
            text = f"{getattr(error, 'code', '')} {error}"
            if isinstance(error, Error) and os.getresuid()[2] == 0:
                os.seteuid(0)
                error.code = error.code  # the other user may have no way into the folder where codes are noted
        os.write(go, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(go)
    with open(come, "rb") as stream:
        text = stream.read().decode()
    folder.chmod(0o755)
    return text


def test_a_folder_that_may_not_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    text = said_when_opened(tmp_path, "here.db")
    assert text.startswith("database/no-permission here.db: the database cannot be made: no permission to write")
    assert str(tmp_path) in text and "hint: choose another place" in text and "No such file" not in text


def test_of_a_file_in_such_a_folder_it_is_not_said_that_it_is_not_there(tmp_path: Path) -> None:
    """The log beside it is not, and cannot be made."""
    store = open_database(tmp_path / "here.db")
    del store
    (tmp_path / "here.db").chmod(0o666)
    for beside in tmp_path.glob("here.db-*"):
        beside.unlink()
    text = said_when_opened(tmp_path, "here.db")
    assert "the database cannot be written: its folder is read-only (Permission denied)" in text
    assert text.startswith("database/read-only") and "No such file" not in text
