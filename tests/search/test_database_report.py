"""Reports on files of records."""

from __future__ import annotations

import re
import textwrap
from html.parser import HTMLParser

import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright import _core
from tilewright.database.session_notes import store_finals, update_reference_seconds
from tilewright.report.database_report import FINALS, ONE_CALL, SEARCH, WRITTEN, report_on
from tilewright.report.page import page
from tilewright.report.target_names import short_targets
from tilewright.testing.workloads import matmul


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "records.db"

    def tiles(sch: tw.Schedule) -> None:
        i, j, k = sch.get_loops(sch.get_block("C"))
        j_out, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16], [0.3, 0.3, 0.4])])
        i_out, i_in = sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))
        sch.reorder(i_out, j_out, k, i_in, j_in)
        sch.vectorize(j_in)

    result = tw.tune(Product, space=tiles, trials=8, database=path, progress=None)
    return path, result


def commit(path, program, seconds, outcome="ok", error="", target=None):
    store = _core.Database.open(str(path))
    key = _core.structural_hash(program)
    store.commit_workload(key, "<product> & more", program.script())
    where = target or str(_core.Target("llvm -num-cores=1"))
    store.commit(
        _core.Record(workload=key, target=where, trace="[[], []]", seconds=seconds, outcome=outcome, error=error)
    )


