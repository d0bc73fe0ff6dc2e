"""Notes of a compilation: what did not become fast, and why; and that it takes long."""

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
from tilewright.support.user_lines import users_level

if TYPE_CHECKING:
    from tilewright.kernel.kernel import Kernel

#: of a function that is not in the database that was given
NO_RECORD = "compile/no-record"
#: seconds after which a compilation says what it does
PATIENCE = 3.0


class PerformanceWarning(UserWarning):
    """A program is correct, but something that was asked for did not come about: a loop is not vectorized or unrolled,
    a buffer is not in registers, threads have no cores of their own, a database has no record."""


class CostModelWarning(UserWarning):
    """A search went on without its cost model, which failed."""


class ReferenceWarning(UserWarning):
    """The reference function of a space computes something else than the program."""


class Note(NamedTuple):
    """Something about a kernel that its author may want to know.

    Attributes:
        code: what it is about, for programs: ``"lower/not-vectorized"``, ``"lower/not-unrolled"``,
            ``"lower/not-in-registers"`` and ``"lower/not-aligned"`` (the program asks for it), ``"lower/scalar-loop"``
            (a serial loop that gains nothing, or that cannot, from vectors), ``"lower/unproved-parallel"`` (a parallel
            loop whose iterations are not proved to be independent, or threads of a device that write where data say),
            ``"lower/one-thread"`` (one thread of a device runs a loop), ``"codegen/scalar-call"`` (a function that is
            called number by number), ``"compile/no-rule"`` (a function that nobody has scheduled, and no rule does),
            ``"compile/one-thread"`` (sums that heuristics leave to one thread),
            ``"compile/heuristic-failed"`` (a function that runs unscheduled since its heuristic schedule failed),
            ``"compile/no-record"`` (a function that the database given knows nothing of).
        function: the function that it is in.
        message: what happened, and why.
        where: the line of the script that it is about, ``"file.py:12"``: of the loop, or what it was made of, of the
            block, or of the buffer; empty where none is.
    """

    code: str
    function: str
    message: str
    where: str = ""

    def __str__(self) -> str:
        file, _, line = self.where.rpartition(":")
        return f"{self.function}: {self.message}" + (f" ({os.path.basename(file)}:{line})" if file else "")

    @property
    def asked(self) -> bool:
        """Whether the program asks for what it did not get."""
        return self.code in (
            "lower/not-vectorized",
            "lower/not-unrolled",
            "lower/not-in-registers",
            "lower/not-aligned",
            NO_RECORD,
        )


def notes_of(report: dict[str, Any]) -> tuple[Note, ...]:
    """The notes of a report, what the program asks for first."""
    notes = [
        Note(note["code"], note["function"], note["message"], note.get("where", "")) for note in report.get("notes", ())
    ]
    for buffer in report.get("promotions", ()):
        if not buffer["promoted"]:
            message = f"buffer '{buffer['buffer']}' is not in registers: {buffer['reason']}"
            notes.append(Note("lower/not-in-registers", buffer["function"], message, buffer.get("where", "")))
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: not note.asked))


def note_heuristics(
    kernels: Iterable[Kernel], failed: Mapping[str, str], serial: Mapping[str, Iterable[str]] = MappingProxyType({})
) -> None:
    """Adds to the reports of kernels that they run unscheduled since a heuristic failed, and what one thread computes.

    Args:
        kernels: of one module.
        failed: with what, by the names of kernels.
        serial: what to say of blocks that are left to one thread, by the names of kernels.
    """
    for kernel in kernels:
        if not kernel.report:
            continue
        if kernel.name in failed:
            message = _failed_heuristic(failed[kernel.name])
            kernel.report["notes"].append(_core.make_note("compile/heuristic-failed", kernel.name, message))
        for message in serial.get(kernel.name, ()):
            kernel.report["notes"].append(_core.make_note("compile/one-thread", kernel.name, message))


def warn_of_failed_heuristic(name: str, failed: str) -> None:
    """A Python warning that a search has the unscheduled program where a heuristic was to schedule it."""
    warnings.warn(f"{name}: {_failed_heuristic(failed)}", PerformanceWarning, users_level())


def _failed_heuristic(failed: str) -> str:
    return (
        f"it runs unscheduled: its heuristic schedule failed with {failed}, "
        "which is a defect of Tilewright; please report it with the program"
    )


def warn(notes: tuple[Note, ...]) -> None:
    """A Python warning for everything that the program asks for and did not get."""
    for note in notes:
        if note.asked:
            warnings.warn(str(note), PerformanceWarning, users_level())


def warn_of_threads(threads: int) -> None:
    """A Python warning where there are fewer cores than threads."""
    cores = _core.Target("native").num_cores
    if threads > cores:
        text = (
            f"{threads} threads on {cores} core{'s' if cores > 1 else ''} take turns: times say little about the kernel"
        )
        warnings.warn(text, PerformanceWarning, users_level())


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Says on standard error what is being done once it has lasted `PATIENCE` seconds."""
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
