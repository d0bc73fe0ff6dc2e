"""Candidates that crash, hang, write where they must not, eat memory or are wrong: counted, told, never kept."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.search.programs import scale, tiles
from typer.testing import CliRunner

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.cli.commands import app
from tilewright.script import tir as T
from tilewright.search import reference_check, session
from tilewright.search.reference_check import ReferenceCheck

from . import faulty_kernels
from .faulty_kernels import FAULTS, INDICES, choose, gather

#: a sanitizer is faster than the signals that these tests wait for
pytestmark = pytest.mark.crashes

SCRIPT = Path(faulty_kernels.__file__)
TUNE = ("tune", str(SCRIPT), "--space", "choose")


class Given(ms.SearchStrategy):
    """Hands out these programs, as if schedules of the one that is tuned had become them."""

    def __init__(self, *programs: tw.ir.PrimFunc) -> None:
        super().__init__()
        self.left = [ms.MeasureCandidate(tw.Schedule(tw.ir.Module({"main": program}))) for program in programs]

    def pre_tuning(self, *plan: Any) -> None: ...

    def generate_measure_candidates(self) -> list[ms.MeasureCandidate] | None:
        handed, self.left = self.left, []
        return handed or None

    def notify_runner_results(self, measure_candidates: Any, results: Any) -> None: ...

    def post_tuning(self) -> None: ...


def given_kernels(monkeypatch: pytest.MonkeyPatch, *programs: tw.ir.PrimFunc) -> None:
    monkeypatch.setattr(_core.SearchStrategy, "create", lambda kind: Given(*programs))


@pytest.fixture(params=list(FAULTS))
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """The first candidate of the search is a kernel that misbehaves."""
    program, *expected = FAULTS[request.param]

    given_kernels(monkeypatch, program, gather)
    return expected[0], expected[1], expected[2]


def records_of(database: Path) -> list[dict[str, Any]]:
    store = _core.Database.open(str(database), read_only=True)
    found = [record for workload in store.workloads() for record in store.records(workload.hash, "")]
    return sorted(found, key=lambda record: record.index)  # two are built at a time, and may come in any order


def test_a_database_of_failures_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given_kernels(monkeypatch, FAULTS["subtly_wrong"][0])
    assert tw.tune(gather, space=choose, trials=1, database=tmp_path / "t.db", progress=None).record is None
    with pytest.raises(tw.ResourceError, match="no correct record of this program: all 1 trials failed") as caught:
        tw.compile(gather, database=tmp_path / "t.db")
    assert caught.value.code == "database/no-correct-record"


def test_a_faulty_kernel_costs_one_candidate(fault: tuple[str, str, str], tmp_path: Path) -> None:
    outcome, code, message = fault
    result = tw.tune(gather, space=choose, trials=2, database=tmp_path / "t.db", progress=None)
    if outcome == "run_timeout" and "slow_stopped" in result.progress.outcomes:
        outcome = "slow_stopped"  # the right kernel was measured first, and what is not faster is not waited for
    else:
        (count, text), (only,) = result.progress.failures[code], result.progress.failures
        assert count == 1 and only == code and message in text
    assert result.progress.outcomes == {outcome: 1, "ok": 1}
    x, y = np.random.default_rng(0).random(1000, dtype=np.float32), np.empty(1000, np.float32)
    result.kernel(x, INDICES, y)
    np.testing.assert_array_equal(y, x[INDICES])
    candidates = [record for record in records_of(tmp_path / "t.db") if record.index >= 0]  # or as written
    assert [record.outcome for record in candidates] == [outcome, "ok"]


def test_nothing_but_a_faulty_kernel_is_an_error_of_the_command(fault: tuple[str, str, str], tmp_path: Path) -> None:
    outcome, code, message = fault
    result = CliRunner().invoke(app, [*TUNE, "--trials", "1", "--quiet", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert f"error: no candidate was correct and fast enough to be kept (1 trials: 1 {outcome})" in result.stderr
    assert f"1 x {code}: " in result.stderr and message in result.stderr and "hint: look at" in result.stderr
    assert [record.outcome for record in records_of(tmp_path / "tilewright.db")] == [outcome]
    assert not (tmp_path / "gather.so").exists()


def test_the_code_says_that_nothing_was_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    given_kernels(monkeypatch, FAULTS["subtly_wrong"][0])
    result = tw.tune(gather, space=choose, trials=1, progress=None)
    with pytest.raises(tw.ResourceError) as caught:
        _ = result.kernel
    assert caught.value.code == "tune/no-correct-candidate"


def test_the_tolerance_is_stored_and_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*TUNE, "--trials", "1", "--json", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout.splitlines()[-1])["verification"]
    # 2 * 8 * sqrt(1) * 2^-24 for the sum of one term, and twice the rounding to float32.
    spread = 16 * 2.0**-24
    assert told["tolerance"]["Y"] == pytest.approx({"relative": spread + 2 * 2.0**-24, "spread": spread}, rel=1e-4)
    records = records_of(tmp_path / "tilewright.db")  # that of the program as written, too, where it is the fastest
    assert [record.verification["tolerance"] for record in records] == [told["tolerance"]] * len(records)
    assert told in [record.verification for record in records]


# ---- The program itself, as it was written ---------------------------------------------------------------------------


@T.prim_func
def endless(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = X[vi] * X[vi]
            while Y[vi] >= 0.0:
                Y[vi] = Y[vi] + 1.0


def test_indices_that_nobody_gave_are_asked_for() -> None:
    with pytest.raises(tw.ScriptError, match="out-of-bounds") as caught:
        tw.tune(gather, space=choose.function, trials=1, progress=None)
    assert "Y[vi] = X[I[vi]]" in str(caught.value)
    assert "hint: I held random values; give arrays of indices with inputs={'I': array}" in str(caught.value)


@T.prim_func
def quotients(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = A[vi] // B[vi]


def test_divisors_that_nobody_gave_are_asked_for() -> None:
    with pytest.raises(tw.ScriptError, match="divide-by-zero") as caught:
        tw.tune(quotients, trials=1, progress=None)
    assert "hint: A, B held random values; give arrays without zeros with inputs=" in str(caught.value)
    given = np.arange(1, 65, dtype="int32")
    assert tw.tune(quotients, trials=1, inputs={"B": given}, progress=None).record is not None


def test_wrong_indices_are_named_by_the_interpreter() -> None:
    with pytest.raises(tw.ScriptError, match=r"block 'Y' reads X\[\d+\]") as caught:
        tw.tune(gather, space=choose, inputs={"I": INDICES + 100_000_000}, trials=1, progress=None)
    assert caught.value.code == "interpret/out-of-bounds"


def test_wrong_indices_crash_the_helper_and_not_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceCheck, "prepare", lambda self: None)  # as where the interpreter takes too long
    far = INDICES + 100_000_000
    with pytest.raises(tw.ScriptError, match=r"'gather' as it was written.* failed: the kernel was killed") as caught:
        tw.tune(gather, space=choose, inputs={"I": far}, trials=1, progress=None)
    assert caught.value.code == "tune/reference"
    assert "hint: arrays that hold indices, or divisors, are given with inputs=" in str(caught.value)


def test_a_program_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "REFERENCE_DEADLINE", 0.5)
    monkeypatch.setattr(reference_check, "CHECK_SECONDS", 0.2)
    with pytest.raises(tw.ResourceError, match=r"did not come back in time \(0.5 s for a call\)") as caught:
        tw.tune(endless, space=lambda sch: None, trials=1, progress=None)
    assert caught.value.code == "tune/reference"


def test_a_program_that_exhausts_memory() -> None:
    with pytest.raises(tw.ResourceError, match="out of memory for a workspace") as caught:
        tw.tune(FAULTS["exhausts_memory"][0], space=choose.function, inputs=choose.inputs, trials=1, progress=None)
    assert caught.value.code == "tune/reference"


# ---- Helper processes ------------------------------------------------------------------------------------------------


def helpers(mode: str) -> list[int]:
    """The helper processes of this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if arguments[1:3] == [mode.encode(), str(os.getpid()).encode()]:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("mode", ["build", "measure"])
