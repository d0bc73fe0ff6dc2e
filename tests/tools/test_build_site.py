"""The site: outputs below programs, lessons as pages, the sections of docs/README.md."""

import re
from pathlib import Path

import pytest

import build_site
import pages
import report

PAGE = """# How?

```python
x = 20
print(x + 1)
```

Then:

```python
y = x * 2
```

```
a command
```

```python
print("doubled", y)
```
"""

LESSON = '''"""Lesson 1: one line.

python examples/01_lesson.py [COUNT]

It prints a line.
"""

from pathlib import Path

print(Path("examples").is_dir())
'''


def test_outputs_stand_below_the_programs_that_print_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    text = build_site.with_outputs(page)
    outputs = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert outputs == ["21\n", "doubled 40\n"]
    assert text.index("21\n") < text.index("Then:") < text.index("y = x") < text.index("doubled 40")


def test_a_page_continues_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pages.CONTINUES, "second.md", "first.md")
    (tmp_path / "first.md").write_text("```python\nx = 1\nprint('first')\n```\n")
    (tmp_path / "second.md").write_text("```python\nprint(x + 1)\n```\n")
    text = build_site.with_outputs(tmp_path / "second.md")
    assert "```text\n2\n```" in text and "first" not in text


def test_a_program_that_fails_ends_the_build(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert False\n```\n")
    with pytest.raises(AssertionError):
        build_site.with_outputs(page)


def test_long_outputs_are_cut() -> None:
    text = build_site.shown("line\n" * 100)
    assert text.count("line\n") == build_site.MOST_LINES and text.endswith("...\n```\n")
    assert build_site.shown("\n") == ""


def test_a_lesson_is_a_page(tmp_path: Path) -> None:
    path = tmp_path / "examples/01_lesson.py"
    path.parent.mkdir()
    path.write_text(LESSON)
    text = build_site.lesson(path)
    assert text.startswith("# Lesson 1: one line.\n\nIt prints a line.\n\n```\npython examples/01_lesson.py\n```\n")
    assert "```text\nTrue\n```" in text and "```python\nfrom pathlib import Path\n" in text


def test_the_sections_of_the_index_are_those_of_the_site() -> None:
    sections = build_site.navigation((report.ROOT / "docs/README.md").read_text())
    listed = [page for section in sections[1:] for entry in next(iter(section.values())) for page in entry.values()]
    assert {"scripts.md", "performance.md", "decisions/README.md"} <= {*listed}


def test_links_to_tables_lead_to_catalogs_on_the_site() -> None:
    text = "The [table](../src/ir/intrinsics.def) and [others](../src/ir/make.cc)."
    assert build_site.with_catalogs(text, 0) == "The [table](reference/intrinsics.md) and [others](../src/ir/make.cc)."
    deeper = "[nodes](../../src/ir/kinds.def)"
    assert build_site.with_catalogs(deeper, 1) == "[nodes](../reference/nodes.md)"


def test_links_between_pages_lead_to_files_of_the_checkout() -> None:
    missing = [
        f"{page.name}: {link}"
        for page in sorted((report.ROOT / "docs").rglob("*.md"))
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert missing == []
