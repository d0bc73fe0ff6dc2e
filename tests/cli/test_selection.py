"""Which programs of a file are tuned, and for which sizes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.cli.user_script import load_script

from .conftest import HEAD, Run

OPEN = (
    HEAD
    + """
from tilewright.script import ir as I


@T.prim_func
def double(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def rows(a: T.handle, b: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (m, 8), "float32")
    B = T.match_buffer(b, (m, 8), "float32")
    for i, j in T.grid(m, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func
def fixed(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(3)
"""
)

#: a program whose search takes minutes
LONG = (
    HEAD
    + """
@T.prim_func
def product(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32"), C: T.Buffer((256, 256), "float32")):
    for i, j, k in T.grid(256, 256, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]
"""
)

MODULE = (
    HEAD
    + """
from tilewright.script import ir as I


@I.ir_module
class Two:
    @T.prim_func
    def add(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def twice(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] * T.float32(2)
"""
)


SCALARS = (
    HEAD
    + """
@T.prim_func
def scaled(a: T.handle, b: T.handle, beta: T.float32, flip: T.bool, shift: T.int8):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.if_then_else(flip, beta, A[vi]) + T.Cast("float32", shift)
"""
)


@pytest.fixture
def scripts(folder: Path) -> Path:
    (folder / "open.py").write_text(OPEN)
    (folder / "module.py").write_text(MODULE)
    return folder


def test_sizes_of_programs_that_leave_them_open(run: Run, scripts: Path) -> None:
    result = run("tune", "open.py", "--sizes", "n=1000,m=20", "--trials", "1", "--json")
    assert result.exit_code == 0, result.output
    results = [json.loads(line) for line in result.stdout.splitlines() if '"result"' in line]
    assert [each["program"] for each in results] == ["double", "rows", "fixed"]
    assert {path.stem for path in (scripts / "out").glob("*.so")} == {"double", "rows", "fixed"}
    # One kernel, right for other sizes.
    import numpy as np

    kernel = tw.load("out/double.so")
    values, answer = np.arange(37, dtype=np.float32), np.zeros(37, np.float32)
    kernel(values, answer)
    np.testing.assert_array_equal(answer, 2 * values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "n"], "--sizes n: a size has a name and a number"),
        (["--sizes", "n=many"], "--sizes n=many: a size has a name and a number"),
        (["--sizes", "n=1.5", "--program", "double"], "sizes['n'] is 1.5; 'n' of type int32 is an integer"),
        (["--sizes", "nn=3"], "--sizes nn: no program has such a size\n  hint: did you mean n?"),
        (["--sizes", "n=0", "--program", "double"], "sizes['n'] is 0; a size to tune for is at least 1"),
        (["--sizes", "n=3", "--program", "fixed"], "--sizes n: no program leaves a size open"),
        (["--program", "double"], "n"),
        (["--program", "doubel"], "open.py has no program called doubel\n  hint: did you mean double?"),
        (["--space", "by rule"], "open.py has no space called by rule\n  hint: did you mean by rules?"),
    ],
)
def test_what_makes_no_sense(options: list[str], message: str, run: Run, scripts: Path) -> None:
    result = run("tune", "open.py", "--trials", "1", *options)
    assert result.exit_code == 1 and message in result.stderr


def test_folders_that_a_script_adds_stay_for_its_functions(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "loaded_later_by_a_script.py").write_text("VALUE = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
        "def value():\n"
        "    import loaded_later_by_a_script\n"
        "    return loaded_later_by_a_script.VALUE\n"
    )
    before = list(sys.path)
    try:
        assert load_script(script).value() == 7
        assert sys.path == [str(tmp_path / "lib"), *before]
    finally:
        sys.path[:] = before


def test_one_program_of_a_file(run: Run, scripts: Path) -> None:
    result = run("tune", "open.py", "--program", "fixed", "--trials", "1", "--quiet")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (scripts / "out").glob("*.so")} == {"fixed.so"}


def test_each_function_of_a_module(run: Run, scripts: Path) -> None:
    result = run("tune", "module.py", "--trials", "1", "--json")
    assert result.exit_code == 0, result.output
    results = [json.loads(line) for line in result.stdout.splitlines() if '"result"' in line]
    assert [each["program"] for each in results] == ['Two["add"]', 'Two["twice"]']
    assert {path.name for path in (scripts / "out").glob("*.so")} == {"Two_add.so", "Two_twice.so"}
    (schedule,) = (each["schedule"] for each in results[:1])
    assert 'tw.Schedule(Two["add"])' in schedule


PRIVATE = """


@T.prim_func(private=True)
def inner(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi]
"""


def test_private_functions_beside_public_ones_are_no_programs_to_tune(run: Run, scripts: Path) -> None:
    fixed = HEAD + OPEN[OPEN.index("@T.prim_func\ndef fixed") :]
    (scripts / "beside.py").write_text(fixed + PRIVATE)
    result = run("tune", "beside.py", "--trials", "1", "--quiet")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (scripts / "out").glob("*.so")} == {"fixed.so"}
    asked = run("tune", "beside.py", "--program", "inner", "--trials", "1")
    assert asked.exit_code == 1 and "private" in asked.stderr
    (scripts / "alone.py").write_text(HEAD + PRIVATE)
    alone = run("tune", "alone.py", "--trials", "1")
    assert alone.exit_code == 1 and "private" in alone.stderr


@pytest.mark.parametrize("name", ["add", "Two_add", 'Two["add"]'])
def test_one_function_of_a_module(name: str, run: Run, scripts: Path) -> None:
    result = run("tune", "module.py", "--program", name, "--trials", "1", "--quiet")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (scripts / "out").glob("*.so")} == {"Two_add.so"}
    assert "def add" in run("show", "module.py", "--program", name).stdout


def test_a_function_that_two_modules_have(run: Run, scripts: Path) -> None:
    (scripts / "two.py").write_text(MODULE + "\n\nOther = Two\n" + "import tilewright as tw\n")
    result = run("tune", "two.py", "--program", "add", "--trials", "1")
    assert result.exit_code == 1
    assert "several programs called add\n  hint: --program Two_add or --program Other_add" in result.stderr
    wrong = run("tune", "two.py", "--program", "twize", "--trials", "1")
    assert wrong.exit_code == 1 and "no program called twize" in wrong.stderr


def test_the_hint_for_missing_sizes_can_be_followed(run: Run, scripts: Path) -> None:
    (scripts / "scalars.py").write_text(SCALARS)
    result = run("tune", "scalars.py", "--trials", "1")
    assert result.exit_code == 1 and "--sizes n=1000,beta=1.5,flip=1,shift=127" in result.stderr
    followed = run("tune", "scalars.py", "--trials", "1", "--quiet", "--sizes", "n=1000,beta=1.5,flip=1,shift=127")
    assert followed.exit_code == 0, followed.output


def test_ctrl_c_is_never_silent(scripts: Path, environment: dict[str, str]) -> None:
    (scripts / "long.py").write_text(LONG)
    arguments = ["tilewright", "tune", "long.py", "--trials", "4000", "-q"]
    begun = f"import runpy, sys, tilewright; sys.argv = {arguments}; print(1, flush=True); "
    command = [sys.executable, "-c", begun + "runpy.run_module('tilewright', run_name='__main__')"]
    for delay in (0.02, 0.05, 0.08, 0.11, 0.14, 0.18, 0.22, 0.26, 0.3, 0.4, 0.5):
        process = subprocess.Popen(
            command, cwd=scripts, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=60)
        assert process.returncode == 130 or (process.returncode == -signal.SIGINT and "interrupted" in problems)
        assert "interrupted" in problems and "Traceback" not in problems, (delay, problems)


def test_a_peer_is_called_with_the_sizes(run: Run, scripts: Path) -> None:
    (scripts / "peer.py").write_text(
        OPEN.split("@T.prim_func\ndef rows")[0]
        + "import tilewright as tw\n\n\n@tw.space(double, reference=lambda a: a * 2)\ndef tiles(sch):\n"
        "    (i,) = sch.get_loops(sch.get_block('B'))\n    sch.split(i, factors=[None, 8])\n"
    )
    result = run("tune", "peer.py", "--sizes", "n=4096", "--trials", "1", "--json")
    assert result.exit_code == 0, result.output
    final = json.loads(result.stdout.splitlines()[-1])
    assert [row["what"] for row in final["rows"]][:4] == ["as written", "by rules", "best found", "NumPy"]
    assert final["warning"] == ""
    assert os.path.exists("out/double.so")
