"""Searches for calls before which the caches hold other data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.database.records import read_database, sizes_of, title_of, workload_key
from tilewright.script import tir as T
from tilewright.search.progress import Describe


@T.prim_func
def double(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    for i in range(4096):
        with T.block("B"):
            vi = T.axis.spatial(4096, i)
            B[vi] = A[vi] * 2.0


def lanes(sch: tw.Schedule) -> None:
    (i,) = sch.get_loops("B")
    sch.vectorize(sch.split(i, [None, sch.sample_categorical([8, 16], [0.5, 0.5])])[1])


def test_records_stand_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    cold = tw.tune(double, space=lanes, trials=2, cold=True, database=path, progress=None)
    assert (cold.progress.trials, cold.progress.earlier) == (2, 0) and cold.task.cold
    assert tw.compile(double, database=path)(np.ones(4096, "float32"))[0] == 2
    warm = tw.tune(double, space=lanes, trials=2, database=path, progress=None)
    assert (warm.progress.trials, warm.progress.earlier) == (2, 0)
    store = read_database(path)
    assert {title_of(each): each.hash for each in store.workloads()} == {
        "double (cold caches)": workload_key(cold.task),
        "double": workload_key(warm.task),
    }
    assert all(sizes_of(each) == {} for each in store.workloads())
    again = tw.tune(double, space=lanes, trials=2, cold=True, database=path, progress=None)
    assert again.progress.earlier == 2
    assert again.best_record().seconds == cold.best_record().seconds


def test_what_is_said_of_them() -> None:
    cold = tw.tune(double, space=lanes, trials=1, cold=True, progress=None)
    assert "cold caches" in cold.table().title
    warm = tw.tune(double, space=lanes, trials=1, progress=None)
    assert "cold caches" not in warm.table().title
    assert Describe(cold.task, 1).start().endswith("(memory)") and not Describe(warm.task, 1).start().endswith(
        "(memory)"
    )


def test_warm_records_come_first(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    warm = tw.tune(double, space=lanes, trials=1, seed=1, database=path, progress=None)
    tw.tune(double, space=lanes, trials=2, cold=True, database=path, progress=None)
    steps = tw.compile(double, database=path).inspect("schedule")
    assert "apply_trace" in steps and steps == warm.kernel.inspect("schedule")


def test_a_value_that_is_no_truth() -> None:
    with pytest.raises(tw.ArgumentError, match="cold is 1; it is True or False"):
        tw.tune(double, cold=1, progress=None)  # type: ignore[arg-type]
