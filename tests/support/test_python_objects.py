"""Pickles, short texts, views of notebooks, and names as attributes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T


@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * T.float32(2)


@I.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(1)

    @T.prim_func
    def second(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(2)


def scheduled() -> tw.Schedule:
    sch = tw.Schedule(double, seed=1, error_render_level="fast")
    (loop,) = sch.get_loops(sch.get_block("B"))
    outer, _ = sch.split(loop, sch.sample_perfect_tile(loop, n=2))
    sch.annotate(outer, "note", "kept")
    return sch


A = np.arange(64, dtype="float32")


def test_programs_and_targets_pickle() -> None:
    for program in (double, Two):
        tw.ir.assert_structural_equal(pickle.loads(pickle.dumps(program)), program)
    for text in ("native", "interpreter", "llvm -mcpu=skylake-avx512 -num-cores=3"):
        target = tw.Target(text)
        assert pickle.loads(pickle.dumps(target)) == target


def test_schedules_and_traces_pickle() -> None:
    sch = scheduled()
    for again in (pickle.loads(pickle.dumps(sch)), copy.deepcopy(sch), pickle.loads(pickle.dumps(sch.copy()))):
        tw.ir.assert_structural_equal(again.mod, sch.mod)
        assert again.trace.as_json() == sch.trace.as_json()
        assert again.error_render_level == "fast"
        again.get_loops(again.get_block("B"))
    trace = pickle.loads(pickle.dumps(sch.trace))
    assert trace.as_json() == sch.trace.as_json()


def test_kernels_pickle(tmp_path: Path) -> None:
    kernel = tw.compile(scheduled())
    kernel.threads = 1
    library = kernel.export(tmp_path, "library").library
    for one in (kernel, tw.compile(double, "interpreter"), tw.load(library)):
        again = pickle.loads(pickle.dumps(one))
        assert again.name == one.name
        assert again.threads == one.threads
        b = np.zeros(64, "float32")
        again(A, b)
        np.testing.assert_array_equal(b, 2 * A)
    module = pickle.loads(pickle.dumps(tw.compile(Two)))
    assert list(module) == ["first", "second"]


def test_a_kernel_is_an_attribute_of_its_module() -> None:
    module = tw.compile(Two)
    data = np.zeros(4, "float32")
    module.second(data)
    np.testing.assert_array_equal(data, 2)
    assert module.first is module["first"]
    assert {"first", "second", "export"} <= set(dir(module))
    with pytest.raises(AttributeError, match="the kernels first, second"):
        _ = module.third


def test_texts_are_short() -> None:
    space = tw.space(double)(lambda sch: None)
    sch = scheduled()
    result = tw.tune(double, space=space, trials=1, progress=None)
    timing = tw.compile(double).benchmark(A, A.copy())
    for item in (space, sch, sch.trace, result, timing, tw.compile(double), tw.compile(Two), tw.Target("native")):
        assert len(repr(item)) < 160, repr(item)
        assert "\n" not in repr(item)
    assert repr(sch) == "<Schedule of main, 5 steps>"
    assert str(sch) == sch.mod.script()
    assert repr(result).startswith("<TuneResult of double: best ")


def test_results_and_timings_are_tables() -> None:
    result = tw.tune(double, space=lambda sch: None, trials=1, progress=None)
    lines = str(result.table()).splitlines()
    assert lines[0].startswith("double, 1 thread, 1 trial")
    assert [line.split("  ")[0] for line in lines[2:]] == ["as written", "best found"]
    timing = tw.compile(double).benchmark(A, A.copy())
    assert "GFLOP/s" in str(timing.table())
    for item in (result, timing, result.table()):
        text = item._repr_html_()
        assert text.startswith("<table>") and text.count("<th>") >= 4, text


def test_kernels_of_libraries_can_be_timed(tmp_path: Path) -> None:
    library = tw.load(tw.compile(double).export(tmp_path).library)
    timing = library.benchmark(A, A.copy())
    assert timing.median > 0
    assert timing.work.bytes == 2 * A.nbytes
    assert not timing.work.exact
    assert "GFLOP" not in str(timing)


PROGRAM = """
import tilewright as tw
from tilewright.script import tir as T

@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = T.float32(7)

print(f.attrs["global_symbol"])
"""


@pytest.mark.parametrize("flags", [["-c"], ["-X", "dev", "-Bc"], ["-W", "ignore", "-c"]])
def test_programs_given_to_python_itself(flags: list[str]) -> None:
    done = subprocess.run([sys.executable, *flags, PROGRAM, "-c", "x"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("f\n", 0), done.stderr


def test_programs_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    with (tmp_path / "program.py").open() as file:  # Python can be asked for it again
        done = subprocess.run([sys.executable, "-"], stdin=file, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("f\n", 0), done.stderr
    done = subprocess.run([sys.executable, "-"], input=PROGRAM, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pass the text to tw.script.from_source" in done.stderr


def test_the_text_of_another_program_is_not_taken() -> None:
    inner = 'exec("from tilewright.script import tir as T\\n@T.prim_func\\ndef g():\\n    T.evaluate(0)\\n")\n'
    done = subprocess.run([sys.executable, "-c", inner], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tw.script.from_source" in done.stderr


def test_arguments_by_the_names_of_parameters_or_buffers() -> None:
    @T.prim_func
    def add(a: T.handle, b: T.handle, k: T.float32, B: T.handle):
        A = T.match_buffer(a, (4,))
        B_ = T.match_buffer(b, (4,))
        C = T.match_buffer(B, (4,))
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = A[v] + B_[v] * k

    ones, twos = np.ones(4, "float32"), np.full(4, 2, "float32")
    for target in ("native", "interpreter"):
        kernel = tw.compile(add, target=target)
        out = np.zeros(4, "float32")
        for named in ({"a": ones, "b": twos}, {"A": ones, "B_": twos}, {"a": ones, "B_": twos}):
            assert kernel(**named, k=2.0).tolist() == [5, 5, 5, 5]
            assert kernel(**named, k=2.0, C=out) is None and out.tolist() == [5, 5, 5, 5]
            assert kernel(**named, k=2.0, B=out) is None
            assert kernel(**named, k=2.0).tolist() == [5, 5, 5, 5]
        with pytest.raises(tw.ArgumentError, match="unknown"):
            kernel(a=ones, b=twos, k=2.0, d=out)


def test_help_tells_of_report_and_notes() -> None:
    import pydoc

    text = pydoc.plain(pydoc.render_doc(tw.compile(double)))
    assert "report" in text and "promotions" in text and "notes" in text
    assert set(tw.compile(double).report) == {"times", "promotions", "notes"}
    assert tw.compile(double, target="interpreter").report == {}


BROKEN = """
@T.macro
def m(A):
    A[0] = missing

@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    m(A)
    A[1] = unknown
"""


def test_errors_pickle_with_their_places() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        tw.script.from_source(BROKEN)
    error = caught.value
    assert (error.line, error.column, len(error.errors)) == (4, 12, 2)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is tw.ScriptError and str(again) == str(error)
        assert (again.code, again.message, again.place) == (error.code, error.message, error.place)
        assert [e.place for e in again.errors] == [e.place for e in error.errors]
    # Numbers of spans are those of the process that made them.
    read = "import pickle, sys; e = pickle.load(sys.stdin.buffer); print(e.line, e.column, e.errors[1].line, e.code)"
    done = subprocess.run([sys.executable, "-c", read], input=pickle.dumps(error), capture_output=True, check=True)
    assert done.stdout.decode().split() == ["4", "12", "9", "script/unknown-name"]
