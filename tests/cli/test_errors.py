"""What a user sees who hands over something wrong: what, where, why, what to do, and a status that is not zero."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import HEAD, PRODUCT, Run

FILL = """
@T.prim_func
def fill(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = {value}
"""
SPACE = """
@tw.space(fill)
def tiles(sch):
    (i,) = sch.get_loops(sch.get_block("A"))
    {step}
"""


def script(value: str = "T.float32(1)", step: str = "") -> str:
    return HEAD + FILL.format(value=value) + (SPACE.format(step=step) if step else "")


#: arguments behind the command, text of script.py, and parts of the message in their order
CASES = {
    "no such file": (["show", "other.py"], "", ["other.py: no such file", "hint:"]),
    "a folder": (["show", "."], "", ["is a folder", "hint:"]),
    "another kind of file": (["show", "notes.txt"], "", ["notes.txt is not a Python file", "end in .py"]),
    "syntax": (["tune"], "x = (1 +\n", ["'(' was never closed", "script.py:1:5", "1 | x = (1 +\n", "    ^"]),
    "null bytes": (["show"], "x\0", ["cannot be read as Python", "null bytes", "hint:"]),
    "it raises": (
        ["show"],
        "a = [1]\n\nprint(a[3])\n",
        ["the script raised IndexError", "script.py:3:7", "3 | print(a[3])\n", "^^^^"],
    ),
    "it ends itself": (["show"], "import sys\nsys.exit(0)\n", ["sys.exit(0)", "script.py:2:1", "^^^^", "__main__"]),
    "unknown name": (
        ["tune"],
        script("unknown"),
        ["script/unknown-name", "script.py:9:21", "A[vi] = unknown", "^^^^^^^"],
    ),
    "wrong dtype": (["show"], script('T.float33("x")'), ["script.py:9:21", "A[vi] = T.float33", "^^^^", "hint:"]),
    "no program": (
        ["show"],
        HEAD,
        ["script.py defines no program", "hint: a program is a function under @T.prim_func"],
    ),
    "two programs": (["show"], script() + FILL.format(value="T.float32(2)").replace("fill", "more"), ["fill, more"]),
    "no such program": (["compile", "--program", "g"], script(), ["no program called g", "hint: it has fill"]),
    "nothing to tune": (["tune"], HEAD, ["script.py defines no program", "hint: a program is a function under"]),
    "no such space": (
        ["tune", "--space", "other"],
        script(step="sch.vectorize(i)"),
        ["no space called other", "it has tiles"],
    ),
    "unknown pass": (
        ["show", "--after", "nothing"],
        script(),
        ["there is no pass 'nothing'", "hint: passes: bind_launches, plan_allocations, "],
    ),
    "too much at once": (["show", "--asm", "--llvm"], script(), ["exclude one another", "hint:"]),
    "two listings": (["db", "--json", "--statistics"], script(), ["exclude one another", "hint:"]),
    "unknown record": (["show", "--record", "worst"], script(), ["--record worst", "--record best"]),
    "no database": (["show", "--record", "best"], script(), ["no such database", "hint:"]),
    "bad kind of target": (["compile", "--target", "metal"], script(), ["target kind metal is unknown", "hint: write"]),
    "bad processor": (["compile", "--target", "llvm -mcpu=z80"], script(), ["z80", "hint: known are"]),
    "bad folder": (["compile", "--out", "script.py/out"], script(), ["nothing can be written there", "--out"]),
    "no trials": (["tune", "--trials", "0"], script(step="sch.vectorize(i)"), ["at least 1 candidate"]),
    "no seconds": (
        ["tune", "--seconds", "nan"],
        script(step="sch.vectorize(i)"),
        ["--seconds is nan; it is a number above 0, or omitted for no limit", "hint: omit it"],
    ),
    "no threads": (["tune", "--threads", "0"], script(step="sch.vectorize(i)"), ["needs at least 1"]),
    "wrong block": (
        ["tune"],
        script(step='sch.get_block("B")'),
        ["get_block/P2", "script.py:14:5", 'sch.get_block("B")', "^^^^", "hint: the blocks of"],
    ),
    "impossible factor": (
        ["tune"],
        script(step="sch.split(i, factors=[3, 0])"),
        ["split/P4", "for i in range(8):", "script.py:14:5", "sch.split(i, factors=[3, 0])", "^^^^", "hint: factors"],
    ),
    "unknown argument": (
        ["tune"],
        script(step="sch.split(i, factor=3)"),
        ["unknown argument 'factor'", "script.py:14:5", "^^^^", "hint: its signature is"],
    ),
    "the space raises": (
        ["tune"],
        script(step='raise KeyError("tile")'),
        [
            "the space 'tiles' raised KeyError: 'tile'",
            "script.py:14:5",
            '14 |     raise KeyError("tile")',
            "^^^^",
            "hint:",
        ],
    ),
    "the space returns": (["tune"], script(step="return 3"), ["returned int", "change the schedule in place"]),
    "the peer raises": (
        ["tune"],
        script(step="sch.vectorize(i)").replace("tw.space(fill)", "tw.space(fill, reference=lambda: 1 // 0)"),
        [
            "the reference of space 'tiles' raised ZeroDivisionError",
            "script.py:11",
            "1 // 0",
            "hint: it is called with",
        ],
    ),
    "a space without its program": (
        ["tune"],
        script(step="pass").replace("tw.space(fill)", "tw.space"),
        ["tw.space takes the program", "script.py:11:2", "hint: write @tw.space(matmul)"],
    ),
    "a space for a program": (
        ["tune", "--program", "tiles"],
        script(step="pass"),
        ["script.py has no program called tiles", "hint: tiles is a space: --space tiles"],
    ),
    "no such file of records": (["db", "other.db"], "", ["other.db: no such file", "hint:"]),
    "no file of records": (["db", "notes.txt"], "", ["not-a-database", "hint:"]),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_input(case: str, run: Run, folder: Path) -> None:
    (command, *options), text, expected = CASES[case]
    (folder / "script.py").write_text(text)
    (folder / "notes.txt").write_text("notes")
    file = [] if options and options[0] in ("other.py", ".", "notes.txt", "other.db") else ["script.py"]
    result = run(command, *file, *options)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    position = 0
    for part in expected:
        position = result.stderr.find(part, position)
        assert position >= 0, f"{part!r} is not in its place in\n{result.stderr}"
    assert "Traceback" not in result.stderr
    assert "defect" not in result.stderr


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["tune"], ["tune", "product.py", "--trials", "x"], ["db", "--top", "0"]]
)
def test_wrong_usage(arguments: list[str], run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "--help" in result.stderr


def test_a_loop_in_the_space_is_interrupted(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.search import space_samples

    monkeypatch.setattr(space_samples, "SPACE_DEADLINE", 0.2)
    (folder / "script.py").write_text(script(step="while True: pass"))
    result = run("tune", "script.py")
    assert result.exit_code == 1
    assert "the space 'tiles' did not return within 0.2 s" in result.stderr


def test_a_defect_of_ours_is_told_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.kernel import kernel

    def broken(*_: object, **__: object) -> None:
        raise AttributeError("nothing there")

    monkeypatch.setattr(kernel, "lower", broken)
    result = run("show", "product.py", "--after", "lower_blocks")
    assert result.exit_code == 1
    assert "error: a defect of Tilewright: AttributeError: nothing there" in result.stderr
    assert "hint: please report it" in result.stderr
    monkeypatch.setenv("TILEWRIGHT_TRACEBACK", "1")
    assert isinstance(run("show", "product.py", "--after", "lower_blocks").exception, AttributeError)


def test_the_exit_status_reaches_the_shell(folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "show", "other.py"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: other.py: no such file\n  hint: the path is relative to {os.getcwd()}\n"


def test_a_reader_that_has_seen_enough(folder: Path, environment: dict[str, str]) -> None:
    (folder / "product.py").write_text(PRODUCT + "\n# " + "x" * 100_000)
    line = f"{sys.executable} -m tilewright show product.py --asm | head -n 1"
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
