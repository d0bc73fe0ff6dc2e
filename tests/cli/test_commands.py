"""Help, show, compile, db and info."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tilewright as tw
from tilewright.cli.commands import app
from tilewright.script import from_source

from .conftest import HEAD, PRODUCT, Run

COMMANDS = ["tune", "show", "compile", "db", "info"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command: str, run: Run) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    for word in COMMANDS if not command else ["--help"]:
        assert word in result.stdout


def test_show_prints_the_program_as_a_script(run: Run) -> None:
    result = run("show", "product.py")
    assert result.exit_code == 0
    program = from_source(result.stdout)
    assert program.attrs["global_symbol"] == "product"
    assert result.stdout == program.script() + "\n"


def test_show_tells_what_is_not_fast(run: Run, folder: Path) -> None:
    text = '\n\n@T.prim_func\ndef total(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):\n'
    (folder / "total.py").write_text(HEAD + text + "    for k in range(64):\n        B[0] = B[0] + A[k]\n")
    note = "note: total: loop 'k' has no vector code: iterations write to the same element of 'B' (total.py:7)"
    shown = run("show", "total.py").stdout
    assert f"\n# {note}\n" in shown
    from_source(shown)
    assert f"\n; {note}\n" in run("show", "total.py", "--llvm").stdout


def test_show_after_a_pass_llvm_and_assembly(run: Run) -> None:
    assert "T.init" in run("show", "product.py").stdout
    after = run("show", "product.py", "--after", "lower_init_blocks").stdout
    assert "T.block" in after
    assert "T.init" not in after
    assert "T.block(" not in run("show", "product.py", "--after", "lower_blocks").stdout
    assert "define i32 @product(" in run("show", "product.py", "--llvm").stdout
    assert "\nproduct:" in run("show", "product.py", "--asm").stdout


def test_a_module_of_several_kernels(run: Run, folder: Path) -> None:
    text = HEAD + "from tilewright.script import ir as I\n\n\n@I.ir_module\nclass Two:\n"
    for name in ("first", "second"):
        text += f'    @T.prim_func\n    def {name}(A: T.Buffer((8,), "float32")):\n        A[0] = T.float32(1)\n\n'
    (folder / "two.py").write_text(text)
    assert "\nfirst:" in run("show", "two.py", "--asm").stdout
    assert "\nsecond:" in run("show", "two.py", "--asm").stdout
    result = run("compile", "two.py")
    assert result.stdout.split() == ["out/Two.so", "out/Two.o", "out/Two.h"]
    assert sorted(tw.load("out/Two.so")) == ["first", "second"]


def test_several_programs_as_one_library(run: Run, folder: Path) -> None:
    text = HEAD
    for name, factor in (("first", 2), ("second", 3), ("third", 5)):
        text += f'\n\n@T.prim_func\ndef {name}(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
        text += f"    for i in range(8):\n        B[i] = A[i] * T.float32({factor})\n"
    (folder / "ops.py").write_text(text)
    a = np.arange(8, dtype="float32")
    result = run("compile", "ops.py", "--all")
    assert result.stdout.split() == ["out/ops.so", "out/ops.o", "out/ops.h"]
    kernels = tw.load("out/ops.so")
    assert sorted(kernels) == ["first", "second", "third"]
    for name, factor in (("first", 2), ("second", 3), ("third", 5)):
        np.testing.assert_array_equal(kernels[name](a), a * factor)
    result = run("compile", "ops.py", "--program", "third", "--program", "first", "--name", "two", "--out", "here")
    assert result.stdout.split() == ["here/two.so", "here/two.o", "here/two.h"]
    assert sorted(tw.load("here/two.so")) == ["first", "third"]
    header = (folder / "here/two.h").read_text()
    assert "int32_t first(" in header and "int32_t third(" in header and "second(" not in header
    refused = run("compile", "ops.py", "--all", "--program", "first")
    assert refused.exit_code and "exclude one another" in refused.output
    assert "no program called fourth" in run("compile", "ops.py", "--program", "first", "--program", "fourth").output
    result = run("compile", "ops.py", "--program", "first", "--program", "first")
    assert result.stdout.split() == ["out/first.so", "out/first.o", "out/first.h"]


def test_functions_of_one_name_are_told_apart_by_those_in_the_file(run: Run, folder: Path) -> None:
    text = HEAD + "\n\ndef made(factor):\n    @T.prim_func\n"
    text += '    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
    text += "        for i in range(8):\n            B[i] = A[i] * T.float32(factor)\n    return main\n\n\n"
    (folder / "made.py").write_text(text + "twice, thrice = made(2), made(3)\n")
    assert run("compile", "made.py", "--all").exit_code == 0
    kernels = tw.load("out/made.so")
    a = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(kernels["twice"](a), 2 * a)
    np.testing.assert_array_equal(kernels["thrice"](a), 3 * a)


def test_compile(run: Run) -> None:
    result = run("compile", "product.py", "--out", "here")
    assert result.exit_code == 0
    assert result.stdout.split() == ["here/product.so", "here/product.o", "here/product.h"]
    a, b = np.random.default_rng(0).random((2, 64, 64), dtype=np.float32)
    c = np.empty_like(a)
    tw.load("here/product.so")(a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)


def test_show_without_a_record(run: Run, folder: Path) -> None:
    """A program that was not tuned is shown as it is; with a reason where there are records of others."""
    text = (folder / "product.py").read_text()
    (folder / "other.py").write_text(text.replace("64", "32"))
    source = run("show", "other.py").stdout
    for needed in (["--record", "best"], ["--database", "out/tilewright.db"]):
        refused = run("show", "other.py", *needed)
        assert refused.exit_code == 1 and "no such database" in refused.stderr
    assert run("tune", "product.py", "--trials", "1", "--quiet").exit_code == 0
    shown = run("show", "other.py")
    assert shown.exit_code == 0 and shown.stdout == source
    assert "note: this is the program without a recorded schedule: out/tilewright.db holds no record" in shown.stderr
    assert run("show", "other.py", "--record", "best").exit_code == 1
    refused = run("show", "product.py", "--source", "--record", "best")
    assert refused.exit_code == 1 and "--source excludes --record" in refused.stderr


def test_records_are_used_where_they_are_asked_for(run: Run) -> None:
    assert run("tune", "product.py", "--trials", "3", "--quiet").exit_code == 0
    for best in ([], ["--record", "best"], ["--database", "out/tilewright.db"]):
        shown = run("show", "product.py", *best).stdout
        assert "T.vectorized" in shown
        assert shown.endswith("# with the fastest schedule of out/tilewright.db; --source omits it\n")
        from_source(shown)
    assert "T.vectorized" not in run("show", "product.py", "--source").stdout
    assembly = run("show", "product.py", "--asm").stdout
    assert "\nproduct:" in assembly
    assert assembly != run("show", "product.py", "--source", "--asm").stdout
    lowered = run("show", "product.py", "--after", "vectorize_loops").stdout
    assert "T.Ramp(" in lowered or "T.Broadcast(" in lowered
    assert run("compile", "product.py", "--database", "out/tilewright.db").exit_code == 0

    listing = run("db", "out/tilewright.db").stdout
    assert listing.startswith("product  ")
    assert re.search(r"llvm -mcpu=\S+", listing)
    assert re.search(r"outcomes: .*\d ok", listing)
    records = [json.loads(line) for line in run("db", "out/tilewright.db", "--json").stdout.splitlines()]
    assert len(records) == 3
    assert {record["program"] for record in records} == {"product"}
    ok = [record for record in records if record["outcome"] == "ok"]
    best = min(ok, key=lambda record: record["median"])
    names = [instruction[0] for instruction in best["trace"][0]]
    assert names[:2] == ["GetBlock", "GetLoops"]
    assert best["verification"]["tolerance"]["C"]


def test_an_empty_database(run: Run, folder: Path) -> None:
    from tilewright import _core

    _core.Database.open(str(folder / "empty.db"))
    assert run("db", "empty.db").stdout == "empty.db holds no records\n"
    assert run("db", "empty.db", "--json").stdout == ""
    # What was done is no record.
    _core.Database.open(str(folder / "other.db"))
    merged = run("db", "empty.db", "--merge", "other.db", "--export", "lines", "--json")
    assert merged.stdout == "" and "0 records and 0 programs of other.db added" in merged.stderr
    assert "0 records of 0 programs written to lines" in merged.stderr


def test_letters_that_the_encoding_of_the_locale_lacks(folder: Path) -> None:
    (folder / "product.py").write_text(PRODUCT.replace("A", "Ä"), encoding="utf-8")
    result = CliRunner(charset="ascii").invoke(app, ["show", "product.py", "--source"])
    assert result.exit_code == 0 and "def product(\\xc4: T.Buffer(" in result.stdout


def test_info(run: Run) -> None:
    text = run("info").stdout
    assert f"tilewright {tw.__version__}, LLVM 19." in text
    native = tw.Target("native")
    assert f"({native.cpu}), {native.num_cores} core" in text
    for limit in ("float32 arithmetic", "reading L1", "reading memory", "measured limits, 1 thread"):
        assert limit in text
    facts = json.loads(run("info", "--json").stdout)
    assert facts["versions"]["tilewright"] == tw.__version__
    assert facts["processor"]["features"] == native.features
    assert facts["limits"][0]["threads"] == 1
    assert facts["limits"][0]["operations_per_second"]["float32"] > 1e9
    flags = json.loads(run("info", "--json", "--cflags", "--libs").stdout)
    assert shlex.join(flags) == run("info", "--cflags", "--libs").stdout.strip()