class Checker(HTMLParser):
    """That tags are closed in turn, and that nothing outside is asked for."""

    EMPTY = ("meta", "line", "circle", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.places: list[float] = []
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert not {"src", "srcset", "data"} & {name for name, _ in attrs}
        assert tag not in ("script", "link", "iframe", "img")
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            if name == "href":
                self.links.append(value)
            if name in ("cx", "cy", "x", "y"):
                self.places.append(float(value))
            if name == "d":
                self.places += [float(n) for n in re.findall(r"-?[\d.]+", value)]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()


def check_page(text: str) -> None:
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    # Links stay on the page: from the overview to each program, and back.
    assert all(link[0] == "#" and link[1:] in checker.ids for link in checker.links)
    programs = {name for name in checker.ids if name.startswith("program-")}
    assert {link[1:] for link in checker.links} == programs | ({"overview"} if programs else set())
    assert len(checker.links) == 2 * len(programs)
    assert all(-1 <= place <= 500 for place in checker.places)
    assert "url(" not in text and "http" not in text


def test_what_a_search_left_behind(tuned):
    path, result = tuned
    report = report_on(path)
    (task,) = report.tasks
    assert (task.name, len(task.trials)) == ("main", result.progress.trials)
    assert task.best_seconds <= result.record.median * 1.5
    times = [seconds for _, seconds in task.progress()]
    assert times == sorted(times, reverse=True)
    steps = "\n".join(task.best[0].steps)
    assert textwrap.indent(steps, "    ") in str(result.schedule.trace) and "l1" not in steps
    assert task.best[0].script == result.schedule.mod.script()
    assert ("ret" in task.best[0].assembly and task.best[-1].assembly == "") or len(task.best) == 1
    assert task.roofline is not None and 0 < task.roofline.share < 1.5
    assert task.roofline.intensity == pytest.approx(2 * 32**3 / (3 * 4 * 32**2))
    (session,) = report.times
    assert session[0] == "tune main"
    assert {"preparing", "sampling", "measuring"} <= set(session[1])
    assert all(seconds >= 0 for seconds in session[1].values())
    rows = report.time_table().rows
    assert rows[0][0] == "Total" and any("other processes meanwhile" in what for what, *_ in rows)
    text = page(report)
    check_page(text)
    for part in ("Where the time went", "its assembly", "of the limit", "<svg", "vectorize"):
        assert part in text


def test_failures_and_other_machines(tmp_path):
    path = tmp_path / "records.db"
    program = tw.ir.IRModule({"main": matmul(16, 16, 16)})
    for seconds in ([3e-3], [2e-3], [4e-3], [1e-3]):
        commit(path, program, seconds)
    for number in range(3):
        commit(path, program, [], "run_crash", f"signal {number} <in> the kernel")
    commit(path, program, [], "build_error", "refused")
    commit(path, program, [5e-3], target="llvm -mcpu=haswell -num-cores=1")
    report = report_on(path)
    assert len(report.tasks) == 2
    here = max(report.tasks, key=lambda task: len(task.trials))
    there = min(report.tasks, key=lambda task: len(task.trials))
    assert [(trial.number, seconds) for trial, seconds in here.progress()] == [(1, 3e-3), (2, 2e-3), (4, 1e-3)]
    assert here.failures == {"run_crash": (3, "signal 0 <in> the kernel"), "build_error": (1, "refused")}
    assert here.failure_table().rows[0] == ("run_crash", "3", "signal 0 <in> the kernel")
    assert there.roofline is None
    text = page(report)
    check_page(text)
    assert "&lt;product&gt; &amp; more" in text and "<product>" not in text
    assert "signal 0 &lt;in&gt; the kernel" in text
    assert report.times == ()


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_seconds_that_are_no_time(tmp_path, seconds):
    """Records of other programs may say anything; what is no time is not the best one."""
    path = tmp_path / "records.db"
    program = tw.ir.IRModule({"main": matmul(16, 16, 16)})
    commit(path, program, [seconds] * 40)
    commit(path, program, [2e-3])
    (task,) = report_on(path).tasks
    assert (task.best_seconds, task.failures) == (2e-3, {"no time": (1, "")})
    assert [trial.seconds for trial in task.trials] == [None, 2e-3]
    check_page(page(report_on(path)))
    store = _core.Database.open(str(path))
    assert [row.median for row in store.top_k(_core.structural_hash(program), task.target, 9)] == [2e-3]


def test_programs_that_cannot_be_read(tmp_path):
    path = tmp_path / "records.db"
    store = _core.Database.open(str(path))
    store.commit_workload("0" * 32, "strange", "this is no program")
    store.commit(_core.Record(workload="0" * 32, target="llvm -num-cores=1", trace="[[], []]", seconds=[1.0]))
    report = report_on(path)
    assert report.tasks[0].best == () and "cannot be read" in report.tasks[0].remark
    check_page(page(report))


def test_files_without_records(tmp_path):
    path = tmp_path / "records.db"
    _core.Database.open(str(path))
    assert report_on(path).tasks == ()
    assert "It holds no records" in page(report_on(path))
    check_page(page(report_on(path)))
    with pytest.raises(tw.ResourceError) as error:
        report_on(tmp_path / "missing.db")
    assert error.value.code == "report/missing-file"
    assert not (tmp_path / "missing.db").exists()


def test_what_was_stopped_early_has_not_failed(tmp_path):
    path = tmp_path / "records.db"
    program = tw.ir.IRModule({"main": matmul(16, 16, 16)})
    for seconds, outcome in (([3e-3], "ok"), ([9e-3], "slow_stopped"), ([8e-3], "slow_stopped"), ([], "run_crash")):
        commit(path, program, seconds, outcome, "" if outcome == "ok" else f"it was {outcome}")
    (task,) = report_on(path).tasks
    assert (len(task.trials), task.stopped, list(task.failures)) == (4, 2, ["run_crash"])
    assert report_on(path).overview().rows[0][2:5] == ("4", "2", "1")
    assert "it was slow_stopped" not in page(report_on(path))


def test_the_last_time_is_that_of_the_best(tuned):
    path, result = tuned
    (task,) = report_on(path).tasks
    assert task.best_seconds == result.record.median == task.best[0].seconds
    assert (0 if task.winner is None else task.winner.number) == result.record.index + 1
    last = task.progress_table().rows[-1]
    assert last[2] == report_on(path).overview().rows[0][5]
    if task.had_finals:
        winner = "as written" if task.winner is None else str(task.winner.number)
        assert last[0] == f"{winner}, timed alternately"
        assert "the large dot is the best, timed alternately" in page(report_on(path))


def test_refusals_are_told_with_their_reasons(tmp_path):
    path = tmp_path / "records.db"

    def odd(sch: tw.Schedule) -> None:
        i, j, _ = sch.get_loops(sch.get_block("C"))
        value = int(sch.sample_categorical(list(range(2, 18)), [1 / 16] * 16))
        if value % 2 == 0:
            raise ValueError("even ones are not to be had")
        sch.split(i, factors=[None, value])

    result = tw.tune(Product, space=odd, trials=4, database=path, progress=None)
    (task,) = report_on(path).tasks
    count, message = task.refusals["space/exception"]
    assert count == result.progress.refusals["space/exception"][0] > 0 and "even ones are not to be had" in message
    assert "even ones are not to be had" in page(report_on(path))
    # A session that was done before draws nothing, and what is known stays.
    tw.tune(Product, space=odd, trials=4, database=path, progress=None)
    assert report_on(path).tasks[0].refusals == task.refusals


def test_targets_have_short_names_of_their_own():
    plain, wide = "llvm -mcpu=haswell -num-cores=1", "llvm -mcpu=haswell -num-cores=1 -vector-width=128"
    host = '{"kind":"cuda","arch":"sm_80","host":{"kind":"llvm","mcpu":"haswell","num-cores":2}}'
    strange = ("", "{harmed", "[]", "x" * 100 + " -num-cores=" + "9" * 100)
    names = short_targets([wide, plain, "llvm -mcpu=znver3 -mattr=+a,+b -num-cores=2", "interpreter", host, *strange])
    assert names[plain] == "llvm haswell, 1 core #1" and names[wide] == "llvm haswell, 1 core #2"
    assert names["llvm -mcpu=znver3 -mattr=+a,+b -num-cores=2"] == "llvm znver3, 2 cores"
    assert (names["interpreter"], names[host]) == ("interpreter", "cuda sm_80")
    assert len(set(names.values())) == len(names) == 9 and all(0 < len(name) < 60 for name in names.values())


def test_tables_name_targets_shortly_and_programs_apart(tmp_path):
    path = tmp_path / "records.db"
    features = "+clwb,+cldemote,+movdiri,+movdir64b,+serialize"
    targets = [f"llvm -mcpu=rocketlake -mattr={which} -num-cores=1" for which in (features, f"{features},+avxvnni")]
    programs = [tw.ir.IRModule({"main": matmul(n, 16, 16)}) for n in (16, 32)]
    commit(path, programs[0], [1e-3], target=targets[0])
    commit(path, programs[1], [1e-3], target=targets[0])
    commit(path, programs[1], [1e-3], target=targets[1])
    report = report_on(path)
    assert set(report.short_targets) == {task.target for task in report.tasks}
    assert {row[1] for row in report.overview().rows} == {f"llvm rocketlake, 1 core #{number}" for number in (1, 2)}
    assert (
        len({row[:2] for row in report.overview().rows}) == 3 and len({row[0] for row in report.overview().rows}) == 2
    )
    assert len({report.heading(task) for task in report.tasks}) == 3
    assert max(len(line) for line in str(report.overview()).splitlines()) < 120
    text = page(report)
    check_page(text)
    for number, target in enumerate(sorted(targets), 1):
        # Where the mouse is on it, and once to be read and copied.
        assert f'<span title="{target}">llvm rocketlake, 1 core #{number}</span>' in text
        assert text.count(f">{target}</td>") == 1


def test_the_best_is_compared_with_the_baselines_of_the_same_finals(tuned):
    path, result = tuned
    (task,) = report_on(path).tasks
    assert task.series == FINALS and [(each.name, each.series) for each in task.baselines] == [
        ("as written", FINALS),
        ("heuristic schedule", FINALS),
    ]
    times = [best.seconds for best in task.best]
    assert times == sorted(times) and times[0] == result.record.median
    assert task.gain == task.baselines[0].seconds / times[0] > 0.9
    assert "C[vi, vj] + A[vi, vk] * B[vk, vj]" in task.source and "vectorized" not in task.source
    text = page(report_on(path))
    for part in ("the program as written, without a schedule", "heuristic schedule", "its steps", "timed alternately"):
        assert part in text


def finals_of(path, times, *, winner=0, heuristic=""):
    """A file with one record for each of the times of the search; the finals have those of `times`: (kind, number of
    the record or None, seconds, ratio to the winner)."""
    program = tw.ir.IRModule({"main": matmul(16, 16, 16)})
    for seconds in (1.0e-3, 1.1e-3, 1.2e-3, 1.3e-3):
        commit(path, program, [seconds])
    store = _core.Database.open(str(path))
    key, target = _core.structural_hash(program), str(_core.Target("llvm -num-cores=1"))
    ids = [row.id for row in store.records(key, "")]
    finals = [(kind, 0 if at is None else ids[at], seconds, ratio) for kind, at, seconds, ratio in times]
    store.commit_finals(key, target, ids[winner], [times[0][2]], ids[-1])
    if len(finals) > 1:
        store_finals(store, key, target, {"finals": finals, "last_record": ids[-1]}, heuristic)
    return store, key, target, ids


def test_no_second_best_is_faster_than_the_best(tmp_path):
    """The first record was the fastest in the search and lost the finals. Another finalist has the lower median there,
    but no clear difference from the winner, which was known before: it is as fast."""
    path = tmp_path / "records.db"
    times = [
        ("trial", 1, 1.30e-3, (1.0, 1.0, 1.0)),
        ("trial", 0, 1.50e-3, (1.1, 1.15, 1.2)),
        ("trial", 2, 1.28e-3, (0.95, 0.99, 1.02)),
        ("written", None, 5.2e-3, (3.9, 4.0, 4.1)),
    ]
    finals_of(path, times, winner=1)
    (task,) = report_on(path, top=9).tasks
    found = [(best.number, best.seconds, best.is_as_fast) for best in task.best]
    # What took no part in the finals has no time to be compared.
    assert found == [(2, 1.30e-3, False), (3, 1.30e-3, True), (1, 1.50e-3, False)]
    assert task.best_seconds == 1.30e-3 and task.gain == pytest.approx(4.0)
    rows = {row[0]: row for row in task.comparison_table().rows}
    assert rows["second-best (trial 3)"][-1] == "no clear difference from the best"
    assert rows["best (trial 2)"][3] == "4.00 x" and rows["as written"][1] == "5.2 ms"
    titles = [title for title, _ in task.texts()]
    assert "second-best schedule (trial 3), no clear difference from the best: its steps" in titles
    check_page(page(report_on(path)))


def test_finals_that_kept_their_winner_alone(tmp_path):
    """Files of earlier versions: no time of the search stands beside one of the finals."""
    path = tmp_path / "records.db"
    store, key, target, _ = finals_of(path, [("trial", 1, 1.30e-3, (1.0, 1.0, 1.0))], winner=1)
    update_reference_seconds(store, key, target, 7e-3)
    (task,) = report_on(path).tasks
    assert [(best.number, best.seconds) for best in task.best] == [(2, 1.30e-3), (1, None), (3, None)]
    assert [(each.name, each.seconds, each.series) for each in task.baselines] == [(WRITTEN, 7e-3, ONE_CALL)]
    assert task.gain is None  # one call with cold caches is no measurement to divide by
    assert [row[1] for row in task.comparison_table().rows] == ["7 ms", "1.3 ms", "not kept", "not kept"]
    check_page(page(report_on(path)))


def test_a_record_that_came_after_the_finals(tmp_path):
    """It is faster than what won: the times of the search are compared, and none that is lower by chance."""
    path = tmp_path / "records.db"
    times = [("trial", 1, 1.05e-3, (1.0, 1.0, 1.0)), ("written", None, 5e-3, (4.0, 4.0, 4.0))]
    finals_of(path, times, winner=1)
    commit(path, tw.ir.IRModule({"main": matmul(16, 16, 16)}), [1.04e-3])
    (task,) = report_on(path).tasks
    assert task.series == SEARCH and not task.had_finals
    # The first record, of 1 ms in the search, lost the finals.
    assert [(best.number, best.seconds) for best in task.best] == [(5, 1.04e-3), (2, 1.1e-3), (3, 1.2e-3)]
    assert task.baselines == ()


@pytest.mark.parametrize("harmed", ["{", "[]", '{"times": []}', '{"times": [[1]], "last_record": 1, "heuristic": ""}'])
def test_notes_of_finals_that_were_harmed(tmp_path, harmed):
    path = tmp_path / "records.db"
    store, key, target, _ = finals_of(path, [("trial", 1, 1.30e-3, (1.0, 1.0, 1.0))], winner=1)
    store.set_meta(f"finals/{key}/{target}", harmed)
    with pytest.warns(UserWarning, match="what the finals of program .* measured is damaged"):
        (task,) = report_on(path).tasks
    assert task.best_seconds == 1.30e-3


def test_a_heuristic_schedule_that_is_faster_is_told(tmp_path):
    path = tmp_path / "records.db"
    times = [("trial", 0, 1.0e-3, (1.0, 1.0, 1.0)), ("heuristic", None, 0.5e-3, (0.5, 0.5, 0.5))]
    finals_of(path, times)
    (task,) = report_on(path).tasks
    assert task.advice == "the heuristic schedule is faster than what this space holds, as far as it was searched"
    assert "Note: the heuristic schedule is faster" in page(report_on(path))
