"""The page of a report as Debian's chromium shows it, headless."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

from tests.search.programs import Product

import tilewright as tw
from tilewright.database_report import report_on
from tilewright.report_page import page

#: put behind the page: what the browser made of it
LOOK = """
<script>
const box = element => { const r = element.getBoundingClientRect(); return [r.width, r.height]; };
const all = selector => [...document.querySelectorAll(selector)];
document.body.innerHTML += '<pre id="looked">' + JSON.stringify({
  wide: document.documentElement.scrollWidth <= window.innerWidth,
  charts: all('svg').map(box),
  curves: all('svg path.curve').map(path => path.getTotalLength()),
  outside: all('svg').flatMap(svg => [...svg.querySelectorAll('circle, text, path')].filter(each => {
    const a = each.getBoundingClientRect(), b = svg.getBoundingClientRect();
    return a.right < b.left || a.left > b.right || a.bottom < b.top || a.top > b.bottom;
  })).length,
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


def test_the_page_in_chromium(tmp_path: Path) -> None:
    browser = shutil.which("chromium")
    assert browser, "apt-get install chromium"

    def tiles(sch: tw.Schedule) -> None:
        i, j, k = sch.get_loops(sch.get_block("C"))
        j_out, j_in = sch.split(j, factors=[None, sch.sample_categorical([4, 8, 16], [0.3, 0.3, 0.4])])
        i_out, i_in = sch.split(i, factors=sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))
        sch.reorder(i_out, j_out, k, i_in, j_in)
        sch.vectorize(j_in)

    tw.tune(Product, space=tiles, trials=8, database=tmp_path / "records.db", progress=None)
    report = report_on(tmp_path / "records.db")
    (task,) = report.tasks
    file = tmp_path / "report.html"
    file.write_text(page(report).replace("</body>", LOOK + "</body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--dump-dom"]
    shown = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    parser = Looked()
    parser.feed(shown.stdout)
    assert parser.text, shown.stderr
    looked = json.loads(parser.text)
    assert looked["wide"] and looked["asked"] == 0
    assert len(looked["charts"]) == 2 and all(min(box) > 100 for box in looked["charts"])
    assert looked["outside"] == 0 and len(looked["curves"]) == 1 and looked["curves"][0] > 50
    # The overview, the tables of the task, and where the time went.
    assert len(looked["tables"]) == 2 + len(list(task.tables()))
    assert all(rows > 1 and width > 100 and height > 20 for rows, width, height in looked["tables"])
    assert (looked["folded"], looked["open"]) == (len(list(task.texts())), 1)
