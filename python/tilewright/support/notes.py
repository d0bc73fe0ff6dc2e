"""Notes of a compilation: missed optimizations with reasons; and messages about long compilations."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright import _core
from tilewright.support.other_names import renamed
from tilewright.support.user_lines import users_level

if TYPE_CHECKING:
    from tilewright.kernel.kernel import Kernel

#: code for a function that is not in the given database
NO_RECORD = "compile/no-record"
#: seconds after which a long operation is announced
PATIENCE = 3.0


class PerformanceWarning(UserWarning):
    """A correct program lacks a requested optimization: a loop is not vectorized or unrolled, a buffer is not in
    registers, threads have no cores of their own, or a database has no record."""


class CostModelWarning(UserWarning):
    """A search continued without its cost model, which failed."""


class ReferenceWarning(UserWarning):
    """The reference function of a space computes other results than the program."""


class Note(NamedTuple):
    """An observation about a kernel for its author.

    Attributes:
        code: the kind of observation, for programs: ``"lower/not-vectorized"``, ``"lower/not-unrolled"``,
            ``"lower/not-in-registers"`` and ``"lower/not-aligned"`` (the program requests it), ``"lower/scalar-loop"``
            (a serial loop that cannot be vectorized, or would not gain), ``"lower/unproved-parallel"`` (a parallel loop
            whose iterations are not proved to be independent, or threads of a device that write to data-dependent
            positions), ``"lower/one-thread"`` (one thread of a device runs a loop), ``"codegen/scalar-call"`` (a
            function that is called for single elements), ``"compile/no-rule"`` (an unscheduled function that no
            heuristic schedules), ``"compile/one-thread"`` (sums that heuristics leave to one thread),
            ``"compile/unordered-sums"`` (sums of floats that threads of a device add in any order),
            ``"compile/heuristic-failed"`` (a function that runs unscheduled since its heuristic schedule failed),
            ``"compile/no-record"`` (a function without a record in the given database).
        function: name of the function.
        message: what happened, and why.
        where: line of the script, ``"file.py:12"``: of the loop or its source, of the block, or of the buffer; "" if
            none.
    """

    code: str
    function: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        file, _, line = self.where.rpartition(":")
        return f"{self.function}: {self.message}" + (f" ({os.path.basename(file)}:{line})" if file else "")

    def __getattr__(self, name: str) -> Any:
        return getattr(self, renamed("tilewright.support.notes.Note", name))

    @property
    def is_requested(self) -> bool:
        """Return whether the program requests the missed optimization."""
        return self.code in (
            "lower/not-vectorized",
            "lower/not-unrolled",
            "lower/not-in-registers",
            "lower/not-aligned",
            NO_RECORD,
        )


def notes_of(report: dict[str, Any]) -> tuple[Note, ...]:
    """Return the notes of a report, requested optimizations first."""
    notes = [
        Note(note["code"], note["function"], note["message"], note.get("where", "")) for note in report.get("notes", ())
    ]
    for buffer in report.get("promotions", ()):
        if not buffer["promoted"]:
            message = f"buffer '{buffer['buffer']}' is not in registers: {buffer['reason']}"
            notes.append(Note("lower/not-in-registers", buffer["function"], message, buffer.get("where", "")))
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: not note.is_requested))


def note_heuristics(
    kernels: Iterable[Kernel],
    failed: Mapping[str, str],
    notes: Mapping[str, Iterable[tuple[str, str]]] = MappingProxyType({}),
) -> None:
    """Add notes to the reports of kernels: functions that run unscheduled since a heuristic failed, and those on
    heuristic schedules.

    Args:
        kernels: kernels of one module.
        failed: errors of heuristics, by the names of kernels.
        notes: codes and messages of notes on schedules, by the names of kernels.
    """
    for kernel in kernels:
        if not kernel.report:
            continue
        if kernel.name in failed:
            message = _failed_heuristic(failed[kernel.name])
            kernel.report["notes"].append(_core.make_note("compile/heuristic-failed", kernel.name, message))
        for code, message in notes.get(kernel.name, ()):
            kernel.report["notes"].append(_core.make_note(code, kernel.name, message))


def warn_of_failed_heuristic(name: str, failed: str) -> None:
    """Warn that a search uses the unscheduled program because a heuristic failed."""
    warnings.warn(f"{name}: {_failed_heuristic(failed)}", PerformanceWarning, users_level())


def _failed_heuristic(failed: str) -> str:
    return (
        f"it runs unscheduled: its heuristic schedule failed with {failed}, "
        "which is a defect of Tilewright; please report it with the program"
    )


def warn(notes: tuple[Note, ...]) -> None:
    """Warn of every missed optimization that the program requests."""
    for note in notes:
        if note.is_requested:
            warnings.warn(str(note), PerformanceWarning, users_level())


def warn_of_threads(threads: int) -> None:
    """Warn if there are fewer cores than threads."""
    cores = _core.Target("native").num_cores
    if threads > cores:
        text = f"{threads} threads share {cores} core{'s' if cores > 1 else ''}: times say little about the kernel"
        warnings.warn(text, PerformanceWarning, users_level())


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Print to standard error what is being done if it takes longer than `PATIENCE` seconds."""
    done = threading.Event()

    def watch() -> None:
        if not done.wait(PATIENCE):
            print(f"tilewright: {what} ... (Ctrl-C ends it)", file=sys.stderr, flush=True)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
