"""Check that the codes of diagnostics and the tests that raise them agree.

A code is a string literal such as "split/P1". Every code in the source occurs in some test, and a test names no code
that the source does not have.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import report

CODE = re.compile(r'"([a-z][a-z0-9_-]*/[A-Za-z][A-Za-z0-9_-]*)"')
# In a test a code may stand inside a longer string, as in match="split/P1: the loop".
CODE_IN_TEST = re.compile(r"(?<![\w./-])([a-z][a-z0-9_-]*/[A-Za-z][A-Za-z0-9_-]*)(?![\w/.-]*[\w/])")
COMMENT = re.compile(r"//.*|^[ \t]*#.*", re.MULTILINE)

NOT_CODES = {"text/plain", "text/html", "image/png", "image/svg"}


def is_test(path: Path) -> bool:
    """C++ tests lie beside their subject, Python tests in tests/."""
    return path.stem.endswith("_test") or "tests" in path.parts


def check(root: Path) -> Iterator[str]:
    """Yield one line for each code without a test and for each code that only tests know."""
    defined: dict[str, str] = {}
    tested: dict[str, str] = {}
    for path in report.source_files(root, ("src", "python", "tests"), (".cc", ".h", ".c", ".def", ".py")):
        name = path.relative_to(root)
        if name.parts[:2] == ("tests", "tools"):
            continue
        text = path.read_text()
        if is_test(name):
            for match in CODE_IN_TEST.finditer(text):
                tested.setdefault(match.group(1), f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
            continue
        # Comments keep their line breaks, so that line numbers stay right.
        text = COMMENT.sub("", text)
        for match in CODE.finditer(text):
            if match.group(1) not in NOT_CODES:
                defined.setdefault(match.group(1), f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
    for code, place in defined.items():
        if code not in tested:
            yield f"{place}: no test raises {code}"
    # Paths look like codes; what starts with the first word of a code is one.
    subjects = {code.split("/")[0] for code in defined}
    for code, place in tested.items():
        if code.split("/")[0] in subjects and code not in defined:
            yield f"{place}: {code} is not a code of the source"


if __name__ == "__main__":
    report.run(check)
