"""The main job: a script is tuned, and everything that is said of it is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.cli.user_script import load_script
from tilewright.database.records import best_schedule
from tilewright.search import report, session

from .conftest import HEAD, PRODUCT, Run


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def check_table(lines: list[str], start: int) -> None:
    number = r"[\d.]+"
    assert re.match(r" +time +GFLOP/s +GB/s +of .+ +speed / NumPy", lines[start + 2])
    rows = [line.split("  ")[1].strip() for line in lines[start + 4 : start + 8]]
    assert rows == ["as written", "by rules", "best found", "NumPy"]
    assert re.search(rf"{number} \({number} to {number}\)", lines[start + 6])


def test_plain_output(run: Run) -> None:
    result = run("tune", "product.py", "--trials", "4")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"tuning product for 1 thread( of \d+)?; the roof is [\d.]+ [mun]s \(.+\)", lines[0])
    number = r"[\d.]+"
    assert re.fullmatch(
        rf"trial 4/4 \| best {number} [mun]s, {number} GFLOP/s, \d+ % of .+ \| {number} candidates/s \| "
        r"stopped early: \d \| failed: .+",
        lines[1],
    )
    # Without a parallel loop more threads change nothing, so there is one table.
    (start,) = (i for i, line in enumerate(lines) if line.startswith("product, "))
    assert lines[start].startswith("product, 1 thread")
    check_table(lines, start)
    check = "24 sampled results agree with the interpreter, at full size; all results at A[9, 9], B[9, 9], C[9, 9]"
    assert f"unscheduled program: {check}" in lines
    assert lines[-1] == "written: out/tilewright.db, out/product.so, out/product.o, out/product.h"
    for name in ("tilewright.db", "product.so", "product.o", "product.h"):
        assert Path("out", name).stat().st_size > 0


def test_parallel_kernels_have_a_table_for_all_cores(run: Run, folder: Path) -> None:
    (folder / "script.py").write_text(PRODUCT.replace("    sch.vec", "    sch.parallel(i_tiles[0])\n    sch.vec"))
    result = run("tune", "script.py", "--trials", "1")
    lines = result.stdout.splitlines()
    for count in dict.fromkeys([1, tw.Target("native").num_cores]):
        check_table(lines, next(i for i, line in enumerate(lines) if line.startswith(f"product, {count} thread")))


def test_the_speed_is_that_of_the_times_beside_it(run: Run) -> None:
    rows = events(run("tune", "product.py", "--trials", "1", "--json").stdout)[-1]["rows"]
    _, _, best, peer = rows[:4]
    assert best["ratio_to_peer"][0] == pytest.approx(peer["seconds"] / (best["call_seconds"] or best["seconds"]))


def test_how_results_were_checked_is_a_sentence(run: Run) -> None:
    result = run("tune", "product.py", "--trials", "1")
    line = next(line for line in result.stdout.splitlines() if line.startswith("best found: every element"))
    assert re.fullmatch(
        r"best found: every element agrees with the unscheduled program "
        r"\(C to \S+ of it and \S+ of the root mean square; \d+% of that is used\)",
        line,
    )


def test_one_failing_space_leaves_the_others(run: Run, folder: Path) -> None:
    second = PRODUCT[PRODUCT.index("@tw.space") :].replace("def tiles", "def {name}")
    broken = second.replace("sch.reorder", "1 / 0; sch.reorder").format(name="broken")
    raising = second.replace("a @ b.T", "a @ nothing").format(name="raising")
    (folder / "script.py").write_text(
        "\n\n".join([PRODUCT.split("@tw.space")[0], raising, broken, second.format(name="good")])
    )
    result = run("tune", "script.py", "--trials", "1", "--json")
    assert result.exit_code == 1
    assert "error: space 'product_broken': the space 'broken' raised ZeroDivisionError" in result.stderr
    assert "error: space 'product_raising': the reference of space 'raising' raised NameError" in result.stderr
    (only,) = (event for event in events(result.stdout) if event["event"] == "result")
    assert only["written"][1] == "out/product_good.so"


def test_more_threads_than_cores_are_remarked(run: Run) -> None:
    cores = tw.Target("native").num_cores
    result = run("tune", "product.py", "--trials", "1", "--threads", str(cores + 1), "--quiet")
    assert result.exit_code == 0
    assert f"warning: {cores + 1} threads share {cores} core" in result.stderr and "commands.py" not in result.stderr
    with pytest.warns(tw.PerformanceWarning, match="threads share") as caught:
        tw.set_num_threads(cores + 1)
    tw.set_num_threads(0)
    assert caught[0].filename == __file__


def test_the_printed_schedule_pasted_under_the_script_rebuilds_the_program(run: Run, folder: Path) -> None:
    result = run("tune", "product.py", "--trials", "4")
    start = result.stdout.index("import tilewright as tw\n\n\ndef apply_schedule")
    end = result.stdout.index("apply_schedule(sch)", start) + len("apply_schedule(sch)\n")
    (folder / "pasted.py").write_text(PRODUCT + "\n\n" + result.stdout[start:end])
    pasted = load_script(folder / "pasted.py")
    best = best_schedule(pasted.product, "out/tilewright.db")
    tw.ir.assert_structural_equal(pasted.sch.mod, best.mod)
    assert not tw.ir.structural_equal(pasted.sch.mod, tw.Schedule(pasted.product).mod)


def test_a_program_without_a_name_of_its_own_can_be_pasted_too(run: Run, folder: Path) -> None:
    text = PRODUCT.replace("@T.prim_func\ndef product", "@T.prim_func\ndef _product").replace(
        "tw.space(product", "tw.space(_product"
    )
    (folder / "script.py").write_text(text)
    (event,) = (e for e in events(run("tune", "script.py", "--trials", "2", "--json").stdout) if e["event"] == "result")
    assert event["program"] == "tiles.program"
    (folder / "pasted.py").write_text(text + "\n\n" + event["schedule"])
    pasted = load_script(folder / "pasted.py")
    tw.ir.assert_structural_equal(pasted.sch.mod, best_schedule(pasted._product, "out/tilewright.db").mod)


def test_a_finished_session_measures_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("tune", "product.py", "--trials", "3")

    def measured(*_: object, **__: object) -> None:
        raise AssertionError("something was measured")

    monkeypatch.setattr(report.timing, "compare", measured)
    again = run("tune", "product.py", "--trials", "3")
    assert again.exit_code == 0, again.output
    assert "all 3 trials were measured before, so nothing was measured" in again.stdout
    assert "more trials: tilewright tune product.py --trials 6; the same ones anew: --fresh" in again.stdout
    assert re.search(r"product, 1 thread(, \w+)?, measured \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", again.stdout)
    row = next(line for line in first.stdout.splitlines() if "best found" in line)
    assert row in again.stdout.splitlines()
    monkeypatch.undo()


def test_more_trials_go_on_and_fresh_begins_anew(run: Run) -> None:
    def tune(*options: str) -> list[dict[str, Any]]:
        return events(run("tune", "product.py", "--json", *options).stdout)

    first = tune("--trials", "2")[-1]
    assert (first["trials"], first["measured_before"], first["stop_reason"]) == (2, 0, "trials")
    more = tune("--trials", "4")
    assert (more[0]["trials"], more[-1]["trials"], more[-1]["measured_before"]) == (2, 4, 2)
    anew = tune("--trials", "2", "--fresh")[-1]
    assert (anew["trials"], anew["measured_before"]) == (2, 0)


def test_a_search_ends_early_where_that_is_asked_for(run: Run) -> None:
    fast = run("tune", "product.py", "--trials", "40", "--target-seconds", "10")
    assert fast.exit_code == 0, fast.output
    assert re.search(r"as fast as --target-seconds says: it ended after \d+ of 40 trials", fast.stdout)
    # All ten points of the space may be known by now.
    patient = run("tune", "product.py", "--trials", "60", "--patience", "1", "--seed", "1", "--fresh")
    assert re.search(r"--patience says found nothing faster: it ended after \d+ of 60", patient.stdout)
    for option, message in {"--patience=0": "--patience is 0", "--target-seconds=0": "--target-seconds is 0"}.items():
        refused = run("tune", "product.py", option)
        assert refused.exit_code == 1 and message in refused.stderr


def test_strategy_cost_model_and_target_are_passed_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    honest = session.tune

    def tune(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return honest(*arguments, **options)

    monkeypatch.setattr(session, "tune", tune)
    target = str(tw.Target("native").with_num_cores(1))
    options = ["--strategy", "replay-trace", "--cost-model", "random", "--target", target]
    result = run("tune", "product.py", "--trials", "2", *options)
    assert result.exit_code == 0, result.output
    (given,) = asked
    assert (given["strategy"], given["target"]) == ("replay-trace", target)
    assert type(given["cost_model"]).__name__ == "RandomModel"
    again = run("tune", "product.py", "--trials", "2", *options)
    assert "--strategy replay-trace --cost-model random" in again.stdout  # how to get more trials
    for wrong in (["--strategy", "luck"], ["--cost-model", "tree"], ["--target", "llvm -mcpu=none"]):
        assert run("tune", "product.py", *wrong).exit_code == 1


def test_json(run: Run) -> None:
    *progress, result = events(run("tune", "product.py", "--trials", "2", "--json").stdout)
    assert progress[-1]["event"] == "progress"
    assert progress[-1]["phase"] == "done"
    assert sum(progress[-1]["outcomes"].values()) == 2
    assert result["written"] == ["out/tilewright.db", "out/product.so", "out/product.o", "out/product.h"]
    names = [(row["what"], row["threads"]) for row in result["rows"]]
    assert names[:4] == [("as written", 1), ("by rules", 1), ("best found", 1), ("NumPy", 1)]
    best = result["rows"][2]
    assert best["gflops"] == pytest.approx(2 * 64**3 / best["seconds"] / 1e9)
    assert best["gbs"] == pytest.approx(3 * 64 * 64 * 4 / best["seconds"] / 1e9)
    assert best["roof"] in ("vector ports", "L1", "L2", "L3", "memory")
    assert 0 < best["ratio_to_peer"][1] <= best["ratio_to_peer"][0] <= best["ratio_to_peer"][2]
    assert result["warning"] == ""


def test_quiet(run: Run) -> None:
    result = run("tune", "product.py", "--trials", "2", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("out/product.so").exists()


def test_the_library_that_was_written_computes_the_product(run: Run) -> None:
    run("tune", "product.py", "--trials", "2", "--quiet", "--out", "elsewhere")
    a, b = np.random.default_rng(0).random((2, 64, 64), dtype=np.float32)
    c = np.empty_like(a)
    tw.load("elsewhere/product.so")(a, b, c)
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
    assert Path("elsewhere/tilewright.db").exists()
    assert not Path("out").exists()


def test_a_peer_that_computes_something_else_is_told(run: Run, folder: Path) -> None:
    (folder / "script.py").write_text(PRODUCT.replace("a @ b.T", "a + b"))
    result = run("tune", "script.py", "--trials", "1")
    assert "warning: the peer computes something else: C[" in result.stdout
    assert "of 4096 elements differ" in result.stdout
    # The same records, and a function that was mended: it is asked anew, and its time is not that of the other one.
    (folder / "script.py").write_text(PRODUCT)
    result = run("tune", "script.py", "--trials", "1")
    assert "warning: the peer" not in result.stdout and "measured 2 " not in result.stdout
    (folder / "script.py").write_text(PRODUCT.replace("a @ b.T", "a @ b.T + 1"))
    assert "the peer computes something else" in run("tune", "script.py", "--trials", "1").stdout
    (folder / "script.py").write_text(PRODUCT.replace("a @ b.T", "(a, b)"))
    result = run("tune", "script.py", "--trials", "1", "--fresh")
    assert "warning: the peer returns 2 arrays, the program writes 1: C" in result.stdout


def test_two_spaces_of_one_program_do_not_overwrite_one_another(run: Run, folder: Path) -> None:
    second = PRODUCT[PRODUCT.index("@tw.space") :].replace("def tiles", "def others").replace("[8, 16]", "[4, 32]")
    (folder / "script.py").write_text(PRODUCT + "\n\n" + second)
    results = [e for e in events(run("tune", "script.py", "--trials", "1", "--json").stdout) if e["event"] == "result"]
    assert [e["written"][1] for e in results] == ["out/product_tiles.so", "out/product_others.so"]
    (only,) = (
        e
        for e in events(run("tune", "script.py", "--space", "others", "--json", "--trials", "1").stdout)
        if e["event"] == "result"
    )
    assert only["written"][1] == "out/product_others.so"


def test_a_small_space_ends_by_itself(run: Run, folder: Path) -> None:
    text = (
        PRODUCT[: PRODUCT.index("    i, j, k = sch")]
        + "    sch.vectorize(sch.split(sch.get_loops(sch.get_block('C'))[1], [None, 8])[1])\n"
    )
    (folder / "script.py").write_text(text)
    result = run("tune", "script.py", "--trials", "8")
    assert "the space holds this one program, so there was nothing to search: decisions are sampled by" in result.stdout


SLOW = PRODUCT.replace("import tilewright", "import time\n\nimport tilewright").replace(
    "    i, j, k = ",
    "    time.sleep(0.02)\n"
    "    note = int(sch.sample_categorical(list(range(64)), [1 / 64] * 64))\n"
    '    sch.annotate(sch.get_block("C"), "note", note)\n'
    "    i, j, k = ",
)


def test_the_time_is_over(run: Run, folder: Path) -> None:
    (folder / "script.py").write_text(SLOW)
    result = run("tune", "script.py", "--trials", "500", "--seconds", "2")
    assert result.exit_code == 0, result.output
    assert re.search(r"the time was over after \d+ of 500 trials; the same command continues", result.stdout)


@pytest.mark.parametrize("whole_group", [False, True])
def test_an_interrupted_session_goes_on(folder: Path, environment: dict[str, str], whole_group: bool) -> None:
    """Ctrl-C in a terminal reaches the helper processes as well."""
    (folder / "script.py").write_text(SLOW)
    command = [sys.executable, "-m", "tilewright", "tune", "script.py", "--json", "--trials"]
    process = subprocess.Popen(
        [*command, "500"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["trials"] >= 2:
            break
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, problems = process.communicate(timeout=60)
    assert process.returncode == 130
    found = re.fullmatch(
        r"(?:tilewright: .+\n)?interrupted after (\d+) of 500 trials(?:, the best takes .+)?; they are kept in "
        r"out/tilewright.db, and the same command continues\n",
        problems,
    )
    assert found, problems
    done = int(found[1])
    assert 2 <= done < 500
    again = subprocess.run([*command, str(done + 1)], env=environment, capture_output=True, text=True, check=True)
    result = events(again.stdout)[-1]
    assert (result["trials"], result["measured_before"]) == (done + 1, done)


def test_the_progress_ends_with_what_the_finals_measured(run: Run) -> None:
    *progress, result = events(run("tune", "product.py", "--trials", "8", "--json").stdout)
    assert progress[-1]["phase"] == "done" and progress[-1]["best_seconds"] == result["best_seconds"]
    best = next(row for row in result["rows"] if row["what"] == "best found")
    differs = abs(best["seconds"] / result["best_seconds"] - 1) > 0.1
    assert any(note.startswith("the search measured ") for note in result["remarks"]) == differs
    assert result["outcomes"].get("slow_stopped", 0) + result["outcomes"]["ok"] == 8


def test_refusals_are_told_with_their_reasons(run: Run, folder: Path) -> None:
    (folder / "refused.py").write_text(
        PRODUCT
        + """
