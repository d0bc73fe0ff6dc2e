"""The seconds that a search may take hold for all of it, whatever does not come back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from tests.search.programs import scale
from typer.testing import CliRunner

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.script import tir as T
from tilewright.search import deadline, session, space_samples
from tilewright.search.budget import share_of


@T.prim_func
def forever(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    while B[0] == A[0]:
        B[1] = A[1] + 1


#: seconds that a busy machine may need for what the budget does not say: starting and ending processes
SLACK = 6.0


def test_a_program_that_never_ends() -> None:
    begin = time.monotonic()
    with pytest.raises(tw.ResourceError, match=r"'forever' as it was written.* did not come back before") as caught:
        tw.tune(forever, seconds=2.0, progress=None)
    assert time.monotonic() - begin < 2.0 + SLACK
    assert caught.value.code == "tune/reference" and "does it end?" in str(caught.value)


FILE = """\
from tilewright.script import tir as T


@T.prim_func
def forever(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]
    while B[0] == A[0]:
        B[1] = A[1] + 1


@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
"""


def test_the_other_programs_of_a_file_are_tuned(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(FILE)
    out = tmp_path / "out"
    begin = time.monotonic()
    options = ["--seconds", "2", "--trials", "2", "--quiet", "--out", str(out)]
    result = CliRunner().invoke(app, ["tune", str(tmp_path / "script.py"), *options])
    assert time.monotonic() - begin < 2 * 2 + 2 * SLACK
    assert result.exit_code == 1 and "space 'forever': [tune/reference]" in result.stderr
    assert "did not come back before" in result.stderr
    assert (out / "double.so").exists() and not (out / "forever.so").exists()


def test_the_seconds_are_for_all_programs(tmp_path: Path) -> None:
    """Each gets its share of what is left, and none is left out where another one took too long."""
    assert share_of(None, 3.0, 3, 1) is None and share_of(9.0, 0.1, 1, 0) == 9.0
    assert [share_of(9.0, spent, 3, at) for at, spent in enumerate((0.0, 3.0, 6.0))] == [3.0] * 3
    assert share_of(9.0, 1.0, 3, 1) == 4.0
    assert share_of(9.0, 20.0, 3, 2) == pytest.approx(1.5)
    double = FILE.partition("@T.prim_func\ndef double")
    assert double[1]
    one = double[1] + double[2]
    (tmp_path / "three.py").write_text(
        double[0].partition("@T.prim_func")[0] + "".join(one.replace("double", f"double{i}") for i in range(3))
    )
    given: list[float] = []
    tune = session.tune
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            session, "tune", lambda *args, **options: (given.append(options["seconds"]), tune(*args, **options))[1]
        )
        options = ["--seconds", "12", "--trials", "2", "--quiet", "--out", str(tmp_path / "out")]
        assert CliRunner().invoke(app, ["tune", str(tmp_path / "three.py"), *options]).exit_code == 0
    assert len(given) == 3 and given[0] <= 4.0 and max(given) < 12.0


def test_the_time_that_is_shown_is_never_more_than_what_is_left() -> None:
    seen: list[tuple[float, float]] = []
    begin = time.monotonic()

    def watch(progress: session.Progress) -> None:
        seen.append((progress.time_left, 4.0 - (time.monotonic() - begin)))

    tw.tune(scale, seconds=4.0, trials=100_000, progress=watch)
    assert seen and all(shown <= max(left, 0.0) + 0.5 for shown, left in seen)


def test_a_session_of_tasks_ends_too(tmp_path: Path) -> None:
    options = {"strategy": "replay-trace", "cost_model": "none", "database": "memory", "max_seconds": 2.0}
    begin = time.monotonic()
    with pytest.raises(tw.ResourceError, match="'forever' as it was written") as caught:
        ms.tune_tir(forever, "llvm -num-cores=1", tmp_path, 4, **options)
    assert caught.value.code == "tune/reference" and time.monotonic() - begin < 2.0 + SLACK


def sleeps_at_times(sch: tw.Schedule, value: int) -> None:
    if value % 8 == 3:
        time.sleep(1000)  # in C: no exception between two bytecodes ends it
    i, j = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=[None, value + 2])
    sch.split(j, factors=sch.sample_perfect_tile(j, n=2))


def test_draws_that_do_not_return_are_counted_and_the_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.3)

    def space(sch: tw.Schedule) -> None:
        sleeps_at_times(sch, int(sch.sample_categorical(list(range(64)), [1 / 64] * 64)))

    result = tw.tune(scale, space=space, trials=24, progress=None)
    assert result.record is not None and result.progress.trials == 24 and result.stop_reason == "trials"
    count, message = result.progress.refusals["space/deadline"]
    assert count >= 1 and "the space 'space' did not return within 0.3 s" in message


def test_the_very_first_draw_may_be_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.3)
    runs = []

    def space(sch: tw.Schedule) -> None:
        value = int(sch.sample_categorical(list(range(64)), [1 / 64] * 64))
        runs.append(value)
        sleeps_at_times(sch, 3 if len(runs) == 1 else 4 * (value // 4))

    result = tw.tune(scale, space=space, trials=4, progress=None)
    assert result.record is not None and result.progress.trials == 4
    assert result.progress.refusals["space/deadline"][0] == 1 and result.progress.refused >= 1


def test_the_time_that_each_run_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first has the whole deadline; the others only so much more than those took that came back.

    The second and the 16 after it show what the space draws.
    """
    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.6)
    monkeypatch.setattr(space_samples, "_LEAST_DEADLINE", 0.2)
    runs = []

    def space(sch: tw.Schedule) -> None:
        value = int(sch.sample_categorical(list(range(64)), [1 / 64] * 64))
        runs.append(value)
        sleeps_at_times(sch, 3 if len(runs) in (1, 20) else 4 * (value // 4))

    result = tw.tune(scale, space=space, trials=6, progress=None)
    count, message = result.progress.refusals["space/deadline"]
    assert count >= 2 and "the space 'space' did not return within 0.2 to 0.6 s" in message


def test_a_space_that_never_returns_ends_in_time() -> None:
    def space(sch: tw.Schedule) -> None:
        if sch.sample_categorical(list(range(64)), [1 / 64] * 64) is not None:
            time.sleep(1000)

    begin = time.monotonic()
    with pytest.raises(tw.ResourceError, match="did not return within"):
        tw.tune(scale, space=space, trials=4, seconds=1.0, progress=None)
    assert time.monotonic() - begin < 1.0 + SLACK


def test_slow_draws_do_not_take_more_than_the_budget() -> None:
    def space(sch: tw.Schedule) -> None:
        i, j = sch.get_loops(sch.get_block("Y"))
        value = int(sch.sample_categorical(list(range(512)), [1 / 512] * 512))
        time.sleep(0.2)
        sch.split(i, factors=[None, value + 2])
        sch.split(j, factors=sch.sample_perfect_tile(j, n=2))

    begin = time.monotonic()
    result = tw.tune(scale, space=space, trials=10_000, seconds=3.0, progress=None)
    assert time.monotonic() - begin < 3.0 + SLACK
    assert result.stop_reason == "seconds" and result.record is not None


def test_a_limit_in_another_thread_ends_loops_of_python() -> None:
    found = []

    def loop() -> None:
        try:
            with deadline.limit(0.2, "the loop did not end"):
                while True:
                    pass
        except tw.ResourceError as error:
            found.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join(30)
    (error,) = found
    assert error.code == "space/deadline"


def test_nothing_is_left_behind_where_the_code_returns_in_time() -> None:
    before = threading.active_count()
    for _ in range(20):
        with deadline.limit(0.01, "it did not end"):
            pass
    time.sleep(0.05)
    assert threading.active_count() == before


def test_time_in_which_others_have_the_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = time.monotonic()
    # As if this thread had been ready to run, and had waited, half of the time.
    monkeypatch.setattr(deadline, "_waited", lambda thread: 0.5 * (time.monotonic() - begin))
    with deadline.limit(0.3, "it did not end"):
        time.sleep(0.45)
    with pytest.raises(tw.ResourceError, match=r"it did not end within 0.3 s"), deadline.limit(0.3, "it did not end"):
        time.sleep(10)
    assert time.monotonic() - begin < 5
