"""Notes of sessions in a database beside their records: time breakdowns, finals, refusals and formats, as JSON by
key."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tilewright import ir
from tilewright.support.json_text import parse_json
from tilewright.support.user_lines import users_level
from tilewright.task.task import program_keys

T = TypeVar("T")

#: number of sessions whose time breakdown a file keeps
KEPT_TIMES = 200
#: how often a change of a note is tried while other sessions change it, too
MOST_CHANGES = 100


def store_times(store: Any, session: str, seconds: Mapping[str, float]) -> None:
    """Store the time breakdown of a session in a file of records."""
    _change(store, "times", lambda: [*load_times(store), (session, dict(seconds))][-KEPT_TIMES:])


def load_times(store: Any) -> tuple[tuple[str, dict[str, float]], ...]:
    """Return the stored time breakdowns, oldest first: the session, and its seconds by part."""

    def parse(known: Any) -> tuple[tuple[str, dict[str, float]], ...]:
        return tuple((session, dict(seconds)) for session, seconds in known)

    return _read(store, "times", parse, (), "where the time of its sessions went")


def update_reference_seconds(store: Any, workload: str, target: str, measured: float) -> float:
    """Store the measured seconds of a call of the unscheduled program, if positive; return the stored ones, 0 if
    unknown."""
    key = f"written/{workload}/{target}"
    if measured > 0:
        store.set_meta(key, repr(measured))
        return measured
    try:
        return float(store.meta(key) or 0.0)
    except ValueError:  # damaged
        return 0.0


@dataclass(frozen=True)
class FinalTime:
    """One kernel of the finals, in which the best few of a search are timed alternately.

    Attributes:
        kind: "trial", "written" (the unscheduled program) or "heuristic" (its heuristic schedule).
        record: id of the kernel's record; 0 if it has none.
        seconds: median seconds of a call over the rounds.
        ratio: the kernel's time relative to the winner's in the same rounds: (low, median, high).
    """

    kind: str
    record: int
    seconds: float
    ratio: tuple[float, float, float]

    @property
    def is_clearly_slower(self) -> bool:
        """Return whether the winner was faster in all rounds that count: the low end of `ratio` exceeds 1."""
        return self.ratio[0] > 1


@dataclass(frozen=True)
class Finals:
    """The finals of a program and target.

    Attributes:
        times: times of all participating kernels, the winner first.
        heuristic: trace (JSON) of the heuristic schedule; "" if it did not take part.
    """

    times: tuple[FinalTime, ...]
    heuristic: str = ""


def store_finals(store: Any, workload: str, target: str, result: Mapping[str, Any], heuristic: str) -> None:
    """Store the measurements of the finals in a file of records; does nothing if the search had no finals.

    Args:
        result: result of the tuner.
        heuristic: trace of the heuristic schedule.
    """
    if result["finals"]:
        kept = {"last_record": result["last_record"], "heuristic": heuristic, "times": result["finals"]}
        store.set_meta(f"finals/{workload}/{target}", json.dumps(kept))


def load_finals(store: Any, workload: str, target: str) -> Finals | None:
    """Return the stored measurements of the latest finals; None if these were recorded by a version that stored only
    the winner's time."""
    latest = store.finals(workload, target)
    if latest is None:
        return None

    def parse(known: Any) -> Finals | None:
        times = tuple(FinalTime(kind, record, seconds, tuple(ratio)) for kind, record, seconds, ratio in known["times"])
        is_latest = times[0].record == latest.winner and known["last_record"] == latest.last_record
        return Finals(times, known["heuristic"]) if is_latest else None

    return _read(
        store, f"finals/{workload}/{target}", parse, None, f"what the finals of program {workload[:12]} measured"
    )


def store_refusals(store: Any, workload: str, target: str, refusals: Mapping[str, tuple[int, str]]) -> None:
    """Store what the latest search of a program refused to measure, and why."""
    store.set_meta(f"refusals/{workload}/{target}", json.dumps(dict(refusals)))


def load_refusals(store: Any, workload: str, target: str) -> dict[str, tuple[int, str]]:
    """Return the stored refusals by code: the count and the first message."""

    def parse(known: Any) -> dict[str, tuple[int, str]]:
        return {code: (count, message) for code, (count, message) in known.items()}

    what = f"what was refused in the search of program {workload[:12]}"
    return _read(store, f"refusals/{workload}/{target}", parse, {}, what)


@dataclass(frozen=True)
class RecordedFormat:
    """A format in which a search has tuned a sparse program.

    Attributes:
        tensor: name of the buffer that is stored in the format.
        name: name of the format, a function of :mod:`tilewright.sparse.formats`.
        parameters: parameters of the format, the shape of the tensor first.
        count: number of rules; 0 for those of the format.
        workload: key of the decomposed program in the database.
        seconds: seconds of a call of its best kernel.
    """

    tensor: str
    name: str
    parameters: tuple[int, ...]
    count: int
    workload: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


def store_formats(store: Any, program: ir.PrimFunc, found: Iterable[RecordedFormat]) -> None:
    """Store the formats in which a search has tuned a program, in addition to those stored before."""
    added = list(found)

    def every() -> list[dict[str, Any]]:
        formats = [*load_formats(store, program), *added]
        known = {(each.tensor, str(each), each.count, each.workload): each for each in formats}
        return [asdict(each) for each in known.values()]

    _change(store, f"formats/{program_keys(program)[0]}", every)


def load_formats(store: Any, program: ir.PrimFunc | ir.Module) -> list[RecordedFormat]:
    """Return the stored formats of a program."""

    def parse(known: Any) -> list[RecordedFormat]:
        return [RecordedFormat(**{**row, "parameters": tuple(row["parameters"])}) for row in known]

    nothing: list[RecordedFormat] = []
    what = "which formats a program was tuned in"
    return [each for key in program_keys(program) for each in _read(store, f"formats/{key}", parse, nothing, what)]


def _change(store: Any, key: str, changed: Callable[[], Any]) -> None:
    """Store a note that depends on the stored one, which other sessions may change at the same time.

    Args:
        store: the database.
        key: key of the note.
        changed: returns the note from what is stored now.
    """
    for _ in range(MOST_CHANGES):
        before = store.meta(key)
        if store.replace_meta(key, before, json.dumps(changed())):
            return
    store.set_meta(key, json.dumps(changed()))  # its text is damaged, so it never is what was read


def _read(store: Any, key: str, parse: Callable[[Any], T], nothing: T, what: str) -> T:
    """Return a note, parsed from JSON by `parse`, or `nothing` if it does not exist. A damaged note is ignored with a
    warning that describes its content by `what`."""
    text = store.meta(key)
    if not text:
        return nothing
    try:
        return parse(parse_json(text))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        warn_of_damage(store, what)
        return nothing


def warn_of_damage(store: Any, what: str) -> None:
    """Warn that a part of a database is damaged and ignored."""
    warnings.warn(f"{store.path}: {what} is damaged and ignored", stacklevel=users_level())
