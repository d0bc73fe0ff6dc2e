"""Scripts as ruff and a strict type checker see them, and the stub of T against T itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.script import tir as T

SAMPLES = Path(__file__).parent / "typing_samples"
PACKAGE = Path(tw.__file__).parent.parent
STUB = PACKAGE / "tilewright/script/tir/__init__.pyi"


MISTAKES = """\
from tilewright.script import tir as T


@T.prim_func
def f(a: T.handle) -> None:
    A = T.match_buffer(a, (8,), 'float32', alignment=3)
    A[0] = T.sqr(A[1])
    T.axis.spatial('i')
    A[0] = 'text'
"""


@pytest.mark.timeout(900)
def test_samples_pass_a_strict_type_checker_and_mistakes_do_not(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    mistakes = tmp_path / "mistakes.py"
    mistakes.write_text(MISTAKES)
    options = ["--strict", "--follow-imports=silent", "--config-file", "", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, SAMPLES / "handles.py", SAMPLES / "calls.py", mistakes],
        env={"MYPYPATH": str(PACKAGE), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    errors = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert errors == [["mistakes.py", line] for line in "6789"], done.stdout + done.stderr


def test_samples_pass_ruff() -> None:
    pytest.importorskip("ruff")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", SAMPLES], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    rules = [line for line in (SAMPLES / "handles.py").read_text().splitlines() if "noqa" in line or "ignore" in line]
    assert not rules


@pytest.mark.parametrize("name", ["handles", "calls"])
def test_samples_are_programs(name: str) -> None:
    namespace: dict[str, object] = {}
    file = SAMPLES / f"{name}.py"
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    programs = [value for value in namespace.values() if isinstance(value, tw.ir.PrimFunc | tw.ir.IRModule)]
    assert programs
    for program in programs:
        tw.ir.assert_structural_equal(tw.script.from_source(program.script()), program)


def test_the_stub_has_all_names_and_says_what_they_are() -> None:
    nodes = ast.parse(STUB.read_text()).body
    declared = {
        *(node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)),
        *(node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)),
        *(
            node.targets[0].id
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ),
    }
    assert set(T.__all__) <= declared
    seen: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name not in seen:  # of overloads, the first one
            seen.add(node.name)
            assert ast.get_docstring(node), node.name


def test_help_says_what_each_name_does() -> None:
    def sentence(value: object) -> str:
        text = value.__doc__ or ""
        return (text.partition("\n\n")[2] if type(value).__name__ == "nb_func" else text).strip()

    named = {name: getattr(T, name) for name in dir(T) if not name.startswith("_")}
    functions = {name: value for name, value in named.items() if callable(value) and not isinstance(value, type)}
    assert len(functions) > 300
    assert [name for name, value in functions.items() if not sentence(value)] == []
