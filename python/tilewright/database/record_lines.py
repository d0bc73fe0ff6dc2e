"""Programs and records as two files of JSON, one value a line, in the layout of TVM's database:

    database_workload.json        ["hash", "base64 of the program"], and more properties of it (workload_lines)
    database_tuning_record.json   [workload index, [trace, run_secs | null, target | null, args_info | null, {...}]]

The fifth entry of a record holds the fields that TVM's records lack (outcome, error, seed, ...), and may be missing. A
failed record has run_secs [1e10], as in TVM; an unmeasured one has null. Sessions are not exchanged.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.database.workload_lines import key_of, read_line, text_of_row
from tilewright.errors import Error, ResourceError
from tilewright.support.file_names import path_for_core
from tilewright.support.json_text import parse_json
from tilewright.task.task import program_keys

__all__ = [
    "DAMAGED",
    "FAILED",
    "FILES",
    "UNMEASURED",
    "fields_of_entry",
    "fifth_entry",
    "measurement",
    "read_lines",
    "write_lines",
]

#: file names of the programs and of the records
FILES = ("database_workload.json", "database_tuning_record.json")
#: run_secs of a failed measurement
FAILED = 1e10
#: outcome of a record without a measurement
UNMEASURED = "not_measured"
#: outcome of a record that cannot be read
DAMAGED = "damaged"
#: fields with JSON text, which lines store as JSON values
_JSON = ("decisions", "verification", "host", "versions")
#: fields in the first four entries of a line, and the id, which each database assigns
_ELSEWHERE = ("id", "workload", "trace", "seconds", "target")


@functools.cache
def _more() -> tuple[str, ...]:
    """Return the fields of a record that its fifth entry holds."""
    return tuple(name for name in _core.Record.fields if name not in _ELSEWHERE)


def write_lines(store: _core.Database, folder: str | os.PathLike[str]) -> tuple[int, int]:
    """Write both files into an existing folder, each atomically; return the number of programs and of records.

    Raises:
        tilewright.ResourceError: the files cannot be written.
    """
    path = Path(path_for_core("the folder", folder))
    programs = store.workloads()
    records = [
        _text([number, _value_of(record)])
        for number, program in enumerate(programs)
        for record in store.records(program.hash, "")
        if record.outcome != DAMAGED
    ]
    for name, lines in zip(FILES, ([*map(text_of_row, programs)], records), strict=True):
        _write(path / name, "".join(f"{line}\n" for line in lines))
    return len(programs), len(records)


def read_lines(folder: str | os.PathLike[str]) -> _core.Database:
    """Read the programs and records of both files into memory; duplicates are merged.

    Raises:
        tilewright.ResourceError: a file is missing, or a line is invalid; the message names the line.
    """
    path = path_for_core("the folder", folder)
    store = _core.Database.in_memory(path)
    programs, records = ([*_lines(Path(path) / name)] for name in FILES)
    keys: list[str] = []
    for place, value in programs:
        try:
            line = read_line(value)
        except Error as error:
            raise _bad(place, error.message, error.hint) from None
        keys.append(key_of(program_keys(line.module)[0], line.sizes))
        store.commit_workload(keys[-1], line.name, line.module.script(), line.sizes)
    known = set()
    for place, value in records:
        try:
            record = _record_of(value, keys)
        except (TypeError, ValueError) as error:
            raise _bad(place, str(error)) from None
        if (what := measurement(record)) not in known:
            store.commit(record)
        known.add(what)
    return store


def measurement(record: _core.Record) -> tuple[object, ...]:
    """Return a key that is equal for two records of the same measurement, regardless of blanks in their JSON."""
    steps = _text_of(_json(record.trace)) if len(record.trace.split()) > 1 else record.trace
    return record.workload, record.target, steps, record.seconds, record.outcome, record.index


def _value_of(record: _core.Record) -> list[Any]:
    seconds = [*record.seconds] if record.outcome == "ok" and record.seconds else [FAILED]
    target = _value_of_target(record.target) if record.target else None
    return [_json(record.trace), None if record.outcome == UNMEASURED else seconds, target, None, fifth_entry(record)]


def fifth_entry(record: _core.Record) -> dict[str, Any]:
    """Return the fields of a record that TVM's records lack, as a line stores them."""
    more = {name: getattr(record, name) for name in _more()}
    return more | {name: _json(more[name]) for name in _JSON}


def fields_of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that a fifth entry has, as the record stores them."""
    fields = {name: entry[name] for name in _more() if name in entry}
    return fields | {name: _text_of(fields[name]) for name in _JSON if name in fields}


@functools.cache
def _value_of_target(text: str) -> Any:
    try:
        return json.loads(_core.Target(text).json())
    except Error:  # from a later version
        return text


@functools.cache
def _text_of_target(text: str) -> str:
    try:
        return str(_core.Target(text)) if text else ""
    except Error:
        return text


def _record_of(value: Any, keys: Sequence[str]) -> _core.Record:
    match value:
        case [int(number), [trace, seconds, target, _, *more]] if len(more) < 2:
            pass
        case _:
            raise ValueError("is not a record: expected [workload index, [trace, run_secs, target, args_info]]")
    if not 0 <= number < len(keys):
        raise ValueError(f"names workload {number}, but there are {len(keys)}")
    if not isinstance(seconds, list | None):
        raise ValueError("run_secs is not a list")
    if not all(isinstance(each, int | float) for each in seconds or ()):
        raise ValueError("run_secs is not a list of numbers")
    if not all(isinstance(each, dict) for each in more):
        raise ValueError("the fifth entry is not an object")
    measured = [float(each) for each in seconds or () if each < FAILED]
    fields = {"outcome": UNMEASURED if seconds is None else "ok" if measured else "run_error"}
    fields |= fields_of_entry(more[0] if more else {})
    fields |= {"workload": keys[number], "trace": _text_of(trace), "target": _text_of_target(_text_of(target))}
    return _core.Record(seconds=measured, **fields)


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _json(text: Any) -> Any:
    """Return the value of a JSON text."""
    try:
        value = parse_json(text) if isinstance(text, str) else text
    except ValueError:
        return text
    return text if isinstance(value, str) else value or ""


def _text_of(value: Any) -> str:
    """Return the text of a JSON value."""
    return value if isinstance(value, str) else "" if value is None else _text(value)


def _lines(path: Path) -> Iterable[tuple[str, Any]]:
    """Yield the location and the value of each line."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ResourceError.of(
            "database/import",
            f"{path}: cannot be read ({error.strerror})",
            f"an import takes a folder with {' and '.join(FILES)}",
        ) from None
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            try:
                yield f"{path}:{number}", parse_json(line)
            except ValueError:
                raise _bad(f"{path}:{number}", "is not JSON") from None


def _bad(place: str, what: str, hint: str = "") -> ResourceError:
    return ResourceError.of("database/bad-line", f"{place}: {what}", hint or "nothing was imported")


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f"{path.name}.new-{os.getpid()}")
    try:
        scratch.write_text(text)
        scratch.replace(path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise ResourceError.of(
            "database/export",
            f"{path}: cannot be written ({error.strerror})",
            "check the folder, its permissions and its free space; the database is unchanged",
        ) from None
