"""What is refused before the core sees it has a code, a message, and a hint where there is something to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import arith, te
from tilewright.cli import commands, user_script
from tilewright.database import upkeep
from tilewright.kernel.omitted_outputs import _number
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task import arguments
from tilewright.task.declared_values import declared_arrays
from tilewright.task.specialize import specialize
from tilewright.task.task import task_of


@T.prim_func
def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * 2.0


@T.prim_func
def nowhere(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.assume_buffer_domain(A, [5, 5])
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]


def script(folder: Path, text: str) -> tuple[Any, Path]:
    file = folder / "script.py"
    file.write_text(text)
    return user_script.load_script(file), file


@T.macro
def nothing() -> None:
    T.evaluate(0)


#: By code: what raises it, in an empty folder.
REFUSED: dict[str, list[Callable[[Path], Any]]] = {
    "arith/level": [lambda _: arith.detect_iter_map([te.var("i")], {}, check_level="sideways")],
    "command/file": [
        lambda folder: user_script.load_script(folder),
        lambda folder: user_script.load_script(folder / "other.py"),
        lambda folder: script(folder, "x = ("),
    ],
    "command/script": [lambda folder: script(folder, "1 // 0"), lambda folder: script(folder, "raise SystemExit(2)")],
    "command/program": [
        lambda folder: user_script.select_program(*script(folder, "x = 1"), None),
        lambda folder: user_script.check_program(folder, "f", ["g"]),
    ],
    "command/space": [
        lambda folder: user_script.spaces_of_script(
            *script(folder, "from tilewright.testing.workloads import matmul\nf = matmul(8, 8, 8)"),
            "other",
            None,
            lambda program: tw.Space(program, lambda sch: None, name="by rules"),
        )
    ],
    "command/sizes": [lambda _: commands.parse_sizes(["n"])],
    "command/folder": [
        lambda folder: (folder / "taken").write_text(""),
        lambda f: commands.prepare_folder(f / "taken"),
    ],
    "command/options": [lambda folder: commands.show(folder, asm=True, llvm=True)],
    "database/same": [
        lambda folder: upkeep.merge_and_prune(str(folder / "a.db"), [str(folder / "a.db")], None, None, say=print)
    ],
    "kernel/inspect": [lambda _: tw.compile(double).inspect("c")],
    "kernel/interpreted": [
        lambda _: tw.compile(double, target="interpreter").inspect("asm"),
        lambda folder: tw.compile(double, target="interpreter").export(folder, "double"),
    ],
    "kernel/from-library": [lambda folder: tw.load(tw.compile(double).export(folder, "double").library).inspect("tir")],
    "call/omitted-size": [lambda _: _number(te.var("n"), {}, "O")],
    "script/decorator": [lambda _: T.prim_func(3), lambda _: T.macro(3), lambda _: I.ir_module(3)],
    "script/source": [lambda _: tw.script.from_source(3), lambda _: tw.script.from_file(3)],
    "script/unreadable": [lambda folder: tw.script.from_file(folder / "none.py")],
    "script/macro-use": [lambda _: nothing()],
    "tune/progress": [lambda _: tw.tune(double, trials=1, progress="loud")],
    "space/program": [lambda _: tw.space(len)],
    "arguments/numpy-type": [lambda _: numpy_dtype("float32x4")],
    "arguments/program": [lambda _: tw.compile(len)],
    "tune/inputs": [
        lambda _: tw.tune(double, trials=1, inputs={"A": np.zeros(9, "float32")}),
        lambda _: arguments.given_array("A", [[1], [1, 2]]),
    ],
    "tune/domain": [lambda _: declared_arrays(nowhere, {0: (8,), 1: (8,)}, {}, np.random.default_rng(0))],
    "ir/specialize": [lambda _: specialize(double, {te.var("n"): 3})],
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals_have_codes(code: str, tmp_path: Path) -> None:
    for refused in REFUSED[code]:
        try:
            refused(tmp_path)
        except tw.Error as error:
            assert error.code == code
            assert error.message and error.message in str(error) and error.hint in str(error)
        else:
            assert refused is not REFUSED[code][-1], "it is accepted"


def test_arrays_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(arguments, "random_array", full)
    with pytest.raises(tw.ResourceError, match="does not fit into memory") as caught:
        arguments.make_arrays(task_of(double), {}, 0)
    assert caught.value.code == "tune/memory"


def test_dumps_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILEWRIGHT_DUMP", str(tmp_path / "file"))
    with pytest.raises(tw.ResourceError) as caught:
        tw.compile(double)
    assert caught.value.code == "compile/dump"
