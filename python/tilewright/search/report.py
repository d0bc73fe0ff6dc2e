"""Report of a finished search: times against a peer, and the best schedule as Python."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import json
import os
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir, timing
from tilewright.database.records import steps_of, workload_key
from tilewright.errors import ScriptError
from tilewright.kernel.device_roofs import describe_device
from tilewright.kernel.kernel import Kernel, compile_task
from tilewright.search.device_times import NOT_AS_WRITTEN, heuristic_kernel, times_on_device
from tilewright.support.json_text import parse_json
from tilewright.support.machine import is_for_device, rate_unit
from tilewright.support.nodes import nodes_of
from tilewright.task.arguments import aligned, make_arrays
from tilewright.task.task import Task, task_of
from tilewright.timing import KernelCalls, Timing, format_seconds, format_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.search.result import TuneResult
    from tilewright.search.spaces import Space

#: names of the rows of a table, besides the peer's
AS_WRITTEN, BY_RULES, BEST = "as written", "by rules", "best found"
#: libraries that peers come from, by the module of what they return
LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX"}


#: below that, what Python adds to a call matters, and peers are compared with calls from Python
SHORT_CALL_SECONDS = 1e-4


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        seconds: median of a call.
        gflops: 1e9 operations per second; of integers where the program has no floats.
        fraction_of_roof: 1 means no faster kernel exists on this machine or device, because of `roof`, which is "" for
            devices whose limits are not known.
        ratio_to_peer: how many times faster than the peer, by the times that are shown, with the quartiles of the
            rounds; None where that was not measured.
        exact: False when the work, and so the rates, are estimates.
        call_seconds: median of a call from Python, where that is what the ratio compares; else None.
        disturbed: share of the slices in which other programs took a processor away.
    """

    what: str
    threads: int
    seconds: float
    gflops: float
    gbs: float
    roof: str
    fraction_of_roof: float
    ratio_to_peer: tuple[float, float, float] | None = None
    exact: bool = True
    call_seconds: float | None = None
    disturbed: float = 0.0


def row(what: str, time: Timing, called: Timing | None = None, peer: Timing | None = None) -> Row:
    """Return the row of a measurement; `called` is the time of the same call from Python, for a comparison with a
    peer."""
    ours = called or time
    ratio = None if peer is None else timing.ratio(peer.seconds, ours.seconds)
    return Row(
        what,
        time.threads,
        time.median,
        time.gflops,
        time.gbs,
        time.roof.name,
        time.fraction,
        ratio,
        time.work.exact,
        None if called is None else called.median,
        time.disturbed,
    )


