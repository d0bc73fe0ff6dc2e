"""Programs and records as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.search.filled_records import fields_of, filled

import tilewright as tw
from tilewright import _core
from tilewright.database.record_lines import FILES, read_lines, write_lines
from tilewright.database.upkeep import merge
from tilewright.task.task import module_of, program_keys
from tilewright.testing.workloads import matmul

PROGRAM = module_of(matmul(16, 16, 16))
KEY = program_keys(PROGRAM)[0]
LINE = json.dumps(["0", {"tvmscript": PROGRAM.script()}])
TRACE = '[[["GetBlock",[],["C","main"],["b0"]]],[]]'


def sample() -> _core.Database:
    store = _core.Database.in_memory()
    store.commit_workload(KEY, "product", PROGRAM.script())
    common: dict[str, Any] = {"workload": KEY, "trace": TRACE, "seed": 2**64 - 1}
    target = str(_core.Target("llvm -num-cores=1"))
    host = '{"processor":"P\\u00e9","cores":4}'
    store.commit(filled(target=target, seconds=[0.1, 1 / 3], outcome="ok", error="", host=host, **common))
    later = "a processor of later versions"
    store.commit(filled(target=later, seconds=[], outcome="run_crash", error="killed by \ufffd signal 11", **common))
    store.commit(_core.Record(target=target, outcome="not_measured", **common))
    return store


def test_the_sample_has_every_field() -> None:
    first = sample().records(KEY, "")[0]
    default = _core.Record()
    assert {name for name in first.fields if getattr(first, name) == getattr(default, name)} == {"outcome", "error"}


def write(folder: Path, workloads: str, records: str) -> None:
    for name, text in zip(FILES, (workloads, records), strict=True):
        (folder / name).write_text(text)


def test_lines_have_the_shape_of_tvm(tmp_path: Path) -> None:
    assert write_lines(sample(), tmp_path) == (1, 3)
    first, second, third = (json.loads(line) for line in (tmp_path / FILES[1]).read_text().splitlines())
    assert first[:1] + first[1][:2] == [0, json.loads(TRACE), [0.1, 1 / 3]]
    assert first[1][2]["kind"] == "llvm" and first[1][3] is None and first[1][4]["host"]["cores"] == 4
    assert second[1][1:3] == [[1e10], "a processor of later versions"]
    assert third[1][1] is None
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    store = sample()
    write_lines(store, tmp_path)
    copy = read_lines(tmp_path)
    before, after = store.records(KEY, ""), copy.records(KEY, "")
    (program,) = copy.workloads()
    assert (program.name, program.script, len(after)) == ("product", PROGRAM.script(), 3)
    for one, other in zip(before, after, strict=True):
        assert fields_of(one) == fields_of(other)
    assert merge(store, copy) == (0, 0)


def test_records_without_our_part(tmp_path: Path) -> None:
    arguments = '[["TENSOR", "float32", [8]]]'
    records = f'[0, [[[], []], [0.5], {{"kind": "llvm"}}, {arguments}]]\n[0, [[[], []], [1e10], null, null]]\n'
    write(tmp_path, LINE + "\n\n", records + "[0, [[[], [1]], null, null, null]]\n" + records)
    found = read_lines(tmp_path).records(KEY, "")
    assert [record.outcome for record in found] == ["ok", "run_error", "not_measured"]
    assert found[0].target == str(_core.Target("llvm"))


@pytest.mark.parametrize(
    ("workloads", "records", "told"),
    [
        (f"{LINE}\n{{oops", "", "database_workload.json:2: is not JSON"),
        (f"{LINE}\n{{}}", "", "database_workload.json:2: {} is not a program"),
        (LINE, "\n[0, 1]", "database_tuning_record.json:2: is not a record"),
        (LINE, "\xff", "database_tuning_record.json:1: is not JSON"),
        (LINE, "[1, [[], [], null, null]]", "names workload 1, but there are 1"),
        (LINE, "[0, [[], 3, null, null]]", "run_secs is not a list"),
        (LINE, '[0, [[], ["a"], null, null]]', "run_secs is not a list of numbers"),
        (LINE, "[0, [[], [1], null, null, 5]]", "the fifth entry is not an object"),
        (LINE, '[0, [[], [1], null, null, {"seed": "x"}]]', "seed is of another type"),
        (LINE, '[0, [[], [1], null, null, {"error": "\\ud800"}]]', "error is of another type"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_read(workloads: str, records: str, told: str, tmp_path: Path) -> None:
    for name, text in zip(FILES, (workloads, records), strict=True):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(tw.ResourceError) as caught:
        read_lines(tmp_path)
    assert caught.value.code == "database/bad-line" and told in str(caught.value)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(tw.ResourceError, match="cannot be written") as caught:
        write_lines(sample(), tmp_path / "none")
    assert caught.value.code == "database/export"
    with pytest.raises(tw.ResourceError, match="cannot be read") as caught:
        read_lines(tmp_path / "none")
    assert caught.value.code == "database/import"
