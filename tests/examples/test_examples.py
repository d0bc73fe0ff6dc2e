"""The lessons run as their first lines say, and so do the programs in C++ and C."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import subprocess
import sys
import warnings
import xml.dom.minidom
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tilewright.kernel.device_code import find_disassembler

from .conftest import ROOT


def python(*arguments: object, cwd: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_lesson_is_tested() -> None:
    numbers = [path.name[:2] for path in sorted((ROOT / "examples").glob("*.py"))]
    assert numbers == [f"{number:02}" for number in range(1, 18)]


@pytest.mark.parametrize(("lesson", "peer"), [("01_matmul.py", "NumPy"), ("04_softmax.py", "NumPy")])
def test_lessons_that_tune(lesson: str, peer: str, examples: Path, tmp_path: Path) -> None:
    text = python("-m", "tilewright", "tune", examples / lesson, "--trials", 3, "--json", cwd=tmp_path)
    result = json.loads(text.splitlines()[-1])
    assert result["trials"] == 3
    assert result["warning"] == ""
    times = {row["what"]: row["seconds"] for row in result["rows"] if row["threads"] == 1}
    assert set(times) == {"as written", "by rules", "best found", peer}
    assert all((tmp_path / name).exists() for name in result["written"])


def test_lesson_4_has_many_points(examples: Path) -> None:
    """Each of them gives the lanes that it asks for: the row of a reduction is a lane, which needs no reordered sum."""
    space = runpy.run_path(str(examples / "04_softmax.py"))["rows_together"]
    seen = set()
    for seed in range(100):
        sch = tw.Schedule(space.program, seed=seed)
        space.function(sch)
        seen.add(sch.mod.script())
        if seed < 5:
            assert not tw.compile(sch).notes
    assert len(seen) > 40


def test_lesson_2_schedules_by_hand(examples: Path, tmp_path: Path) -> None:
    text = python(examples / "02_schedule_by_hand.py", cwd=tmp_path)
    assert "for i_0 in T.parallel(32):" in text
    assert "T.where(i_0 * 32 + i_1 < 1000)" in text
    assert "sch.vectorize(" in text
    assert "GFLOP/s" in text.splitlines()[-1]


def test_lesson_3_writes_a_pass(examples: Path, tmp_path: Path) -> None:
    assert "Y[vi] = X[vi] * T.float32(0.125)" in python(examples / "03_write_a_pass.py", cwd=tmp_path)


def test_lesson_5_multiplies_bytes(examples: Path, tmp_path: Path) -> None:
    lines = python(examples / "05_int8_vnni.py", cwd=tmp_path).splitlines()
    assert lines[0].startswith("this processor has dot_16x4_")
    rates = {line.rsplit("  ", 2)[0].strip(): float(line.split()[-1]) for line in lines[-3:]}
    assert next(iter(rates)).startswith("Tilewright") and len(rates) == 3


@pytest.mark.parametrize("cpu", ["znver3", "skylake-avx512"])
def test_the_tile_of_lesson_5_follows_the_target(cpu: str) -> None:
    lesson = runpy.run_path(str(ROOT / "examples" / "05_int8_vnni.py"))
    target = tw.Target(f"llvm -mcpu={cpu}")
    intrin = lesson["best_dot_16x4"](target)
    assert intrin is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error", tw.notes.PerformanceWarning)
        tw.compile(lesson["schedule"](intrin, target), target=target)


def test_lesson_7_moves_a_stage(examples: Path, tmp_path: Path) -> None:
    """It compares each kernel with NumPy itself. Only the copy to memory is computed as often as it is written."""
    text = python(examples / "07_compute_at_and_caches.py", cwd=tmp_path)
    assert text.count("results agree with the original program") == 5
    rows = [line.split() for line in text.splitlines()[-6:]]
    assert [row[0] for row in rows] == ["NumPy", "stage", "at", "at", "strips,", "at"]


def test_lesson_8_packs(examples: Path, tmp_path: Path) -> None:
    """It compares the kernel with NumPy itself; what is convolved is vectors throughout, and sums are in registers."""
    lesson = examples / "08_layout_and_packing.py"
    text = python(lesson, cwd=tmp_path)
    assert "results agree with the original program" in text
    assert [line.split("  ")[0] for line in text.splitlines()[-3:]] == ["NumPy", "as written", "scheduled"]
    kernel = tw.compile(runpy.run_path(str(lesson))["schedule"]())
    assert not kernel.notes
    assert [(p["buffer"], p["promoted"]) for p in kernel.report["promotions"]] == [("conv_local", True)]


def test_the_program_in_cpp(examples: Path, tmp_path: Path) -> None:
    """Built with the line that stands in its head; no Python is involved when it runs."""
    package = Path(tw.__file__).parent
    program = tmp_path / "matmul"
    flags = ["-std=c++20", "-Wall", "-Werror", "-I", ROOT / "src", f"-L{package}", f"-Wl,-rpath,{package}"]
    command = ["c++", *flags, examples / "cpp/matmul.cc", "-ltilewright", "-lfmt", "-o", program]
    subprocess.run([str(part) for part in command], check=True)
    done = subprocess.run([program], cwd=tmp_path, env={}, check=True, capture_output=True, text=True)
    assert "T.vectorized(16)" in done.stdout
    assert done.stdout.endswith("the product is right\n")


def test_the_program_in_c_calls_an_exported_kernel(examples: Path, tmp_path: Path) -> None:
    """The library was made in one folder; it is used from another one, without Python and without the compiler."""
    python("-m", "tilewright", "compile", examples / "01_matmul.py", "--out", "made", cwd=tmp_path)
    library = tmp_path / "library"
    (tmp_path / "made").rename(library)
    program = tmp_path / "elsewhere" / "main"
    program.parent.mkdir()
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-DSIZE=256", "-I", library]
    command = ["cc", *flags, examples / "c/main.c", library / "matmul.so", f"-Wl,-rpath,{library}", "-o", program]
    subprocess.run([str(part) for part in command], check=True)
    done = subprocess.run([program], cwd=program.parent, env={}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("C[0, 1] = ")
    needed = subprocess.run(["ldd", library / "matmul.so"], check=True, capture_output=True, text=True).stdout
    assert "python" not in needed
    assert "libtilewright" not in needed


def test_lesson_9_needs_no_space(examples: Path, tmp_path: Path) -> None:
    """It compares each kernel with NumPy itself."""
    text = python(examples / "09_tune_without_a_space.py", "3", cwd=tmp_path)
    assert [line[:12].strip() for line in text.splitlines()[-3:]] == ["as written", "by rules", "tuned"]
    assert "sch.vectorize(" in text


def test_lesson_10_writes_a_rule(examples: Path, tmp_path: Path) -> None:
    """It compares with NumPy itself; the rule's parts of the sum are faster than the sum as written."""
    text = python(examples / "10_write_a_rule.py", 6, cwd=tmp_path)
    assert "sch.rfactor(" in text and "sch.vectorize(" in text
    assert [line.split("  ")[0].strip() for line in text.splitlines()[-2:]] == ["as written", "by this rule"]