@dataclass(frozen=True)
class Summary:
    """The report on a search.

    Attributes:
        rows: the unscheduled program, the heuristic schedule where there is one, best and peer, by number of threads.
        measured: when the rows were, UTC; empty when that was just now.
        warning: warning that the peer computes other results, or "".
        schedule: the best one, as Python to be pasted under the script.
        checks: what was done to know that the kernel is right.
    """

    result: TuneResult
    program: str
    rows: tuple[Row, ...]
    measured: str
    warning: str
    schedule: str
    checks: tuple[str, ...]

    def tables(self, name: str) -> list[Any]:
        """Return a table for each number of threads."""
        when = f", measured {self.measured}" if self.measured else ""
        tables = []
        for threads in dict.fromkeys(row.threads for row in self.rows):
            unchecked = ", unscheduled program unchecked" if self.is_unchecked else ""
            rows = [row for row in self.rows if row.threads == threads]
            contention = timing.contention_label(max(row.disturbed for row in rows))
            where = f"on {self.device}" if self.device else f"{threads} thread{'s' if threads > 1 else ''}"
            title = f"{name}, {where}{contention}{when}{unchecked}"
            tables.append(table(rows, title, self.result.task.work.dtype))
        return tables

    @property
    def device(self) -> str:
        """Return the device of the search, with its driver; "" for this processor."""
        best = self.result.record
        return describe_device(best.target) if best is not None and is_for_device(best.target) else ""

    @property
    def is_unchecked(self) -> bool:
        """Return whether the unscheduled program was not compared with the interpreter when the best was recorded."""
        best = self.result.record
        return best is not None and best.verification.get("program", "unchecked") == "unchecked"

    @property
    def remarks(self) -> list[str]:
        """Return the remarks on the numbers in the tables."""
        notes = []
        if any(not row.exact for row in self.rows):
            notes.append(
                "~ is an estimate: how much the program computes depends on data, or varies between iterations"
            )
        if any(round(100 * row.fraction_of_roof) > 100 for row in self.rows):
            notes.append(
                "! is above the limit that was measured, repeatedly: it counts skipped terms, the data are in a faster "
                "cache, or the machine was busy during the measurement"
            )
        for row in self.rows:
            if row.ratio_to_peer and row.call_seconds and row.call_seconds > 1.02 * row.seconds:
                notes.append(
                    f"a call from Python takes {format_seconds(row.call_seconds)}; the speed of the peer is compared "
                    "with that, and the times are of the kernel alone"
                )
                break
        for threads in dict.fromkeys(row.threads for row in self.rows):
            disturbed = max(row.disturbed for row in self.rows if row.threads == threads)
            if disturbed > timing.CONTENDED_ABOVE:
                many = f"{threads} thread{'s' if threads > 1 else ''}"
                notes.append(
                    f"contended: with {many}, other programs took a processor away in {disturbed:.0%} of the slices; "
                    "on a machine of their own the kernels take less"
                )
        if self.device:
            notes.append(NOT_AS_WRITTEN)
        plain = {row.threads: row.seconds for row in self.rows if row.what == AS_WRITTEN}
        if any(row.what == BEST and row.seconds > 1.05 * plain.get(row.threads, np.inf) for row in self.rows):
            notes.append("the unscheduled program is faster than all candidates that were measured")
        best = self.result.record
        for row in self.rows:
            if best is None or row.what != BEST or row.threads != self.result.threads or self.device:
                continue
            if abs(row.seconds / best.median - 1) > 0.1:
                notes.append(
                    f"the search measured {format_seconds(best.median)}, in a process and with memory of its own; the "
                    f"table {format_seconds(row.seconds)}, here and later: the speed of the machine has changed "
                    "meanwhile, or depends on the addresses of the arrays"
                )
        return notes

    def as_json(self) -> dict[str, Any]:
        """Return the report as data for programs."""
        best = self.result.record
        return {
            "event": "result",
            "program": self.program,
            "stop_reason": self.result.stop_reason,
            "trials": self.result.progress.trials,
            "measured_before": self.result.progress.earlier,
            "best_seconds": None if best is None else best.median,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "rows_measured": self.measured,
            "device": self.device,
            "remarks": self.remarks,
            "outcomes": self.result.progress.outcomes,
            "refusals": self.result.progress.refusals,
            "warning": self.warning,
            "notes": [str(note) for note in self.result.kernel.notes],
            "schedule": self.schedule,
            "checks": list(self.checks),
            "verification": {} if best is None else best.verification,
        }


def summarize(result: TuneResult, space: Space, program: str, records: str | os.PathLike[str]) -> Summary:
    """Time the best kernel, the unscheduled program, the heuristic schedule and the peer on one thread. Programs with a
    parallel loop are also timed on all cores.

    The comparison is kept in the database beside the records: when nothing was measured since, it is not made again.

    Args:
        program: the Python expression that stands for the program under the script.
        records: the database of the search.
    """
    from tilewright.database.records import open_database

    best = result.best_record()
    scales = has_parallel_loop(result.schedule.mod) or has_parallel_loop(result.task.module)
    counts = tuple(dict.fromkeys([1, result.threads, *([_core.Target("native").num_cores] if scales else [])]))
    key = _key_of_rows(result, space, counts)
    store = open_database(records)
    kept = store.meta(key) if result.progress.trials == result.progress.earlier else None
    rows, measured = _kept_rows(kept)
    if not rows:
        on_device = is_for_device(best.target)
        rows = measure_rows_on_device(result, space) if on_device else measure_rows(result, space, counts)
        measured = ""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        facts = {"measured": now, "rows": [dataclasses.asdict(row) for row in rows]}
        store.set_meta(key, json.dumps(facts))
    # Times may be stored, but the peer's results are compared each time, as the function may have changed.
    warning = check_peer(result, space)
    checks = [] if result.verdict is None else [result.verdict.note]
    checks.append(_said(best.verification))
    schedule = runnable_schedule(result, program)
    return Summary(result, program, rows, measured, warning, schedule, tuple(checks))


