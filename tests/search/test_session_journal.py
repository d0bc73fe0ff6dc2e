"""The journal of a session: what is written after a line that was cut off."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright.meta_schedule.builder import BuilderResult
from tilewright.meta_schedule.runner import RunnerResult
from tilewright.meta_schedule.session_journal import SessionJournal


def journal_in(folder: Path) -> SessionJournal:
    context = SimpleNamespace(target=None, mod=Product, seed=1, task_name="t", space_generator=None)
    context.search_strategy = None
    return SessionJournal(folder, context, 8, None, None)


def candidate(factor: int) -> Any:
    sch = tw.Schedule(Product)
    sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, factor])
    return SimpleNamespace(sch=sch)


def note(journal: SessionJournal, of: Any, seconds: float) -> None:
    journal.note([of], [BuilderResult("", None)], [RunnerResult([seconds], None)])


@pytest.mark.parametrize("kept", [1, 20, -2, -1])
def test_a_line_that_was_cut_off_takes_no_other_with_it(kept: int, tmp_path: Path) -> None:
    first, second, third = map(candidate, (2, 4, 8))
    note(journal_in(tmp_path), first, 1.0)
    (file,) = (tmp_path / "sessions").iterdir()
    whole = file.read_bytes()
    note(journal_in(tmp_path), second, 2.0)
    cut = file.read_bytes()[len(whole) :][:kept]
    file.write_bytes(whole + cut)
    note(journal_in(tmp_path), third, 3.0)
    again = journal_in(tmp_path)
    found = [again.take(each) for each in (first, second, third)]
    is_complete = kept == -1  # only the end of the line is missing
    expected = [[1.0], [2.0] if is_complete else None, [3.0]]
    assert [each and each[1].run_secs for each in found] == expected


def test_a_full_disk_ends_no_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = journal_in(tmp_path)
    (tmp_path / "sessions").mkdir()
    journal._path.symlink_to("/dev/full")
    for _ in range(2):
        note(journal, candidate(2), 1.0)
    assert caplog.text.count("cannot be written: No space left on device") == 1
    assert journal_in(tmp_path / "other").take(candidate(2)) is None


@pytest.mark.parametrize("seconds", ["5", '"abc"', '["x"]', "{}", "[[1.0]]", "[1" + "0" * 400 + "]"])
def test_lines_with_something_else_than_seconds_are_measured_again(seconds: str, tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    note(journal, candidate(2), 1.0)
    note(journal, candidate(4), 2.0)
    journal._path.write_text(journal._path.read_text().replace("[1.0]", seconds))
    again = journal_in(tmp_path)
    assert again.take(candidate(2)) is None
    known = again.take(candidate(4))
    assert known is not None and known[1].run_secs == [2.0]
