"""What sessions note in a database beside their records: times, finals, refusals and formats, as JSON by key."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tilewright import ir
from tilewright.support.user_lines import users_level
from tilewright.task.task import program_keys

T = TypeVar("T")

#: sessions whose times a file keeps
KEPT_TIMES = 200


def keep_times(store: Any, session: str, seconds: Mapping[str, float]) -> None:
    """Note in a file of records where the time of a session went."""
    times = [*kept_times(store), (session, dict(seconds))][-KEPT_TIMES:]
    store.set_meta("times", json.dumps(times))


def kept_times(store: Any) -> tuple[tuple[str, dict[str, float]], ...]:
    """Return what :func:`keep_times` noted, the oldest first: the session, and seconds by what they were spent on."""

    def parse(known: Any) -> tuple[tuple[str, dict[str, float]], ...]:
        return tuple((session, dict(seconds)) for session, seconds in known)

    return _read(store, "times", parse, (), "where the time of its sessions went")


def reference_seconds(store: Any, workload: str, target: str, measured: float) -> float:
    """Return the seconds of a call of an unscheduled program in its search: what was measured, which is kept, or else
    what was kept then; 0 where neither is known."""
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
        kind: "trial", "written" (the program as the user wrote it) or "heuristic" (its heuristic schedule).
        record: the id of its record; 0 where it has none.
        seconds: of a call, the median of its rounds.
        ratio: how many times as long as the winner it takes in the same rounds: (low, median, high).
    """

    kind: str
    record: int
    seconds: float
    ratio: tuple[float, float, float]

    @property
    def is_clearly_slower(self) -> bool:
        """Whether the rounds leave no doubt that the winner is faster."""
        return self.ratio[0] > 1


@dataclass(frozen=True)
class Finals:
    """The finals of a program and target.

    Attributes:
        times: of all kernels that took part, the winner first.
        heuristic: the trace (JSON) of the heuristic schedule; "" where none took part.
    """

    times: tuple[FinalTime, ...]
    heuristic: str = ""


def keep_finals(store: Any, workload: str, target: str, result: Mapping[str, Any], heuristic: str) -> None:
    """Note in a file of records what the finals measured; nothing where the search held none.

    Args:
        result: of the tuner.
        heuristic: the trace of the heuristic schedule.
    """
    if result["finals"]:
        kept = {"last_record": result["last_record"], "heuristic": heuristic, "times": result["finals"]}
        store.set_meta(f"finals/{workload}/{target}", json.dumps(kept))


def kept_finals(store: Any, workload: str, target: str) -> Finals | None:
    """Return what :func:`keep_finals` noted of the latest finals; None where these kept the time of their winner alone,
    as earlier versions did."""
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


def keep_refusals(store: Any, workload: str, target: str, refusals: Mapping[str, tuple[int, str]]) -> None:
    """Note in a file of records what the latest search of a program refused to measure, and why."""
    store.set_meta(f"refusals/{workload}/{target}", json.dumps(dict(refusals)))


def kept_refusals(store: Any, workload: str, target: str) -> dict[str, tuple[int, str]]:
    """Return what :func:`keep_refusals` noted: by code, how often and the first message."""

    def parse(known: Any) -> dict[str, tuple[int, str]]:
        return {code: (count, message) for code, (count, message) in known.items()}

    what = f"what was refused in the search of program {workload[:12]}"
    return _read(store, f"refusals/{workload}/{target}", parse, {}, what)


@dataclass(frozen=True)
class RecordedFormat:
    """A format in which a search has tuned a sparse program.

    Attributes:
        tensor: the name of the buffer that is stored in it.
        name: of the format, a function of :mod:`tilewright.sparse.formats`.
        parameters: of the format, the shape of the tensor first.
        count: how many rules there are; 0 for those of the format.
        workload: what the decomposed program is called in the database.
        seconds: of a call of its best kernel.
    """

    tensor: str
    name: str
    parameters: tuple[int, ...]
    count: int
    workload: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


def keep_formats(store: Any, program: ir.PrimFunc, found: Iterable[RecordedFormat]) -> None:
    """Note in a file of records in which formats a search has tuned a program; those noted before stay."""
    known = {
        (each.tensor, str(each), each.count, each.workload): each for each in [*kept_formats(store, program), *found]
    }
    store.set_meta(f"formats/{program_keys(program)[0]}", json.dumps([asdict(each) for each in known.values()]))


def kept_formats(store: Any, program: ir.PrimFunc | ir.Module) -> list[RecordedFormat]:
    """Return the formats that :func:`keep_formats` noted."""

    def parse(known: Any) -> list[RecordedFormat]:
        return [RecordedFormat(**{**row, "parameters": tuple(row["parameters"])}) for row in known]

    nothing: list[RecordedFormat] = []
    what = "which formats a program was tuned in"
    return [each for key in program_keys(program) for each in _read(store, f"formats/{key}", parse, nothing, what)]


def _read(store: Any, key: str, parse: Callable[[Any], T], nothing: T, what: str) -> T:
    """Return a note as `parse` reads its JSON, or `nothing` where there is none. A damaged note counts as none, with a
    warning that names `what` it held."""
    text = store.meta(key)
    if not text:
        return nothing
    try:
        return parse(json.loads(text))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        warn_of_damage(store, what)
        return nothing


def warn_of_damage(store: Any, what: str) -> None:
    """Warn that a part of a database is damaged and ignored."""
    warnings.warn(f"{store.path}: {what} is damaged and ignored", stacklevel=users_level())
