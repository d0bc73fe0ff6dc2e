"""The page of a report as Debian's chromium shows it, headless."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.search.programs import Product

import tilewright as tw
from tilewright import _core
from tilewright.report.database_report import DatabaseReport, Roofline, TaskReport, report_on
from tilewright.report.page import page
from tilewright.support import machine
from tilewright.testing.workloads import matmul

#: put behind the page: what the browser made of it
LOOK = """
<script>
const box = element => { const r = element.getBoundingClientRect(); return [r.width, r.height]; };
const all = selector => [...document.querySelectorAll(selector)];
const meet = (one, other) => {
  const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
};
document.body.innerHTML += '<pre id="looked">' + JSON.stringify({
  wide: document.documentElement.scrollWidth <= window.innerWidth,
  charts: all('svg').map(box),
  curves: all('svg path.curve').map(path => path.getTotalLength()),
  outside: all('svg').flatMap(svg => [...svg.querySelectorAll('circle, text, path')].filter(each => {
    const a = each.getBoundingClientRect(), b = svg.getBoundingClientRect();
    return a.right < b.left || a.left > b.right || a.bottom < b.top || a.top > b.bottom;
  })).length,
  overlapping: all('svg').flatMap(svg => {
    const labels = [...svg.querySelectorAll('text')], best = [...svg.querySelectorAll('circle.best')];
    return labels.flatMap((one, i) => [...labels.slice(i + 1), ...best].filter(other => meet(one, other)).map(
      other => one.textContent + ' on ' + (other.textContent || 'the best')));
  }),
  labels: all('svg').map(svg => [...svg.querySelectorAll('text')].map(each => each.textContent)),
  cells: [...document.querySelector('table tbody tr').cells].map(cell => cell.offsetWidth / innerWidth),
  hints: [...document.querySelectorAll('table')[0].querySelectorAll('[title]')].map(each => each.title),
  cut: all('table').filter(table => table.scrollWidth > table.clientWidth).length,
  tables: all('table').map(table => [table.rows.length, ...box(table)]),
  folded: all('details').length,
  open: all('details[open]').length,
  asked: performance.getEntriesByType('resource').length,
}) + '</pre>';
</script>
"""


class Looked(HTMLParser):
    """What the script wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.text = False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = ("id", "looked") in attrs

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""


def look(report: DatabaseReport, folder: Path, width: int = 1280) -> dict[str, Any]:
    """What the browser makes of its page."""
    browser = shutil.which("chromium")
    assert browser, "apt-get install chromium"
    file = folder / "report.html"
    file.write_text(page(report).replace("</body>", LOOK + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"--user-data-dir={folder / 'profile'}", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    parser = Looked()
    parser.feed(shown.stdout)
    assert parser.text, shown.stderr
    return json.loads(parser.text)


def test_the_page_in_chromium(tmp_path: Path) -> None:
    def tiles(sch: tw.Schedule) -> None:
        i, j, k = sch.get_loops(sch.get_block("C"))
        j_out, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16], [0.3, 0.3, 0.4])])
        i_out, i_in = sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))
        sch.reorder(i_out, j_out, k, i_in, j_in)
        sch.vectorize(j_in)

    tw.tune(Product, space=tiles, trials=8, database=tmp_path / "records.db", progress=None)
    report = report_on(tmp_path / "records.db")
    (task,) = report.tasks
    looked = look(report, tmp_path)
    assert looked["wide"] and looked["asked"] == 0
    assert len(looked["charts"]) == 2 and all(min(box) > 100 for box in looked["charts"])
    assert looked["outside"] == 0 and len(looked["curves"]) == 1 and looked["curves"][0] > 50
    # The overview, the targets in full, the tables of the task, and where the time went.
    assert len(looked["tables"]) == 3 + len(list(task.tables()))
    assert all(rows > 1 and width > 100 and height > 20 for rows, width, height in looked["tables"])
    assert (looked["folded"], looked["open"]) == (len(list(task.texts())), 1)


#: as many features as the text of a target names on a processor that LLVM takes for an older one
LONG = "llvm -mcpu=rocketlake -mattr=+clwb,+cldemote,+movdiri,+movdir64b,+serialize,+avxvnni,+avx512bf16 -num-cores=2"
#: bytes per second of the levels of machines, in billions: far from each other, close together, and all alike
MACHINES = ((400, 200, 30, 16), (900, 50, 45, 40), (400, 390, 31, 30), (100, 100, 100, 100), (2000, 1000, 500, 12))
#: operations per byte, and the share that is reached of what they allow
PLACES = ((0.3, 0.5), (20, 0.95), (1000, 0.3), (0.001, 0.01))


def a_dozen(folder: Path) -> DatabaseReport:
    """Of programs with some trials each, on two targets."""
    path = str(folder / "records.db")
    store = _core.Database.open(path)
    for number in range(12):
        program = tw.ir.IRModule({"main": matmul(16 + 8 * number, 16, 16)})
        key = _core.structural_hash(program)
        store.commit_workload(key, f"product_{number}" if number % 2 else "product", program.script())
        for trial in range(1 + number * number):
            seconds = [10.0 ** (-number % 7) / (trial + 2)]
            store.commit(_core.Record(workload=key, target=LONG, trace="[[], []]", seconds=seconds))
        where = "llvm -mcpu=haswell -num-cores=1"
        store.commit(_core.Record(workload=key, target=where, trace="[[], []]", seconds=[1e-3]))
    return report_on(path, top=1)


def placed(task: TaskReport, speeds: tuple[int, ...], intensity: float, share: float) -> TaskReport:
    """The task on a machine with such levels."""
    levels = [
        machine.Level(name, 1, speed * 1e9) for name, speed in zip(("L1", "L2", "L3", "memory"), speeds, strict=True)
    ]
    work = dataclasses.replace(task.work, flops=intensity * task.work.bytes)
    roofs = machine.Roofs(2, {"float32": 2e11}, tuple(levels))
    roof = roofs.binding(work.flops, work.bytes)
    return dataclasses.replace(task, work=work, roofline=Roofline(work, roof.seconds / share, roofs, roof))


@pytest.mark.parametrize("width", [1280, 700])
def test_a_dozen_programs_are_readable(tmp_path: Path, width: int) -> None:
    report = a_dozen(tmp_path)
    assert len(report.tasks) == 24
    places = [(speeds, *place) for speeds in MACHINES for place in PLACES]
    tasks = [placed(task, *places[n % len(places)]) for n, task in enumerate(report.tasks)]
    looked = look(dataclasses.replace(report, tasks=tuple(tasks)), tmp_path, width)
    assert looked["wide"] and looked["cut"] == 0
    assert len(looked["charts"]) == 48 and looked["overlapping"] == [] and looked["outside"] == 0
    rooflines = [labels for labels in looked["labels"] if "operations per byte" in labels]
    assert len(rooflines) == 24 and all({"L1", "L2", "L3", "memory"} <= set(labels) for labels in rooflines)
    assert max(looked["cells"]) < 0.3 and {LONG, "llvm -mcpu=haswell -num-cores=1"} == set(looked["hints"])
