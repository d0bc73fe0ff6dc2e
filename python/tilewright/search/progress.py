"""Live progress of a search, as fits the output: one updating block in a terminal or a notebook, plain lines else."""

from __future__ import annotations

import contextlib
import html
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.cluster.labels import native_key, target_key
from tilewright.errors import ArgumentError
from tilewright.kernel.device_roofs import describe_device, device_roofs
from tilewright.support import machine
from tilewright.support.streams import is_terminal
from tilewright.timing import format_estimate, format_seconds, format_share

if TYPE_CHECKING:
    from tilewright.search.result import Progress
    from tilewright.task.task import Task

Reporter = Callable[["Progress"], None]
#: seconds between two plain lines
LINE_SECONDS = 5.0


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


#: outcomes of correct candidates
RIGHT = ("ok", "slow_stopped")


def failures_text(progress: Progress) -> str:
    """Return "3 wrong_result, 1 run_crash", most frequent first; candidates that were stopped as slow have not
    failed."""
    parts = sorted(((n, name) for name, n in progress.outcomes.items() if name not in RIGHT), reverse=True)
    return ", ".join(f"{n} {name}" for n, name in parts) or "none"


def refusals(progress: Progress) -> list[str]:
    """Return "12 refused, lower/not-in-registers: 'acc' does not fit", a line for each reason, most frequent first."""
    reasons = sorted(((n, code, text) for code, (n, text) in progress.refusals.items()), reverse=True)
    return [f"{n} refused, {code}: {text.partition(chr(10))[0]}" for n, code, text in reasons]


def refused_text(progress: Progress) -> str:
    """Return "5 of 12 samples, most by parallel/P3"."""
    _, code = max((n, code) for code, (n, _) in progress.refusals.items())
    return f"{progress.refused} of {progress.attempts} samples, most by {code}"


#: by phase, what happens where no candidate is measured
WAITS = {"reference": "running the program as it was written", "finals": "timing the best against one another"}


def elsewhere(target: str, threads: int, *, is_on_cluster: bool) -> str:
    """Return the device, or processor of other hosts, that kernels of a target run on; "" for this processor.

    A device is named with its driver.
    """
    found = _core.Target(target)
    if machine.is_for_device(found):
        return describe_device(target)
    return str(found.with_num_cores(threads)) if is_on_cluster and target_key(found) != native_key() else ""


class Describe:
    """Text for the state of a search.

    Args:
        task: what is searched.
        threads: number of threads of its kernels.
        device: the device, or processor of other hosts, that it is searched for; "" for this processor.
        target: target of the search. The limits of a device are measured; those of other hosts are not known here.
    """

    def __init__(self, task: Task, threads: int, device: str = "", target: str = "native") -> None:
        self.task, self.threads, self.device = task, threads, device
        self._roof: machine.Roof | None = None
        # Before anything else runs: measuring the limits takes the whole machine.
        if not device:
            roofs: machine.Roofs | None = machine.roofs(threads)
        else:
            roofs = device_roofs(target) if machine.is_for_device(target) else None
        if roofs is not None:
            work = task.work
            self._roof = roofs.binding(work.flops, work.bytes, work.dtype, cold=task.cold)

    def start(self) -> str:
        """Return the first line of the log."""
        roof = "" if self._roof is None else f"; the roof is {format_seconds(self._roof.seconds)} ({self._roof.name})"
        if self.device:
            return f"tuning {self.task.entry} for {self.device}{roof}"
        many, cores = "s" if self.threads > 1 else "", machine.cpu_count()
        of = f" of {cores}" if self.threads < cores else ""
        return f"tuning {self.task.entry} for {self.threads} thread{many}{of}{roof}"

    def beginning(self, progress: Progress) -> str:
        """Return the text printed once: the first line, and how many earlier records take part, if any."""
        if not progress.earlier:
            return self.start()
        trials = f"{progress.earlier} trial{'s' * (progress.earlier > 1)}"
        of = "continues from" if progress.earlier < progress.total else "nothing is left to measure after"
        anew = "fresh=True, on the command line --fresh, measures again"
        return f"{self.start()}\n{of} {trials} of an earlier run ({anew})"

    def best(self, progress: Progress) -> str:
        """Return the best time so far, as a fraction of the roof."""
        if math.isinf(progress.best_seconds):
            return "nothing correct yet"
        work, seconds = self.task.work, progress.best_seconds
        speed = f"{format_estimate(work.flops / seconds / 1e9, work)} {machine.rate_unit(work.dtype)}"
        if self._roof is None:
            return f"{format_seconds(seconds)}, {speed}"
        share = format_share(self._roof.seconds / seconds, work)
        return f"{format_seconds(seconds)}, {speed}, {share} of {self._roof.name}"

    def left(self, progress: Progress) -> str:
        """Return "12 s left", or what else the search is waiting for; "" if the time is unknown or over."""
        if progress.waiting_for:
            return f"waiting for {progress.waiting_for}"
        if progress.phase in WAITS:
            return WAITS[progress.phase]
        left = progress.time_left
        return "" if math.isinf(left) or progress.phase == "done" else f"{left:.0f} s left"

    def line(self, progress: Progress) -> str:
        """Return one line with the whole state of the search."""
        parts = [
            f"trial {progress.trials}/{progress.total}",
            f"best {self.best(progress)}",
            f"{progress.rate:.1f} candidates/s",
            f"stopped early: {progress.outcomes.get('slow_stopped', 0)}",
            f"failed: {failures_text(progress)}",
            f"refused: {refused_text(progress)}" if progress.refused else "",
            self.left(progress),
        ]
        return " | ".join(part for part in parts if part)


