"""The command that reports on a database."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright import _core
from tilewright.cli.commands import app
from tilewright.database.records import open_database

from .conftest import Run


def test_page_and_terminal(run: Run, folder: Path) -> None:
    assert run("tune", "product.py", "--trials", "4", "--quiet").exit_code == 0
    result = run("report", "out/tilewright.db", "--out", "pages/report.html")
    assert result.exit_code == 0, result.output
    text = (folder / "pages" / "report.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and "vectorize" in text
    for part in ("records in out/tilewright.db", "how the best time fell", "where the time of 1 session went"):
        assert part in result.stdout
    assert "written: pages/report.html" in result.stdout
    # What the short name of the target stands for is said once, in a line that can be copied.
    (workload,) = (store := _core.Database.open("out/tilewright.db")).workloads()
    target = store.records(workload.hash, "")[0].target
    assert result.stdout.count(target) == 1 and f": {target}\n" in result.stdout


def test_what_cannot_be_reported(run: Run, folder: Path) -> None:
    missing = run("report", "nothing.db")
    assert missing.exit_code == 1 and "nothing.db: no such file" in missing.stderr
    assert run("tune", "product.py", "--trials", "1", "--quiet").exit_code == 0
    (folder / "taken").write_text("")
    refused = run("report", "out/tilewright.db", "--out", "taken/report.html")
    assert refused.exit_code == 1 and "cannot be written" in refused.stderr  # report/cannot-write


class Texts(HTMLParser):
    """What a page shows: the cells of its tables and its listings."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = ""
        self.found: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th", "pre", "summary"):
            self.inside = tag
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            if tag in ("td", "th"):
                self.cells.append(self.found[-1])
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found[-1] += data


def test_the_terminal_shows_the_tables_of_the_page(run: Run, folder: Path) -> None:
    assert run("tune", "product.py", "--trials", "6", "--quiet").exit_code == 0
    result = run("report", "out/tilewright.db", "--out", "report.html")
    page = Texts()
    page.feed((folder / "report.html").read_text())
    texts = [line.strip() for text in page.found for line in text.splitlines() if line.strip()]
    assert any("its assembly" in text for text in texts) and any("ret" in text for text in texts)
    shown = " ".join(result.stdout.split())
    missing = [text for text in page.cells if " ".join(text.split()) not in shown]
    assert page.cells and missing == []
    # Programs and assembly would push the tables out of sight.
    assert "its assembly" not in result.stdout and "T.prim_func" not in result.stdout
    assert len(result.stdout.splitlines()) < 80


def test_the_page_lies_beside_the_database(run: Run, folder: Path) -> None:
    assert run("tune", "product.py", "--trials", "2", "--quiet").exit_code == 0
    result = run("report", "out/tilewright.db")
    assert "written: out/tilewright.html" in result.stdout
    assert (folder / "out" / "tilewright.html").is_file() and not (folder / "report.html").exists()
    # Steps are as a person writes them.
    page = (folder / "out" / "tilewright.html").read_text()
    assert "sch.split(" in page and "sch.enter_postproc()" not in page


def test_the_page_never_replaces_the_database(run: Run, folder: Path) -> None:
    place = folder / "records.html"
    open_database(place).flush()
    for options in ([], ["--out", "../" + folder.name + "/records.html"]):
        refused = run("report", "records.html", *options)
        assert refused.exit_code == 1 and "is the database" in refused.stderr  # report/cannot-write
    assert place.read_bytes().startswith(b"SQLite format 3")


def test_a_report_on_the_folder_of_a_session_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = tmp_path / "session"
    open_database(session / "database.db").flush()
    monkeypatch.chdir(session)
    assert CliRunner().invoke(app, ["report", "."]).exit_code == 0
    assert (tmp_path / "session.html").is_file()


def test_the_page_goes_to_a_pipe(run: Run, folder: Path) -> None:
    assert run("tune", "product.py", "--trials", "1", "--quiet").exit_code == 0
    result = run("report", "out/tilewright.db", "-o", "-")
    assert result.stdout.startswith("<!DOCTYPE html>") and result.stdout.rstrip().endswith("</html>")
    assert not (folder / "-").exists() and not (folder / "out" / "tilewright.html").exists()
    # Whatever the locale: the page says of itself that it is UTF-8.
    there = CliRunner(charset="ascii").invoke(app, ["report", "out/tilewright.db", "-o", "-"])
    assert there.exit_code == 0 and "·" in there.stdout_bytes.decode() and "charset" in there.stdout_bytes.decode()