def test_lesson_11_tunes_a_module(examples: Path, tmp_path: Path) -> None:
    """It compares with NumPy itself."""
    text = python(examples / "11_a_module_in_a_budget.py", 12, cwd=tmp_path)
    for said in (
        "dense  ",
        "swish  ",
        "of the module, each tuned by itself",
        "how the best time fell",
        "where the time of 2 sessions went",
        " added",
    ):
        assert said in text
    assert text.splitlines()[-1] == "{'dense': 'recorded', 'swish': 'recorded'}"


def test_lesson_12_reads_a_report(examples: Path, tmp_path: Path) -> None:
    text = python(examples / "12_read_a_report.py", 12, cwd=tmp_path)
    for said in ("how the best time fell", "lower/not-in-registers", "where the time of 1 session went", "vectorize("):
        assert said in text
    assert "The page has" in text.splitlines()[-1]


def test_lesson_13_shares_a_database(examples: Path, tmp_path: Path) -> None:
    """The one who compiles has neither tuned nor the others' folders."""
    text = python(examples / "13_share_a_database.py", 5, cwd=tmp_path)
    assert text.count(" programs of ") == 2 and "records deleted" in text and "team.db: 2 programs" in text
    assert text.splitlines()[-3:] == ["mary$ share use", "scores: recorded", "scaled: recorded"]