@tw.space(product)
def sometimes(sch):
    i, j, k = sch.get_loops(sch.get_block("C"))
    parts = sch.sample_categorical([2, 3, 4], [0.4, 0.2, 0.4])
    if int(parts) == 3:
        sch.parallel(k)
    sch.split(i, factors=[None, parts])
    sch.split(j, factors=sch.sample_perfect_tile(j, n=2))
"""
    )
    result = run("tune", "refused.py", "--space", "sometimes", "--trials", "6", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert re.search(r"^\d+ refused, parallel/P3: ", result.stdout, re.MULTILINE)


def test_a_closed_output_is_no_defect(folder: Path, environment: dict[str, str]) -> None:
    environment.pop("PYTHONUNBUFFERED", None)  # what is buffered fails at the very end
    ways = ("> /dev/full", "2> /dev/full", "> /dev/full 2> /dev/full", "> /dev/full 2>&-", ">&- 2>&-")
    # Help of all commands is printed by one function: each way meets one that prints, and one that refuses.
    of_each = {
        "--help": ways,
        "tune --help": ways[:1],
        "info --cflags": ways[:1],
        "nonsense": ways[1::3],
        "": ways[2:3],
    }
    for command, streams_of_it in of_each.items():
        for streams in streams_of_it:
            line = f"{sys.executable} -m tilewright {command} {streams}"
            done = subprocess.run(line, shell=True, env=environment, capture_output=True, text=True, check=False)
            assert "defect" not in done.stderr and "Traceback" not in done.stderr and "Exception" not in done.stderr
            writes = "2> /dev/full" in streams if command in ("nonsense",) else streams.startswith("> /dev/full")
            assert done.returncode != 0 or not writes, (command, streams, done.returncode)
    for streams in (">&- 2>&-", "<&- >&-", "> /dev/full"):
        command = f"{sys.executable} -m tilewright tune product.py --trials 2 --out closed {streams}"
        done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
        assert "defect" not in done.stderr and "Traceback" not in done.stderr and "Exception" not in done.stderr
        assert done.returncode == (1 if "full" in streams else 0), (streams, done.stderr)
        assert "full" not in streams or done.stderr == "error: No space left on device\n"
    assert Path("closed", "product.so").stat().st_size > 0


def test_a_full_disk_is_told_and_leaves_no_test_file(folder: Path, environment: dict[str, str]) -> None:
    import resource

    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "tune", "product.py", "--trials", "1", "--out", "full"],
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),  # no file may grow
    )
    assert done.returncode == 1
    assert "full: nothing can be written there: File too large" in done.stderr
    assert list(Path("full").iterdir()) == []


def test_records_are_listed_by_program_target_and_time(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright import _core

    monkeypatch.setattr("tilewright.cli.commands.WIDTH_OF_FILES", 400)  # some processors' targets name many features
    native = _core.Target("native").num_cores
    assert run("tune", "product.py", "--trials", "3", "--threads", "2").exit_code == 0
    assert run("tune", "product.py", "--trials", "3", "--threads", "1").exit_code == 0
    rows = [line.split("│")[1:3] for line in run("db", "out/tilewright.db").stdout.splitlines() if "│" in line]
    targets = [target.strip() for target, _ in rows]
    assert len(set(targets)) == 2 and targets == sorted(targets)
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    for target in set(targets):
        cells = [time.split() for name, time in rows if name.strip() == target]
        seconds = [float(value) * units[unit] for value, unit in cells]
        assert seconds[1:] == sorted(seconds[1:])  # the first has won the finals, in which times are others
    # A target takes what was measured with at most as many threads as it has cores.
    program = load_script(Path("product.py")).product
    one, both = _core.Target("native").with_num_cores(1), _core.Target("native").with_num_cores(max(native, 2))
    with_one = best_schedule(program, "out/tilewright.db", one)
    store = _core.Database.open("out/tilewright.db", read_only=True)
    key = _core.structural_hash(tw.ir.Module({"product": program}))
    fastest = store.top_k(key, str(one), 1)
    assert not fastest or with_one.trace.as_json() == json.loads(fastest[0].trace)
    assert best_schedule(program, "out/tilewright.db", both) is not None
    with pytest.raises(
        tw.ResourceError, match=r"no record of this program for llvm -mcpu=\S+.*, only for llvm"
    ) as caught:
        best_schedule(program, "out/tilewright.db", "llvm -mcpu=nehalem")
    assert "hint: tune it for this target" in str(caught.value)


def test_programs_without_a_space_are_tuned_by_rules(run: Run, folder: Path) -> None:
    more = """

