"""Check that files and folders of the repository that texts name are there: in Markdown, docstrings and comments.

A path begins with a folder at the top of the repository and ends as a file does, with backticks or without; between
backticks folders count, too (`src/ir/`), and what ends as our files do: `schedule/state.h` from src/, `kinds.def`.
Words in capitals and * stand for any name (`tests/schedule/test_METHOD.py`); what follows a colon is a line.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import report

SUFFIXES = (".md", ".py", ".cc", ".h", ".def", ".c", ".cmake", "")
#: made by builds, set-up and users
MADE = ("build/", ".venv/", "out/", "python/tilewright/_core.cpython", "python/tilewright/lib")
#: folders of such
LEFT = {"build", "out", "__pycache__", "node_modules"}
_IN_BACKTICKS = re.compile(r"`{1,2}([A-Za-z_.][\w.*+-]*(?:/[\w.*+-]+)*/?)(?::\d+)?`{1,2}")
_IN_TEXT = re.compile(r"(?<![\w./`*-])([a-z]\w*(?:/[\w*+-]+)+\.(?:cc|c|h|def|py|pyi|md|cmake))\b")
_WORD_FOR_ANY = re.compile(r"[A-Z]{2,}(?![A-Za-z]*\.md$)")
#: files at the top and names that only paths have
_AT_THE_TOP = re.compile(r"[A-Z]\w+\.(?:md|txt)|Makefile|CMakeLists\.txt|pyproject\.toml")


def files_of(root: Path) -> list[str]:
    """The files of the repository, without what builds, set-up and tools leave behind."""
    found = [path for path in root.iterdir() if path.is_file()]
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and folder.name not in LEFT and not folder.name.startswith("."):
            inside = (path for path in folder.rglob("*") if path.is_file())
            found += [path for path in inside if not LEFT & {*path.relative_to(root).parts}]
    return sorted(str(path.relative_to(root)) for path in found)


def check(root: Path) -> Iterator[str]:
    """Yield one line for each path that is named and not there."""
    files = files_of(root)
    folders = {str(parent) for file in files for parent in Path(file).parents}
    tops = {file.partition("/")[0] for file in files if "/" in file}
    known = {*files, *folders}
    for file in files:
        path = root / file
        if path.suffix not in SUFFIXES or file.startswith("tests/tools/") or path.stem.endswith("_test"):
            continue  # tests make up files
        if not path.is_file():
            continue
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, start=1):
            plain = [name for name in _IN_TEXT.findall(line) if name.partition("/")[0] in tops]
            quoted = [name for name in _IN_BACKTICKS.findall(line) if names_a_path(name, tops)]
            for name in dict.fromkeys(plain + quoted):
                if not is_there(name, file, known):
                    yield f"{file}:{number}: {name} is not there"


def names_a_path(name: str, tops: set[str]) -> bool:
    """Whether this is meant as a path in the repository."""
    if name.startswith(MADE):
        return False
    first, slash, rest = name.partition("/")
    is_ours = name.endswith((".cc", ".h", ".def")) and not name.startswith((".", "*"))
    if slash:
        return (first in tops and bool(rest)) or is_ours or name.endswith(".md")
    return is_ours or _AT_THE_TOP.fullmatch(name) is not None


def is_there(name: str, where: str, known: set[str]) -> bool:
    """Whether a file or folder has this name, from the top of the repository, from src/ or beside the file."""
    plain = name.rstrip("/")
    if plain in known or f"{Path(where).parent}/{plain}" in known:
        return True
    pattern = "[^/]*".join(re.escape(part) for part in _WORD_FOR_ANY.sub("*", plain).split("*"))
    # Texts about a part of the repository name files from there.
    return any(re.fullmatch(f"(?:.*/)?{pattern}", each) for each in known)


if __name__ == "__main__":
    report.run(check)
