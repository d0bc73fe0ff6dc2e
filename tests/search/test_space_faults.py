"""Spaces that raise, loop, have no valid point or run dry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.search.programs import scale
from typer.testing import CliRunner, Result

import tilewright as tw
from tilewright import _core
from tilewright.cli.commands import app
from tilewright.search import space_samples

PROGRAM = """\
import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def scale(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
    for i, j in T.grid(64, 96):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


@tw.space(scale)
def tiles(sch):
"""


def tune_file(folder: Path, body: str, *options: str) -> Result:
    script = folder / "script.py"
    script.write_text(PROGRAM + body)
    return CliRunner().invoke(app, ["tune", str(script), "--quiet", "--out", str(folder / "out"), *options])


def test_a_step_that_is_refused_names_space_and_line(tmp_path: Path) -> None:
    def asks(sch: tw.Schedule) -> None:
        sch.get_block("Z")

    with pytest.raises(tw.ScheduleError, match=r"Cannot find a block") as caught:
        tw.tune(scale, space=asks, trials=1, progress=None)
    text = str(caught.value)
    assert caught.value.code == "get_block/P2" and text.count('sch.get_block("Z")') == 1
    assert "\n  in the space 'asks'\n" in text and "test_space_faults.py:" in text and "hint: the blocks of" in text
    result = tune_file(tmp_path, '    sch.get_block("Z")\n')
    assert result.exit_code == 1 and result.stderr.count('sch.get_block("Z")') == 1


def test_how_many_draws_were_refused_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def some(sch: tw.Schedule) -> None:
        (i, _) = sch.get_loops("Y")
        if int(sch.get(sch.sample_categorical([1, 2, 3, 4], [0.25] * 4))) > 1:
            sch.split(i, factors=[0, 1])

    result = tw.tune(scale, space=some, trials=3, progress="plain")
    assert result.progress.refused
    said = f"refused: {result.progress.refused} of {result.progress.attempts} samples, most by split/"
    assert said in result.table().title and said in capsys.readouterr().out


def test_a_space_that_raises(tmp_path: Path) -> None:
    def raises(sch: tw.Schedule) -> None:
        raise KeyError("tile")

    with pytest.raises(tw.ScheduleError, match="the space 'raises' raised KeyError: 'tile'") as caught:
        tw.tune(scale, space=raises, trials=1, progress=None)
    assert 'raise KeyError("tile")' in str(caught.value) and "hint: try it alone" in str(caught.value)
    result = tune_file(tmp_path, '    raise KeyError("tile")\n')
    assert result.exit_code == 1
    assert "the space 'tiles' raised KeyError: 'tile'" in result.stderr
    assert 'raise KeyError("tile")' in result.stderr and "script.py:15" in result.stderr


def test_one_that_raises_now_and_then_is_data() -> None:
    def raises_at_times(sch: tw.Schedule) -> None:
        i, _ = sch.get_loops(sch.get_block("Y"))
        if int(sch.sample_categorical([0, 1, 2, 3], [0.25] * 4)) == 2:
            raise ValueError("two is not to be had")
        sch.split(i, factors=sch.sample_perfect_tile(i, n=2))

    result = tw.tune(scale, space=raises_at_times, trials=4, seed=first_valid(raises_at_times), progress=None)
    assert result.record is not None and result.progress.trials == 4
    count, message = result.progress.failures["space/exception"]
    assert count == result.progress.refused and "two is not to be had" in message


@pytest.mark.parametrize("answer", [False, True])
def test_draws_that_raise_are_counted_under_one_code(answer: bool) -> None:
    """The first draw of a session, which decides whether there is a space at all, and those after it."""
    drawn: list[int] = []

    @tw.space(scale)
    def now_and_then(sch: tw.Schedule) -> object:
        drawn.append(int(sch.sample_categorical(list(range(16)), [1 / 16] * 16)))
        sch.annotate(sch.get_block("Y"), "note", drawn[-1])
        if len(drawn) == 1 or drawn[-1] % 4 == 0:
            if answer:
                return sch
            raise ValueError("this one is not to be had")
        return None

    result = tw.tune(now_and_then, trials=8, progress=None)
    assert set(result.progress.failures) == {"space/exception"}
    assert result.progress.failures["space/exception"][0] >= 1


def test_a_space_that_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.3)

    def loops(sch: tw.Schedule) -> None:
        while True:
            pass

    with pytest.raises(tw.ResourceError, match=r"the space 'loops' did not return within 0.3 s") as caught:
        tw.tune(scale, space=loops, trials=1, progress=None)
    assert caught.value.code == "space/deadline"
    result = tune_file(tmp_path, "    while True:\n        pass\n")
    assert result.exit_code == 1
    assert "the space 'tiles' did not return within 0.3 s" in result.stderr and "hint: look for a loop" in result.stderr


def test_one_that_loops_for_some_values_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.3)

    def loops_at_times(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        value = int(sch.sample_categorical(list(range(64)), [1 / 64] * 64))
        while value % 8 == 3 and seed_is_known:
            pass
        if value % 8 == 3:
            raise ValueError("not with this seed")
        sch.split(i, factors=[None, value + 2])
        sch.split(j, factors=sch.sample_perfect_tile(j, n=2))

    seed_is_known = False
    seed = first_valid(loops_at_times)
    seed_is_known = True
    result = tw.tune(scale, space=loops_at_times, trials=20, seed=seed, database=tmp_path / "t.db", progress=None)
    assert result.progress.refusals["space/deadline"][0] >= 3
    store = _core.Database.open(str(tmp_path / "t.db"), read_only=True)
    (workload,) = store.workloads()
    positions = [record.index for record in store.records(workload.hash, "")]
    assert len([place for place in positions if place >= 0]) == result.progress.trials > 3


NO_VALID_POINT = """\
    block = sch.get_block("Y")
    tile = sch.cache_write(block, 0, "local")
    sch.split(sch.get_loops(block)[0], factors=[None, sch.sample_categorical([2, 4, 8], [1 / 3] * 3)])
"""


def test_a_space_without_a_valid_point(tmp_path: Path) -> None:
    def too_large(sch: tw.Schedule) -> None:
        block = sch.get_block("Y")
        sch.cache_write(block, 0, "local")  # all 24 KiB of it
        sch.split(sch.get_loops(block)[0], factors=[None, sch.sample_categorical([2, 4, 8], [1 / 3] * 3)])

    result = tw.tune(scale, space=too_large, trials=4, progress=None)
    assert result.stop_reason == "exhausted" and result.record is None
    assert (result.progress.trials, result.progress.refused) == (0, 3)
    assert list(result.progress.failures) == ["lower/not-in-registers"]
    with pytest.raises(
        tw.ResourceError, match=r"the space has no valid point: 3 of \d+ samples were refused"
    ) as caught:
        _ = result.schedule
    assert caught.value.code == "tune/no-valid-point"
    assert "its 24576 bytes are more than" in str(caught.value)
    command = tune_file(tmp_path, NO_VALID_POINT)
    assert command.exit_code == 1
    assert "error: the space has no valid point" in command.stderr and "hint: apply it to" in command.stderr


def test_a_primitive_that_always_refuses() -> None:
    def twice(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        sch.vectorize(j)
        sch.split(j, factors=[None, 8])

    with pytest.raises(tw.ScheduleError, match="split"):
        tw.tune(scale, space=twice, trials=1, progress=None)


def test_as_many_candidates_as_were_asked_for_though_most_draws_are_refused() -> None:
    def mostly_refused(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        value = int(sch.sample_categorical(list(range(200)), [1 / 200] * 200))
        if value % 20:
            raise ValueError(f"{value} is none of the ten that are valid")
        sch.split(i, factors=[None, value + 2])

    result = tw.tune(scale, space=mostly_refused, trials=10, seed=first_valid(mostly_refused), progress=None)
    assert result.stop_reason == "trials" and result.progress.trials == 10
    assert result.progress.refused > 50


def first_valid(space: Callable[[tw.Schedule], None]) -> int:
    """A seed for tw.tune whose first sample, which has to succeed, is a valid one."""
    for seed in range(1000):
        try:
            space(tw.Schedule(scale, seed=seed + 1))
        except ValueError:
            continue
        return seed
    raise AssertionError("no seed is valid")


def test_a_space_that_runs_dry_says_so(tmp_path: Path) -> None:
    def five(sch: tw.Schedule) -> None:
        i, _ = sch.get_loops(sch.get_block("Y"))
        sch.split(i, factors=[None, sch.sample_categorical([2, 4, 8, 16, 32], [0.2] * 5)])

    result = tw.tune(scale, space=five, trials=64, database=tmp_path / "t.db", progress=None)
    assert result.stop_reason == "exhausted" and result.progress.trials == 5
    again = tw.tune(scale, space=five, trials=64, database=tmp_path / "t.db", progress=None)
    assert again.stop_reason == "exhausted" and again.progress.earlier == 5
    assert again.record == result.record
