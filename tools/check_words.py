"""Check words: no notes to ourselves, American spelling, no file that is named after nothing."""

import re
from collections.abc import Iterator
from pathlib import Path

import report

FOLDERS = ("src", "python", "tests", "tools", "benchmarks", "examples", "scripts", "cmake", "docs")
SUFFIXES = (".cc", ".h", ".c", ".def", ".py", ".pyi", ".md", ".cmake", "")

NOTES = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# The left side is British. Word parts, so that "initialised" and "initialisation" are found, too.
BRITISH = {
    "behaviour": "behavior",
    "colour": "color",
    "favour": "favor",
    "neighbour": "neighbor",
    "honour": "honor",
    "artefact": "artifact",
    "centre": "center",
    "licence": "license",
    "analyse": "analyze",
    "optimis": "optimiz",
    "initialis": "initializ",
    "serialis": "serializ",
    "normalis": "normaliz",
    "vectoris": "vectoriz",
    "parallelis": "paralleliz",
    "recognis": "recogniz",
    "summaris": "summariz",
    "canonicalis": "canonicaliz",
    "specialis": "specializ",
    "materialis": "materializ",
    "synchronis": "synchroniz",
    "labelled": "labeled",
    "modelling": "modeling",
    "cancelled": "canceled",
}
# "Analyses" is the plural of analysis, too.
BRITISH_WORD = re.compile("(" + "|".join(BRITISH) + r")(?<!analyse(?=s\b))", re.IGNORECASE)
EMPTY_NAMES = {"utils", "util", "common", "misc", "helper", "helpers"}


def check(root: Path) -> Iterator[str]:
    """Yield one line for each finding."""
    for path in report.source_files(root, FOLDERS, SUFFIXES):
        name = path.relative_to(root)
        for part in (*name.parts[:-1], path.stem):
            if part in EMPTY_NAMES:
                yield f"{name}: '{part}' does not say what it holds"
        if path == Path(__file__) or name.parts[:2] == ("tests", "tools"):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if match := NOTES.search(line):
                yield f"{name}:{number}: {match.group(0)}: finish it, or open an issue"
            if match := BRITISH_WORD.search(line):
                yield f"{name}:{number}: {match.group(0)} is spelled {BRITISH[match.group(0).lower()]} here"


if __name__ == "__main__":
    report.run(check)