def _kept_rows(text: str | None) -> tuple[tuple[Row, ...], str]:
    """Return the stored rows of an earlier comparison, and its date; empty if the text is damaged."""
    try:
        old = parse_json(text or "{}")
        return tuple(Row(**row) for row in old.get("rows", ())), str(old.get("measured", ""))
    except (ValueError, TypeError, AttributeError):
        return (), ""


def _sizes(task: Task) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(task.sizes.items()))


def _key_of_rows(result: TuneResult, space: Space, counts: tuple[int, ...]) -> str:
    """Return the key of a comparison in the database. It depends on program, schedule, peer and machine."""
    facts = [
        workload_key(result.task),
        result.best_record().trace,
        result.best_record().target,
        "" if space.reference is None else [peer_name(space, _sizes(result.task)), _fingerprint(space.reference)],
        describe_device(target) if is_for_device(target := result.best_record().target) else _core.host_cpu()["brand"],
        list(counts),
    ]
    return "rows/" + hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _said(verification: Mapping[str, Any]) -> str:
    """Return a sentence on how the results of the best candidate were checked."""
    tolerances = verification.get("tolerance", {})
    parts = []
    for name, tolerance in tolerances.items():
        relative, spread = (float(tolerance.get(key, 0.0)) for key in ("relative", "spread"))
        how = f"to {relative:.1g} of it and {spread:.1g} of the root mean square" if relative or spread else "exactly"
        parts.append(f"{name} {how}")
    share = float(verification.get("largest_share_of_allowed", 0.0))
    used = f"; {share:.0%} of that is used" if any("exactly" not in part for part in parts) else ""
    return f"best found: every element agrees with the unscheduled program ({', '.join(parts)}{used})"


def _fingerprint(function: object, seen: frozenset[object] = frozenset()) -> str:
    """Return a text that changes with the function, with functions of its module that it names, and with its
    closure."""
    if isinstance(function, functools.partial):
        return repr([_fingerprint(function.func, seen), function.args, function.keywords])
    if not isinstance(function, types.FunctionType) or function in seen:
        return repr(type(function))
    seen = seen | {function}
    codes, facts = [function.__code__], [repr((function.__defaults__, function.__kwdefaults__))]
    while codes:
        code = codes.pop()
        inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
        codes += inner
        facts += [code.co_code.hex(), repr(code.co_names), repr([c for c in code.co_consts if c not in inner])]
        named = [function.__globals__.get(name) for name in code.co_names]
        facts += [_fingerprint(n, seen) for n in named if getattr(n, "__module__", "") == function.__module__]
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        facts.append(_fingerprint(value, seen) if callable(value) else repr(value))
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest()


