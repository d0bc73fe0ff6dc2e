"""A space is what it draws: a change of what it draws begins a new random stream, and measurements are kept."""

import contextlib
import functools
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.script import tir as T


@T.prim_func
def scale(X: T.Buffer((32, 64), "float32"), Y: T.Buffer((32, 64), "float32")):
    for i, j in T.grid(32, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


def pick(sch: tw.Schedule, factors: list[int]) -> None:
    """Python looks at what is drawn."""
    factor = int(sch.sample_categorical(factors, [1 / len(factors)] * len(factors)))
    sch.split(sch.get_loops("Y")[0], [None, factor])


FACTORS = [2, 4]


class Picks:
    def __init__(self, factors: list[int]) -> None:
        self.factors = factors

    def __call__(self, sch: tw.Schedule) -> None:
        pick(sch, self.factors)

    def of_factors(self, sch: tw.Schedule) -> None:
        pick(sch, self.factors)


def with_global(factors: list[int]) -> Callable[[tw.Schedule], None]:
    global FACTORS
    FACTORS = factors
    return _from_global


def _from_global(sch: tw.Schedule) -> None:
    pick(sch, FACTORS)


def with_default(factors: list[int]) -> Callable[[tw.Schedule], None]:
    def space(sch: tw.Schedule, factors: list[int] = factors) -> None:
        pick(sch, factors)

    return space


def from_text(factors: list[int]) -> Callable[[tw.Schedule], None]:
    names: dict[str, Any] = {"pick": pick}
    exec(f"def space(sch): pick(sch, {factors})", names)
    space: Callable[[tw.Schedule], None] = names["space"]
    return space


class Slots:
    """A callable object without a dictionary; its class has a space, too."""

    __slots__ = ("factors",)
    shared: list[int] = []  # noqa: RUF012 (what the space reads changes)

    def __init__(self, factors: list[int]) -> None:
        self.factors = factors

    def __call__(self, sch: tw.Schedule) -> None:
        pick(sch, self.factors)

    @classmethod
    def of_class(cls, sch: tw.Schedule) -> None:
        pick(sch, cls.shared)


def of_class(factors: list[int]) -> Callable[[tw.Schedule], None]:
    Slots.shared = factors
    return Slots.of_class


def from_environment(factors: list[int]) -> Callable[[tw.Schedule], None]:
    os.environ["TEST_FACTORS"] = repr(factors)
    return lambda sch: pick(sch, eval(os.environ["TEST_FACTORS"]))


def from_array(factors: list[int]) -> Callable[[tw.Schedule], None]:
    array = np.array(factors)
    return lambda sch: pick(sch, array.tolist())


def edited(factors: list[int]) -> Callable[[tw.Schedule], None]:
    """The same function with another constant, as after an edit of a notebook's cell."""

    def space(sch: tw.Schedule) -> None:
        pick(sch, [2, 99])

    space.__code__ = space.__code__.replace(
        co_consts=tuple(
            {2: factors[0], 99: factors[1]}.get(constant, constant) if isinstance(constant, int) else constant
            for constant in space.__code__.co_consts
        )
    )
    return space


MAKERS: dict[str, Callable[[list[int]], Callable[[tw.Schedule], object]]] = {
    "closure": lambda factors: lambda sch: pick(sch, factors),
    "partial": lambda factors: functools.partial(pick, factors=factors),
    "object": Picks,
    "method": lambda factors: Picks(factors).of_factors,
    "global": with_global,
    "default": with_default,
    "exec": from_text,
    "slots": Slots,
    "class method": of_class,
    "environment": from_environment,
    "array": from_array,
    "edited": edited,
    "cached": lambda factors: functools.lru_cache(None)(lambda sch: pick(sch, factors)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_other_decisions_are_another_stream(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_FACTORS", "")  # a space sets it

    def search(factors: list[int]) -> tw.TuneResult:
        return tw.tune(scale, space=MAKERS[kind](factors), trials=2, database=tmp_path / "t.db", progress=None)

    first, again, other = search([2, 4]), search([2, 4]), search([8, 16])
    assert first.progress.trials == 2 and first.progress.earlier == 0
    assert again.progress.earlier == 2 and again.progress.attempts == 0
    assert other.progress.earlier == 0 and other.progress.trials == 2
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (2,)
        assert connection.execute("SELECT count(*) FROM record WHERE seconds != '[]'").fetchone()[0] >= 4


def test_a_program_that_another_space_made_is_not_measured_again(tmp_path: Path) -> None:
    def search(factors: list[int]) -> tw.TuneResult:
        space = functools.partial(pick, factors=factors)
        return tw.tune(scale, space=space, trials=8, database=tmp_path / "t.db", progress=None)

    narrow = search([2, 4])
    assert narrow.progress.trials == 2 and narrow.record is not None
    wider = search([2, 4, 8])
    assert wider.progress.earlier == 0 and wider.progress.trials == 1 and wider.record is not None


def test_a_space_of_the_same_steps_in_other_words(tmp_path: Path) -> None:
    def one(sch: tw.Schedule) -> None:
        pick(sch, [2, 4])

    def two(sch: tw.Schedule) -> None:
        """Another text, the same steps."""
        drawn = sch.sample_categorical([2, 4], [0.5, 0.5])
        width = 2 if int(drawn) == 2 else 4
        rows, _ = sch.get_loops("Y")
        sch.split(rows, factors=[None, width])

    tw.tune(scale, space=one, trials=2, database=tmp_path / "t.db", progress=None)
    again = tw.tune(scale, space=two, trials=2, database=tmp_path / "t.db", progress=None)
    assert again.progress.earlier == 2 and again.progress.attempts == 0


def test_the_space_by_rules_is_what_it_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session goes on where only texts change, and another one begins where it draws something else."""

    def search() -> tw.TuneResult:
        return tw.tune(matmul, trials=2, database=tmp_path / "t.db", progress=None)

    search()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "another comment")
    assert search().progress.earlier == 2
    monkeypatch.undo()

    def otherwise(schedule: tw.Schedule, *_: object, **__: object) -> None:
        pick(schedule, [2, 4])

    monkeypatch.setattr(cpu, "schedule_for_cpu", otherwise)
    assert search().progress.earlier == 0


def test_another_version_of_the_heuristics_is_another_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is kept, and the same program is not measured again."""

    def search() -> tw.TuneResult:
        return tw.tune(matmul, trials=2, seed=0, database=tmp_path / "t.db", progress=None)

    first = search()
    assert first.progress.trials == 2
    monkeypatch.setattr(cpu, "VERSION", cpu.VERSION + 1)
    later = search()
    assert later.progress.earlier == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (2,)


@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] += A[vi, vk] * B[vk, vj]


CONSOLE = """
import tilewright as tw
from tilewright.script import from_source

scale = from_source('''
@T.prim_func
def scale(X: T.Buffer((32, 64), "float32"), Y: T.Buffer((32, 64), "float32")):
    for i, j in T.grid(32, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)
''')

def space(sch):
    factor = int(sch.sample_categorical([2, 4], [0.5, 0.5]))
    sch.split(sch.get_loops("Y")[0], [None, factor])

print(tw.tune(scale, space=space, trials=2, progress=None).progress.trials)
"""


@pytest.mark.parametrize("where", ["-c", "console"])
def test_functions_without_a_file(where: str) -> None:
    call = [sys.executable, "-c", CONSOLE] if where == "-c" else [sys.executable]
    text = "" if where == "-c" else CONSOLE
    run = subprocess.run(call, input=text, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and run.stdout == "2\n", run.stderr