#: the rows that lessons print of PyTorch
PYTORCH = ["PyTorch"] if importlib.util.find_spec("torch") else []
#: Runs lessons in one process, each with names and arguments of its own; prints what they print, as JSON.
SEVERAL = """
import contextlib, io, json, runpy, sys
output = []
for lesson, *arguments in json.loads(sys.argv[1]):
    sys.argv = [lesson, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(lesson, run_name="__main__")
    output.append(printed.getvalue())
print(json.dumps(output))
"""


def test_lessons_that_compare_with_pytorch(examples: Path, tmp_path: Path) -> None:
    """Importing PyTorch takes three seconds of processor time, so one process runs these lessons. They compare with
    NumPy, SciPy and PyTorch themselves, without the latter where it is not installed."""
    names = (
        "06_reductions.py",
        "14_graph_convolution.py",
        "15_graph_layer_over_axes.py",
        "16_attention_over_a_mask.py",
    )
    lessons = [str(examples / name) for name in names]
    commands = [[lesson, str(tmp_path)] if lesson in lessons[2:] else [lesson] for lesson in lessons]
    printed = json.loads(python("-c", SEVERAL, json.dumps(commands), cwd=tmp_path))
    check_reductions(printed[0], runpy.run_path(lessons[0]))
    check_graph_convolution(printed[1])
    check_graph_layer(printed[2], runpy.run_path(lessons[2]), tmp_path)
    check_attention(printed[3])


def check_reductions(text: str, parts: dict[str, Any]) -> None:
    """Both schedules of lesson 6 are vectors throughout."""
    assert text.count("sch.vectorize(") == 4
    for name in ("softmax", "layer normalization"):
        rows = text.partition(f"{name}, 512 rows of 1000\n")[2].splitlines()
        wanted = ["as", "scheduled", "NumPy", *PYTORCH]
        assert [row.split()[0] for row in rows[: len(wanted)]] == wanted
    for name in ("softmax", "layer_norm"):
        sch = parts["row_by_row"](parts[name])
        assert not tw.compile(sch).notes
        assert "_lanes" in tw.lower(sch, after="vectorize_reductions").script()


def check_graph_convolution(text: str) -> None:
    lines = text.splitlines()
    assert "198361 nonzeros" in lines[0]
    wanted = ["Tilewright", "SciPy", *PYTORCH]
    assert [line.split()[0] for line in lines[-len(wanted) :]] == wanted


def check_graph_layer(text: str, names: dict[str, Any], folder: Path) -> None:
    """The program in C of lesson 15 adds and subtracts small integers."""
    lines = text.splitlines()
    assert lines[-1] == "from C: 7 0 0"
    assert [line[:4] for line in lines[-3:-1]] == ["CSR:", "hyb:"]
    drawn = xml.dom.minidom.parse(str(folder / "formats.svg")).getElementsByTagName("rect")
    filled = [each for each in drawn if each.getAttribute("fill") != "none"]
    assert len(filled) == 5 * names["graph"](24, 60).nnz < len(drawn)
    assert (ROOT / "docs/pictures/sparse-formats.svg").read_text() == (folder / "formats.svg").read_text()


def reaches(length: int) -> int:
    """How many pairs of positions are at most 8 apart, or have one of the first four among them."""
    return sum(abs(i - j) <= 8 or min(i, j) < 4 for i in range(length) for j in range(length))


def check_attention(text: str) -> None:
    lines = text.splitlines()
    assert lines[-2] == f"{reaches(512)} scores instead of 262144, the same result"
    assert lines[-1].startswith("validated: ") and "indices_data[100]" in lines[-1]


def test_lesson_17_has_kernels_for_a_gpu(examples: Path, tmp_path: Path) -> None:
    """It compares with NumPy itself."""
    lines = python(examples / "17_kernels_for_a_gpu.py", cwd=tmp_path).splitlines()
    assert lines[-1] == "both kernels agree with NumPy on an OpenCL device"
    assert sum("sm_80: " in line and "occupancy" in line for line in lines) == 2
    if find_disassembler() is not None:
        product, rows = (line for line in lines if line.startswith("  machine code: "))
        # Each step of the reduction of 4 x 4 results is 16 multiply-adds; shared memory has tiles of 16 steps.
        assert " 256 multiply-adds" in product and " 0 exchanges" in product
        assert " 0 exchanges" not in rows and " 0 barriers" not in rows