def test_what_a_helper_killed_from_outside_was_doing_is_done_again(mode: str) -> None:
    victims: list[tuple[int, float]] = []
    successors: set[int] = set()

    def kill_one(progress: tw.search.Progress) -> None:
        now = time.monotonic()
        if not victims and progress.trials >= 4:
            (pid, *_) = helpers(mode)
            os.kill(pid, signal.SIGSTOP)  # so that it dies in the middle of a candidate
            victims.append((pid, now))
        elif victims and now - victims[0][1] > 0.5 and victims[0][0] in helpers(mode):
            os.kill(victims[0][0], signal.SIGKILL)
        elif victims:
            successors.update(set(helpers(mode)) - {victims[0][0]})

    result = tw.tune(scale, space=tiles, trials=40, progress=kill_one)
    assert victims and result.stop_reason == "trials" and result.record is not None
    assert result.progress.trials == 40
    assert successors
    assert not {"build_crash", "run_crash"} & set(result.progress.outcomes)
    assert helpers("build") == helpers("measure") == []


def test_a_helper_that_cannot_start_ends_the_search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_HELPER", "/bin/false")
    with pytest.raises(tw.ResourceError, match="the helper /bin/false does not start") as caught:
        tw.tune(scale, space=tiles, trials=1, progress=None)
    assert caught.value.code == "measure/helper-start" and "hint:" in str(caught.value)
    monkeypatch.setenv("TILEWRIGHT_HELPER", str(tmp_path / "nothing"))
    result = CliRunner().invoke(app, [*TUNE, "--trials", "1", "--quiet", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{tmp_path}/nothing" in result.stderr and "hint:" in result.stderr


@T.prim_func
def first_largest(A: T.Buffer((16, 64)), I: T.Buffer((16,), "int32"), V: T.Buffer((16,))):
    for i, k in T.grid(16, 64):
        with T.block("arg"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            index: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            value: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = index
            V[vi] = value


@pytest.mark.parametrize(("loop", "outcome"), [(1, "ok"), (2, "wrong_result")])
def test_a_candidate_that_finds_another_of_equal_elements_is_wrong(loop: int, outcome: str) -> None:
    """Along the outer loop of a reduction groups keep the order of its steps, along the inner one they do not."""

    def space(sch: tw.Schedule) -> None:
        sch.split(sch.get_loops("arg")[1], [4, 16])
        sch.rfactor(sch.get_loops("arg")[loop], 0)

    result = tw.tune(first_largest, space=space, trials=1, progress=None)
    assert result.progress.outcomes == {outcome: 1}
