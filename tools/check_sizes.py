"""Check that no source file has more than 800 lines and no function 100 or more.

A longer file holds two concepts; a longer function is several steps without names.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import report

FILE_LINES = 800
FUNCTION_LINES = 100

FOLDERS = ("src", "python", "tests", "tools", "benchmarks", "examples", "scripts", "cmake")
CPP_SUFFIXES = (".cc", ".h", ".c")
OTHER_SUFFIXES = (".py", ".cmake", ".sh", "")

# Code formatted by clang-format: what opens on a line of some indentation, or continues one by more of it, closes with
# a brace alone at the same indentation. Functions have parentheses before their brace, classes and namespaces have none
OPENS = re.compile(r"\)[^;]*\{$")
CLOSES = re.compile(r"( *)\}[;,)]*$")


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Functions, methods too: the first line, its number, how many lines it has. What is inside of one is not told."""
    lines = text.splitlines()
    starts: dict[int, int] = {}  # by indentation: the line that began last
    inside: list[tuple[str, int, int]] = []
    for number, line in enumerate(lines, start=1):
        closed = CLOSES.fullmatch(line)
        indentation = len(line) - len(line.lstrip())
        if closed and indentation in starts:
            start = starts.pop(indentation)
            if OPENS.search(header_of(lines, start)):
                inside = [one for one in inside if one[1] < start]
                inside.append((lines[start - 1].strip(), start, number - start + 1))
        elif line.strip() and line.lstrip()[0] not in "}/#)":
            starts[indentation] = number
    yield from inside


def header_of(lines: list[str], start: int) -> str:
    """Return the lines from `start` to the first one that ends in an opening brace, joined."""
    collected: list[str] = []
    for line in lines[start - 1 :]:
        collected.append(line)
        if line.endswith(("{", ";")):
            break
    return " ".join(collected)


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Functions and methods, nested ones too, counted from the `def` line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            end = node.end_lineno or node.lineno
            yield f"def {node.name}", node.lineno, end - node.lineno + 1


def check(root: Path) -> Iterator[str]:
    """Yield one line for each file and each function that is too long."""
    for path in report.source_files(root, FOLDERS, CPP_SUFFIXES + OTHER_SUFFIXES):
        name = path.relative_to(root)
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield f"{name}: {lines} lines, at most {FILE_LINES} are allowed: it holds two concepts"
        functions: Iterator[tuple[str, int, int]] = iter(())
        if path.suffix in CPP_SUFFIXES:
            functions = cpp_functions(text)
        elif path.suffix == ".py" and "templates" not in path.parts:  # those become Python once they are filled in
            functions = python_functions(text)
        for header, start, length in functions:
            if length >= FUNCTION_LINES:
                yield f"{name}:{start}: {length} lines, a function has fewer than {FUNCTION_LINES}: {header}"


if __name__ == "__main__":
    report.run(check)
