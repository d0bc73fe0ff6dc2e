"""What a search cannot be asked for is told at once, by the name of the parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.testing.workloads import matmul

PROGRAM = matmul(16, 16, 16)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 2.5}, "trials is 2.5; it is a whole number, at least 1"),
        ({"trials": "3"}, "trials is '3'; it is a whole number, at least 1"),
        ({"trials": True}, "trials is True; it is a whole number"),
        ({"trials": 10**30}, "trials is 1000000000000000000000000000000; it is at most"),
        ({"threads": 1.5}, "threads is 1.5; it is a whole number, at least 1"),
        ({"threads": 0}, "threads is 0; a kernel needs at least 1"),
        ({"seed": -1}, "seed is -1; it is at least 0"),
        ({"seed": 1.5}, "seed is 1.5; it is a whole number"),
        ({"patience": 1.5}, "patience is 1.5; it is a whole number"),
        ({"seconds": "3"}, "seconds is '3'; it is a number, or None"),
        ({"target_seconds": "x"}, "target_seconds is 'x'; it is a number, or None"),
        ({"sizes": 3}, "sizes is 3; it is a dict of numbers by the names of sizes"),
        ({"inputs": 3}, "inputs is 3; it is a dict of arrays by the names of parameters"),
        ({"space": 3}, "space is 3; it is a function of a schedule"),
        ({"fresh": 3}, "fresh is 3; it is True or False"),
        ({"strategy": 4}, "strategy is 4; it is the name of a strategy"),
        ({"cost_model": 3}, "cost_model is 3; it is a CostModel of tilewright.meta_schedule"),
        ({"database": 3}, "database is 3; it is the path of a file"),
    ],
)
def test_tune(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        tw.tune(PROGRAM, progress=None, **wrong)
    assert caught.value.message.startswith(message) and caught.value.code in ("arguments/number", "arguments/kind")
    assert len(str(caught.value)) < 240


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mod": 3}, "mod is 3; it is a function under @T.prim_func, or a module of them"),
        ({"seed": -1}, "seed is -1; it is at least 0 and at most 4294967295"),
        ({"seed": "x"}, "seed is 'x'; it is a whole number"),
        ({"max_trials_global": 2.5}, "max_trials_global is 2.5; it is a whole number, at least 1"),
        ({"max_trials_global": -1}, "max_trials_global is -1; it is at least 1"),
        ({"max_trials_per_task": 0}, "max_trials_per_task is 0; it is at least 1"),
        ({"num_trials_per_iter": 0}, "num_trials_per_iter is 0; a batch has at least 1 trial"),
        ({"max_seconds": -1}, "max_seconds is -1; it is a number above 0"),
        ({"work_dir": 3}, "work_dir is 3; it is the path of a folder"),
        ({"space": 3}, "space is 3; it is a SpaceGenerator, a function of a schedule, or the name of a space"),
        ({"strategy": 3}, "strategy is 3; it is a SearchStrategy, or the name of one"),
        ({"database": 3}, "database is 3; it is the kind of a database"),
        ({"runner": 4}, 'runner is 4; it is "local", or an object with run()'),
        ({"builder": 4}, 'builder is 4; it is "local", or an object with build()'),
        ({"target": "cuda"}, "'main': programs cannot be compiled for cuda, and so not be measured"),
    ],
)
def test_tune_tir(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    arguments: dict[str, Any] = {
        "mod": PROGRAM,
        "target": "llvm -num-cores=1",
        "work_dir": folder,
        "max_trials_global": 2,
        "strategy": "replay-trace",
        "cost_model": "none",
    }
    with pytest.raises(tw.ArgumentError) as caught:
        ms.tune_tir(**(arguments | wrong))
    assert caught.value.message.startswith(message)
    assert not folder.exists()  # nothing was begun


def test_what_was_perhaps_meant() -> None:
    with pytest.raises(tw.ArgumentError, match="hint: write trials=2"):
        tw.tune(PROGRAM, trials=2.5, progress=None)