def _read_by(task: Task, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a peer: the arrays and scalars that the program reads."""
    outputs = {p.name for p in task.parameters if p.role == "output"}
    return {name: value for name, value in task.call(arrays).items() if name not in outputs}


def call_peer(space: Space, task: Task, arrays: dict[str, Any]) -> Any:
    """Return the result of the peer for the arrays and scalars that the program reads.

    Raises:
        tilewright.ScriptError: the peer raises an exception.
    """
    from tilewright.support.user_lines import place_of

    assert space.reference is not None
    read = _read_by(task, arrays)
    try:
        return space.reference(*read.values())
    except Exception as error:
        names = ", ".join(read)
        place = place_of(error)
        raise ScriptError.of(
            "tune/reference",
            f"the reference of space '{space.name}' raised {type(error).__name__}: {error}"
            + (f"\n{place}" if place else ""),
            f"it is called with what the program reads ({names}) and returns what it writes",
        ) from error


def try_peer(space: Space, sizes: Mapping[str, float] | None = None) -> None:
    """Call the peer once, so that an error in it is reported before the search and not after it."""
    if space.reference is not None:
        task = task_of(space.program, sizes)
        call_peer(space, task, make_arrays(task, space.inputs, seed=0))


@functools.cache
def peer_name(space: Space, sizes: tuple[tuple[str, float], ...] = ()) -> str:
    """Return the name of the peer in tables: its own name, or the library that its result comes from.

    Args:
        space: space with the peer.
        sizes: values of symbolic sizes.
    """
    name = str(getattr(space.reference, "__name__", ""))
    if name not in ("", "<lambda>", "reference"):
        return name
    task = task_of(space.program, dict(sizes))
    answer = call_peer(space, task, make_arrays(task, space.inputs, seed=0))
    first = answer[0] if isinstance(answer, tuple) and answer else answer
    return LIBRARIES.get(type(first).__module__.partition(".")[0], "reference")


def measure_rows_on_device(result: TuneResult, space: Space, *, rounds: int = 15) -> tuple[Row, ...]:
    """Time the kernels of :func:`times_on_device` on the device of the search, and the peer here."""
    task = result.task
    arrays = {name: aligned(array) for name, array in make_arrays(task, space.inputs, seed=0).items()}
    times = times_on_device(result, arrays, _peer_to_time(space, task, arrays), rounds=rounds)
    return tuple(_rows_of(times, space, task))


def measure_rows(result: TuneResult, space: Space, counts: Sequence[int], *, rounds: int = 15) -> tuple[Row, ...]:
    """Time the unscheduled program, the heuristic schedule, the best and the peer, with each number of threads."""
    task = result.task
    arrays = {name: aligned(array) for name, array in make_arrays(task, space.inputs, seed=0).items()}
    values = [*task.call(arrays).values()]
    kernel, written = Kernel(result.kernel), compile_task(task)
    calls, parallel = KernelCalls(kernel, values), [kernel]
    functions: dict[str, Callable[[], object]] = {"best": calls}
    if (ruled := heuristic_kernel(task, _core.Target("native").with_num_cores(result.threads))) is not None:
        functions["rules"] = KernelCalls(ruled, values)
        parallel.append(ruled)
    functions |= _peer_to_time(space, task, arrays)
    if "peer" in functions and result.best_record().median < SHORT_CALL_SECONDS:
        functions["called"] = lambda: calls()
    rows: list[Row] = []
    slow: Timing | None = None
    for threads in counts:
        for each in parallel:
            each.threads = threads  # also beyond those that it was made for
        times = timing.compare(functions, task.work, threads=threads, cold=task.cold, rounds=rounds)
        if slow is None or has_parallel_loop(task.module):
            # Minutes may pass in a naive program: it gets three turns, after the others.
            naive = {AS_WRITTEN: KernelCalls(written, values)}
            slow = timing.compare(naive, task.work, threads=threads, cold=task.cold, rounds=3)[AS_WRITTEN]
        slow = dataclasses.replace(slow, threads=threads, roof=times["best"].roof)
        rows += [row(AS_WRITTEN, slow), *_rows_of(times, space, task)]
    return tuple(rows)


def _peer_to_time(space: Space, task: Task, arrays: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Return the call of the peer under its name in the comparison; {} if the space has none."""
    if space.reference is None:
        return {}
    # Warnings of the peer are reported here; in the timed calls it is called as its author would.
    call_peer(space, task, arrays)
    return {"peer": functools.partial(space.reference, *_read_by(task, arrays).values())}


def _rows_of(times: Mapping[str, Timing], space: Space, task: Task) -> list[Row]:
    """Return the rows of one comparison."""
    rows = [row(BY_RULES, times["rules"])] if "rules" in times else []
    rows.append(row(BEST, times["best"], times.get("called"), times.get("peer")))
    if "peer" in times:
        rows.append(row(peer_name(space, _sizes(task)), times["peer"]))
    return rows


def has_parallel_loop(module: ir.Module) -> bool:
    """Return whether the number of threads could make a difference."""
    return any(loop.kind == ir.ForKind.PARALLEL for loop in nodes_of(module, ir.For))


def table(rows: list[Row], title: str, dtype: str) -> Any:
    """Return a rich table of these rows, which have one number of threads; it fits into 80 columns."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    result = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD)
    share = [f"of {rows[0].roof}"] if rows[0].roof else []
    columns = ("time", rate_unit(dtype), "GB/s", *share)
    result.add_column("", no_wrap=True)
    peer = [f"speed / {row.what}" for row in rows if row.what not in (AS_WRITTEN, BY_RULES, BEST)]
    for column in (*columns, *peer):
        result.add_column(Text(column), justify="right", no_wrap=True)
    for row in rows:
        ratio = row.ratio_to_peer
        against = [] if ratio is None else [f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})"]
        work = dataclasses.replace(timing.NO_WORK, exact=row.exact)
        rates = (timing.format_estimate(rate, work) for rate in (row.gflops, row.gbs))
        shares = [format_share(row.fraction_of_roof, work)] if row.roof else []
        cells = (format_seconds(row.seconds), *rates, *shares, *against)
        result.add_row(*map(Text, (row.what, *cells)))
    return result


def check_peer(result: TuneResult, space: Space) -> str:
    """Compare the best kernel with the peer's own result, which rounds differently; return the finding as text."""
    if space.reference is None:
        return ""
    arrays = make_arrays(result.task, {**space.inputs, **result.inputs}, seed=1)
    expected = call_peer(space, result.task, {name: array.copy() for name, array in arrays.items()})
    result.kernel(*result.task.call(arrays).values())
    written = [p.name for p in result.task.parameters if p.role != "input"]
    outputs = expected if isinstance(expected, tuple) else (expected,)
    if len(outputs) != len(written):
        return f"the peer returns {len(outputs)} arrays, the program writes {len(written)}: {', '.join(written)}"
    for name, answer in zip(written, outputs, strict=True):
        difference = _difference(name, arrays[name], answer, result.task.reduction_length)
        if difference:
            return difference
    return ""


#: The peer may sum in another order and use other functions: so many times what candidates may differ by, and at most
#: this share of an element and of the largest one, or what rounding once may do where that is more (bfloat16).
PEER_TOLERANCE, PEER_LIMIT = 16.0, 1e-2


def _difference(name: str, got: NDArray[Any], answer: Any, reduction_length: int) -> str:
    """Return a description of where the peer's result differs: integers anywhere, floats beyond rounding; "" if
    nowhere."""
    try:
        want = np.asarray(answer)
        wide = want.astype(np.float64)
    except (TypeError, ValueError):
        return f"the peer returns {type(answer).__name__} for {name}, which is not an array of numbers"
    if want.shape != got.shape:
        return f"the peer computes something else: {name} has shape {list(want.shape)}, not {list(got.shape)}"
    if got.dtype.kind in "iub":
        # As integers, since 64 bits do not fit into a float64.
        exact = want.astype(object) if want.dtype.kind in "iub" else wide.astype(object)
        wrong = exact != got.astype(object)
    else:
        have = got.astype(np.float64)
        allowed = _core.allowance(got.tobytes(), str(got.dtype), reduction_length)
        relative, absolute = (PEER_TOLERANCE * share for share in allowed)
        limit = max(PEER_LIMIT, _core.allowance(got.tobytes(), str(got.dtype), 1)[0])
        finite = np.abs(wide[np.isfinite(wide)])
        largest = float(np.max(finite, initial=0.0))
        with np.errstate(invalid="ignore"):
            room = min(relative, limit) * np.abs(wide) + min(absolute, limit * largest)
            close = np.isfinite(wide) & (np.abs(have - wide) <= room)
        wrong = ~(close | (have == wide) | (np.isnan(have) & np.isnan(wide)))
    if not np.any(wrong):
        return ""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    count = f"{np.count_nonzero(wrong)} of {wrong.size} elements differ" if wrong.ndim else "it differs"
    return (
        f"the peer computes something else: {name}{list(first)} is {want[first]} by the peer and {got[first]} by the "
        f"program; {count}"
    )


def runnable_schedule(result: TuneResult, program: str) -> str:
    """Return the best schedule as Python that can be pasted below the script; `program` stands for the program
    there."""
    steps = textwrap.indent("\n".join(steps_of(result.schedule.trace)) or "pass", "    ")
    return (
        f"import tilewright as tw\n\n\ndef apply_schedule(sch: tw.Schedule) -> None:\n{steps}\n\n\n"
        f"sch = tw.Schedule({program})\napply_schedule(sch)"
    )
