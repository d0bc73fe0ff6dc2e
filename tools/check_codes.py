"""Check that the codes of diagnostics and the tests that raise them agree.

A code is a string literal such as "split/P1". Every code in the source occurs in some test, and a test names no code
that the source does not have. Python raises an error of ours with a code: ArgumentError.of("te/shape", ...).

    python tools/check_codes.py                               the texts
    python tools/check_codes.py --raised build/raised-codes   and what a run of all tests has really raised

Processes leave in the folder that TILEWRIGHT_RAISED_CODES names, one file each, which codes came to be in them, and
which refusals of schedules had no hint when they reached the user; a test that this machine cannot run leaves its text
in a file skipped-..., and is not blamed.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import report

CODE = re.compile(r'"([a-z][a-z0-9_-]*/[A-Za-z][A-Za-z0-9_-]*)"')
# In a test a code may stand inside a longer string, as in match="split/P1: the loop".
CODE_IN_TEST = re.compile(r"(?<![\w./-])([a-z][a-z0-9_-]*/[A-Za-z][A-Za-z0-9_-]*)(?![\w/.-]*[\w/])")
COMMENT = re.compile(r"//.*|^[ \t]*#.*", re.MULTILINE)

#: Stands before a code in the files of a run where a refusal of a schedule reached Python without a hint.
HINTLESS = "without a hint: "
SUFFIXES = (".cc", ".h", ".c", ".def", ".py")
#: What else is written so: types of media, and names of parts of a session's time.
NOT_CODES = re.compile(r"(text|image|beside)/")


def is_test(path: Path) -> bool:
    """C++ tests lie beside their subject, Python tests in tests/."""
    return path.stem.endswith("_test") or "tests" in path.parts


def line_of(text: str, position: int) -> int:
    """The number of the line that a position of a text lies in."""
    return text.count("\n", 0, position) + 1


def defined_codes(root: Path) -> Iterator[tuple[str, str]]:
    """Each code in the source, and its place as file:line."""
    for path in report.source_files(root, ("src", "python"), SUFFIXES):
        name = path.relative_to(root)
        if is_test(name):
            continue
        # What replaces a comment keeps its line breaks, so that line numbers stay right.
        text = COMMENT.sub("", path.read_text())
        for match in CODE.finditer(text):
            if not NOT_CODES.match(match.group(1)):
                yield match.group(1), f"{name}:{line_of(text, match.start())}"


def tested_codes(root: Path) -> Iterator[tuple[str, str]]:
    """Whatever looks like a code in a test, and its place."""
    for path in report.source_files(root, ("src", "tests"), SUFFIXES):
        name = path.relative_to(root)
        if not is_test(name) or name.parts[:2] == ("tests", "tools"):
            continue
        text = path.read_text()
        for match in CODE_IN_TEST.finditer(text):
            yield match.group(1), f"{name}:{line_of(text, match.start())}"


def raised_without_a_code(root: Path) -> Iterator[str]:
    """Each place, as file:line, where Python raises or returns an error of ours that was made from a text alone."""
    errors = root / "python/tilewright/errors.py"
    classes = set(re.findall(r"^class (\w+)", errors.read_text(), re.MULTILINE)) if errors.exists() else set()
    for path in report.source_files(root, ("python",), (".py",)):
        for node in ast.walk(ast.parse(path.read_text())):
            made = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Return) else None
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in classes:
                yield f"{path.relative_to(root)}:{made.lineno}: {made.func.id} without a code"


def check(root: Path) -> Iterator[str]:
    """Yield one line for each code without a test, each code that only tests know, and each error without a code."""
    defined = dict(reversed(list(defined_codes(root))))
    tested = dict(reversed(list(tested_codes(root))))
    for code, place in defined.items():
        if code not in tested:
            yield f"{place}: no test raises {code}"
    # Paths look like codes; what starts with the first word of a code is one.
    subjects = {code.split("/")[0] for code in defined}
    for code, place in tested.items():
        if code.split("/")[0] in subjects and code not in defined:
            yield f"{place}: {code} is not a code of the source"
    yield from raised_without_a_code(root)


def check_raised(root: Path, folder: Path) -> Iterator[str]:
    """Yield one line for each code that the run whose files lie in the folder has not raised."""
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.txt"))}
    raised = {line for name, text in files.items() if not name.startswith("skipped-") for line in text.splitlines()}
    skipped = {
        code for name, text in files.items() if name.startswith("skipped-") for code in CODE_IN_TEST.findall(text)
    }
    if not raised:
        yield f"{folder}: no test run has left what it raised here"
        return
    for code, place in dict(reversed(list(defined_codes(root)))).items():
        if code not in raised and code not in skipped:
            yield f"{place}: {code} was not raised by the tests"
        if HINTLESS + code in raised:
            yield f"{place}: {code} was raised without a hint: a refusal says what to do about it"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--raised"] and len(sys.argv) == 3:
        report.run(lambda root: (*check(root), *check_raised(root, Path(sys.argv[2]))))
    report.run(check)
