"""Ctrl-C at any moment: a clear line, status 130, the records so far kept, and the same command continues."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.search import session
from tilewright.search.interrupts import Interrupts

from .test_database_faults import SCRIPT, scale, tiles

PYTHON = Path(__file__).resolve().parents[2] / "python"


#: The command, which says when Ctrl-C is its own and no longer Python's.
BEGINNING = """
from tilewright.support import early_interrupts
early_interrupts.begin()
print("begun")
from tilewright.__main__ import main
main()
"""


def start(folder: Path, *options: str, command: tuple[str, str] = ("-m", "tilewright")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", *command, "tune", "script.py", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PYTHON)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def indices(folder: Path) -> list[int]:
    file = folder / "out" / "tilewright.db"
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return [
            row[0] for row in connection.execute("SELECT position FROM record WHERE position >= 0 ORDER BY position")
        ]


def test_at_any_moment(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    kept: list[int] = []
    statuses = []
    # From the imports over the first candidates to whatever comes after the search.
    for delay in (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.1, 1.5):
        process = start(tmp_path, "--trials", "30", "--quiet", command=("-c", BEGINNING))
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=60)
        # CPython ends itself by the signal where it came in the middle of an exec() of a library: 130 in a shell, too.
        status = 130 if process.returncode == -signal.SIGINT else process.returncode
        statuses.append(status)
        assert status in (0, 130), problems
        assert "Traceback" not in problems
        if status == 130 and problems:  # nothing can be said before there is a program
            assert "interrupted" in problems
        now = indices(tmp_path)
        assert set(kept) <= set(now)
        kept = now
    assert 130 in statuses
    last = start(tmp_path, "--trials", "30", "--quiet")
    last.communicate(timeout=120)
    assert last.returncode == 0
    assert indices(tmp_path) == list(range(30))


@pytest.mark.parametrize("phase", ["reference", "search"])
def test_in_each_phase(phase: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = start(tmp_path, "--trials", "400", "--json")
    assert process.stdout is not None
    for line in process.stdout:
        if f'"phase": "{phase}"' in line:
            break
    process.send_signal(signal.SIGINT)
    _, problems = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = len(indices(tmp_path))
    if kept == 0:
        assert "interrupted before the first of 400 trials; what out/tilewright.db holds is as it was" in problems
    else:
        assert f"interrupted after {kept} of 400 trials" in problems and "kept in out/tilewright.db" in problems
    assert "the same command continues" in problems


def test_in_the_users_own_code(tmp_path: Path) -> None:
    text = SCRIPT.replace(
        "def tiles(sch):\n", "def tiles(sch):\n    wait(int(sch.sample_categorical([0, 1], [0.5, 0.5])))\n"
    )
    waits = "import pathlib\nimport time\n\n\ndef wait(value):\n    if pathlib.Path('out/tilewright.db').exists():\n"
    waits += "        pathlib.Path('waits').touch()\n        while True:\n            pass\n\n\n"
    (tmp_path / "script.py").write_text(waits + text)
    process = start(tmp_path, "--trials", "8", "--quiet")
    while not (tmp_path / "waits").exists():
        time.sleep(0.02)
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, problems = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in problems and "Traceback" not in problems
    assert time.monotonic() - before < 5  # long before the deadline of the space


IMPORTING = """
import signal


class Interrupted:
    def __set_name__(self, owner, name):  # RuntimeError in Python 3.11
        signal.raise_signal(signal.SIGINT)
        raise RuntimeError("what a library makes of it") from KeyboardInterrupt()


