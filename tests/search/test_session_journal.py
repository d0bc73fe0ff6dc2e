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
