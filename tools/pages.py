"""Read the programs of documentation pages: the Python blocks of a page run one after the other."""

import re
from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Pages whose programs use definitions of another page.
CONTINUES = {"own-strategies.md": "own-spaces.md"}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each code block of a page."""
    return _BLOCK.findall(page.read_text())


def program(page: Path) -> str:
    """Return the Python blocks of a page, after those of the page that it continues."""
    before = program(page.with_name(CONTINUES[page.name])) if page.name in CONTINUES else ""
    return "\n".join([before, *(text for language, text in blocks(page) if language == "python")])


def with_programs(folder: Path) -> list[str]:
    """Return the names of the pages in a folder that have a Python block."""
    return sorted(page.name for page in folder.glob("*.md") if any(kind == "python" for kind, _ in blocks(page)))
