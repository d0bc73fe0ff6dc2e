"""Journal of a session over tasks: the results in the order in which strategies received them. An interrupted session
continues with the same candidates, and measures nothing twice.

``WORK_DIR/sessions`` has a file of lines for each task. Databases store the records, these files their order and the
failures.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright import _core, ir
from tilewright.meta_schedule.builder import BuilderResult
from tilewright.meta_schedule.database.database import Database, equality_of
from tilewright.meta_schedule.database.tuning_record import (
    TuningRecord,
    Workload,
    best_in,
    is_in,
    records_in,
    trace_in,
    workload_in,
)
from tilewright.meta_schedule.runner.runner import RunnerResult
from tilewright.meta_schedule.session_logs import cannot_be_written
from tilewright.support.json_text import parse_json

__all__ = ["ReportedRecords", "SessionJournal", "end_session", "seed_of_session"]

#: version of the candidates that follow from a seed; changed with the strategies, so that old sessions are not resumed
_STREAM = 1
_FOLDER, _UNFINISHED = "sessions", "unfinished.json"
_LOGGER = logging.getLogger("tilewright.meta_schedule")


class SessionJournal:
    """A log of the candidates and results of one task, in a file. A later session reads it to resume.

    Args:
        work_dir: folder of the session.
        context: the task.
        batch: number of candidates in a batch.
        cost_model: cost model that ranks candidates.
        database: database with the measurements.
    """

    def __init__(self, work_dir: Path, context: Any, batch: int, cost_model: Any, database: Database | None) -> None:
        target = None if context.target is None else str(context.target)
        parts = [type(part).__name__ for part in (context.space_generator, context.search_strategy, cost_model)]
        program = _core.structural_hash(context.mod)
        key = json.dumps([_STREAM, program, target, context.seed, context.task_name, batch, *parts])
        self._path = work_dir / _FOLDER / f"{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.jsonl"
        self._known: dict[str, list[tuple[list[float] | None, str | None, str | None]]] = {}
        self._program = Workload(context.mod)
        self._is_complete = True  # whether the journal has all results
        self._read()
        self.pending = Counter({digest: len(results) for digest, results in self._known.items()})
        self._taken: dict[int, str] = {}  # measured candidates by their identity
        self._recorded: Counter[str] = Counter()  # measured candidates that the database has
        if self._known and database is not None:
            self._recorded.update(map(self.digest_of, records_in(database)))

    def _read(self) -> None:
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            lines = self._path.read_bytes().splitlines()
        any_right = False
        for line in lines:
            try:
                digest, seconds, build_error, run_error = parse_json(line)
                if not isinstance(seconds, list | None) or not (seconds or build_error or run_error):
                    raise ValueError(seconds)
                times = None if seconds is None else [float(each) for each in seconds]
                self._known.setdefault(str(digest), []).append((times, build_error, run_error))
                any_right |= bool(times)
            except (ValueError, TypeError, OverflowError):  # damaged or truncated: measured again
                continue
        if not any_right:  # the cause of the failures may be fixed by now
            self._known.clear()

    def take(self, candidate: Any) -> tuple[BuilderResult, RunnerResult] | None:
        """Return the earlier measurement of a candidate; None if there is none."""
        digest = _digest(candidate.sch.trace) if self._known else ""
        results = self._known.get(digest)
        if not results:
            return None
        seconds, build_error, run_error = results.pop(0)
        self._taken[id(candidate)] = digest
        return BuilderResult(None, build_error), RunnerResult(seconds, run_error)

    def note(self, candidates: Sequence[Any], built: Sequence[BuilderResult], results: Sequence[RunnerResult]) -> None:
        """Write results to the journal before strategies and callbacks get them, so that it is never behind the
        database. Results that cannot be written, as on a full disk, are measured again by a session that continues this
        one."""
        lines = []
        for candidate, build, result in zip(candidates, built, results, strict=True):
            if id(candidate) in self._taken:
                continue
            error = build.error_msg or result.error_msg
            if error is None or " raised\n" not in error:  # exclude failures of the builder or runner itself
                seconds = None if error else result.run_secs
                lines.append(json.dumps([_digest(candidate.sch.trace), seconds, build.error_msg, result.error_msg]))
        if lines:
            try:
                self._append("".join(f"{line}\n" for line in lines).encode())
            except OSError as error:
                if self._is_complete:
                    why = "a session that continues this one measures again what the journal lacks"
                    _LOGGER.warning("%s: cannot be written: %s: %s", self._path, error.strerror, why)
                self._is_complete = False

    def _append(self, lines: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - 1, 0))
            if file.read(1) not in (b"", b"\n"):
                # A line that was cut off must not swallow the next one.
                file.write(b"\n")
            file.write(lines)

    def note_reported(self, candidates: Sequence[Any]) -> None:
        """Note that strategy and callbacks have received these candidates."""
        for candidate in candidates:
            digest = self._taken.pop(id(candidate), None)
            if digest is not None:
                self.pending[digest] -= 1

    def is_recorded(self, candidate: Any) -> bool:
        """Return whether a candidate was measured before and the database has it; called once, before it is
        reported."""
        digest = self._taken.get(id(candidate))
        if digest is None or not self._recorded[digest]:
            return False
        self._recorded[digest] -= 1
        return True

    def digest_of(self, record: TuningRecord) -> str:
        """Return the digest of a record's trace, with the names of the task's program."""
        return _digest(trace_in(self._program, record.workload.mod, record.trace))

    @property
    def unreported_count(self) -> int:
        """Return how many earlier results are not reported yet."""
        return sum(self.pending.values())


def _digest(trace: Any) -> str:
    text = json.dumps(trace.as_json(remove_postproc=False), separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class ReportedRecords(Database):
    """View of a database that hides records of an interrupted session that this session has not reported yet.

    Args:
        database: the complete database.
        journal: journal of the session.
    """

    def __init__(self, database: Database, journal: SessionJournal) -> None:
        super().__init__(equality_of(database).name)
        self._database, self._journal = database, journal

    def has_workload(self, mod: ir.IRModule) -> bool:
        """Return whether the database has a program."""
        return is_in(self._database, mod)

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Add a program to the database."""
        return workload_in(self._database, mod)

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record to the database."""
        self._database.commit_tuning_record(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the best reported records."""
        found = best_in(self._database, workload, top_k + self._journal.unreported_count)
        return self._reported(found)[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return the reported records."""
        return self._reported(records_in(self._database))

    def __len__(self) -> int:
        return len(self._database)

    def _reported(self, records: list[TuningRecord]) -> list[TuningRecord]:
        if not self._journal.unreported_count:
            return records
        hidden, reported = Counter(self._journal.pending), []
        for record in records:
            digest = self._journal.digest_of(record)
            if hidden[digest] > 0:
                hidden[digest] -= 1
            else:
                reported.append(record)
        return reported


def _key_of(programs: Any) -> str:
    return hashlib.blake2b(repr(programs).encode(), digest_size=16).hexdigest()


def seed_of_session(work_dir: Path, programs: Any, seed: int | None) -> int:
    """Return the requested seed; if None, that of the interrupted session of these programs in the folder, or a random
    one."""
    place, key = work_dir / _FOLDER / _UNFINISHED, _key_of(programs)
    if seed is None:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            left = parse_json(place.read_text())
            seed = int(left["seed"]) if left["programs"] == key else None
    return secrets.randbelow(2**31) if seed is None else seed


def begin_session(work_dir: Path, programs: Any, seed: int) -> None:
    """Note the seed of a session until :func:`end_session`.

    Raises:
        tilewright.ResourceError: the folder of the session cannot be written.
    """
    place = work_dir / _FOLDER / _UNFINISHED
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"programs": _key_of(programs), "seed": seed}))
    except OSError as error:
        raise cannot_be_written(place, error) from None


def end_session(work_dir: Path) -> None:
    """Note that the session was not interrupted, so that the next one has a new seed."""
    with contextlib.suppress(OSError):  # the session has succeeded; only the marker remains
        (work_dir / _FOLDER / _UNFINISHED).unlink(missing_ok=True)