@T.prim_func
def twice(A: T.Buffer((50, 70)), B: T.Buffer((50, 70))):
    for i, j in T.grid(50, 70):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
"""
    (folder / "script.py").write_text(PRODUCT + more)
    result = run("tune", "script.py", "--trials", "2", "--json")
    assert result.exit_code == 0, result.output
    written = [event["written"] for event in events(result.stdout) if "written" in event]
    assert [files[1] for files in written] == ["out/product.so", "out/twice.so"]
    x = np.arange(3500, dtype="float32").reshape(50, 70)
    y = np.empty_like(x)
    tw.load("out/twice.so")(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    only = run("tune", "script.py", "--trials", "2", "--space", "by rules", "--json")
    assert [event["written"][1] for event in events(only.stdout) if "written" in event] == ["out/twice.so"]


def test_the_command_for_more_trials_keeps_the_options(run: Run, folder: Path) -> None:
    (folder / "a script.py").write_text(PRODUCT)
    options = ("--program", "product", "--seed", "3", "--out", "some where", "--database", "my.db")
    for _ in range(2):
        last = run("tune", "a script.py", "--trials", "2", *options)
    (line,) = (line for line in last.stdout.splitlines() if line.startswith("more trials: "))
    words = shlex.split(line.removeprefix("more trials: ").partition(";")[0])
    assert words[:5] == ["tilewright", "tune", "a script.py", "--trials", "4"]
    assert set(zip(words[5::2], words[6::2], strict=True)) == set(zip(options[::2], options[1::2], strict=True))
    assert "trial 4/4" in run(*words[1:]).stdout


OPEN = (
    HEAD
    + """
