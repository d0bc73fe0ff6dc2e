"""What can be tuned, and what is said of the rest."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.search.space_samples import SpaceSamples


@I.ir_module
class Several:
    @T.prim_func
    def main(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
        T.func_attr({"global_symbol": "double"})
        for i, j in T.grid(32, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func
    def other(A: T.Buffer((8,), "float32")):
        A[0] = T.float32(1)


def lanes(sch: tw.Schedule) -> None:
    _, j = sch.get_loops(sch.get_block("B", func_name="main"))
    _, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8], [0.5, 0.5])])
    sch.vectorize(j_in)


def test_main_of_a_module_with_several_public_functions_is_tuned():
    result = tw.tune(Several, space=lanes, trials=2, progress=None)
    assert result.kernel.name == "double"
    a = np.random.default_rng(0).random((32, 16), dtype=np.float32)
    b = np.empty_like(a)
    result.kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def refused(program: tw.ir.PrimFunc, code: str) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        tw.tune(program, space=lanes, trials=1, progress=None)
    assert error.value.code == code
    assert error.value.hint


def test_parameters_that_a_search_cannot_fill():
    @T.prim_func
    def scalar(n: T.int32, A: T.Buffer((8,), "float32")):
        A[0] = T.cast(n, "float32")

    @T.prim_func
    def symbolic(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        A[0] = T.float32(1)

    @T.prim_func
    def strided(a: T.handle):
        A = T.match_buffer(a, (8, 8), "float32", strides=[16, 1])
        A[0, 0] = T.float32(1)

    refused(scalar, "tune/scalar-parameter")
    refused(symbolic, "tune/symbolic-shape")
    refused(strided, "tune/strides")


def test_the_space_of_a_user_schedules_one_function():
    functions = {"first": Several["main"].with_attr("global_symbol", "first"), "other": Several["other"]}
    with pytest.raises(tw.ArgumentError, match="which one is to be tuned") as error:
        tw.tune(tw.ir.Module(functions), space=lanes, trials=1, progress=None)
    assert error.value.code == "tune/which-function" and "function=" in error.value.hint
    space = tw.space(tw.ir.Module(functions))(lanes)
    with pytest.raises(tw.ArgumentError, match="which one is to be tuned"):
        tw.tune(space, trials=1, progress=None)


def test_what_else_goes_wrong_while_drawing_is_data(monkeypatch):
    def looks(sch: tw.Schedule) -> None:
        int(sch.sample_categorical([1, 2, 3], [0.3, 0.3, 0.4]))

    honest = SpaceSamples.apply

    def broken(self: SpaceSamples, schedule: tw.Schedule, first: bool) -> None:
        honest(self, schedule, first)
        if not first:
            raise ValueError("odd")

    monkeypatch.setattr(SpaceSamples, "apply", broken)
    result = tw.tune(Several, space=looks, trials=4, progress=None)
    assert result.stop_reason == "exhausted" and result.progress.trials == 1
    assert list(result.progress.failures) == ["space/exception"]
    assert "ValueError: odd" in result.progress.failures["space/exception"][1]


def test_a_hash_of_a_database_is_hexadecimal():
    with pytest.raises(tw.ArgumentError, match="not a hash of 32 hexadecimal digits") as error:
        _core.Database.in_memory().records("x" * 32, "")
    assert error.value.code == "search/hash"


def test_facts_beside_the_records_are_kept(tmp_path):
    store = _core.Database.open(str(tmp_path / "records.db"))
    assert store.meta("rows") is None
    store.set_meta("rows", "[1, ü]")
    store.set_meta("rows", "[2, ü]")
    assert _core.Database.open(str(tmp_path / "records.db"), read_only=True).meta("rows") == "[2, ü]"


@T.prim_func
def gather(X: T.Buffer((32, 64), "float32"), rows: T.Buffer((48,), "int32"), Y: T.Buffer((48, 64), "float32")):
    for i, j in T.grid(48, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[rows[vi], vj]


def test_inputs_serve_where_random_numbers_make_no_sense():
    rows = np.random.default_rng(0).integers(0, 32, 48).astype(np.int32)

    def vectors(sch: tw.Schedule) -> None:
        _, j = sch.get_loops(sch.get_block("B"))
        _, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8], [0.5, 0.5])])
        sch.vectorize(j_in)

    result = tw.tune(gather, space=vectors, trials=2, inputs={"rows": rows}, progress=None)
    assert result.record is not None
    assert result.verdict is not None and result.verdict.checked
    x, y = np.random.default_rng(1).random((32, 64), dtype=np.float32), np.zeros((48, 64), np.float32)
    result.kernel(x, rows, y)
    np.testing.assert_array_equal(y, x[rows])


def test_a_program_that_is_wrong_by_itself_is_told_before_the_search():
    @T.prim_func
    def beyond(A: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                Y[vi] = A[vi + 1]

    def split(sch: tw.Schedule) -> None:
        (i,) = sch.get_loops(sch.get_block("B"))
        sch.split(i, factors=sch.sample_perfect_tile(i, n=2))

    with pytest.raises(tw.ScriptError) as error:
        tw.tune(beyond, space=split, trials=1, progress=None)
    assert error.value.code == "interpret/out-of-bounds"
