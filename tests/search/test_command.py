"""`tilewright tune` on programs that are no product: everything goes the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.cli.commands import app

SCRIPT = """\
import numpy as np

import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def softmax(X: T.Buffer((32, 64), "float32"), Y: T.Buffer((32, 64), "float32")):
    largest = T.alloc_buffer((32,), "float32")
    total = T.alloc_buffer((32,), "float32")
    for i, j in T.grid(32, 64):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], X[vi, vj])
    for i, j in T.grid(32, 64):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(X[vi, vj] - largest[vi])
    for i, j in T.grid(32, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.exp(X[vi, vj] - largest[vi]) / total[vi]


@T.prim_func
def transpose(X: T.Buffer((48, 80), "int32"), Y: T.Buffer((80, 48), "int32")):
    for i, j in T.grid(80, 48):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vj, vi]


@T.prim_func
def take(X: T.Buffer((1000,), "float32"), I: T.Buffer((300,), "int32"), Y: T.Buffer((300,), "float32")):
    for i in range(300):
        with T.block("Y"):
            vi = T.axis.spatial(300, i)
            Y[vi] = X[I[vi]]


@tw.space(softmax)
def rows(sch):
    _, j = sch.get_loops(sch.get_block("Y"))
    _, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16], [1 / 3] * 3)])
    sch.vectorize(j_in)


@tw.space(transpose, reference=lambda x: x.T)
def tiles(sch):
    i, j = sch.get_loops(sch.get_block("Y"))
    i_tiles = sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
    j_tiles = sch.split(j, factors=sch.sample_perfect_tile(j, n=2))
    sch.reorder(i_tiles[0], j_tiles[0], i_tiles[1], j_tiles[1])


@tw.space(take, inputs={"I": np.arange(300, dtype="int32") * 3})
def chunks(sch):
    (i,) = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
"""


def results(*options: str) -> list[dict[str, Any]]:
    outcome = CliRunner().invoke(app, ["tune", "script.py", "--json", *options])
    assert outcome.exit_code == 0, outcome.output
    events = [json.loads(line) for line in outcome.stdout.splitlines()]
    return [event for event in events if event["event"] == "result"]


def test_three_programs_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(SCRIPT)
    first = results("--trials", "3", "--threads", "2")
    assert [event["program"] for event in first] == ["softmax", "transpose", "take"]
    assert all(event["trials"] == 3 and event["warning"] == "" for event in first)
    for event in first:
        assert "agree with the interpreter" in event["checks"][0]
        assert "agrees with the unscheduled program" in event["checks"][1]

    x = np.arange(48 * 80, dtype=np.int32).reshape(48, 80)
    y = np.empty((80, 48), np.int32)
    tw.load("out/transpose.so")(x, y)
    np.testing.assert_array_equal(y, x.T)
    z = np.random.default_rng(0).random((32, 64), dtype=np.float32)
    soft = np.empty_like(z)
    tw.load("out/softmax.so")(z, soft)
    power = np.exp(z - z.max(axis=1, keepdims=True))
    np.testing.assert_allclose(soft, power / power.sum(axis=1, keepdims=True), rtol=1e-5)

    again = results("--trials", "3", "--threads", "2")
    assert [event["measured_before"] for event in again] == [3, 3, 3]
    assert [event["schedule"] for event in again] == [event["schedule"] for event in first]
    other = results("--trials", "2", "--threads", "1", "--space", "tiles")  # another target, another session
    assert [(event["program"], event["measured_before"]) for event in other] == [("transpose", 0)]
