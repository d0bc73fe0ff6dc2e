"""The functions of a module, tuned each by itself."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import meta_schedule as ms
from tilewright.script import ir as I
from tilewright.script import tir as T


@I.ir_module
class Layers:
    @T.prim_func
    def dense(X: T.Buffer((16, 32), "float32"), W: T.Buffer((32, 64), "float32"), Y: T.Buffer((16, 64), "float32")):
        for i, j, k in T.grid(16, 64, 32):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]

    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 64), "float32")
        B = T.match_buffer(b, (n, 64), "float32")
        for i, j in T.grid(n, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func
    def by_hand(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.vectorized(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func(private=True)
    def inner(A: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("A"):
                vi = T.axis.spatial(64, i)
                A[vi] = T.float32(1)


def test_each_public_function_without_a_schedule_is_tuned(tmp_path):
    records = tmp_path / "records.db"
    result = tw.tune(Layers, trials=2, sizes={"n": 8}, database=records, progress=None)
    assert isinstance(result, tw.ModuleResult) and list(result) == ["dense", "double"] and len(result) == 2
    assert result["dense"].task.entry == "dense" and result["dense"].progress.trials == 2
    assert list(result.untuned) == ["by_hand"]
    with pytest.raises(KeyError, match="has a schedule already"):
        result["by_hand"]
    rows = {row[0]: row for row in result.table().rows}
    assert rows["dense"][1] == "2" and rows["dense"][2] and rows["by_hand"][1] == "0"
    assert "double" in result.table()._repr_html_() and result._repr_html_()
    for kernels in (result.compile(), tw.compile(Layers, database=records)):
        assert {name: kernels[name].schedule for name in kernels} == {
            "dense": "recorded",
            "double": "recorded",
            "by_hand": "as written",
        }
        a = np.random.default_rng(0).random((5, 64), dtype=np.float32)
        np.testing.assert_array_equal(kernels.double(a), 2 * a)
        np.testing.assert_array_equal(kernels.by_hand(a[0]), a[0] + 1)
        x, w = (np.random.default_rng(1).random(shape, dtype=np.float32) for shape in ((16, 32), (32, 64)))
        np.testing.assert_allclose(kernels.dense(x, w), x @ w, rtol=1e-5)
    assert kernels.inspect("schedule").count("def apply_trace") == 2
    assert {note.code for note in kernels["dense"].notes} <= {"lower/scalar-loop"}  # none is missing
    again = tw.tune(Layers, trials=2, sizes={"n": 8}, database=records, progress=None)
    assert again["dense"].progress.earlier == 2


def test_functions_that_a_database_does_not_know_are_named(tmp_path):
    records = tmp_path / "records.db"
    tw.tune(Layers, function="dense", trials=1, database=records, progress=None)
    with pytest.warns(tw.PerformanceWarning, match="double: the database has no record of it.*scheduled by heuristics"):
        kernels = tw.compile(Layers, database=records)
    (note,) = [note for note in kernels["dense"].notes if note.code == "compile/no-record"]
    assert note.function == "double" and note.is_requested and kernels["double"].schedule == "by rules"


def test_one_of_them_by_its_name():
    result = tw.tune(Layers, function="dense", trials=1, progress=None)
    assert isinstance(result, tw.TuneResult) and result.task.entry == "dense"
    with pytest.raises(tw.ArgumentError, match="no public function called dens") as error:
        tw.tune(Layers, function="dens", trials=1, progress=None)
    assert error.value.code == "tune/function" and "dense" in error.value.hint
    with pytest.raises(tw.ArgumentError, match="no public function called inner"):
        tw.tune(Layers, function="inner", trials=1, progress=None)
    with pytest.raises(tw.ArgumentError, match="not a module of several functions"):
        tw.tune(Layers["dense"], function="dense", trials=1, progress=None)


def test_a_module_with_one_public_function_is_that_one():
    module = tw.ir.Module({name: Layers[name] for name in ("inner", "dense")})
    result = tw.tune(module, trials=1, progress=None)
    assert isinstance(result, tw.TuneResult) and result.task.entry == "dense"


def test_seconds_are_shared_and_one_strategy_serves_all(monkeypatch):
    from tilewright.search import modules

    asked = []

    def share(seconds, spent, count, number):
        asked.append((seconds, count, number))
        return 5.0

    monkeypatch.setattr(modules, "share_of", share)
    strategy = ms.SearchStrategy.create("replay-trace")
    result = tw.tune(Layers, trials=2, seconds=60, sizes={"n": 8}, strategy=strategy, progress=None)
    assert asked == [(60.0, 2, 0), (60.0, 2, 1)] and len(result) == 2
    assert all(found.progress.budget_left <= 5 for found in result.values())


def test_what_fails_is_left_out_and_the_others_are_tuned():
    with pytest.warns(UserWarning, match="'double' was not tuned"):
        result = tw.tune(Layers, trials=1, progress=None)  # no usual value of n is known
    assert list(result) == ["dense"] and "no usual value" in result.untuned["double"]
    only = tw.ir.Module({name: Layers[name] for name in ("double", "by_hand")})
    with pytest.raises(tw.ArgumentError, match="no usual value of n is known"):
        tw.tune(only, trials=1, progress=None)
    fixed = tw.ir.Module({"one": Layers["by_hand"], "two": Layers["by_hand"].with_attr("global_symbol", "two")})
    with pytest.raises(tw.ArgumentError, match="has a schedule already") as error:
        tw.tune(fixed, trials=1, progress=None)
    assert error.value.code == "tune/no-function"


def test_names_that_no_function_has():
    with pytest.raises(tw.ArgumentError, match="called m") as error:
        tw.tune(Layers, trials=1, sizes={"m": 8}, progress=None)
    assert error.value.code == "tune/sizes"
    with pytest.raises(tw.ArgumentError, match="sizes has 0, but"):
        tw.tune(Layers["double"], trials=1, sizes={0: 8}, progress=None)
    with pytest.raises(tw.ArgumentError, match="inputs has Q"):
        tw.tune(Layers, trials=1, sizes={"n": 8}, inputs={"Q": np.zeros(3)}, progress=None)


def test_an_interrupt_ends_all_of_it():
    told = []

    def interrupt(progress):
        told.append(progress)
        if len(told) == 2:
            raise KeyboardInterrupt

    result = tw.tune(Layers, trials=50, sizes={"n": 8}, progress=interrupt)
    assert list(result) == ["dense"] and result["dense"].stop_reason == "canceled"
    assert "canceled" in result.untuned["double"]


def test_without_a_correct_candidate_nothing_is_compiled(monkeypatch):
    result = tw.tune(Layers, trials=1, sizes={"n": 8}, progress=None)
    for found in result.values():
        object.__setattr__(found, "record", None)
    assert result.table().rows[0][2] == ""
    with pytest.raises(tw.ResourceError, match="no candidate was correct"):
        result.compile()


def test_functions_of_one_name_are_refused():
    functions = {name: Layers[name].with_attr("global_symbol", "same") for name in ("dense", "by_hand")}
    with pytest.raises(tw.ArgumentError, match="two functions of the module are exported as 'same'") as caught:
        tw.tune(tw.ir.IRModule(functions), trials=1, progress=None)
    assert caught.value.code == "tune/same-name"
