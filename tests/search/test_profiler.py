"""Where the time goes."""

from __future__ import annotations

import threading
import time

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.meta_schedule import Profiler
from tilewright.report.profiler import CONCURRENT, PartTimes, time_table, total_seconds


def test_names_are_summed_and_shares_shown():
    with Profiler() as profiler:
        for _ in range(2):
            with Profiler.timeit("Outer"), Profiler.timeit("Inner"):
                time.sleep(0.05)
        profiler.add("Elsewhere", 10.0)
        assert profiler.get()["Total"] >= 0.1  # so far
    seconds = profiler.get()
    assert 0.1 <= seconds["Inner"] <= seconds["Outer"] <= seconds["Total"] < 5
    assert seconds["Elsewhere"] == 10.0
    assert [row[1] for row in profiler.table().rows] == ["Total", "Elsewhere", "Outer", "Inner"]


def test_the_current_one_is_that_of_this_thread():
    seen = []
    with Profiler() as outer:
        with Profiler() as inner:
            assert Profiler.current() is inner
        assert Profiler.current() is outer
        thread = threading.Thread(target=lambda: seen.append(Profiler.current()))
        thread.start()
        thread.join()
    assert seen == [None]
    with Profiler.timeit("nothing"):
        assert Profiler.current() is None
    assert "nothing" not in outer.get()


def test_a_block_that_raises_counts():
    with Profiler() as profiler:
        try:
            with Profiler.timeit("Failing"):
                raise ValueError
        except ValueError:
            pass
    assert "Failing" in profiler.get()


def parts_of(seconds):
    return {name: spent for name, spent in seconds.items() if name != "Total" and not name.startswith(CONCURRENT)}


def test_stored_times_of_earlier_versions_are_read():
    times = PartTimes({"drawing": 1.0, "lowering": 2.0})
    assert times == {"sampling": 1.0, "lowering": 2.0} and times["drawing"] == 1.0
    with pytest.raises(KeyError):
        times["unknown"]


def test_the_parts_of_a_search_add_up_to_all_of_it():
    program = tw.testing.workloads.matmul(32, 32, 32)
    with Profiler() as profiler:
        begin = time.monotonic()
        result = tw.tune(program, trials=12, progress=lambda progress: time.sleep(0.01))
        elapsed = time.monotonic() - begin
    parts = parts_of(result.seconds)
    assert {"preparing", "inputs", "sampling", "lowering", "recording", "measuring", "showing", "other"} <= set(parts)
    assert result.seconds["drawing"] == parts["sampling"] + parts.get("reporting", 0.0)
    assert all(spent >= 0 for spent in parts.values())
    assert sum(parts.values()) == pytest.approx(total_seconds(result.seconds))
    assert 0.9 * elapsed - 0.1 < sum(parts.values()) <= elapsed
    assert parts["other"] < 0.5 * elapsed and parts["showing"] >= 0.02
    beside = {name for name in result.seconds if name.startswith(CONCURRENT)}
    assert beside == {"beside/building", "beside/checking", "beside/measuring"}
    assert result.seconds["beside/measuring"] >= parts["measuring"] + parts.get("finals", 0) - 1e-3
    assert result.seconds["beside/building"] > 0
    told = profiler.get()
    assert told.pop("Total") >= sum(parts.values()) and told == dict(result.seconds)
    assert result.time_table().rows[0][0] == "Total"


def test_a_session_has_the_published_scopes(tmp_path):
    program = tw.testing.workloads.matmul(32, 32, 32)
    with Profiler() as profiler:
        ms.tune_tir(
            program, "llvm -num-cores=1", tmp_path, 4, num_trials_per_iter=4, database="memory", cost_model="none"
        )
    seconds = profiler.get()
    for scope in (
        "PickBestFromDatabase",
        "SampleInitPopulation",
        "Evolve/Mutation",
        "PickWithEpsGreedy",
        "Evolve/Misc",
    ):
        assert 0 <= seconds[f"EvoSearch/{scope}"] <= seconds["EvoSearch"]
    assert seconds["EvoSearch/Evolve/PredictNormalizedScore"] >= 0
    assert 0 < seconds["EvoSearch"] <= seconds["GenerateCandidates"] <= seconds["Total"]
    top = [name for name in parts_of(seconds) if not name.startswith("EvoSearch")]
    assert sum(seconds[name] for name in top) <= seconds["Total"]
    assert seconds["NotifyRunnerResults"] >= 0 and seconds["beside/building"] > 0


def test_sessions_are_put_together():
    table = time_table("both", [{"Total": 10.0, "a": 4.0}, {"a": 1.0, "b": 4.0, f"{CONCURRENT}c": 7.0}])
    assert table.rows == (
        ("Total", "15 s", "100%"),
        ("a", "5 s", "33%"),
        ("b", "4 s", "27%"),
        ("c, in other processes meanwhile", "7 s", ""),
    )


def test_idle_helpers_are_named():
    assert time_table("one", [{"nothing": 3.0}]).rows[1] == (
        "waiting while the helper processes were idle",
        "3 s",
        "100%",
    )
