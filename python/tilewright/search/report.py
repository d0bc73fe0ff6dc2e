"""What is shown and written when a search is over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import timing
from tilewright.timing import Timing, format_seconds
from tilewright.search.arguments import make_arrays

if TYPE_CHECKING:
    from tilewright.search.session import TuneResult
    from tilewright.search.space import Space


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    timing: Timing
    #: how many times faster than the peer, paired by rounds; None without a peer or for the peer itself
    ratio: tuple[float, float, float] | None


def peer_name(space: Space) -> str:
    """The peer that a script names: the library its reference comes from, as far as can be seen."""
    function = space.reference
    name = getattr(function, "__name__", "") or "reference"
    return "NumPy" if name == "<lambda>" else name


def measure_rows(result: TuneResult, space: Space, threads: int, *, rounds: int = 15) -> list[Row]:
    """Untuned, best and peer, timed in turn with `threads` threads."""
    from tilewright.kernel import compile as compile_program

    task = result.task
    arrays = make_arrays(task, space.inputs, seed=0)
    values = list(arrays.values())
    functions: dict[str, Callable[[], object]] = {}
    kernel = result.kernel
    functions["best found"] = lambda: kernel(*values)
    peer = space.reference
    if peer is not None:
        read = [arrays[p.name] for p in task.parameters if p.role != "output"]
        functions[peer_name(space)] = lambda: peer(*read)
    times = timing.compare(functions, task.work, threads=threads, rounds=rounds)

    untuned = compile_program(task.module)
    # Minutes may pass in a naive program: it gets three turns, after the others.
    times |= timing.compare({"untuned": lambda: untuned(*values)}, task.work, threads=threads, rounds=3)

    def ratio(name: str) -> tuple[float, float, float] | None:
        if peer is None or name == peer_name(space):
            return None
        return timing.paired_ratio(times[peer_name(space)].seconds, times[name].seconds)

    order = ["untuned", "best found", *([peer_name(space)] if peer is not None else [])]
    return [Row(name, times[name], ratio(name)) for name in order]


def table(rows: Sequence[Row], title: str) -> Any:
    """A rich table of rows that share their number of threads."""
    from rich.table import Table

    result = Table(title=title, title_justify="left")
    for column in ("", "time", "GFLOP/s", "GB/s", f"of {rows[0].timing.roof.name}", "against the peer"):
        result.add_column(column, justify="left" if not column else "right")
    for row in rows:
        t = row.timing
        against = "" if row.ratio is None else f"{row.ratio[0]:.2f}x ({row.ratio[1]:.2f} to {row.ratio[2]:.2f})"
        cells = (format_seconds(t.median), f"{t.gflops:.1f}", f"{t.gbs:.1f}", f"{100 * t.fraction:.0f} %", against)
        result.add_row(row.what, *cells)
    return result


def rows_as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The table for programs."""
    return [
        {
            "what": row.what,
            "threads": row.timing.threads,
            "seconds": row.timing.median,
            "gflops": row.timing.gflops,
            "gbs": row.timing.gbs,
            "roof": row.timing.roof.name,
            "fraction_of_roof": row.timing.fraction,
            "ratio_to_peer": None if row.ratio is None else row.ratio[0],
        }
        for row in rows
    ]


def check_peer(result: TuneResult, space: Space) -> str:
    """Compares the best kernel with the peer's own result, which rounds differently; says what was found."""
    if space.reference is None:
        return ""
    arrays = make_arrays(result.task, space.inputs, seed=1)
    read = [arrays[p.name].copy() for p in result.task.parameters if p.role != "output"]
    expected = space.reference(*read)
    result.kernel(*arrays.values())
    written = [arrays[p.name] for p in result.task.parameters if p.role != "input"]
    outputs = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(written, outputs, strict=False):
        scale = float(np.max(np.abs(np.asarray(want, dtype=np.float64)))) or 1.0
        worst = float(np.max(np.abs(got.astype(np.float64) - np.asarray(want, dtype=np.float64)))) / scale
        if not worst < 1e-2:
            return f"the peer computes something else: outputs differ by {worst:.2g} of the largest value"
    return ""


def runnable_schedule(result: TuneResult, program_name: str) -> str:
    """The best schedule as Python that can be pasted under the script."""
    steps = "\n".join(f"    {line}" for line in result.schedule.trace.as_python())
    return (
        f"def apply_schedule(sch: tw.Schedule) -> None:\n{steps}\n\n\n"
        f"sch = tw.Schedule({program_name})\napply_schedule(sch)\n"
    )


def export(result: TuneResult, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Writes library, object and header."""
    return [Path(path) for path in result.kernel.export(folder, name=name)]
