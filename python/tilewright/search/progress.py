"""Live progress of a search, as fits the output: one updating block in a terminal or a notebook, plain lines else."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright import machine
from tilewright.errors import ArgumentError
from tilewright.timing import format_seconds

if TYPE_CHECKING:
    from tilewright.search.arguments import Task
    from tilewright.search.session import Progress

Reporter = Callable[["Progress"], None]
#: seconds between two plain lines
LINE_SECONDS = 5.0


def in_notebook() -> bool:
    """Whether this runs in a notebook's kernel."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def failures_text(progress: Progress) -> str:
    """ "3 slow_stopped, 1 run_crash", most frequent first."""
    parts = sorted(((n, name) for name, n in progress.outcomes.items() if name != "ok"), reverse=True)
    return ", ".join(f"{n} {name}" for n, name in parts) or "none"


class Describe:
    """Words for the state of a search."""

    def __init__(self, task: Task, threads: int) -> None:
        self.task, self.threads = task, threads
        self._roof: machine.Roof | None = None

    @property
    def roof(self) -> machine.Roof:
        # Measured when the first candidate is there, so that the measuring does not delay the search's start.
        if self._roof is None:
            work = self.task.work
            self._roof = machine.roofs(self.threads).binding(work.flops, work.bytes, work.dtype)
        return self._roof

    def best(self, progress: Progress) -> str:
        if math.isinf(progress.best_seconds):
            return "nothing correct yet"
        gflops = self.task.work.flops / progress.best_seconds / 1e9
        share = 100 * self.roof.seconds / progress.best_seconds
        return f"{format_seconds(progress.best_seconds)}, {gflops:.1f} GFLOP/s, {share:.0f} % of {self.roof.name}"

    def line(self, progress: Progress) -> str:
        left = progress.time_left
        eta = "" if math.isinf(left) or progress.phase == "done" else f" | {left:.0f} s left"
        return (
            f"trial {progress.trials}/{progress.total} | best {self.best(progress)} | "
            f"{progress.rate:.1f} candidates/s | failed: {failures_text(progress)}{eta}"
        )


def _plain(describe: Describe) -> Reporter:
    last = {"time": 0.0, "trials": -1}

    def report(progress: Progress) -> None:
        now = time.monotonic()
        due = now - last["time"] >= LINE_SECONDS or progress.phase == "done"
        if due and progress.trials != last["trials"]:
            last.update(time=now, trials=progress.trials)
            print(describe.line(progress), flush=True)

    return report


def _json_lines() -> Reporter:
    last = {"trials": -1}

    def report(progress: Progress) -> None:
        if progress.trials == last["trials"]:
            return
        last["trials"] = progress.trials
        best = None if math.isinf(progress.best_seconds) else progress.best_seconds
        event = {
            "event": "progress",
            "trials": progress.trials,
            "total": progress.total,
            "best_seconds": best,
            "candidates_per_second": progress.rate,
            "outcomes": progress.outcomes,
            "phase": progress.phase,
        }
        print(json.dumps(event), flush=True)

    return report


@contextlib.contextmanager
def _terminal(describe: Describe) -> Iterator[Reporter]:
    from rich.console import Console
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Table

    bar = Bar(TextColumn("tuning"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    handle = bar.add_task("tuning", total=1)

    def block(progress: Progress) -> Any:
        bar.update(handle, completed=progress.trials, total=progress.total)
        grid = Table.grid(padding=(0, 1))
        grid.add_row(bar)
        grid.add_row(f"best    {describe.best(progress)}")
        grid.add_row(f"speed   {progress.rate:.1f} candidates/s, {progress.median_build_seconds * 1e3:.0f} ms a build")
        grid.add_row(
            f"failed  {failures_text(progress)}; {progress.refused} refused, {progress.duplicates} seen before"
        )
        return grid

    with Live(console=Console(), refresh_per_second=8, transient=False) as live:
        yield lambda progress: live.update(block(progress))


@contextlib.contextmanager
def _notebook(describe: Describe) -> Iterator[Reporter]:
    from IPython.display import HTML, display

    handle = display(HTML("<pre>tuning ...</pre>"), display_id=True)
    yield lambda progress: handle.update(HTML(f"<pre>{describe.line(progress)}</pre>"))


@contextlib.contextmanager
def reporter(mode: Callable[[Progress], None] | str | None, task: Task, threads: int) -> Iterator[Reporter]:
    """A function to call with each state of a search.

    Args:
        mode: "auto", "plain", "json", None for silence, or the user's own function.
    """
    if mode is None:
        yield lambda progress: None
    elif callable(mode):
        yield mode
    elif mode == "json":
        yield _json_lines()
    elif mode == "auto" and in_notebook():
        with _notebook(Describe(task, threads)) as report:
            yield report
    elif mode == "auto" and sys.stdout.isatty():
        with _terminal(Describe(task, threads)) as report:
            yield report
    elif mode in ("auto", "plain"):
        yield _plain(Describe(task, threads))
    else:
        raise ArgumentError(f'progress is {mode!r}; expected "auto", "plain", "json", None or a function')
