"""The database of two JSON text files, one value per line, in the layout of TVM's.

    database_workload.json        ["hash", "base64 of the program"]
    database_tuning_record.json   [number of a program, [trace, seconds | null, target | null, arguments | null, more]]

``tilewright db --export`` writes the same format. `more` has the error of a failed record, the machine and the versions
that measured it, and the other fields of databases; it is omitted if empty.

Any number of processes may append to the same files: each line is written in one operation with the file locked, after
reading the workloads that other processes have added. A line that was truncated by a full disk or a killed process is
ignored, and overwritten by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright import ir
from tilewright.database.record_lines import fifth_entry
from tilewright.database.workload_lines import read_line
from tilewright.errors import Error, ResourceError
from tilewright.meta_schedule.database.memory_database import MemoryDatabase
from tilewright.meta_schedule.database.record_rows import row_of
from tilewright.meta_schedule.database.tuning_record import TuningRecord, Workload, check_record, record_of_entry
from tilewright.support import limits
from tilewright.support.json_text import parse_json
from tilewright.support.user_lines import users_level
from tilewright.support.wrong_arguments import suggests_keywords

__all__ = ["JSONDatabase"]


class _Lines:
    """A growing file of lines; lines that were read are not read again."""

    def __init__(self, path: str | os.PathLike[str], allow_missing: bool) -> None:
        self.path = Path(path)
        self.offset = 0
        self.number = 0
        self._is_open = False  # whether the last line that was read lacks its newline
        if not self.path.exists():
            if not allow_missing:
                raise ResourceError.of(
                    "database/missing-file", f"{path}: no such file", "pass allow_missing=True to make it"
                )
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch()
            except OSError as error:
                raise _cannot("be made", self.path, error) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Open and lock the file, so that no other process appends to it."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise _cannot("be opened", self.path, error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd
        except OSError as error:
            raise _cannot("be written", self.path, error) from None
        finally:
            os.close(fd)

    def read(self) -> bytes:
        """Return what follows the lines that were read."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                return file.read()
        except OSError as error:
            raise _cannot("be read", self.path, error) from None

    def lines_in(self, rest: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the numbers and values of the lines in what :meth:`read` returned. A line counts as read when the
        caller requests the next one, so a record that the caller refuses is returned again by the next call."""
        if self._is_open and rest.startswith(b"\n"):
            rest = rest[1:]
            self.offset += 1
            self._is_open = False
        for line in rest.splitlines(keepends=True):
            whole = line.endswith(b"\n")
            try:
                value = parse_json(line) if line.strip() else None
            except ValueError as error:
                if not whole:
                    text = f"{self.path}:{self.number + 1}: the last line was cut off and is ignored"
                    warnings.warn(text, stacklevel=users_level())
                    return
                raise self.bad(self.number + 1, error) from None
            if value is not None:
                yield self.number + 1, value
            self._is_open = not whole  # the value is complete; its newline is written with the next line
            self.number += 1
            self.offset += len(line)

    def append(self, fd: int, value: Any) -> None:
        """Append a line to the locked file, replacing a truncated one."""
        end = os.fstat(fd).st_size
        if end > 0 and os.pread(fd, 1, end - 1) != b"\n":
            line_start = _last_line(fd, end)
            try:
                parse_json(os.pread(fd, end - line_start, line_start))
                os.pwrite(fd, b"\n", end)
                end += 1
            except ValueError:
                os.ftruncate(fd, line_start)
                end = line_start
        data = (json.dumps(value, separators=(",", ":")) + "\n").encode()
        written = os.pwrite(fd, data, end)
        while written < len(data):
            written += os.pwrite(fd, data[written:], end + written)

    def bad(self, number: int, error: object) -> ResourceError:
        """Return the error for an invalid line."""
        text = str(error).partition("\n")[0]
        return ResourceError.of(
            "database/json-line", f"{self.path}:{number}: {text}", "repair or remove that line; nothing was changed"
        )


def _extra(record: TuningRecord) -> list[dict[str, Any]]:
    """Return the fields that TVM's records lack, as the fifth entry of a line."""
    row = row_of(record, "0" * 32)
    stored = {"outcome", "error", "host", "versions", *getattr(record, "columns", ())}
    known = {name: value for name, value in fifth_entry(row).items() if name in stored}
    return [known] if row.error or row.host or row.versions or len(stored) > 4 else []


def _last_line(fd: int, end: int) -> int:
    start = end
    while start > 0:
        step = min(1 << 16, start)
        found = os.pread(fd, step, start - step).rfind(b"\n")
        if found >= 0:
            return start - step + found + 1
        start -= step
    return 0


def _cannot(what: str, path: Path, error: OSError) -> ResourceError:
    return ResourceError.of(
        "database/json-file", f"{path}: cannot {what}: {error.strerror}", "check the folder and its permissions"
    )


class JSONDatabase(MemoryDatabase):
    """A database of programs and records in two files of lines, with a copy in memory.

    Args:
        path_workload: the file of programs; by default `database_workload.json` in `work_dir`.
        path_tuning_record: the file of records; by default `database_tuning_record.json` there.
        work_dir: where the files are by default.
        allow_missing: make files that are not there.
        module_equality: "structural", "ignore-ndarray" or "anchor-block".

    Raises:
        tilewright.ResourceError: a file is missing or cannot be read, or a line is invalid; the message names the line.
    """

    @suggests_keywords
    def __init__(
        self,
        path_workload: str | os.PathLike[str] | None = None,
        path_tuning_record: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        paths = {"path_workload": path_workload, "path_tuning_record": path_tuning_record, "work_dir": work_dir}
        for name, given in paths.items():
            limits.kind(name, given, str | os.PathLike | None, "a path, or None")
        folder = Path(work_dir or ".")
        self.path_workload = os.fspath(path_workload or folder / "database_workload.json")
        self.path_tuning_record = os.fspath(path_tuning_record or folder / "database_tuning_record.json")
        self._workload_lines = _Lines(self.path_workload, allow_missing)
        self._record_lines = _Lines(self.path_tuning_record, allow_missing)
        self._known: list[Workload] = []  # by line number
        self.refresh()

    def refresh(self) -> None:
        """Read the lines that other processes have added."""
        # Records first: a process adds the workload of a record before the record.
        added = self._record_lines.read()
        self._read_workloads()
        for number, value in self._record_lines.lines_in(added):
            try:
                index, record = value
                if not 0 <= index < len(self._known):
                    raise ValueError(f"names workload {index}, but there are {len(self._known)}")
                self._records.append(TuningRecord.from_json(record, self._known[index]))
            except (Error, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
                raise self._record_lines.bad(number, error) from None

    def commit_workload(self, mod: ir.IRModule) -> Workload:
        """Return the entry of the program, which is added to the file if missing."""
        known = self._workloads.find(mod)
        if known is not None:
            return known
        with self._workload_lines.locked() as fd:
            self._read_workloads()
            known = self._workloads.find(mod)
            if known is None:
                self._workload_lines.append(fd, Workload(mod).as_json())
                self._read_workloads()
                known = self._workloads.find(mod)
        assert known is not None
        return known

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record, and append it to the file."""
        check_record(record)
        workload = self.commit_workload(record.workload.mod)
        index = next(number for number, known in enumerate(self._known) if known is workload)
        with self._record_lines.locked() as fd:
            own = record_of_entry(record, workload)
            self._record_lines.append(fd, [index, [*own.as_json(), *_extra(own)]])
        self.refresh()

    def _read_workloads(self) -> None:
        for number, value in self._workload_lines.lines_in(self._workload_lines.read()):
            try:
                line = read_line(value)
            except (Error, TypeError, ValueError, RecursionError) as error:
                raise self._workload_lines.bad(number, error) from None
            if line.sizes:  # times for some sizes are not those of the program
                self._known.append(Workload(line.module))
            else:
                self._known.append(self._workloads.find(line.module) or self._workloads.add(Workload(line.module)))
