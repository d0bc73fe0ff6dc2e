"""What a compilation tells unasked."""

from __future__ import annotations

import time
import warnings

import pytest

import tilewright as tw
from tilewright.kernel.kernel import notes_on
from tilewright.script import tir as T
from tilewright.support import notes


@T.prim_func
def total(A: T.Buffer((64,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = T.float32(0)
    for i in T.vectorized(64):
        B[0] = A[i] - B[0]
    for j in range(64):
        B[0] = T.nextafter(B[0], A[j])


def test_what_was_asked_for_is_a_warning() -> None:
    with pytest.warns(tw.PerformanceWarning) as caught:
        kernel = tw.compile(total)
    assert [str(warning.message) for warning in caught] == [
        "total: loop 'i' is not vectorized: every lane stores to the same element of 'B' (test_notes.py:19)"
    ]
    assert caught[0].filename == __file__
    assert [note.code for note in kernel.notes] == ["lower/not-vectorized", "lower/scalar-loop", "codegen/scalar-call"]
    assert kernel.notes[1].message == "loop 'j' has no vector code: T.nextafter has no vector form"
    assert kernel.notes[2].message == "T.nextafter is a call of the C library for each number, in 1 place"
    assert set(kernel.report) == {"times", "promotions", "notes"}


def test_functions_have_the_names_that_users_know() -> None:
    sch = tw.Schedule(total)  # whose module calls the function main
    with pytest.warns(tw.PerformanceWarning, match="^total: loop 'i' is not vectorized"):
        kernel = tw.compile(sch)
    assert {note.function for note in kernel.notes} == {"total"}
    assert {note.function for note in notes_on(sch)} == {"total"}


def test_what_nobody_asked_for_is_no_warning() -> None:
    @T.prim_func
    def scan(A: T.Buffer((64,), "float32")):
        for i in range(63):
            A[i + 1] = A[i + 1] + A[i]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = tw.compile(scan)
    assert [str(note) for note in kernel.notes] == [
        "scan: loop 'i' has no vector code: an iteration needs what an earlier one does to 'A' (test_notes.py:49)"
    ]


@T.prim_func
def steps_towards(A: T.Buffer((16, 64), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        for k in range(64):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = T.nextafter(B[vi], A[vi, vk])


def test_loops_of_a_schedule_are_in_the_line_of_the_loop_that_they_were_made_of() -> None:
    sch = tw.Schedule(steps_towards)
    block = sch.get_block("B")
    sch.split(sch.get_loops(block)[1], [None, 32])
    note, call = tw.compile(sch).notes
    assert call.code == "codegen/scalar-call" and not call.where
    assert "loop 'k_1' has no vector code" in note.message and note.where == f"{__file__}:63"


def test_long_compilations_say_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(notes, "PATIENCE", 0.01)
    with notes.announced("compiling f"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "tilewright: compiling f ... (Ctrl-C ends it)\n"
    monkeypatch.setattr(notes, "PATIENCE", 60.0)
    with notes.announced("compiling f"):
        pass
    assert capsys.readouterr().err == ""


def test_local_buffers_that_lanes_share() -> None:
    @T.prim_func
    def shared(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        t = T.alloc_buffer((1,), "float32", scope="local")
        for i in T.vectorized(64):
            t[0] = A[i]
            B[i] = t[0] * T.float32(2)

    @T.prim_func
    def allocated(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.vectorized(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                t = T.alloc_buffer((1,), "float32", scope="local")
                t[0] = A[vi]
                B[vi] = t[0] * T.float32(2)

    for program, why in (
        (shared, "every lane stores to the same element of 't', a local buffer that all iterations share: give it a"),
        (allocated, "'t' is allocated inside of the loop: allocate it outside, with a dimension of the loop"),
    ):
        with pytest.warns(tw.PerformanceWarning, match=f"loop 'i' is not vectorized: {why}"):
            kernel = tw.compile(program)
        assert kernel.notes[0].code == "lower/not-vectorized"