"""
A_CLASS = "class Made:\n    member = Interrupted()\n"


@pytest.mark.parametrize("where", ["script", "space", "limits"])
def test_in_the_middle_of_an_import(where: str, tmp_path: Path) -> None:
    inside = A_CLASS.replace("\n", "\n    ").rstrip(" ")
    text = {
        "script": IMPORTING + A_CLASS + SCRIPT,
        "space": IMPORTING + SCRIPT.replace("def tiles(sch):\n", f"def tiles(sch):\n    {inside}"),
        "limits": IMPORTING + SCRIPT + f"\n\ndef made(task, target):\n    {inside}\n\nsession.roofline_bound = made\n",
    }[where]
    (tmp_path / "script.py").write_text(text)
    process = start(tmp_path, "--trials", "400")
    output, problems = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in problems and "defect" not in problems + output


def test_from_python_the_result_so_far_is_returned(tmp_path: Path) -> None:
    def interrupt(progress: tw.search.Progress) -> None:
        if progress.trials >= 3:
            signal.raise_signal(signal.SIGINT)

    before: Any = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):  # the second one is not held back
        tw.tune(scale, space=tiles, trials=100, database=tmp_path / "a.db", progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before

    sent: list[int] = []

    def interrupt_once(progress: tw.search.Progress) -> None:
        if progress.trials >= 3 and not sent:
            sent.append(progress.trials)
            signal.raise_signal(signal.SIGINT)

    result = tw.tune(scale, space=tiles, trials=100, database=tmp_path / "b.db", progress=interrupt_once)
    assert result.stop_reason == "canceled" and result.record is not None
    assert sent[0] <= result.progress.trials < 100
    again = tw.tune(scale, space=tiles, trials=result.progress.trials + 1, database=tmp_path / "b.db", progress=None)
    assert again.progress.earlier == result.progress.trials and again.stop_reason == "trials"


PREPARING = """
import pathlib
import time


def wait(task, threads):
    pathlib.Path("waits").touch()
    while True:
        time.sleep(0.01)


session.roofline_bound = wait
"""


def test_while_the_limits_of_the_machine_are_measured(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT + PREPARING)
    process = start(tmp_path, "--trials", "400")
    while not (tmp_path / "waits").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, problems = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    kept = "what out/tilewright.db holds is as it was, and the same command continues"
    assert problems == f"interrupted before the search began; {kept}\n"


def interrupting(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return function(*args, **options)

    return call


def test_before_the_first_trial_the_result_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before: Any = signal.getsignal(signal.SIGINT)
    database = tmp_path / "a.db"
    first = tw.tune(scale, space=tiles, trials=2, database=database, progress=None)
    results = [tw.tune(scale, space=interrupting(tiles), trials=40, database=database, progress=None)]
    for name in ("roofline_bound", "task_of", "traces_of_relatives"):  # our own code may be what is interrupted, too
        with monkeypatch.context() as patch:
            patch.setattr(session, name, interrupting(getattr(session, name)))
            results.append(tw.tune(scale, space=tiles, trials=40, database=database, progress=None))
    for result in results:
        assert (result.stop_reason, result.record, result.progress.phase) == ("canceled", None, "preparing")
        assert (result.progress.trials, result.progress.total) == (0, 40) and "0 trials (canceled)" in repr(result)
        assert len(result.table().rows) == 0 and result.time_table().rows
        with pytest.raises(tw.ResourceError, match="before its first trial") as error:
            result.kernel.export(tmp_path)
        assert error.value.code == "tune/canceled"
    assert signal.getsignal(signal.SIGINT) is before
    again = tw.tune(scale, space=tiles, trials=2, database=database, progress=None)
    assert again.progress.earlier == 2 and again.record == first.record


def test_a_module_whose_first_search_was_interrupted_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "roofline_bound", interrupting(session.roofline_bound))
    module = tw.ir.IRModule({name: scale.with_attr("global_symbol", name) for name in ("f", "g")})
    found = tw.tune(module, trials=40, progress=None)
    assert found["f"].progress.phase == "preparing" and found.untuned == {"g": "the search was canceled before"}
    assert "canceled" in str(found.table())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_ctrl_c_that_python_drops_counts() -> None:
    """An exception in a finalizer is printed and forgotten; the next look at `seen` still tells."""

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with Interrupts() as interrupts, interrupts.raised():
        Finalized()
        assert interrupts.seen
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_what_must_not_be_left_half_done_is_ended_first() -> None:
    done = []
    with Interrupts() as interrupts, interrupts.raised():
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("first")
            with interrupts.deferred():
                done.append("inside")
        assert done == ["first", "inside"]
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # the second one is never deferred
            signal.raise_signal(signal.SIGINT)