@T.prim_func
def twice(x: T.handle, y: T.handle):
    n = T.int32()
    m = T.int32()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)
"""
)


def test_sizes_that_nobody_says_are_asked_for_as_the_command_takes_them(run: Run, folder: Path) -> None:
    (folder / "open.py").write_text(OPEN)
    result = run("tune", "open.py", "--trials", "1", "--sizes", "m=8")
    assert result.exit_code == 1
    assert "'twice' leaves n open" in result.stderr and "hint: say it with --sizes n=1000" in result.stderr
    assert "tw.tune" not in result.stderr
    for _ in range(2):
        last = run("tune", "open.py", "--trials", "1", "--sizes", "m=8", "--sizes", "n=4")
    assert "--sizes m=8,n=4" in last.stdout


def test_two_sizes_of_one_name(run: Run, folder: Path) -> None:
    source = OPEN.replace("m = T.int32()", 'm = T.Var("n", "int32")')
    (folder / "same.py").write_text(source)
    result = run("tune", "same.py", "--trials", "1")
    assert "leaves n#0.0, n#0.1 open" in result.stderr
    assert "trial 1/1" in run("tune", "same.py", "--trials", "1", "--sizes", "n#0.0=4,n#0.1=8").stdout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--trials", "-3"), "--trials is -3; at least 1 candidate has to be measured"),
        (("--threads", "0"), "--threads is 0; a kernel needs at least 1"),
        (("--seconds", "-1"), "--seconds is -1.0; it is a number above 0"),
        (("--seed", "-1"), "--seed is -1; it is at least 0"),
    ],
)
def test_a_wrong_number_is_told_once(options: tuple[str, ...], text: str, run: Run, folder: Path) -> None:
    (folder / "both.py").write_text(PRODUCT + OPEN.removeprefix(HEAD))
    result = run("tune", "both.py", *options)
    assert result.exit_code == 1
    assert result.stderr.count("error: ") == 1 and result.stderr.startswith(f"error: {text}")


FORMATS = '''"""A space that samples a format."""

import numpy as np
import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def spmv(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, nnz: T.int32):
    I = T.sp.dense_fixed(8)
    J = T.sp.compressed_varied(I, (9, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(9)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_all,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:
        with T.init():
            Y[i] = T.float32(0)
        Y[i] += A[i, j] * X[j]


@tw.space(spmv, inputs={"indptr": np.arange(9, dtype="int32"), "indices": np.arange(8, dtype="int32"), "nnz": 8})
def formats(sch):
    sch.decompose_format("A", "hyb", [8, 9, 1, sch.sample_categorical([0, 1], [0.5, 0.5])], count=2)
    sch.lower_sparse_iter()
'''


def test_formats_of_a_sparse_program(run: Run, folder: Path) -> None:
    (folder / "script.py").write_text(FORMATS)
    result = run("tune", "script.py", "--trials", "2")
    assert "hyb(8, 9, 1, 0)" in result.stdout and "hyb(8, 9, 1, 1)" in result.stdout and "written: " in result.stdout
    (event,) = (
        json.loads(line) for line in run("tune", "script.py", "--trials", "2", "--json").stdout.splitlines()[-1:]
    )
    assert set(event["formats"]) == {"hyb(8, 9, 1, 0)", "hyb(8, 9, 1, 1)"}
    assert all((folder / path).exists() for path in event["written"])