def _plain(describe: Describe, prefix: str = "") -> Reporter:
    last = {"time": 0.0, "trials": -1}
    waited_for = [""]

    def report(progress: Progress) -> None:
        if not last["time"]:
            print(describe.beginning(progress), flush=True)
            last.update(time=time.monotonic(), trials=progress.trials)
            return
        if progress.waiting_for != waited_for[0] and progress.phase != "done":  # a search that ends does not go on
            waited_for[0] = progress.waiting_for
            waits = f"waiting for {progress.waiting_for}" if progress.waiting_for else "continues"
            print(f"{prefix}{waits}", flush=True)
        now = time.monotonic()
        due = now - last["time"] >= LINE_SECONDS or progress.phase == "done"
        if due and progress.trials != last["trials"]:
            last.update(time=now, trials=progress.trials)
            print(f"{prefix}{describe.line(progress)}", flush=True)

    return report


def _json_lines(function: str = "") -> Reporter:
    last: list[tuple[int, str, str]] = []

    def report(progress: Progress) -> None:
        state = (progress.trials, progress.phase, progress.waiting_for)
        if last and state == last[0]:
            return
        last[:] = [state]
        best = None if math.isinf(progress.best_seconds) else progress.best_seconds
        event = {
            "event": "progress",
            **({"function": function} if function else {}),
            "trials": progress.trials,
            "total": progress.total,
            "earlier": progress.earlier,
            "best_seconds": best,
            "candidates_per_second": progress.rate,
            "outcomes": progress.outcomes,
            "refusals": {code: n for code, (n, _) in progress.refusals.items()},
            "phase": progress.phase,
            **({"waiting_for": progress.waiting_for} if progress.waiting_for else {}),
        }
        print(json.dumps(event), flush=True)

    return report


@contextlib.contextmanager
def _terminal(describe: Describe) -> Iterator[Reporter]:
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    screen = Console(highlight=False)

    def block(progress: Progress) -> Any:
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=progress.total, completed=progress.trials, width=40)
        head.add_row(f"trial   {progress.trials}/{progress.total}", bar, describe.left(progress))
        grid = Table.grid()
        grid.add_row(head)
        for line in (
            f"best    {describe.best(progress)}",
            f"speed   {progress.rate:.1f} candidates/s, {progress.median_build_seconds * 1e3:.0f} ms a build",
            f"failed  {failures_text(progress)}; {progress.outcomes.get('slow_stopped', 0)} stopped early; "
            f"{progress.refused} refused, {progress.duplicates} seen before",
            *refusals(progress)[:3],
        ):
            grid.add_row(Text(line))
        return grid

    lives: list[Live] = []

    def report(progress: Progress) -> None:
        first = not lives
        if first:
            screen.print(Text(describe.beginning(progress)))
            lives.append(Live(console=screen, refresh_per_second=8, transient=False))
            lives[0].start()
        lives[0].update(block(progress), refresh=first)

    try:
        yield report
    finally:
        for live in lives:
            live.stop()


@contextlib.contextmanager
def _notebook(describe: Describe) -> Iterator[Reporter]:
    from IPython.display import HTML, display

    shown: list[Any] = []

    def report(progress: Progress) -> None:
        if not shown:
            shown.extend([html.escape(describe.beginning(progress)), display(HTML(""), display_id=True)])
        shown[1].update(HTML(f"<pre>{shown[0]}\n{html.escape(describe.line(progress))}</pre>"))

    yield report


@contextlib.contextmanager
def reporter(
    mode: Callable[[Progress], None] | str | None,
    task: Task,
    threads: int,
    *,
    among_others: int = 0,
    device: str = "",
    target: str = "native",
) -> Iterator[Reporter]:
    """Yield a function to call with each state of a search.

    Args:
        mode: "auto", "plain", "json", None for silence, or the user's own function.
        task: what is searched.
        threads: number of threads of its kernels.
        among_others: searches that report at the same time, so that each line names its function; 0 for one alone.
        device: the device, or processor of other hosts, that it is searched for; "" for this processor.
        target: target of the search.
    """
    if mode is None:
        yield lambda progress: None
    elif callable(mode):
        yield mode
    elif mode == "json":
        yield _json_lines(task.entry if among_others else "")
    elif among_others and mode in ("auto", "plain"):
        yield _plain(Describe(task, threads, device, target), f"{task.entry}: ")
    elif mode == "auto" and in_notebook():
        with _notebook(Describe(task, threads, device, target)) as report:
            yield report
    elif mode == "auto" and is_terminal(sys.stdout):
        with _terminal(Describe(task, threads, device, target)) as report:
            yield report
    elif mode in ("auto", "plain"):
        yield _plain(Describe(task, threads, device, target))
    else:
        raise ArgumentError.of(
            "tune/progress", f'progress is {mode!r}; expected "auto", "plain", "json", None or a function'
        )
